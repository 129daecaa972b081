/** Paid calls are begun, ended and counted (D39, D40), listed and summed (D41). */
import {
  counting,
  type CallEnd,
  type CallsPage,
  type CallsQuery,
  type Counted,
  type Counter,
  type EndCallRow,
  type NewCallRow,
} from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { computed, whole } from "../readRow.js"
import { overRows, textOf, type Bound, type Statement } from "../Statement.js"
import { callCostColumns, callTable, names, selectList, spendTable, type Column } from "../tables.js"

const { dayMs, dayOf, most } = counting

/** A sum that is that much or more (D41). */
const capped = (sum: string): string => `case when ${sum} > ${most} then ${most} else ${sum} end`

/** The columns of a call that it is given; the rest is the store's clock and its run's row. */
const begunColumns = callTable.columns.filter(({ field }) => !["interruptions", "startedAt", "endedAt"].includes(field))

const endColumns = ["inputTokens", "outputTokens", "cachedInputTokens", "microDollars"] as const

export const startedColumns = callTable.columns.filter(({ field }) => field === "startedAt")
export const endedColumns = callTable.columns.filter(({ field }) => field === "startedAt" || field === "atMost")
export const spendColumns = spendTable.columns.filter(({ field }) => field !== "namespace" && field !== "day")
export const waitingColumns: ReadonlyArray<Column> = [computed("waiting")]

const sums = [
  ...[
    "calls",
    "open",
    "unknown",
    "inputTokens",
    "outputTokens",
    "cachedInputTokens",
    "microDollars",
    "reserved",
    "saved",
  ],
]

export const sumColumns: ReadonlyArray<Column> = [
  computed("key", "text"),
  { ...computed("workflow", "text"), nullable: true },
  ...sums.map((field) => computed(field)),
]

const orNull = (operation: string, field: string, value: number | null): number | null =>
  value === null ? null : whole(operation, field, value)

const endValues = (operation: string, end: CallEnd): ReadonlyArray<number | null> =>
  endColumns.map((field) => orNull(operation, field, end[field]))

const unknownEnd: CallEnd = {
  state: "unknown",
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  microDollars: null,
}

const begunRow = (row: NewCallRow): ReadonlyArray<Bound> => {
  const operation = "begin a call"
  const end = row.end ?? unknownEnd
  const values: Readonly<Record<string, Bound>> = {
    namespace: row.namespace,
    runId: row.runId,
    callId: row.callId,
    scope: row.scope,
    path: row.path,
    step: row.step,
    attempt: whole(operation, "attempt", row.attempt),
    fence: whole(operation, "fence", row.fence),
    claimToken: row.claimToken,
    model: row.model,
    state: row.end === null ? "begun" : end.state,
    atMost: orNull(operation, "atMost", row.atMost),
    ...Object.fromEntries(endValues(operation, end).map((value, index) => [endColumns[index]!, value])),
  }
  return begunColumns.map(({ field }) => values[field]!)
}

const byCounter = (a: Counter, b: Counter): number =>
  a.kind < b.kind ? -1 : a.kind > b.kind ? 1 : a.name < b.name ? -1 : a.name > b.name ? 1 : 0

const counterRows = (
  namespace: string,
  counters: ReadonlyArray<Counter>,
  startedAt: number,
  { calls, reserved, spent, unknown }: Counted,
): ReadonlyArray<ReadonlyArray<Bound>> =>
  // In one order, whoever counts: nobody waits for who waits for him.
  [...counters].sort(byCounter).map((counter) => {
    const to = (field: string, value: number): number => whole("count a call", field, value)
    const { kind, name } = counter
    const amounts = [to("spent", spent), to("reserved", reserved), calls, unknown]
    return [namespace, kind, name, dayOf(counter, startedAt), ...amounts]
  })

const given = (columns: ReadonlyArray<Column>): ReadonlyArray<Column> =>
  columns.map((column) => ({ ...column, name: `given_${column.name}` }))

const begin = (dialect: Dialect) => {
  const columns = given(begunColumns)
  const run = dialect.table("run")
  return overRows(
    dialect,
    columns,
    (rows) => `with given (${names(columns)}) as (${rows}), clock (at) as (select ${dialect.now})
insert into ${dialect.table("call")} (${names(begunColumns)}, interruptions, started_at, ended_at)
select ${names(columns)}, run.interruptions, clock.at, case when given_state = 'begun' then null else clock.at end
from given, clock, ${run} as run
where run.namespace = given_namespace and run.run_id = given_run_id
  and (given_state <> 'begun'
    or (run.fence = given_fence and run.claim_token = given_claim_token and run.lease_owner is not null))
on conflict (${callTable.key.join(", ")}) do nothing
returning started_at as "startedAt"`,
  )
}

