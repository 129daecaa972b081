/**
 * Which runs are due, and how one becomes a worker's. Due runs are looked for first; the update checks again
 * everything that can change, so that it alone decides (D6).
 */
import type { Dialect } from "../Dialect.js"
import { computed } from "../readRow.js"
import { overRows, rowsParams, rowsText, textOf, type Bound, type Place, type Statement } from "../Statement.js"
import { names, runTable, selectList, type Column } from "../tables.js"

export const columnOf = (name: string, type: Column["type"] = "text"): Column => ({ ...computed(name, type), name })

const wantedColumns = [columnOf("workflow"), columnOf("version", "integer")]
export const askedColumns = [columnOf("run_id")]
const pickedKey = [columnOf("given_namespace"), columnOf("given_run_id")]

/** What a look for due runs gives: key, and since when the run could have been claimed. */
export const dueColumns: ReadonlyArray<Column> = [runTable.columns[0]!, runTable.columns[1]!, computed("since")]

// A number that cannot grow any more would be stored as one that cannot be read: such a run is left alone (D13).
export const countable = "run.fence < 9007199254740991 and run.seq <= 9007199254740991"

export interface DueRequest {
  readonly namespace: string
  readonly workflows: ReadonlyArray<{ readonly name: string; readonly version: number }>
  readonly runIds: ReadonlyArray<string> | null
  readonly limit: number
}

/** SQL over a `run`, its `owner` (left-joined worker) and a `clock`. */
export const conditions = (dialect: Dialect) => ({
  wanted: "(run.workflow, run.version) in (select workflow, version from wanted)",
  // D7: whatever its status, what a live worker holds is that worker's.
  unheld: `(run.lease_owner is null or not exists (
    select 1 from ${dialect.table("worker")} as owner
    where owner.worker_id = run.lease_owner and owner.until > (select at from clock)))`,
  due: `run.paused_at is null and (run.status in ('pending', 'running')
    or (run.status in ('sleeping', 'waiting', 'review') and run.wake_at <= (select at from clock)))`,
  // D15: the moment at which the owner's lease ended.
  ownerUntil: `(select owner.until from ${dialect.table("worker")} as owner where owner.worker_id = run.lease_owner)`,
})

/** Each way to be due: one walk along an index of its own, which gives its runs in the order in which they are claimed. */
export const waysToBeDue = (dialect: Dialect) => {
  const { ownerUntil, unheld } = conditions(dialect)
  const hasCome = `run.status in ('sleeping', 'waiting', 'review') and run.wake_at <= (select at from clock)`
  return [
    { since: "run.pending_since", due: `run.status = 'pending' and ${unheld}` },
    // Apart from the few that have a priority: where many come due at once, they are not sorted for each claim.
    { since: "run.wake_at", due: `${hasCome} and run.priority = 0 and ${unheld}` },
    { since: "run.wake_at", due: `${hasCome} and run.priority <> 0 and ${unheld}` },
    { since: `coalesce(${ownerUntil}, run.updated_at)`, due: `run.status = 'running' and ${unheld}` },
  ]
}

/** Due runs of a namespace, whichever way they are due. */
const lookAnywhere = (dialect: Dialect, lock: string) => {
  const { wanted } = conditions(dialect)
  const ways = waysToBeDue(dialect)
  const branch = (place: Place, { due, since }: (typeof ways)[number]) => `select * from (
  select run.namespace, run.run_id, run.priority, ${since} as since, run.created_at
  from ${dialect.table("run")} as run
  where run.namespace = ${place()} and ${due} and run.paused_at is null
    and ${wanted} and ${countable}
  order by run.priority desc, since limit ${place()} ${lock}) as branch`
  const look = overRows(
    dialect,
    wantedColumns,
    (rows, place) =>
      `with wanted (workflow, version) as (${rows}),
clock (at) as (select ${dialect.now}),
due as (
${ways.map((way) => branch(place, way)).join("\nunion all\n")}
)
select due.namespace as "namespace", due.run_id as "runId", due.since as "since"
from due order by due.priority desc, due.since, due.created_at, due.run_id limit ${place()}`,
  )
  return ({ limit, namespace, workflows }: DueRequest): Statement =>
    look(wantedRows(workflows), [...ways.flatMap(() => [namespace, limit]), limit])
}

