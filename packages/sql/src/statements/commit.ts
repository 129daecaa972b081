/**
 * What a commit writes. The update of the run rows is the guard: fence, claim token and seq are compared by the statement
 * that writes (D3, D4), and what belongs to a run is inserted only if its row came back.
 */
import type { CommitRows } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { computed, whole, wholeMs } from "../readRow.js"
import { overRows, type Bound } from "../Statement.js"
import {
  attemptTable,
  effectTable,
  names,
  runTable,
  selectList,
  stepTable,
  waitTable,
  type Column,
  type Table,
} from "../tables.js"
import { given } from "./given.js"
import { closedColumns, closingDelete } from "./waits.js"

const operation = "commit"

export const guardColumns = [
  given("namespace"),
  given("run_id"),
  given("fence", "integer"),
  given("claim_token"),
  given("base", "integer"),
  given("seq", "integer"),
  given("status"),
  given("cursor"),
  given("wake_in_ms", "integer"),
  given("output", "json"),
  given("failure", "json"),
  given("parked", "json"),
  given("release", "integer"),
  given("progress", "integer"),
  given("seen_inbox", "integer"),
]

/** The row of one commit for the guarding update. Throws a `StoreError`. */
export const guardRow = ({ base, lease, run, seq, steps }: CommitRows): ReadonlyArray<Bound> => [
  lease.namespace,
  lease.runId,
  whole(operation, "fence", lease.fence),
  lease.claimToken,
  whole(operation, "base", base),
  whole(operation, "seq", seq),
  run.status,
  run.cursor,
  run.wakeInMs === null ? null : wholeMs(operation, "wakeInMs", run.wakeInMs),
  run.output,
  run.failure,
  run.parked,
  run.release ? 1 : 0,
  steps.length > 0 ? 1 : 0,
  run.seenInbox === null ? null : whole(operation, "seenInbox", run.seenInbox),
]

/** The columns that the guarding update gives back; by the number of the run its steps are kept. */
export const committedColumns: ReadonlyArray<Column> = [
  computed("number"),
  ...runTable.columns.filter(({ field }) => ["namespace", "runId", "updatedAt", "status"].includes(field)),
]

/**
 * D23: the run may not wait, because something has arrived that its owner has not seen. Judged by the row that the update
 * meets, after it has waited for whoever held it.
 */
const unseen = `run.inbox <> given_seen_inbox and (given_status = 'waiting'
    or (given_status = 'review' and given_parked is null)
    or (given_status in ('sleeping', 'review') and run.cancel_at is not null))`

/** The guard: an update of the run rows from `given`, `clock` and what else `from` names, under further conditions. */
export const guardingUpdate = (dialect: Dialect, from: string, where: string): string =>
  `update ${dialect.table("run")} as run
set status = case when ${unseen} then 'pending' else given_status end,
  wake_at = case when ${unseen} then null else clock.at + given_wake_in_ms end,
  parked = case when ${unseen} then null else given_parked end,
  previous_until = case when run.cancel_at is not null and ${unseen} then clock.at else run.previous_until end,
  seq = given_seq, cursor = given_cursor, output = given_output, failure = given_failure,
  lease_owner = case when given_release = 1 then null else run.lease_owner end,
  claim_token = case when given_release = 1 then null else run.claim_token end,
  recoveries = case when given_progress = 1 then 0 else run.recoveries end,
  updated_at = clock.at
from ${from}
where run.namespace = given_namespace and run.run_id = given_run_id
  and run.fence = given_fence and run.claim_token = given_claim_token and run.lease_owner is not null
  and run.seq = given_base and given_seq > given_base${where}`

const update = (dialect: Dialect) =>
  overRows(
    dialect,
    guardColumns,
    (rows) => `with given (${names(guardColumns)}) as (${rows}), clock (at) as (select ${dialect.now})
${guardingUpdate(dialect, "given, clock", "")}
returning ${selectList(dialect, committedColumns)}`,
  )

/** The columns of what a commit consumes. */
export const consumedColumns: ReadonlyArray<Column> = [
  given("namespace"),
  given("run_id"),
  given("signal_id"),
  given("path"),
]

