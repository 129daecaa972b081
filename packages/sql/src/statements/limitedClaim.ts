/**
 * Which runs are due that the limits of their workflows leave room for (D35, D36). What is held is found among the runs that
 * have an owner (no id is empty): it costs what is being executed, whatever is waiting; and what a limit holds back is passed over in the walk, so that it hides
 * nothing behind it.
 */
import type { ClaimRequest, RunRow } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { computed } from "../readRow.js"
import { overRows, rowsParams, rowsText, textOf, type Bound, type Place, type Statement } from "../Statement.js"
import { names, rateTable, runTable, type Column } from "../tables.js"
import { askedColumns, columnOf, conditions, countable, waysToBeDue } from "./claim.js"

const orNull = (column: Column): Column => ({ ...column, nullable: true })

const wantedColumns = [
  columnOf("workflow"),
  columnOf("version", "integer"),
  ...["most", "most_per_key", "rate_count", "rate_ms", "rate_per_key"].map((name) => orNull(columnOf(name, "integer"))),
]

/** What a look with limits gives: the key of the run, and what counts of its workflow and flow key. */
export const limitedColumns: ReadonlyArray<Column> = [
  runTable.columns[0]!,
  runTable.columns[1]!,
  computed("since"),
  computed("workflow", "text"),
  computed("version"),
  computed("flowKey", "text"),
  computed("fence"),
  computed("held"),
  computed("heldInKey"),
  computed("starts"),
  computed("startsInKey"),
]

/** A run that is due, and what was held and begun of its workflow when it was looked for. */
export interface LimitedDue {
  readonly namespace: string
  readonly runId: string
  readonly since: number
  readonly workflow: string
  readonly version: number
  readonly flowKey: string
  readonly fence: number
  readonly held: number
  readonly heldInKey: number
  readonly starts: number
  readonly startsInKey: number
}

const wantedRows = (workflows: ClaimRequest["workflows"]): ReadonlyArray<ReadonlyArray<Bound>> =>
  workflows.map(({ limits, name, version }) => {
    const rate = limits?.rate ?? null
    return [
      ...[name, version, limits?.running ?? null, limits?.perKey ?? null],
      ...(rate === null ? [null, null, null] : [rate.count, rate.perMs, rate.perKey ? 1 : 0]),
    ]
  })

/** Runs without a key share the empty one. */
const keyOfRun = "coalesce(run.flow_key, '')"

/** What is held and has begun, and what that leaves no room for. */
const counts = (dialect: Dialect, place: Place): string => `held (workflow, flow_key, runs) as (
  select run.workflow, ${keyOfRun}, count(*)
  from ${dialect.table("run")} as run
  where run.lease_owner > '' and run.namespace = ${place()} and run.status = 'running'
    and run.workflow in (select workflow from wanted) and exists (
      select 1 from ${dialect.table("worker")} as owner
      where owner.worker_id = run.lease_owner and owner.until > (select at from clock))
  group by 1, 2),
started (workflow, version, flow_key, starts) as (
  select wanted.workflow, wanted.version, rate.flow_key, sum(rate.starts)
  from wanted join ${dialect.table("rate")} as rate on rate.namespace = ${place()} and rate.workflow = wanted.workflow
    and rate.started_at > (select at from clock) - wanted.rate_ms
  group by 1, 2, 3),
crowded (workflow, version) as (
  select wanted.workflow, wanted.version from wanted
  where wanted.most <= (select coalesce(sum(held.runs), 0) from held where held.workflow = wanted.workflow)),
crowded_key (workflow, version, flow_key) as (
  select wanted.workflow, wanted.version, held.flow_key
  from wanted join held on held.workflow = wanted.workflow and held.runs >= wanted.most_per_key),
spent (workflow, version) as (
  select wanted.workflow, wanted.version from wanted
  where wanted.rate_per_key = 0 and wanted.rate_count <= (select coalesce(sum(started.starts), 0) from started
    where started.workflow = wanted.workflow and started.version = wanted.version)),
spent_key (workflow, version, flow_key) as (
  select started.workflow, started.version, started.flow_key from wanted
  join started on started.workflow = wanted.workflow and started.version = wanted.version
  where wanted.rate_per_key = 1 and started.starts >= wanted.rate_count)`

/** Looked up in a set that is made once, for each run that is passed. */
const leavesRoom = `(run.workflow, run.version) not in (select workflow, version from crowded)
    and (run.workflow, run.version, ${keyOfRun}) not in (select workflow, version, flow_key from crowded_key)
    and (run.fence > 0 or ((run.workflow, run.version) not in (select workflow, version from spent)
      and (run.workflow, run.version, ${keyOfRun}) not in (select workflow, version, flow_key from spent_key)))`

