/** A run goes back to what it was before a commit (D42). The run's row is held before anything of it is looked at. */
import type { Lease, RewindRow } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { computed, whole } from "../readRow.js"
import { textOf, type Place, type Statement } from "../Statement.js"
import {
  attemptTable,
  effectTable,
  selectList,
  signalTable,
  stepTable,
  waitTable,
  type Column,
  type Table,
} from "../tables.js"
import { rowsOfRun } from "./rowsOfRun.js"
import { standingColumns } from "./runs.js"

const operation = "rewind a run"

/** Whether something has happened outside, as a number. */
export const performedColumn: Column = computed("performed")

/** The columns of the run as it is rewound. By its number its steps are kept. */
export const rewoundColumns: ReadonlyArray<Column> = [
  computed("number"),
  ...standingColumns.filter(({ field }) => field === "updatedAt"),
]

const texts = (dialect: Dialect) => {
  const run = dialect.table("run")
  const from = (table: Table) => `from ${dialect.table(table.name)} as ${table.name}`
  const ofRun = (table: Table, place: Place) => rowsOfRun(dialect, table, place)
  const since = (table: Table, place: Place) => `${ofRun(table, place)} and seq >= ${place()}`
  const before = (place: Place) =>
    `(select path ${from(stepTable)} where ${ofRun(stepTable, place)} and seq < ${place()})`
  const drop = (table: Table) => textOf(dialect, (place) => `delete ${from(table)} where ${since(table, place)}`)
  return {
    hold: textOf(dialect, (place) =>
      `select ${selectList(dialect, standingColumns)} from ${run}
where namespace = ${place()} and run_id = ${place()} ${dialect.lockRows ?? ""}`.trimEnd(),
    ),
    performed: textOf(
      dialect,
      (place) => `select case when
  exists (select 1 ${from(stepTable)} where ${since(stepTable, place)}
    and (idempotency_key is not null or effect in ('transaction', 'child')))
  or exists (select 1 ${from(effectTable)} where ${ofRun(effectTable, place)} and state in ('intended', 'succeeded')
    and path not in ${before(place)})
  or exists (select 1 from ${run} as child where child.namespace = ${place()} and child.parent_run_id = ${place()}
    and child.parent_path not in ${before(place)})
then 1 else 0 end as "performed"`,
    ),
    update: textOf(
      dialect,
      (place) => `with clock (at) as (select ${dialect.now})
update ${run} as run
set status = 'running', seq = ${place()}, cursor = ${place()}, wake_at = null, output = null, failure = null,
  parked = null, updated_at = clock.at
from clock
where run.namespace = ${place()} and run.run_id = ${place()} and run.fence = ${place()} and run.claim_token = ${place()}
  and run.lease_owner is not null and run.seq = ${place()}
returning ${selectList(dialect, rewoundColumns)}`,
    ),
    giveAgain: textOf(
      dialect,
      (place) => `update ${dialect.table("signal")} as signal set consumed_by = null
where ${ofRun(signalTable, place)}
  and consumed_by in (select path ${from(stepTable)} where ${since(stepTable, place)} and effect = 'signal')`,
    ),
    dropAttempts: textOf(
      dialect,
      (place) => `delete ${from(attemptTable)}
where ${ofRun(attemptTable, place)} and kind <> 'refused' and (seq >= ${place()}
  or path in (select path ${from(stepTable)} where ${since(stepTable, place)}))`,
    ),
    dropWaits: drop(waitTable),
    dropSteps: drop(stepTable),
  }
}

export const rewindStatements = (dialect: Dialect) => {
  const { dropAttempts, dropSteps, dropWaits, giveAgain, hold, performed, update } = texts(dialect)
  const ofRun = ({ lease: { namespace, runId } }: RewindRow) => [namespace, runId]
  const since = (rewind: RewindRow) => [...ofRun(rewind), whole(operation, "toSeq", rewind.toSeq)]
  return {
    hold: ({ namespace, runId }: Lease): Statement => ({ text: hold, params: [namespace, runId] }),
    performed: (rewind: RewindRow): Statement => ({
      text: performed,
      params: [...since(rewind), ...ofRun(rewind), ...since(rewind), ...ofRun(rewind), ...since(rewind)],
    }),
    update: ({ base, cursor, lease, seq }: RewindRow): Statement => ({
      text: update,
      params: [
        whole(operation, "seq", seq),
        cursor,
        lease.namespace,
        lease.runId,
        whole(operation, "fence", lease.fence),
        lease.claimToken,
        whole(operation, "base", base),
      ],
    }),
    /** What is undone, in an order in which each finds what it goes by. */
    undo: (rewind: RewindRow): ReadonlyArray<Statement> => [
      { text: giveAgain, params: [...ofRun(rewind), ...since(rewind)] },
      { text: dropAttempts, params: [...since(rewind), ...since(rewind)] },
      { text: dropWaits, params: since(rewind) },
      { text: dropSteps, params: since(rewind) },
    ],
  }
}
