/** Texts that people choose, in memory and in a file. */
import { MemoryDriver } from "@cairn/core"
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { keepsFreeTexts } from "../../sql/test/support/freeTexts.js"
import { temporaryFile } from "./internal/temporaryFile.js"

keepsFreeTexts("memory", MemoryDriver.make())

keepsFreeTexts(
  "SQLite",
  Effect.flatMap(temporaryFile, (filename) => SqliteDriver.make({ filename })),
)
