/** Paid calls and what is counted of them (D39 to D41). */
import { finalStatuses } from "../../model/Records.js"
import { unknownEnd, type CallRecord } from "../../model/Usage.js"
import {
  counting,
  type BeginCallResult,
  type CallRow,
  type CallsPage,
  type CallsQuery,
  type CallSumRow,
  type Counted,
  type Counter,
  type EndCallRow,
  type NewCallRow,
  type SpendRow,
} from "../CallRows.js"
import { leaseEnded } from "./memoryClaims.js"
import { childOf, find, isHeldUnder, type Data, type StoredCall } from "./memoryData.js"

const { dayOf, most, sum } = counting

const counterKey = (counter: Counter, at: number): string =>
  JSON.stringify([counter.kind, counter.name, dayOf(counter, at)])

const spendOf = (data: Data, namespace: string, counter: Counter, at: number): SpendRow =>
  data.spend.get(namespace)?.get(counterKey(counter, at)) ?? {
    kind: counter.kind,
    name: counter.name,
    spent: 0,
    reserved: 0,
    calls: 0,
    unknown: 0,
  }

const add = (data: Data, namespace: string, counters: ReadonlyArray<Counter>, at: number, more: Counted): void => {
  for (const counter of counters) {
    const row = spendOf(data, namespace, counter, at)
    childOf(data.spend, namespace).set(counterKey(counter, at), {
      ...row,
      spent: sum(row.spent, more.spent),
      reserved: sum(row.reserved, more.reserved),
      calls: sum(row.calls, more.calls),
      unknown: sum(row.unknown, more.unknown),
    })
  }
}

/** Whether the run stands under that one, or is it. */
const isUnder = (data: Data, namespace: string, runId: string, top: string): boolean => {
  const seen = new Set<string>()
  for (let id: string | null = runId; id !== null && !seen.has(id);) {
    if (id === top) return true
    seen.add(id)
    id = find(data, namespace, id)?.row.parentRunId ?? null
  }
  return false
}

/** Whether somebody may still be making the call. */
const isUnderWay = (data: Data, call: StoredCall, now: number): boolean => {
  const row = find(data, call.namespace, call.runId)?.row
  return (
    call.record.state === "begun" &&
    row !== undefined &&
    row.claimToken === call.record.claimToken &&
    row.leaseOwner !== null &&
    !leaseEnded(data.workers.get(row.leaseOwner), now)
  )
}

const waiting = (data: Data, namespace: string, counter: Counter, now: number): number => {
  let total = 0
  for (const call of data.calls.get(namespace)?.values() ?? []) {
    const { atMost, startedAt } = call.record
    if (atMost === null || !isUnderWay(data, call, now)) continue
    const workflow = find(data, namespace, call.runId)?.row.workflow
    const fits =
      counter.kind === "run"
        ? isUnder(data, namespace, call.runId, counter.name)
        : dayOf(counter, startedAt) === dayOf(counter, now) &&
          (counter.kind === "namespace" || workflow === counter.name)
    if (fits) total = sum(total, atMost)
  }
  return total
}

const callKey = (runId: string, callId: string): string => JSON.stringify([runId, callId])

export const beginCall = (data: Data, row: NewCallRow, now: number): BeginCallResult => {
  const { counters, end, namespace, runId, ...call } = row
  const calls = childOf(data.calls, namespace)
  if (calls.has(callKey(runId, call.callId))) return { _tag: "Begun" }
  const run = find(data, namespace, runId)
  const { claimToken, fence } = call
  if (run === undefined || (end === null && !isHeldUnder(run.row, { namespace, runId, fence, claimToken }))) {
    return { _tag: "Lost" }
  }
  const more = counting.begun(row)
  for (const { kind, limit, name } of counters) {
    if (limit === null) continue
    const counter = { kind, name }
    const { reserved, spent } = spendOf(data, namespace, counter, now)
    if (counting.hasRoom(limit, { spent, reserved }, more)) continue
    return { _tag: "Refused", counter, limit, spent, reserved, waiting: waiting(data, namespace, counter, now) }
  }
  const { interruptions } = run.row
  const record: CallRecord = {
    ...call,
    ...(end ?? { ...unknownEnd, state: "begun" }),
    startedAt: now,
    endedAt: end === null ? null : now,
  }
  calls.set(callKey(runId, call.callId), { namespace, runId, interruptions, record })
  add(data, namespace, counters, now, more)
  return { _tag: "Begun" }
}

