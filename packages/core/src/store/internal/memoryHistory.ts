/** What a run has come to, in the order of its commits (D38). */
import type { HistoryQuery, HistoryRows } from "../HistoryRows.js"
import { find, type Data } from "./memoryData.js"

const part = <A extends { readonly seq: number }>(
  rows: Iterable<A>,
  { after, limit, through }: HistoryQuery,
): ReadonlyArray<A> =>
  [...rows]
    .filter(({ seq }) => seq > after && seq <= through)
    .sort((a, b) => a.seq - b.seq)
    .slice(0, Math.max(0, limit))
    .map((row) => ({ ...row }))

/** D38 */
export const loadHistory = (data: Data, query: HistoryQuery): HistoryRows => {
  const run = find(data, query.namespace, query.runId)
  if (run === undefined) return { steps: [], attempts: [], waits: [] }
  return {
    steps: part(run.steps.values(), query),
    attempts: part(
      [...run.attempts.values()].flatMap((attempts) => [...attempts.values()]),
      query,
    ),
    waits: part(run.waits.values(), query),
  }
}
