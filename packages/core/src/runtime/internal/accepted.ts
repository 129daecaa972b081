/**
 * An output that a person has given in the place of one that the step's schema refused. It is kept like a signal: whoever goes on
 * with the run takes it in the very commit of the step (D24), with who gave it and when.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
import { toJsonText } from "../../model/internal/json.js"
import { successParts } from "./attemptEnds.js"
import { parkUnreadable, Unreadable } from "./completion.js"
import type { Attempt } from "./decide.js"
import { committed, type Failure, type Turn } from "./leave.js"
import { noOperation } from "./operationState.js"
import type { RunSession } from "./session.js"
import { asEffect } from "./soon.js"
import { compactedParts } from "./window.js"
import { isCompaction } from "./windowStates.js"

/** Under which name it is kept; no workflow waits for such a signal. */
export const acceptedName = (step: string): string => `cairn/output/${step}`

/** Whether somebody may have given the output: the run was parked for it. */
export const mayBeAccepted = ({ frame, path }: Attempt): boolean => {
  const last = frame.attempts.get(path)?.at(-1)
  return last?.kind === "rejected" && last.retryAt === null
}

/** Commits the step with the output that a person has given; undefined where nobody has. */
export const takeAccepted = (session: RunSession, attempt: Attempt): Effect.Effect<Turn | undefined, Failure> =>
  Effect.gen(function* () {
    const { namespace, runId } = session.lease
    const { path } = attempt
    const { signals } = yield* session
      .persist(session.env.store.loadSignals(namespace, runId, [acceptedName(path)]))
      .pipe(Effect.catchTag("RunNotFound", () => Effect.fail(session.leaseLost())))
    const [given] = signals
    if (given === undefined) return undefined
    const { output } = JSON.parse(given.payload ?? "{}") as { readonly output?: unknown }
    const { text } = toJsonText(output) as { readonly text: string | null }
    // It was checked when it was given; code that has changed since may expect another one.
    const value = outputCodec(session.node(path)).decode(text, `accepted output of step '${path}'`)
    if (Either.isLeft(value)) return yield* parkUnreadable(session, path, new Unreadable(path, value.left.message))
    const end = { _tag: "Passed", output: { value: value.right, text }, durationMs: 0 } as const
    const parts = isCompaction(path)
      ? compactedParts(session, attempt, end)
      : yield* asEffect(successParts(session, attempt, end, noOperation()))
    yield* committed(session, attempt, { ...parts, consumes: [{ signalId: given.signalId, path }] })
    yield* asEffect(session.env.onProgress(0))
    return parts.run.status === "completed" ? ({ _tag: "Final" } as const) : null
  })
