/** What the limits of workflows leave of a claim (D35, D36), in the plainest form: everything is counted anew for each run. */
import type { ClaimRequest, RunRow } from "../CheckpointDriver.js"
import { childOf, type Data, type StartedRun } from "./memoryData.js"

/** Runs without a key share this one. */
const keyOf = ({ flowKey }: Pick<RunRow, "flowKey">): string => flowKey ?? ""

const heldRuns = (data: Data, { namespace, workflow }: RunRow, now: number): ReadonlyArray<RunRow> =>
  [...(data.namespaces.get(namespace)?.values() ?? [])].flatMap(({ row }) => {
    const until = row.leaseOwner === null ? undefined : data.workers.get(row.leaseOwner)
    return row.workflow === workflow && row.status === "running" && until !== undefined && until > now ? [row] : []
  })

const startsOf = (data: Data, row: RunRow): ReadonlyArray<StartedRun> =>
  data.starts.get(row.namespace)?.get(row.workflow) ?? []

/** Whether the limits leave room for a run. */
export const isAllowed = (data: Data, request: ClaimRequest, row: RunRow, now: number): boolean => {
  const limits = request.workflows.find(({ name, version }) => name === row.workflow && version === row.version)?.limits
  if (limits === undefined) return true
  const { perKey, rate, running } = limits
  const key = keyOf(row)
  const held = running === null && perKey === null ? [] : heldRuns(data, row, now)
  if (running !== null && held.length >= running) return false
  if (perKey !== null && held.filter((other) => keyOf(other) === key).length >= perKey) return false
  if (rate === null || row.fence > 0) return true
  const recent = startsOf(data, row).filter(
    (start) => start.at > now - rate.perMs && (!rate.perKey || start.key === key),
  )
  return recent.length < rate.count
}

/** D36: the first claim of a run whose workflow has a rate. */
export const noteStart = (data: Data, request: ClaimRequest, row: RunRow, now: number): void => {
  const isRated = (limits: ClaimRequest["workflows"][number]["limits"]): boolean => (limits?.rate ?? null) !== null
  const rates = request.workflows.filter(({ limits, name }) => name === row.workflow && isRated(limits))
  if (row.fence > 0 || rates.length === 0) return
  const longest = Math.max(...rates.map(({ limits }) => limits!.rate!.perMs))
  const kept = startsOf(data, row).filter(({ at }) => at > now - longest)
  childOf(data.starts, row.namespace).set(row.workflow, [...kept, { key: keyOf(row), at: now }])
}
