/**
 * The driver over a database that speaks SQL. It holds no dialect's words: those are in `Dialect`, and the statements in
 * `statements/`. Laws D1 to D42 are those of `CheckpointDriver`.
 */
import type { Capabilities, CheckpointDriver } from "@cairn/core"
import type { Database } from "./Database.js"
import type { Dialect } from "./Dialect.js"
import { answers } from "./driver/answers.js"
import { calls } from "./driver/calls.js"
import { claims } from "./driver/claims.js"
import { commits } from "./driver/commits.js"
import { effects } from "./driver/effects.js"
import { history } from "./driver/history.js"
import { inbox } from "./driver/inbox.js"
import { lifecycle } from "./driver/lifecycle.js"
import { listings } from "./driver/listings.js"
import { rewinding } from "./driver/rewinding.js"
import { runs } from "./driver/runs.js"
import { schedules } from "./driver/schedules.js"
import { transactions } from "./driver/transactions.js"
import { waits } from "./driver/waits.js"
import { workers } from "./driver/workers.js"

/**
 * Makes the driver of a dialect over a database whose tables exist.
 *
 * *Laws.* D1 to D42.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (dialect: Dialect, database: Database, capabilities: Capabilities): CheckpointDriver => {
  const { commit, commitIn } = commits(dialect, database)
  return {
    capabilities,
    ...runs(dialect, database),
    ...claims(dialect, database),
    commit,
    ...effects(dialect, database),
    ...workers(dialect, database),
    ...answers(dialect, database),
    ...inbox(dialect, database),
    ...history(dialect, database),
    ...waits(dialect, database),
    ...listings(dialect, database),
    ...lifecycle(dialect, database),
    ...rewinding(dialect, database),
    ...schedules(dialect, database),
    ...calls(dialect, database),
    ...(capabilities.transactions ? transactions(dialect, database, commitIn) : {}),
  }
}
