/** A worker's lease on everything that it owns is one row of its own. */
import type { Dialect } from "../Dialect.js"
import { computed } from "../readRow.js"
import { overRows, textOf, type Statement } from "../Statement.js"
import { runTable, selectList, type Column } from "../tables.js"

const beatColumns: ReadonlyArray<Column> = [
  { ...computed("workerId", "text"), name: "given_worker_id" },
  { ...computed("leaseMs"), name: "given_lease_ms" },
]

export const beatResult: ReadonlyArray<Column> = [computed("until"), computed("now")]

export const leaseColumns: ReadonlyArray<Column> = runTable.columns.filter((column) =>
  ["namespace", "runId", "fence", "claimToken", "inbox"].includes(column.field),
)

export const workerStatements = (dialect: Dialect) => {
  const worker = dialect.table("worker")
  const run = dialect.table("run")
  const beat = overRows(
    dialect,
    beatColumns,
    (rows, place) => `with given (given_worker_id, given_lease_ms) as (${rows}), clock (at) as (select ${dialect.now})
insert into ${worker} (worker_id, until)
select given_worker_id, clock.at + given_lease_ms from given, clock where true
on conflict (worker_id) do update set until = excluded.until
returning until as "until", until - ${place()} as "now"`,
  )
  const held = (which: string) =>
    textOf(
      dialect,
      (place) => `select ${selectList(dialect, leaseColumns)} from ${run}
where lease_owner = ${place()} and claim_token is not null${which} order by namespace, run_id`,
    )
  // D18: only for what became claimable by it.
  const woken =
    dialect.wake === null ? "" : `\nreturning case when run.status = 'pending' then ${dialect.wake} end as "woken"`
  // D12: what was running is due at once, but an operation of it may still be under way; what sleeps goes on sleeping.
  const giveUp = textOf(
    dialect,
    (place) => `with clock (at) as (select ${dialect.now})
update ${run} as run
set status = case when run.status = 'running' then 'pending' else run.status end,
  previous_until = case when run.status = 'running' then clock.at else run.previous_until end,
  interruptions = run.interruptions + case when run.status = 'running' then 1 else 0 end,
  lease_owner = null, claim_token = null, updated_at = clock.at
from clock
where run.lease_owner = ${place()}${woken}`,
  )
  const end = textOf(dialect, (place) => `delete from ${worker} where worker_id = ${place()}`)
  const living = textOf(
    dialect,
    (place) => `select worker_id as "workerId" from ${worker} where worker_id = ${place()} and until > ${dialect.now}`,
  )
  const of =
    (text: string) =>
    (workerId: string): Statement => ({ text, params: [workerId] })
  return {
    /** The clock of the beat follows from what it wrote: one reading serves both. */
    beat: (workerId: string, leaseMs: number): Statement => beat([[workerId, leaseMs]], [leaseMs]),
    leases: of(held("")),
    reached: of(held(" and inbox > 0")),
    living: of(living),
    giveUp: of(giveUp),
    end: of(end),
  }
}