/** What a counter comes to: the one that was too large for it once stays so. Two of them are no more than 64 bits hold. */
const summedUp = (name: string): string => {
  const sum = `spend.${name} + excluded.${name}`
  return `${name} = case when spend.${name} >= ${most} or ${sum} > ${most} then ${most} else ${sum} end`
}

const count = (dialect: Dialect) => {
  const columns = given(spendTable.columns)
  const added = ["spent", "reserved", "calls", "unknown"]
  return overRows(
    dialect,
    columns,
    (rows) => `with given (${names(columns)}) as (${rows})
insert into ${dialect.table("spend")} as spend (${names(spendTable.columns)})
select ${names(columns)} from given where true
on conflict (${spendTable.key.join(", ")}) do update
set ${added.map(summedUp).join(", ")}
returning ${selectList(dialect, spendColumns)}`,
  )
}

const end = (dialect: Dialect) =>
  textOf(
    dialect,
    (place) => `update ${dialect.table("call")}
set state = ${place()}, input_tokens = ${place()}, output_tokens = ${place()}, cached_input_tokens = ${place()},
  micro_dollars = ${place()}, ended_at = ${dialect.now}
where namespace = ${place()} and run_id = ${place()} and call_id = ${place()} and claim_token = ${place()} and state = 'begun'
returning started_at as "startedAt", at_most as "atMost"`,
  )

/** Whose calls count, by the counter's kind. */
const counted = (kind: Counter["kind"]): string => {
  if (kind === "run") return "paid.run_id in (select run_id from family)"
  return kind === "workflow"
    ? "run.workflow = counter.name and paid.started_at >= counter.since"
    : "paid.started_at >= counter.since"
}

/** What is reserved in a counter for calls that may still be under way. */
const waiting = (dialect: Dialect, kind: Counter["kind"]) => {
  const run = dialect.table("run")
  const text = textOf(
    dialect,
    (
      place,
    ) => `with recursive counter (namespace, name, since) as (${dialect.row(waitingGiven, place)}), family (run_id) as (
  select run.run_id from counter join ${run} as run on run.namespace = counter.namespace and run.run_id = counter.name
  union
  select run.run_id from family join counter on true
  join ${run} as run on run.namespace = counter.namespace and run.parent_run_id = family.run_id
)
select cast(${capped("coalesce(sum(paid.at_most), 0)")} as ${dialect.types.integer}) as "waiting"
from counter join ${dialect.table("call")} as paid on paid.namespace = counter.namespace and paid.state = 'begun'
join ${run} as run on run.namespace = paid.namespace and run.run_id = paid.run_id and run.claim_token = paid.claim_token
join ${dialect.table("worker")} as worker on worker.worker_id = run.lease_owner and worker.until > ${dialect.now}
where ${counted(kind)}`,
  )
  return text
}

const waitingGiven: ReadonlyArray<Column> = [computed("namespace", "text"), computed("name", "text"), computed("since")]

const asStored = callCostColumns.filter(({ field }) => field !== "saved")

const listed = (dialect: Dialect) => {
  const write = (isFirst: boolean): string =>
    textOf(
      dialect,
      (
        place,
      ) => `select ${selectList(dialect, asStored, "cost")}, ${capped("cost.saved")} as "saved" from ${dialect.table("call_cost")} as cost
where cost.namespace = ${place()} and cost.run_id = ${place()}${isFirst ? "" : ` and (cost.started_at, cost.call_id) > (${place()}, ${place()})`}
order by cost.started_at, cost.call_id limit ${place()}`,
    )
  const [first, next] = [write(true), write(false)]
  return ({ after, limit, namespace, runId }: CallsPage): Statement => {
    const most = whole("list calls", "limit", limit)
    return after === null
      ? { text: first, params: [namespace, runId, most] }
      : { text: next, params: [namespace, runId, after.startedAt, after.callId, most] }
  }
}

const keys: Readonly<Record<CallsQuery["by"], string>> = {
  model: "cost.model",
  workflow: "cost.workflow",
  step: "cost.step",
  run: "cost.run_id",
  day: "cost.day",
  outcome: "cost.outcome",
}

