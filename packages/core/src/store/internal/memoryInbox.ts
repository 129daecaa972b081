/** What reaches a run from outside: signals and the wish to cancel it (D22 to D25). */
import { finalStatuses } from "../../model/Records.js"
import type {
  CancelResult,
  CommitRows,
  LoadedSignals,
  NewSignalRow,
  RunPatch,
  RunRow,
  SendResult,
} from "../CheckpointDriver.js"
import { find, type Data, type StoredRun } from "./memoryData.js"

/** Whether a run in this state goes on once something is sent to it; one that is parked for a fault does not. */
const waits = ({ parked, status }: Pick<RunPatch, "status" | "parked">): boolean =>
  status === "waiting" || (status === "review" && parked === null)

/** The row once something has reached its run: one that waits goes on. */
export const reached = (row: RunRow, now: number): RunRow =>
  waits(row)
    ? { ...row, inbox: row.inbox + 1, status: "pending", wakeAt: null, updatedAt: now }
    : { ...row, inbox: row.inbox + 1 }

export const send = (data: Data, signal: NewSignalRow, now: number): SendResult => {
  const run = find(data, signal.namespace, signal.runId)
  if (run === undefined) return { _tag: "Missing" }
  const { name, payload, payloadHash, signalId } = signal
  const known = run.signals.get(signalId)?.record
  if (known !== undefined) {
    return { _tag: known.name === name && known.payloadHash === payloadHash ? "Known" : "Differs" }
  }
  const { row } = run
  if (finalStatuses.has(row.status)) return { _tag: "Ended", status: row.status }
  const position = row.inbox + 1
  run.signals.set(signalId, {
    record: { signalId, name, payload, payloadHash, position, sentAt: now },
    consumedBy: null,
  })
  run.row = reached(row, now)
  return { _tag: "Sent", position }
}

export const loadSignals = (
  data: Data,
  namespace: string,
  runId: string,
  names: ReadonlyArray<string>,
): LoadedSignals | null => {
  const run = find(data, namespace, runId)
  if (run === undefined) return null
  const signals = [...run.signals.values()].flatMap(({ consumedBy, record }) =>
    consumedBy === null && names.includes(record.name) ? [{ ...record }] : [],
  )
  return { inbox: run.row.inbox, signals }
}

/** D24: who is first takes it. */
export const consume = (run: StoredRun, consumes: CommitRows["consumes"]): void => {
  for (const { path, signalId } of consumes) {
    const signal = run.signals.get(signalId)
    if (signal !== undefined) signal.consumedBy ??= path
  }
}

export const requestCancel = (
  data: Data,
  namespace: string,
  runId: string,
  reason: string | null,
  now: number,
): CancelResult => {
  const run = find(data, namespace, runId)
  if (run === undefined) return "Missing"
  const { row } = run
  if (finalStatuses.has(row.status)) return "Ended"
  if (row.cancelAt !== null) return "Known"
  const marked: RunRow = { ...row, inbox: row.inbox + 1, cancelAt: now, cancelReason: reason, pausedAt: null }
  const inReview = row.status === "review"
  run.row =
    row.status === "waiting" || row.status === "sleeping" || inReview
      ? {
          ...marked,
          status: "pending",
          wakeAt: null,
          parked: null,
          previousUntil: now,
          recoveries: inReview ? 0 : row.recoveries,
          updatedAt: now,
        }
      : marked
  return "Requested"
}

/** What a commit makes of the row where it would let the run wait although something has arrived (D23); else nothing. */
export const unseen = (row: RunRow, patch: RunPatch, now: number): Partial<RunRow> => {
  if (patch.seenInbox === null || patch.seenInbox === row.inbox) return {}
  const canceled = row.cancelAt !== null
  const rests = patch.status === "waiting" || patch.status === "sleeping" || patch.status === "review"
  if (!waits(patch) && !(canceled && rests)) return {}
  return {
    status: "pending",
    wakeAt: null,
    parked: null,
    // As where a cancel finds a run that rests already (D25).
    previousUntil: canceled ? now : row.previousUntil,
  }
}
