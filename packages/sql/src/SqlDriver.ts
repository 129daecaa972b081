/**
 * The driver over a database that speaks SQL. It holds no dialect's words: those are in `Dialect`, and the statements in
 * `statements/`. Laws D1 to D17 are those of `CheckpointDriver`.
 */
import type { Capabilities, CheckpointDriver } from "@cairn/core"
import type { Database } from "./Database.js"
import type { Dialect } from "./Dialect.js"
import { claims } from "./driver/claims.js"
import { commits } from "./driver/commits.js"
import { effects } from "./driver/effects.js"
import { runs } from "./driver/runs.js"
import { workers } from "./driver/workers.js"

/**
 * Makes the driver of a dialect over a database whose tables exist.
 *
 * *Laws.* D1 to D17.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (dialect: Dialect, database: Database, capabilities: Capabilities): CheckpointDriver => ({
  capabilities,
  ...runs(dialect, database),
  ...claims(dialect, database),
  ...commits(dialect, database),
  ...effects(dialect, database),
  ...workers(dialect, database),
})
