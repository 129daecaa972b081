/** One intent: read, or settled without owning its run. */
import type { CheckpointDriver, EffectRecord } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readFirst } from "../readRow.js"
import { effectStatements } from "../statements/effects.js"
import { effectTable, recordColumns } from "../tables.js"

/** What the driver does with one intent. */
export const effects = (dialect: Dialect, database: Database) => {
  const statements = effectStatements(dialect)

  const findEffect: CheckpointDriver["findEffect"] = (key) => {
    const operation = `read the effect of '${key.path}' of run '${key.runId}'`
    return attempt(() => statements.find(key)).pipe(
      Effect.flatMap((statement) => database.query(operation, statement)),
      Effect.flatMap((rows) => attempt(() => readFirst<EffectRecord>(operation, recordColumns(effectTable), rows))),
    )
  }

  const recordOutcome: CheckpointDriver["recordOutcome"] = (outcome) => {
    const operation = `record the outcome of '${outcome.path}' of run '${outcome.runId}'`
    return attempt(() => statements.settle(outcome)).pipe(
      Effect.flatMap((statement) => database.transaction(operation, "usual", (session) => session.run(statement))),
      Effect.map((rows) => rows.length > 0),
    )
  }

  const forgetOutputs: CheckpointDriver["forgetOutputs"] = (old) => {
    const operation = "forget old rejected outputs"
    if (old.limit < 1) return Effect.succeed(0)
    return attempt(() => statements.forgetOutputs(old)).pipe(
      Effect.flatMap((statement) => database.transaction(operation, "usual", (session) => session.run(statement))),
      Effect.map((rows) => rows.length),
    )
  }
  return { findEffect, recordOutcome, forgetOutputs }
}