/** Due runs among those of given ids: a look-up by key for each. */
const lookAmong = (dialect: Dialect, lock: string) => {
  const { due, ownerUntil, unheld, wanted } = conditions(dialect)
  const texts = new Map<string, string>()
  return ({ limit, namespace, workflows }: DueRequest, runIds: ReadonlyArray<string>): Statement => {
    const counts = `${workflows.length} ${runIds.length}`
    let text = texts.get(counts)
    if (text === undefined) {
      text = textOf(dialect, (place) =>
        `with wanted (workflow, version) as (${rowsText(dialect, wantedColumns, workflows.length, place)}),
asked (run_id) as (${rowsText(dialect, askedColumns, runIds.length, place)}),
clock (at) as (select ${dialect.now})
select run.namespace as "namespace", run.run_id as "runId",
  case when run.status = 'pending' then run.updated_at
    when run.status = 'running' then coalesce(${ownerUntil}, run.updated_at)
    else run.wake_at end as "since"
from asked join ${dialect.table("run")} as run on run.namespace = ${place()} and run.run_id = asked.run_id
where ${due} and ${unheld} and ${wanted} and ${countable}
order by run.priority desc, 3, run.created_at, run.run_id limit ${place()} ${lock}`.trimEnd(),
      )
      texts.set(counts, text)
    }
    const params = [
      ...rowsParams(dialect, wantedColumns, wantedRows(workflows)),
      ...rowsParams(
        dialect,
        askedColumns,
        runIds.map((id) => [id]),
      ),
      namespace,
      limit,
    ]
    return { text, params }
  }
}

const wantedRows = (workflows: DueRequest["workflows"]): ReadonlyArray<ReadonlyArray<Bound>> =>
  workflows.map(({ name, version }) => [name, version])

/**
 * Locks the row of the claimer and of every owner whose lease has ended: a heartbeat either comes first, and then the take
 * sees it, or waits, and then it finds its runs gone. Without it an owner could believe in a lease that was taken over.
 */
const lockWorkers = (dialect: Dialect) =>
  dialect.lockRows === null
    ? null
    : overRows(
        dialect,
        pickedKey,
        (rows, place) => `with picked (${names(pickedKey)}) as (${rows})
select owner.worker_id as "workerId" from ${dialect.table("worker")} as owner
where owner.worker_id = ${place()} or owner.worker_id in (
  select run.lease_owner from picked
  join ${dialect.table("run")} as run on run.namespace = picked.given_namespace and run.run_id = picked.given_run_id)
order by owner.worker_id ${dialect.lockRows} of owner`,
      )

/** The compare-and-set of a claim, over the keys that were picked. */
const take = (dialect: Dialect) => {
  const { due, ownerUntil, unheld } = conditions(dialect)
  return overRows(
    dialect,
    pickedKey,
    (rows, place) => `with picked (${names(pickedKey)}) as (${rows}), clock (at) as (select ${dialect.now})
update ${dialect.table("run")} as run
set status = 'running', wake_at = null, fence = run.fence + 1, claim_token = ${place()}, lease_owner = ${place()},
  previous_until = case when run.lease_owner is null then run.previous_until else coalesce(${ownerUntil}, clock.at) end,
  recoveries = run.recoveries + case when run.lease_owner is null then 0 else 1 end,
  interruptions = run.interruptions + case when run.lease_owner is null then 0 else 1 end,
  updated_at = clock.at
from picked, clock
where run.namespace = picked.given_namespace and run.run_id = picked.given_run_id
  and exists (
    select 1 from ${dialect.table("worker")} as claimer
    where claimer.worker_id = ${place()} and claimer.until > clock.at)
  and ${due} and ${unheld} and ${countable}
returning ${selectList(dialect, runTable.columns)}`,
  )
}

export const claimStatements = (dialect: Dialect) => {
  const looking = (lock: string) => {
    const anywhere = lookAnywhere(dialect, lock)
    const among = lookAmong(dialect, lock)
    return (request: DueRequest): Statement =>
      request.runIds === null ? anywhere(request) : among(request, request.runIds)
  }
  const taking = take(dialect)
  const locking = lockWorkers(dialect)
  return {
    /** Finds what is due, and locks nothing. */
    look: looking(""),
    /** Finds what is due and keeps it from other claimers until the transaction ends. */
    pick: looking(dialect.lockPicked),
    lockWorkers:
      locking === null
        ? null
        : (picked: ReadonlyArray<ReadonlyArray<Bound>>, workerId: string): Statement => locking(picked, [workerId]),
    take: (picked: ReadonlyArray<ReadonlyArray<Bound>>, workerId: string, claimToken: string): Statement =>
      taking(picked, [claimToken, workerId, workerId]),
  }
}
