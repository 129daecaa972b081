/** Pages of runs and of open reviews, each a walk along an index from where the page before has ended (D30, D31). */
import type { ReviewsPage, RunsPage } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import { allRuns, uncompleted } from "../indexes.js"
import { whole } from "../readRow.js"
import { listOf, padded, textOf, type Bound, type Place, type Statement } from "../Statement.js"
import { runTable, selectList, waitTable } from "../tables.js"

/** What a run shows in a list. */
export const listedColumns = runTable.columns.filter(({ field }) => field !== "input" && field !== "output")

const reviewedRun = runTable.columns.filter(({ field }) =>
  ["namespace", "runId", "workflow", "version"].includes(field),
)
const reviewedWait = waitTable.columns.filter(({ field }) =>
  ["path", "name", "openedAt", "wakeAt", "data"].includes(field),
)

/** An open review, with what is to be known of its run. */
export const reviewColumns = [...reviewedRun, ...reviewedWait]

/** A condition with its values, in the order in which its text places them. */
interface Condition {
  readonly text: (place: Place) => string
  readonly values: ReadonlyArray<Bound>
}

const equals = (column: string, value: string | null): ReadonlyArray<Condition> =>
  value === null ? [] : [{ text: (place) => `${column} = ${place()}`, values: [value] }]

const compares = (column: string, operator: string, value: number | null): ReadonlyArray<Condition> =>
  value === null ? [] : [{ text: (place) => `${column} ${operator} ${place()}`, values: [value] }]

const listed = "list runs"

const conditionsOf = (page: RunsPage): ReadonlyArray<Condition> => {
  const { after, createdBefore, createdFrom, namespace, parentRunId, workflow } = page
  const statuses = page.statuses === null ? null : padded(page.statuses)
  return [
    ...equals("namespace", namespace),
    ...equals("workflow", workflow),
    ...equals("parent_run_id", parentRunId),
    ...(statuses === null
      ? []
      : [{ text: (place: Place) => `status in (${listOf(place, statuses.length)})`, values: statuses }]),
    ...compares("created_at", ">=", createdFrom),
    ...compares("created_at", "<", createdBefore),
    ...(after === null
      ? []
      : [
          {
            text: (place: Place) => `(created_at, run_id) < (${place()}, ${place()})`,
            values: [whole(listed, "createdAt", after.createdAt), after.runId],
          },
        ]),
  ]
}

/** Makes the statement of a page of runs. It asks for one status at least, if for any. Throws a `StoreError`. */
const listRuns = (dialect: Dialect) => {
  const texts = new Map<string, string>()
  const write = (place: Place, conditions: ReadonlyArray<Condition>, walked: string): string =>
    `select ${selectList(dialect, listedColumns)} from ${dialect.table("run")}
where ${[...conditions.map(({ text }) => text(place)), walked].join(" and ")}
order by created_at desc, run_id desc limit ${place()}`
  return (page: RunsPage): Statement => {
    const conditions = conditionsOf(page)
    const walked = page.statuses === null || page.statuses.includes("completed") ? allRuns : uncompleted
    const shape = [...conditions.map(({ text }) => text(() => "?")), walked].join(" and ")
    const text = texts.get(shape) ?? textOf(dialect, (place) => write(place, conditions, walked))
    texts.set(shape, text)
    const limit = whole(listed, "limit", page.limit)
    return { text, params: [...conditions.flatMap(({ values }) => values), limit] }
  }
}

const listReviews = (dialect: Dialect) => {
  const write = (isAfter: boolean): string =>
    textOf(
      dialect,
      (place) => `select ${selectList(dialect, reviewedRun, "run")}, ${selectList(dialect, reviewedWait, "wait")}
from ${dialect.table("wait")} as wait
join ${dialect.table("run")} as run on run.namespace = wait.namespace and run.run_id = wait.run_id
where wait.namespace = ${place()} and wait.kind = 'review' and wait.state = 'open'
  and (wait.wake_at is null or wait.wake_at > ${dialect.now})${
    isAfter ? `\n  and (wait.opened_at, wait.run_id, wait.path) > (${place()}, ${place()}, ${place()})` : ""
  }
order by wait.opened_at, wait.run_id, wait.path limit ${place()}`,
    )
  const first = write(false)
  const next = write(true)
  return ({ after, limit, namespace }: ReviewsPage): Statement => ({
    text: after === null ? first : next,
    params: [
      namespace,
      ...(after === null ? [] : [whole("list reviews", "openedAt", after.openedAt), after.runId, after.path]),
      whole("list reviews", "limit", limit),
    ],
  })
}

export const listingStatements = (dialect: Dialect) => ({
  listRuns: listRuns(dialect),
  listReviews: listReviews(dialect),
})