const summed =
  (dialect: Dialect) =>
  (query: CallsQuery): Statement => {
    const { before, by, from, limit, namespace, runId, workflow } = query
    const operation = "sum calls"
    const filters: ReadonlyArray<readonly [string, Bound]> = [
      ["cost.namespace =", namespace],
      ["cost.workflow =", workflow],
      ["cost.run_id =", runId],
      ["cost.started_at >=", orNull(operation, "from", from)],
      ["cost.started_at <", orNull(operation, "before", before)],
    ]
    const used = filters.filter(([, value]) => value !== null)
    const isPerWorkflow = by === "step" || by === "run"
    const integer = dialect.types.integer
    const sum = (of: string): string => `cast(${capped(`coalesce(sum(${of}), 0)`)} as ${integer})`
    const text = textOf(
      dialect,
      (place) => `select ${keys[by]} as "key", ${isPerWorkflow ? "cost.workflow" : "cast(null as text)"} as "workflow",
  count(*) as "calls", ${sum("case when cost.settled = 'begun' then 1 else 0 end")} as "open",
  ${sum("case when cost.settled <> 'begun' and cost.micro_dollars is null then 1 else 0 end")} as "unknown",
  ${sum("cost.input_tokens")} as "inputTokens", ${sum("cost.output_tokens")} as "outputTokens",
  ${sum("cost.cached_input_tokens")} as "cachedInputTokens", ${sum("cost.micro_dollars")} as "microDollars",
  ${sum("case when cost.micro_dollars is null then cost.at_most else 0 end")} as "reserved", ${sum("cost.saved")} as "saved"
from ${dialect.table("call_cost")} as cost
where ${used.map(([filter]) => `${filter} ${place()}`).join(" and ")}
group by ${keys[by]}${isPerWorkflow ? ", cost.workflow" : ""}
order by "microDollars" desc, "key", "workflow" limit ${place()}`,
    )
    return { text, params: [...used.map(([, value]) => value), whole(operation, "limit", limit)] }
  }

const found = (dialect: Dialect) => {
  const columns = given(spendTable.columns.filter(({ field }) => spendTable.key.includes(field)))
  return overRows(
    dialect,
    columns,
    (rows) => `with given (${names(columns)}) as (${rows})
select ${selectList(dialect, spendColumns, "spend")} from given join ${dialect.table("spend")} as spend
on spend.namespace = given_namespace and spend.kind = given_kind and spend.name = given_name and spend.day = given_day`,
  )
}

export const callStatements = (dialect: Dialect) => {
  const begun = begin(dialect)
  const counting = count(dialect)
  const ended = end(dialect)
  const finding = found(dialect)
  const waitings = {
    run: waiting(dialect, "run"),
    workflow: waiting(dialect, "workflow"),
    namespace: waiting(dialect, "namespace"),
  }
  const find = textOf(
    dialect,
    (place) =>
      `select started_at as "startedAt" from ${dialect.table("call")} where namespace = ${place()} and run_id = ${place()} and call_id = ${place()}`,
  )
  const forget = textOf(
    dialect,
    (place) =>
      `delete from ${dialect.table("call")} where namespace = ${place()} and run_id = ${place()} and call_id = ${place()}`,
  )
  return {
    begin: (row: NewCallRow): Statement => begun([begunRow(row)]),
    find: ({ callId, namespace, runId }: NewCallRow): Statement => ({ text: find, params: [namespace, runId, callId] }),
    /** Takes back what `begin` has written in the same transaction. */
    forget: ({ callId, namespace, runId }: NewCallRow): Statement => ({
      text: forget,
      params: [namespace, runId, callId],
    }),
    count: (namespace: string, counters: ReadonlyArray<Counter>, startedAt: number, added: Counted): Statement =>
      counting(counterRows(namespace, counters, startedAt, added)),
    end: ({ callId, claimToken, end, namespace, runId }: EndCallRow): Statement => ({
      text: ended,
      params: [end.state, ...endValues("end a call", end), namespace, runId, callId, claimToken],
    }),
    waiting: (namespace: string, counter: Counter, startedAt: number): Statement => ({
      text: waitings[counter.kind],
      params: [namespace, counter.name, dayOf(counter, startedAt) * dayMs],
    }),
    findSpend: (namespace: string, counters: ReadonlyArray<Counter>, now: number): Statement =>
      finding(counters.map((counter) => [namespace, counter.kind, counter.name, dayOf(counter, now)])),
    list: listed(dialect),
    sum: summed(dialect),
  }
}
