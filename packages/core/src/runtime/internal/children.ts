/**
 * Runs that a run has started and waits for.
 *
 * - W2: everything before is durable before a child is there. Its id follows from the parent's path, so that a parent that
 *   comes back finds the same one (X9).
 * - X5: a run that is canceled or fails takes its children along, and ends when they have.
 * - X13: a child's end is counted on its parent's `inbox` in the child's own commit (D29).
 */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { ChildNode } from "../../dsl/Definition.js"
import { codecOf } from "../../model/Codec.js"
import { RunConflict } from "../../model/Errors.js"
import { fingerprint, maxIdLength } from "../../model/Ids.js"
import { canonicalText } from "../../model/internal/json.js"
import { finalStatuses, type FailureRecord, type RunOutcome } from "../../model/Records.js"
import { runnable } from "../../store/LocalSignals.js"
import { childResult } from "./childResult.js"
import { looked } from "./completion.js"
import type { Wait } from "./decide.js"
import { collectorOf, fail } from "./failing.js"
import { flowOf } from "./flowOf.js"
import type { Failure } from "./leave.js"
import { prefixOf } from "./paths.js"
import type { RunSession } from "./session.js"
import { endWait, failWait, waits, went, type Looked } from "./looking.js"

/** The id of the child that a run starts at a path. */
export const childRunId = (runId: string, path: string): string => {
  const whole = `${runId}/${path}`
  if (whole.length <= maxIdLength) return whole
  // 64 hexadecimal digits and what parts them from the beginning; cut where no pair of surrogates is.
  return `${whole.slice(0, maxIdLength - 66).replace(/[\ud800-\udbff]$/, "")}~~${createHash("sha256").update(whole).digest("hex")}`
}

const idOf = (session: RunSession, { path }: Wait): string => childRunId(session.lease.runId, path)

const found = (session: RunSession, runId: string): Effect.Effect<RunOutcome | null, Failure> =>
  session
    .persist(session.env.store.findRun(session.lease.namespace, runId))
    .pipe(Effect.catchTag("RunNotFound", () => Effect.succeed(null)))

/** What a child's wait looks like; it ends by the child's end alone. */
const resting = (session: RunSession, wait: Wait): Looked =>
  waits(
    null,
    wait.record === null ? { path: wait.path, kind: "child", name: idOf(session, wait), data: null, wake: null } : null,
  )

const begin = (session: RunSession, wait: Wait): Effect.Effect<Looked, Failure> =>
  Effect.gen(function* () {
    const { path } = wait
    const { namespace, runId } = session.lease
    const node = session.control(path) as ChildNode
    const { definition, name, plan: compiled, version } = node.workflow
    const place = `input of child '${node.name}'`
    const gated = yield* Effect.either(
      Effect.flatMap(looked(session, prefixOf(path), node.input, "results"), (given) =>
        codecOf(definition.input).gate(given, { place, maxLength: session.env.maxValueLength }),
      ),
    )
    if (Either.isLeft(gated)) return yield* failWait(session, wait, gated.left)
    if (Either.isLeft(compiled)) return yield* failWait(session, wait, compiled.left)
    const flow = flowOf(definition, gated.right.value, session.run.priority)
    if (Either.isLeft(flow)) return yield* failWait(session, wait, flow.left)
    const id = idOf(session, wait)
    const inputHash = fingerprint(canonicalText(gated.right.text))
    yield* session.barrier()
    if (session.env.leaseRemainingMs() <= 0) return yield* Effect.fail(session.leaseLost())
    yield* session.reach("beforeEffect", path, 1)
    const child = {
      namespace,
      runId: id,
      workflow: name,
      version,
      planHash: compiled.right.hash,
      input: gated.right.text,
      inputHash,
      parentRunId: runId,
      parentPath: path,
      ...flow.right,
      wakeAt: null,
    }
    // X6: in a worker that stalls here, a parent that somebody else has ended meanwhile starts nothing. Nor does one that a cancel
    // interrupts: what is on its way to the store is waited for, and taken along.
    const { created, run } = yield* session.persist(
      Effect.uninterruptible(session.env.store.createChild(child, session.lease)),
    )
    yield* session.reach("afterEffect", path, 1)
    if (run.parentRunId !== runId || run.workflow !== name || run.inputHash !== inputHash) {
      const reason = run.workflow === name ? "InputDiffers" : "WorkflowDiffers"
      const problem = `'${node.name}' would start it, and it is there already as another run`
      return yield* failWait(session, wait, new RunConflict({ namespace, runId: id, reason, problem }))
    }
    if (created) yield* session.env.store.signals.send(runnable)
    // An earlier owner has started it, and it ended before anybody waited: nothing more will be counted for that.
    return finalStatuses.has(run.status) ? yield* over(session, wait, run) : resting(session, wait)
  })

const over = (session: RunSession, wait: Wait, child: RunOutcome): Effect.Effect<Looked, Failure> => {
  const { path } = wait
  const node = session.control(path) as ChildNode
  const result = childResult(node, child)
  if (result !== null) return endWait(session, wait, result.text)
  const { failure, runId, version, workflow } = child
  const problem = `child '${runId}' ${child.status === "canceled" ? "was canceled" : "failed"}${failure === null ? "" : `: ${failure.problem}`}`
  const own: FailureRecord = { kind: "child", step: path, problem, runId, workflow, version, cause: failure }
  return Effect.map(
    fail(session, path, own, (parts) => session.commit({ ...parts, closes: [path] })),
    went,
  )
}

/** The run ends without waiting for what the child gives: it is to end as well. */
const end = (session: RunSession, wait: Wait, child: RunOutcome | null): Effect.Effect<Looked, Failure> =>
  Effect.gen(function* () {
    const { path } = wait
    if (child === null || finalStatuses.has(child.status) || child.parentRunId !== session.lease.runId) {
      // Nothing of it is under way (any more).
      if (session.waits?.has(path) === true) {
        yield* session.commit({ run: session.running(path), closes: [path] })
      }
      return went(null)
    }
    const reason = session.cancelAt === null ? "its parent failed" : (session.cancelReason ?? "its parent was canceled")
    yield* session.persist(session.env.store.requestCancel(session.lease.namespace, child.runId, reason))
    return resting(session, wait)
  })

/** Looks at a child: starts it, or takes what it has come to. */
export const lookAtChild = (session: RunSession, wait: Wait): Effect.Effect<Looked, Failure> =>
  Effect.gen(function* () {
    const item = collectorOf(session, wait.path)
    const settling =
      session.failure !== null || session.cancelAt !== null || (item !== null && session.failing.has(item))
    if (!settling) {
      if (wait.record === null) return yield* begin(session, wait)
      // Nothing has arrived since it was looked at: not its end either.
      if (!session.mail.hasNews) return waits(null)
    }
    const child = yield* found(session, idOf(session, wait))
    if (settling) return yield* end(session, wait, child)
    if (child === null) {
      const { namespace } = session.lease
      const problem = "it was purged while its parent waited for it"
      const runId = idOf(session, wait)
      return yield* failWait(session, wait, new RunConflict({ namespace, runId, reason: "WorkflowDiffers", problem }))
    }
    return finalStatuses.has(child.status) ? yield* over(session, wait, child) : resting(session, wait)
  })
