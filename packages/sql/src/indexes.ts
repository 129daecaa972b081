/** What claims, look-ups and pages walk. */
import type { Dialect } from "./Dialect.js"
import type { TableName } from "./tables.js"

interface Index {
  readonly name: string
  readonly table: TableName
  readonly on: string
  /** Null for an index of all rows. */
  readonly where: string | null
}

/**
 * The scopes that may hold many rows: those of the turns and items themselves end in a bracket. The index in the order of D11 is
 * theirs alone; a query that says the same as it may walk it.
 */
export const manySteps = "substr(scope, length(scope)) = '['"

/**
 * What a history is read by (D38): steps of turns and items, and attempts, each in order of `seq`. A workflow without loops pays
 * nothing for the first. What is always true stands there so that no other statement can take the index: the key, by which paths
 * are looked up, seems as good as it to a planner that knows nothing of the rows yet.
 */
export const scopedSteps = "scope <> '' and attempts >= 0"
export const allAttempts = "attempt >= 0"

/** The list of runs, likewise: a look-up by key would walk all runs of the namespace. */
export const allRuns = "created_at >= 0"

/** Of these there are few among many that have ended well, and a list of them would walk all of those. */
export const uncompleted = "status <> 'completed'"

/** What was refused and is kept for people, for a while (D43). */
export const keptOutputs = "kind = 'rejected' and output is not null"

const timed = "status in ('sleeping', 'waiting', 'review') and wake_at is not null and paused_at is null"

/**
 * What claims and look-ups walk. All but that of the list of runs are partial: finished and paused runs are in none that claims
 * walk, and a step that stands in no loop is in none. What runs are listed by never changes: it costs their creation, and on
 * Postgres their claim and their end.
 *
 * What a commit of a running run writes stands in no index, nor in the condition of one, not even of one that the run is not in:
 * Postgres would then enter the new version of the row in every index of it.
 */
const indexes: ReadonlyArray<Index> = [
  { name: "run_listed", table: "run", on: "namespace, created_at, run_id", where: allRuns },
  { name: "run_uncompleted", table: "run", on: "namespace, created_at, run_id", where: uncompleted },
  {
    name: "run_children",
    table: "run",
    on: "namespace, parent_run_id, created_at, run_id",
    where: "parent_run_id is not null",
  },
  {
    name: "run_pending",
    table: "run",
    on: "namespace, priority desc, pending_since",
    where: "status = 'pending' and paused_at is null",
  },
  { name: "run_timed", table: "run", on: "namespace, wake_at", where: `${timed} and priority = 0` },
  // Apart, so that the others are walked in the order in which they are claimed: many may come due at once.
  { name: "run_timed_prior", table: "run", on: "namespace, wake_at", where: `${timed} and priority <> 0` },
  {
    name: "run_running",
    table: "run",
    on: "namespace, lease_owner",
    where: "status = 'running' and paused_at is null",
  },
  { name: "step_many", table: "step", on: "run_number, scope, seq, path", where: manySteps },
  { name: "step_history", table: "step", on: "run_number, seq", where: scopedSteps },
  { name: "attempt_history", table: "attempt", on: "namespace, run_id, seq", where: allAttempts },
  { name: "run_parked", table: "run", on: "namespace, run_id", where: "status = 'review'" },
  { name: "signal_waiting", table: "signal", on: "namespace, run_id, position", where: "consumed_by is null" },
  { name: "schedule_next", table: "schedule", on: "namespace, next_at, schedule_id", where: null },
  { name: "run_owned", table: "run", on: "lease_owner", where: "lease_owner is not null" },
  { name: "attempt_output", table: "attempt", on: "namespace, ended_at", where: keptOutputs },
  { name: "call_timed", table: "call", on: "namespace, started_at", where: null },
  { name: "call_begun", table: "call", on: "namespace, run_id", where: "state = 'begun'" },
  { name: "wait_review", table: "wait", on: "namespace, opened_at, run_id, path", where: "kind = 'review'" },
]

/**
 * The statements that create all indexes.
 *
 * @category schema
 * @since 0.1.0
 */
export const createIndexes = (dialect: Dialect): ReadonlyArray<string> =>
  indexes.map(
    ({ name, table, on, where }) =>
      `create index ${dialect.index(name)} on ${dialect.table(table)} (${on})${where === null ? "" : ` where ${where}`}`,
  )
