/**
 * Which runs are due, and how one becomes a worker's. Due runs are looked for first; the update checks again
 * everything that can change, so that it alone decides (D6).
 */
import type { Dialect } from "../Dialect.js"
import { computed } from "../readRow.js"
import { overRows, textOf, type Bound, type Place, type Statement } from "../Statement.js"
import { names, runTable, selectList, type Column } from "../tables.js"

const columnOf = (name: string, type: Column["type"] = "text"): Column => ({ ...computed(name, type), name })

const wantedColumns = [columnOf("workflow"), columnOf("version", "integer")]
const askedColumns = [columnOf("run_id")]
const pickedKey = [columnOf("given_namespace"), columnOf("given_run_id")]

/** What a look for due runs gives: key, and since when the run could have been claimed. */
export const dueColumns: ReadonlyArray<Column> = [runTable.columns[0]!, runTable.columns[1]!, computed("since")]

// A number that cannot grow any more would be stored as one that cannot be read: such a run is left alone (D13).
const countable = "run.fence < 9007199254740991 and run.seq <= 9007199254740991"

export interface DueRequest {
  readonly namespace: string
  readonly workflows: ReadonlyArray<{ readonly name: string; readonly version: number }>
  readonly runIds: ReadonlyArray<string> | null
  readonly limit: number
}

/** SQL over a `run`, its `owner` (left-joined worker) and a `clock`. */
const conditions = (dialect: Dialect) => ({
  wanted: "(run.workflow, run.version) in (select workflow, version from wanted)",
  // D7: whatever its status, what a live worker holds is that worker's.
  unheld: `(run.lease_owner is null or not exists (
    select 1 from ${dialect.table("worker")} as owner
    where owner.worker_id = run.lease_owner and owner.until > (select at from clock)))`,
  due: `(run.status in ('pending', 'running')
    or (run.status in ('sleeping', 'waiting') and run.wake_at <= (select at from clock)))`,
  // D15: the moment at which the owner's lease ended.
  ownerUntil: `(select owner.until from ${dialect.table("worker")} as owner where owner.worker_id = run.lease_owner)`,
})

/** Due runs of a namespace: one walk along an index for each way to be due. */
const lookAnywhere = (dialect: Dialect, lock: string) => {
  const { ownerUntil, unheld, wanted } = conditions(dialect)
  const run = dialect.table("run")
  const branch = (place: Place, status: string, since: string, due: string) => `select * from (
  select run.namespace, run.run_id, ${since} as since, run.created_at
  from ${run} as run
  where run.namespace = ${place()} and ${status} and ${due}
    and ${wanted} and ${countable}
  order by since limit ${place()} ${lock}) as branch`
  const timed = "run.status in ('sleeping', 'waiting')"
  return overRows(
    dialect,
    wantedColumns,
    (rows, place) =>
      `with wanted (workflow, version) as (${rows}),
clock (at) as (select ${dialect.now}),
due as (
${branch(place, "run.status = 'pending'", "run.updated_at", unheld)}
union all
${branch(place, timed, "run.wake_at", `run.wake_at <= (select at from clock) and ${unheld}`)}
union all
${branch(place, "run.status = 'running'", `coalesce(${ownerUntil}, run.updated_at)`, unheld)}
)
select due.namespace as "namespace", due.run_id as "runId", due.since as "since"
from due order by due.since, due.created_at, due.run_id limit ${place()}`,
  )
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
        `with wanted (workflow, version) as (${dialect.rows(wantedColumns, workflows.length, place)}),
asked (run_id) as (${dialect.rows(askedColumns, runIds.length, place)}),
clock (at) as (select ${dialect.now})
select run.namespace as "namespace", run.run_id as "runId",
  case when run.status = 'pending' then run.updated_at
    when run.status = 'running' then coalesce(${ownerUntil}, run.updated_at)
    else run.wake_at end as "since"
from asked join ${dialect.table("run")} as run on run.namespace = ${place()} and run.run_id = asked.run_id
where ${due} and ${unheld} and ${wanted} and ${countable}
order by 3, run.created_at, run.run_id limit ${place()} ${lock}`.trimEnd(),
      )
      texts.set(counts, text)
    }
    const params = [
      ...dialect.rowParams(wantedColumns, wantedRows(workflows)),
      ...dialect.rowParams(
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
    return (request: DueRequest): Statement => {
      const { limit, namespace, runIds, workflows } = request
      return runIds === null
        ? anywhere(wantedRows(workflows), [namespace, limit, namespace, limit, namespace, limit, limit])
        : among(request, runIds)
    }
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
