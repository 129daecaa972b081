/** One fault each in lists of runs (D30) and of open reviews (D31). */
import type { CheckpointDriver, ListedRow, ReviewRow, ReviewsPage, RunsPage } from "@cairn/core"
import { Effect } from "effect"
import { mutant, shifted, type Mutant } from "./wrap.js"

const whole = "D30: runs are listed newest first"
const filtered = "D30: each filter lets through"
const paged = "D30: page after page"
const open = "D31: open reviews are listed"
const over = "D31: a review whose time has come"
const reviewPages = "D31: page after page"

const askedFor = (driver: CheckpointDriver, change: (page: RunsPage) => RunsPage): Partial<CheckpointDriver> => ({
  listRuns: (page) => driver.listRuns(change(page)),
})

const shown = (
  driver: CheckpointDriver,
  view: (rows: ReadonlyArray<ListedRow>, page: RunsPage) => ReadonlyArray<ListedRow>,
): Partial<CheckpointDriver> => ({
  listRuns: (page) => Effect.map(driver.listRuns(page), (rows) => view(rows, page)),
})

const reviewed = (
  driver: CheckpointDriver,
  view: (rows: ReadonlyArray<ReviewRow>, page: ReviewsPage) => ReadonlyArray<ReviewRow>,
): Partial<CheckpointDriver> => ({
  listReviews: (page) => Effect.map(driver.listReviews(page), (rows) => view(rows, page)),
})

/** All that fit, whatever the page. */
const allOf = (driver: CheckpointDriver, page: RunsPage) => driver.listRuns({ ...page, after: null, limit: 1_000 })

export const listMutants: ReadonlyArray<Mutant> = [
  mutant("runs are listed oldest first", whole, (driver) => shown(driver, (rows) => [...rows].reverse())),
  mutant("a list leaves out why a run failed", whole, (driver) =>
    shown(driver, (rows) => rows.map((row) => ({ ...row, failure: null }))),
  ),
  mutant("a list gives the input as well", whole, (driver) => ({
    listRuns: (page) =>
      Effect.flatMap(driver.listRuns(page), (rows) =>
        Effect.forEach(rows, (row) =>
          Effect.map(driver.findRun(row.namespace, row.runId), (found) => ({ ...row, input: found?.input })),
        ),
      ),
  })),
  mutant("a list gives one run more than its limit", whole, (driver) =>
    askedFor(driver, (page) => ({ ...page, limit: page.limit + 1 })),
  ),
  mutant("a workflow's name is compared without case", filtered, (driver) => ({
    listRuns: (page) =>
      Effect.map(allOf(driver, { ...page, workflow: null }), (rows) =>
        rows.filter(({ workflow }) => page.workflow === null || workflow.toLowerCase() === page.workflow.toLowerCase()),
      ),
  })),
  mutant("a workflow's name is taken for a pattern", filtered, (driver) => ({
    listRuns: (page) =>
      Effect.map(allOf(driver, { ...page, workflow: null }), (rows) => {
        const pattern = new RegExp(`^${(page.workflow ?? "%").replaceAll("_", ".").replaceAll("%", ".*")}$`)
        return rows.filter(({ workflow }) => pattern.test(workflow))
      }),
  })),
  mutant("of several statuses the first alone is looked for", filtered, (driver) =>
    askedFor(driver, (page) => ({ ...page, statuses: page.statuses === null ? null : page.statuses.slice(0, 1) })),
  ),
  mutant("no status at all is every status", filtered, (driver) =>
    askedFor(driver, (page) => ({ ...page, statuses: page.statuses?.length === 0 ? null : page.statuses })),
  ),
  mutant("the parent is not looked at", filtered, (driver) =>
    askedFor(driver, (page) => ({ ...page, parentRunId: null })),
  ),
  mutant("the first time that fits does not", filtered, (driver) =>
    askedFor(driver, (page) => ({ ...page, createdFrom: page.createdFrom === null ? null : page.createdFrom + 1 })),
  ),
  mutant("the time before which it is looked fits", filtered, (driver) =>
    askedFor(driver, (page) => ({
      ...page,
      createdBefore: page.createdBefore === null ? null : page.createdBefore + 1,
    })),
  ),
  mutant("pages go by the number of runs before them", paged, (driver) => {
    let skipped = 0
    return {
      listRuns: (page) =>
        Effect.map(allOf(driver, page), (rows) => {
          skipped = page.after === null ? 0 : skipped
          const given = rows.slice(skipped, skipped + page.limit)
          skipped += given.length
          return given
        }),
    }
  }),
  mutant("a page goes on after the millisecond of the last run", paged, (driver) =>
    askedFor(driver, (page) => ({
      ...page,
      after: page.after === null ? null : { createdAt: page.after.createdAt, runId: "" },
    })),
  ),
  mutant("a page begins with the last run of the one before", paged, (driver) =>
    askedFor(driver, (page) => ({
      ...page,
      after: page.after === null ? null : { ...page.after, runId: `${page.after.runId}~` },
    })),
  ),
  mutant("reviews are listed newest first", open, (driver) => reviewed(driver, (rows) => [...rows].reverse())),
  mutant("a decided review is listed", open, (driver) => {
    const known = new Map<string, ReviewRow>()
    return reviewed(driver, (rows) => {
      for (const row of rows) known.set(`${row.runId} ${row.path}`, row)
      return [...known.values()]
    })
  }),
  mutant("a review is listed without what is shown", open, (driver) =>
    reviewed(driver, (rows) => rows.map((row) => ({ ...row, data: null }))),
  ),
  mutant("reviews of all namespaces are listed", open, (driver) => {
    const namespaces = new Set<string>()
    return {
      listReviews: (page) => {
        namespaces.add(page.namespace)
        return Effect.map(
          Effect.forEach(namespaces, (namespace) => driver.listReviews({ ...page, namespace })),
          (rows) => rows.flat(),
        )
      },
      commit: (batch) => {
        for (const { lease } of batch) namespaces.add(lease.namespace)
        return driver.commit(batch.map((commit) => ({ ...commit, closes: [] })))
      },
    }
  }),
  mutant("a review is listed for a second after its time", over, (driver) => ({
    listReviews: (page) => shifted(driver.listReviews(page), -1_000),
  })),
  mutant("a page of reviews goes on after the run of the last", reviewPages, (driver) => ({
    listReviews: (page) =>
      driver.listReviews({ ...page, after: page.after === null ? null : { ...page.after, path: "~" } }),
  })),
  mutant("a page of reviews begins with the last of the one before, once", reviewPages, (driver) => {
    let done = false
    return {
      listReviews: (page) => {
        const again = page.after !== null && !done
        done ||= again
        return driver.listReviews(again ? { ...page, after: { ...page.after!, path: "" } } : page)
      },
    }
  }),
]
