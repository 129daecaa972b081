/** Whose async context is seen by workflows over a SQLite file, and in memory. */
import { MemoryDriver } from "@cairn/core"
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { callersContexts } from "../../sql/test/support/callersContext.js"
import { temporaryFile } from "./internal/temporaryFile.js"

callersContexts("memory", MemoryDriver.make(), false)

callersContexts(
  "SQLite",
  Effect.flatMap(temporaryFile, (filename) => SqliteDriver.make({ filename })),
)
