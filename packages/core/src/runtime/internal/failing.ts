/**
 * How a run fails, or, where a `forEach` collects the failures of its items, an item alone.
 *
 * - X1: why it fails is durable before anything is taken back.
 * - X5: nothing that is under way beside it is forgotten: it comes to its end, or to that of its policy, first.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { codecOf } from "../../model/Codec.js"
import { isStep, type PlanNode } from "../../model/Plan.js"
import type { FailureRecord, StepRecord } from "../../model/Records.js"
import { happened } from "./decide.js"
import { errorDetails, unwrapThrown } from "./errorDetails.js"
import { leave, type Failure, type Turn } from "./leave.js"
import { instanceOf, listScope, prefixOf, scopeOf } from "./paths.js"
import { goesSideBySide, indexOf, nodeAt } from "./planIndex.js"
import type { Parts, RunSession } from "./session.js"
import { isCompaction } from "./windowStates.js"

/** The record of something that steers. */
export const controlRecord = (
  path: string,
  effect: string,
  result: string | null,
  scope?: string,
): NonNullable<Parts["steps"]>[number] => ({
  path,
  result,
  effect,
  idempotencyKey: null,
  attempts: 1,
  durationMs: 0,
  ...(scope === undefined ? {} : { scope }),
})

/** A failure as it is stored: the workflow's declared one where it fits its schema, or what people read. */
export const failureRecord = (session: RunSession, step: string, error: unknown): Effect.Effect<FailureRecord> =>
  Effect.gen(function* () {
    const thrown = unwrapThrown(error)
    const details = errorDetails(thrown)
    const problem = details.message === "" ? details.name : details.message
    const { failure } = session.env.definition
    if (failure !== null) {
      const gated = yield* Effect.either(codecOf(failure).gate(thrown, { place: `failure of step '${step}'` }))
      if (Either.isRight(gated)) {
        return { kind: "declared", step, operation: null, value: gated.right.text, problem } satisfies FailureRecord
      }
    }
    return { kind: "undeclared", step, problem, details } satisfies FailureRecord
  })

/** The item whose failure is its own affair; null where a failure at this path is the run's. */
export const collectorOf = (session: RunSession, path: string): string | null => {
  if (isCompaction(path)) return null
  for (let scope = scopeOf(prefixOf(path)); scope !== ""; scope = scopeOf(prefixOf(scope))) {
    const node = session.control(instanceOf(scope)!.container)
    if (node.kind === "forEach" && node.onFailure === "collect") return scope
  }
  return null
}

/** Of records, those of steps that are to be taken back: the last first. */
export const toTakeBack = (session: RunSession, records: ReadonlyArray<StepRecord>): Array<StepRecord> => {
  const { plan } = session.env
  const paths = new Set(records.map(({ path }) => path))
  return records
    .filter((step) => {
      const node = nodeAt(plan, step.path)
      if (node === null || !isStep(node) || node.compensate === null) return false
      return happened(node, step) && !paths.has(`${step.path}/compensate`)
    })
    .sort((a, b) => b.seq - a.seq)
}

/** Whether there may be something to be taken back: of a plan of steps alone it is known. */
export const mayTakeBack = (session: RunSession): boolean => {
  const { isFlat, takesBack } = indexOf(session.env.plan)
  if (!takesBack) return false
  if (session.undo !== null) return session.undo.length > 0
  return !isFlat || toTakeBack(session, [...session.frames.get("")!.steps.values()]).length > 0
}

/** What is committed of the end of an item: how it ended, and that it waits for nothing any more. */
export const itemEnd = (
  session: RunSession,
  container: string,
  scope: string,
  failure = session.failing.get(scope),
): Pick<Parts, "steps" | "closes"> => {
  const closes = [...(session.waits?.keys() ?? [])].filter((path) => path.startsWith(`${scope}/`))
  const [effect, result] = failure === undefined ? ["item", null] : ["item:failed", JSON.stringify(failure)]
  return { steps: [controlRecord(scope, effect!, result, listScope(container))], closes }
}

/** What `write` is given, and what it does with it: a commit, with whatever else belongs into it. */
type Write = (parts: Parts) => Effect.Effect<unknown, Failure>

/** Fails the run at a path, or the item that it stands in. */
export const fail = (
  session: RunSession,
  path: string,
  failure: FailureRecord,
  write: Write = (parts) => session.commit(parts),
): Effect.Effect<Turn, Failure> =>
  Effect.gen(function* () {
    const item = collectorOf(session, path)
    if (item !== null && failure.kind !== "canceled") {
      const { container } = instanceOf(item)!
      const each = nodeAt(session.env.plan, container) as Extract<PlanNode, { readonly kind: "forEach" }>
      // Where nothing else of the item can be under way, it ends with the very attempt that has failed.
      const isAlone = !goesSideBySide(each.body)
      const ends = isAlone ? itemEnd(session, container, item, failure) : {}
      yield* write({ run: session.running(path), ...ends })
      if (!isAlone) session.failing.set(item, failure)
      return null
    }
    const goesOn = mayTakeBack(session) || !session.isAlone
    const run = goesOn ? session.running(path) : leave("failed", path)
    yield* write({ run: { ...run, failure } })
    return goesOn ? null : ({ _tag: "Final" } as const)
  })