export const endCall = (data: Data, row: EndCallRow, now: number): boolean => {
  const { callId, claimToken, counters, end, namespace, runId } = row
  const call = data.calls.get(namespace)?.get(callKey(runId, callId))
  if (call === undefined || call.record.state !== "begun" || call.record.claimToken !== claimToken) return false
  const { atMost, startedAt } = call.record
  call.record = { ...call.record, ...end, endedAt: now }
  add(data, namespace, counters, startedAt, counting.ended(end, atMost))
  return true
}

export const findSpend = (
  data: Data,
  namespace: string,
  counters: ReadonlyArray<Counter>,
  now: number,
): ReadonlyArray<SpendRow> => counters.map((counter) => ({ ...spendOf(data, namespace, counter, now) }))

const rowOf = (data: Data, call: StoredCall): CallRow => {
  const { namespace, record, runId } = call
  const run = find(data, namespace, runId)!
  const { row } = run
  const kind = run.attempts.get(record.path)?.get(record.attempt)?.kind
  const isSuperseded = [...data.calls.get(namespace)!.values()].some(
    (other) =>
      other.runId === runId &&
      other.record.path === record.path &&
      other.record.attempt === record.attempt &&
      other.record.fence > record.fence,
  )
  const outcome = isSuperseded
    ? "lost"
    : kind !== undefined
      ? kind === "rejected"
        ? "rejected"
        : "failed"
      : run.steps.get(record.path)?.attempts === record.attempt
        ? "kept"
        : row.fence > record.fence || row.claimToken !== record.claimToken || finalStatuses.has(row.status)
          ? "lost"
          : "open"
  const settled = record.state === "begun" && row.claimToken !== record.claimToken ? "unknown" : record.state
  const again = row.interruptions - call.interruptions
  const saved = outcome === "kept" ? Math.min(most, (record.microDollars ?? 0) * again) : 0
  return { ...record, runId, workflow: row.workflow, outcome, settled, saved }
}

const allOf = (data: Data, namespace: string): ReadonlyArray<CallRow> =>
  [...(data.calls.get(namespace)?.values() ?? [])].map((call) => rowOf(data, call))

const inOrder = (a: CallRow, b: CallRow): number => a.startedAt - b.startedAt || (a.callId < b.callId ? -1 : 1)

export const listCalls = (data: Data, { after, limit, namespace, runId }: CallsPage): ReadonlyArray<CallRow> =>
  allOf(data, namespace)
    .filter((row) => row.runId === runId)
    .sort(inOrder)
    .filter(
      ({ callId, startedAt }) =>
        after === null || startedAt > after.startedAt || (startedAt === after.startedAt && callId > after.callId),
    )
    .slice(0, Math.max(0, limit))

const keyOf = (row: CallRow, by: CallsQuery["by"]): string => {
  switch (by) {
    case "run":
      return row.runId
    case "day":
      return new Date(row.startedAt).toISOString().slice(0, 10)
    default:
      return row[by]
  }
}

const sumOf = (key: string, workflow: string | null, rows: ReadonlyArray<CallRow>): CallSumRow => {
  const total = (of: (row: CallRow) => number): number => rows.reduce((before, row) => sum(before, of(row)), 0)
  const isUnknown = (row: CallRow): boolean => row.settled !== "begun" && row.microDollars === null
  return {
    key,
    workflow,
    calls: rows.length,
    open: total((row) => (row.settled === "begun" ? 1 : 0)),
    unknown: total((row) => (isUnknown(row) ? 1 : 0)),
    inputTokens: total((row) => row.inputTokens ?? 0),
    outputTokens: total((row) => row.outputTokens ?? 0),
    cachedInputTokens: total((row) => row.cachedInputTokens ?? 0),
    microDollars: total((row) => row.microDollars ?? 0),
    reserved: total((row) => (row.microDollars === null ? (row.atMost ?? 0) : 0)),
    saved: total((row) => row.saved),
  }
}

export const sumCalls = (data: Data, query: CallsQuery): ReadonlyArray<CallSumRow> => {
  const { before, by, from, limit, namespace, runId, workflow } = query
  const groups = new Map<string, Array<CallRow>>()
  for (const row of allOf(data, namespace)) {
    if (workflow !== null && row.workflow !== workflow) continue
    if (runId !== null && row.runId !== runId) continue
    if ((from !== null && row.startedAt < from) || (before !== null && row.startedAt >= before)) continue
    const of = JSON.stringify([keyOf(row, by), by === "step" || by === "run" ? row.workflow : null])
    groups.set(of, [...(groups.get(of) ?? []), row])
  }
  return [...groups]
    .map(([of, rows]) => {
      const [key, workflow] = JSON.parse(of) as [string, string | null]
      return sumOf(key, workflow, rows)
    })
    .sort((a, b) => b.microDollars - a.microDollars || (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    .slice(0, Math.max(0, limit))
}
