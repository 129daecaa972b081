/** Short waits of runs over a SQLite file, and in memory, while the wall clock does as it likes. */
import { MemoryDriver } from "@cairn/core"
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { wallClocks } from "../../sql/test/support/wallClock.js"
import { temporaryFile } from "./internal/temporaryFile.js"

wallClocks("memory", MemoryDriver.make())

wallClocks(
  "SQLite",
  Effect.flatMap(temporaryFile, (filename) => SqliteDriver.make({ filename })),
)
