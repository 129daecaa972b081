/** What another process sends to a run that is under way, over a SQLite file: nobody tells of it, the worker looks. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { arrivals } from "../../sql/test/support/arrivals.js"
import { temporaryFile } from "./internal/temporaryFile.js"

arrivals(
  "SQLite",
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    return { driver: yield* SqliteDriver.make({ filename }), second: yield* SqliteDriver.make({ filename }) }
  }),
)
