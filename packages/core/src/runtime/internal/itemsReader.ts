/** What a finished `forEach` hands on: how many items there were, and a reader that holds one page of them at a time (X7). */
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"
import { RunCanceled, RunFailed } from "../../model/Errors.js"
import type { FailureRecord, StepRecord } from "../../model/Records.js"
import { unescapeSegment } from "../../model/Ids.js"
import { instanceOf, listScope } from "./paths.js"
import { failureOf } from "./runEnd.js"
import type { RunSession } from "./session.js"

/** Items that are read at once. */
const pageItems = 100

interface Counts {
  readonly total: number
  readonly failed: number
}

/** What an item's own steps have left, as its results. */
type ResultsOf = (key: string, steps: ReadonlyArray<StepRecord>) => unknown

/** Why an item failed: as its own failure where that is declared, and as people read it. */
const itemError = (session: RunSession, record: FailureRecord): unknown => {
  const { problem, step } = record
  const details = record.kind === "undeclared" ? record.details : null
  const { definition } = session.env
  const end = record.kind === "undeclared" ? null : failureOf(definition, { ...of(session), failure: record })
  return { step, problem, failure: end instanceof RunFailed || end instanceof RunCanceled ? null : end, details }
}

const of = ({ lease }: RunSession) => ({ runId: lease.runId, cancelReason: null, step: "" })

async function* items(session: RunSession, path: string, resultsOf: ResultsOf) {
  const { namespace, runId } = session.lease
  const read = (
    scopes: ReadonlyArray<string>,
    after: { readonly seq: number; readonly path: string } | null,
    limit: number | null,
  ) =>
    Runtime.runPromise(session.runtime)(
      session.persist(
        // What is accepted and not durable yet stands nowhere but in this process.
        Effect.zipRight(
          session.barrier(),
          session.env.store.loadSteps({
            namespace,
            runId,
            scopes,
            newestFirst: false,
            after,
            limit,
            withResults: true,
          }),
        ),
      ),
    )
  let after: { readonly seq: number; readonly path: string } | null = null
  for (;;) {
    const ends: ReadonlyArray<StepRecord> = await read([listScope(path)], after, pageItems)
    const steps =
      ends.length === 0
        ? []
        : await read(
            ends.map((end) => end.path),
            null,
            null,
          )
    const byScope = grouped(steps)
    for (const end of ends) {
      const { key } = instanceOf(end.path)!
      const name = unescapeSegment(key)
      if (end.effect === "item:failed") {
        yield { key: name, ok: false, error: itemError(session, JSON.parse(end.result ?? "null") as FailureRecord) }
      } else {
        yield { key: name, ok: true, results: resultsOf(key, byScope.get(end.path) ?? []) }
      }
    }
    if (ends.length < pageItems) return
    const { path: last, seq } = ends.at(-1)!
    after = { seq, path: last }
  }
}

const grouped = (steps: ReadonlyArray<StepRecord>): Map<string, Array<StepRecord>> => {
  const map = new Map<string, Array<StepRecord>>()
  for (const step of steps) map.set(step.scope, [...(map.get(step.scope) ?? []), step])
  return map
}

/** In the order in which they came to their end. */
export const itemsReader = (session: RunSession, path: string, counts: string | null, resultsOf: ResultsOf): object => {
  const { failed, total } = JSON.parse(counts ?? "{}") as Counts
  return { total, failed, succeeded: total - failed, [Symbol.asyncIterator]: () => items(session, path, resultsOf) }
}