const summed = (of: "held" | "started", what: string, inKey: boolean): string =>
  `(select coalesce(sum(${of}.${what}), 0) from ${of} where ${of}.workflow = due.workflow` +
  `${of === "started" ? " and started.version = due.version" : ""}${inKey ? ` and ${of}.flow_key = due.flow_key` : ""})`

const write = (dialect: Dialect, lock: string, workflows: number, runIds: number | null) => {
  const { wanted } = conditions(dialect)
  return textOf(dialect, (place) => {
    const rows = rowsText(dialect, wantedColumns, workflows, place)
    const asked = runIds === null ? "" : `asked (run_id) as (${rowsText(dialect, askedColumns, runIds, place)}),\n`
    const branch = ({ due, since }: ReturnType<typeof waysToBeDue>[number]) => `select * from (
  select run.namespace, run.run_id, run.priority, ${since} as since, run.created_at, run.workflow, run.version,
    ${keyOfRun} as flow_key, run.fence
  from ${dialect.table("run")} as run
  where run.namespace = ${place()} and ${due} and run.paused_at is null
    and ${wanted} and ${countable}${runIds === null ? "" : " and run.run_id in (select run_id from asked)"}
    and ${leavesRoom}
  order by run.priority desc, since limit ${place()} ${lock}) as branch`
    return `with wanted (${names(wantedColumns)}) as (${rows}),
${asked}clock (at) as (select ${dialect.now}),
${counts(dialect, place)},
due as (
${waysToBeDue(dialect).map(branch).join("\nunion all\n")}
)
select due.namespace as "namespace", due.run_id as "runId", due.since as "since", due.workflow as "workflow",
  due.version as "version", due.flow_key as "flowKey", due.fence as "fence",
  ${summed("held", "runs", false)} as "held", ${summed("held", "runs", true)} as "heldInKey",
  ${summed("started", "starts", false)} as "starts", ${summed("started", "starts", true)} as "startsInKey"
from due order by due.priority desc, due.since, due.created_at, due.run_id limit ${place()}`
  })
}

const look = (dialect: Dialect, lock: string) => {
  const texts = new Map<string, string>()
  const ways = waysToBeDue(dialect)
  return (
    { namespace, runIds, workflows }: Pick<ClaimRequest, "namespace" | "runIds" | "workflows">,
    limit: number,
  ): Statement => {
    const shape = `${workflows.length} ${runIds?.length ?? ""}`
    const text = texts.get(shape) ?? write(dialect, lock, workflows.length, runIds?.length ?? null)
    texts.set(shape, text)
    const asked =
      runIds === null
        ? []
        : rowsParams(
            dialect,
            askedColumns,
            runIds.map((id) => [id]),
          )
    const params = [
      ...rowsParams(dialect, wantedColumns, wantedRows(workflows)),
      ...asked,
      ...[namespace, namespace],
      ...ways.flatMap(() => [namespace, limit]),
      limit,
    ]
    return { text, params }
  }
}

/** What began in one claim, of one workflow and key. */
export interface Started {
  readonly namespace: string
  readonly workflow: string
  readonly startedAt: number
  readonly flowKey: string
  readonly starts: number
}

export const limitedClaimStatements = (dialect: Dialect) => {
  const rate = dialect.table("rate")
  const given = rateTable.columns.map((column) => ({ ...column, name: `given_${column.name}` }))
  const add = overRows(
    dialect,
    given,
    (rows) => `with given (${names(given)}) as (${rows})
insert into ${rate} as rate (${names(rateTable.columns)}) select ${names(given)} from given where true
on conflict (${rateTable.key.join(", ")}) do update set starts = rate.starts + excluded.starts`,
  )
  const forget = textOf(
    dialect,
    (place) =>
      `delete from ${rate} where namespace = ${place()} and workflow = ${place()} and started_at <= ${dialect.now} - ${place()}`,
  )
  const { lockName } = dialect
  const flowColumns = [columnOf("flow")]
  const lock =
    lockName === null
      ? null
      : overRows(dialect, flowColumns, (rows) => `with flows (flow) as (${rows}) select ${lockName("flow")} from flows`)
  return {
    look: look(dialect, ""),
    pick: look(dialect, dialect.lockPicked),
    /** Keeps other claimers of these workflows out until the transaction ends: what is counted stays true. */
    lockFlows:
      lock === null
        ? null
        : (namespace: string, workflows: ReadonlyArray<string>): Statement =>
            lock([...new Set(workflows)].sort().map((workflow) => [JSON.stringify([namespace, workflow])])),
    addStarts: (starts: ReadonlyArray<Started>): Statement =>
      add(starts.map((one) => rateTable.columns.map(({ field }) => one[field as keyof Started]))),
    forgetStarts: (namespace: string, workflow: string, perMs: number): Statement => ({
      text: forget,
      params: [namespace, workflow, perMs],
    }),
  }
}

/** The first claim of a run is the one that raises its fence to this. */
export const isFirst = ({ fence }: Pick<RunRow, "fence">): boolean => fence === 1