/** D24: the update of the signals from `given_signal` and what else `from` names, under further conditions. */
export const consumingUpdate = (dialect: Dialect, from: string, where: string): string =>
  `update ${dialect.table("signal")} as signal
set consumed_by = given_path
from ${from}
where signal.namespace = given_namespace and signal.run_id = given_run_id and signal.signal_id = given_signal_id
  and signal.consumed_by is null${where}`

/** Each signal once: of two steps of one commit the first takes it. */
export const consumedRows = ({ consumes, lease }: CommitRows): ReadonlyArray<ReadonlyArray<Bound>> => {
  const first = new Map<string, string>()
  for (const { path, signalId } of consumes) if (!first.has(signalId)) first.set(signalId, path)
  return [...first].map(([signalId, path]) => [lease.namespace, lease.runId, signalId, path])
}

const consume = (dialect: Dialect) =>
  overRows(
    dialect,
    consumedColumns,
    (rows) => `with given_signal (${names(consumedColumns)}) as (${rows})
${consumingUpdate(dialect, "given_signal", "")}`,
  )

const closeWaits = (dialect: Dialect) =>
  overRows(
    dialect,
    closedColumns,
    (rows) => `with given_close (${names(closedColumns)}) as (${rows})
${closingDelete(dialect, "given_close")}`,
  )

const insert = (dialect: Dialect, table: Table, onConflict: string) =>
  overRows(
    dialect,
    table.columns,
    (rows) =>
      `insert into ${dialect.table(table.name)} as ${table.name} (${names(table.columns)})\n${rows}${onConflict}`,
  )

/** The upsert's second half: every column but the key and those in `kept` is replaced. */
export const replacing = (table: Table, kept: ReadonlyArray<string> = []): string => {
  const replaced = table.columns.filter(({ name }) => !table.key.includes(name) && !kept.includes(name))
  const sets = replaced.map(({ name }) => `${name} = excluded.${name}`).join(", ")
  return `\non conflict (${table.key.join(", ")}) do update set ${sets}`
}

// The window of a key opens with the first intent: sending again must not move it. D17: what is settled stays.
export const replacingIntents = `${replacing(effectTable, ["intent_at"])} where effect.state = 'intended'`

/** The step rows of a commit, with the number of its run, stamped with the clock of its update. */
export const stepRows = (
  { steps }: Pick<CommitRows, "steps">,
  runNumber: number,
  at: number,
): ReadonlyArray<ReadonlyArray<Bound>> =>
  steps.map((step) => [
    runNumber,
    whole(operation, "seq", step.seq),
    whole(operation, "attempts", step.attempts),
    wholeMs(operation, "durationMs", step.durationMs),
    at,
    step.scope,
    step.path,
    step.effect,
    step.idempotencyKey,
    step.result,
  ])

export const effectRows = ({ effects, lease }: CommitRows, at: number): ReadonlyArray<ReadonlyArray<Bound>> =>
  effects.map((effect) => [
    lease.namespace,
    lease.runId,
    effect.path,
    whole(operation, "generation", effect.generation),
    effect.operation,
    effect.idempotencyKey,
    effect.payloadHash,
    effect.state,
    effect.claimToken,
    whole(operation, "sends", effect.sends),
    at,
    effect.state === "intended" ? null : at,
    effect.payload,
    effect.outcome,
  ])

export const attemptRows = ({ attempts, lease, seq }: CommitRows, at: number): ReadonlyArray<ReadonlyArray<Bound>> =>
  attempts.map((attempt) => [
    lease.namespace,
    lease.runId,
    attempt.path,
    whole(operation, "attempt", attempt.attempt),
    whole(operation, "seq", attempt.seq ?? seq),
    attempt.kind,
    attempt.retryInMs === null ? null : at + wholeMs(operation, "retryInMs", attempt.retryInMs),
    at,
    attempt.error,
    attempt.output,
  ])

export const commitStatements = (dialect: Dialect) => ({
  update: update(dialect),
  insertSteps: insert(dialect, stepTable, ""),
  upsertEffects: insert(dialect, effectTable, replacingIntents),
  upsertAttempts: insert(dialect, attemptTable, replacing(attemptTable)),
  consume: consume(dialect),
  closeWaits: closeWaits(dialect),
  openWaits: insert(dialect, waitTable, replacing(waitTable)),
})
