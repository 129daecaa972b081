/**
 * The driver over a database that speaks SQL. It holds no dialect's words: those are in `Dialect`, and the statements in
 * `statements/`. Laws D1 to D26 are those of `CheckpointDriver`.
 */
import type { Capabilities, CheckpointDriver } from "@cairn/core"
import type { Database } from "./Database.js"
import type { Dialect } from "./Dialect.js"
import { answers } from "./driver/answers.js"
import { claims } from "./driver/claims.js"
import { commits } from "./driver/commits.js"
import { effects } from "./driver/effects.js"
import { inbox } from "./driver/inbox.js"
import { runs } from "./driver/runs.js"
import { transactions } from "./driver/transactions.js"
import { workers } from "./driver/workers.js"

/**
 * Makes the driver of a dialect over a database whose tables exist.
 *
 * *Laws.* D1 to D26.
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
    ...(capabilities.transactions ? transactions(dialect, database, commitIn) : {}),
  }
}
