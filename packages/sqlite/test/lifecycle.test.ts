/** What people do with runs, over a SQLite file. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { lifecycle } from "../../sql/test/support/lifecycle.js"
import { temporaryFile } from "./internal/temporaryFile.js"

lifecycle(
  "SQLite",
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    return { driver: yield* SqliteDriver.make({ filename }), second: yield* SqliteDriver.make({ filename }) }
  }),
)
