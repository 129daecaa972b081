/** Lists of runs and of open reviews, page by page (D30, D31). */
import type { CheckpointDriver, ListedRow, ReviewRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readNear, readRun } from "../readRow.js"
import { listedColumns, listingStatements, reviewColumns } from "../statements/listings.js"

export const listings = (dialect: Dialect, database: Database): Pick<CheckpointDriver, "listRuns" | "listReviews"> => {
  const statements = listingStatements(dialect)

  const listRuns: CheckpointDriver["listRuns"] = (page) => {
    const operation = "list runs"
    if (page.limit < 1 || page.statuses?.length === 0) return Effect.succeed([])
    return attempt(() => statements.listRuns(page)).pipe(
      Effect.flatMap((statement) => database.query(operation, statement)),
      Effect.flatMap((rows) => attempt(() => rows.map((row) => readNear<ListedRow>(readRun(row), listedColumns, row)))),
    )
  }

  const listReviews: CheckpointDriver["listReviews"] = (page) => {
    const operation = "list reviews"
    if (page.limit < 1) return Effect.succeed([])
    return attempt(() => statements.listReviews(page)).pipe(
      Effect.flatMap((statement) => database.query(operation, statement)),
      Effect.flatMap((rows) => attempt(() => rows.map((row) => readNear<ReviewRow>(readRun(row), reviewColumns, row)))),
    )
  }
  return { listRuns, listReviews }
}
