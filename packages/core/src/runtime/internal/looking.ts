/** A look at one thing that a run waits for: what may come of it, and how it is brought to its end. */
import * as Effect from "effect/Effect"
import type { WaitWrite } from "../../store/CheckpointDriver.js"
import type { Wait } from "./decide.js"
import type { Failure, Turn } from "./leave.js"
import { inProcessMs } from "./retry.js"
import type { RunSession } from "./session.js"
import { controlRecord } from "./failing.js"
import { refused, steered } from "./steering.js"

/** What came of a look at one wait: the run has gone on, or this is what it rests on. */
export type Looked =
  | { readonly _tag: "Went"; readonly turn: Turn }
  | { readonly _tag: "Waits"; readonly open: WaitWrite | null; readonly inMs: number | null }

export const went = (turn: Turn): Looked => ({ _tag: "Went", turn })

export const waits = (inMs: number | null, open: WaitWrite | null = null): Looked => ({ _tag: "Waits", inMs, open })

/** What the store's clock says now, as far as it can be told without asking. */
const nowAbout = ({ nowMs, run, startedAt }: RunSession): number => run.updatedAt + Math.floor(nowMs - startedAt)

/** Milliseconds until a time of the store's clock; 0 only once that clock says that it has come (X8). */
export const untilMs = (session: RunSession, at: number): Effect.Effect<number, Failure> =>
  Effect.gen(function* () {
    if (at <= session.run.updatedAt) return 0
    const about = at - nowAbout(session)
    if (about > inProcessMs) return about
    return Math.max(0, at - (yield* session.persist(session.env.store.now)))
  })

/** Commits the end of a wait. */
export const endWait = (
  session: RunSession,
  { node, path }: Wait,
  result: string | null,
  consumes: ReadonlyArray<{ readonly signalId: string; readonly path: string }> = [],
): Effect.Effect<Looked, Failure> =>
  Effect.map(
    steered(session, path, {
      run: session.running(path),
      steps: [controlRecord(path, node.kind, result)],
      consumes,
      closes: session.waits?.has(path) === true ? [path] : [],
    }),
    went,
  )

/** The wait fails its run. */
export const failWait = (session: RunSession, { path }: Wait, error: unknown): Effect.Effect<Looked, Failure> =>
  Effect.map(refused(session, path, error), went)
