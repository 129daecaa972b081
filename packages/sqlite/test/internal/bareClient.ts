/** A connection that is not the driver's: another application at the same file. */
import * as Reactivity from "@effect/experimental/Reactivity"
import * as SqliteClient from "@effect/sql-sqlite-node/SqliteClient"
import { Effect } from "effect"

export const makeBareClient = (filename: string) =>
  Effect.provide(SqliteClient.make({ filename, disableWAL: true }), Reactivity.layer)
