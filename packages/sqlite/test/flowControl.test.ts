/** Limits and schedules over one file that four workers have open. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { flowControl } from "../../sql/test/support/flowControl.js"
import { temporaryFile } from "./internal/temporaryFile.js"

flowControl("SQLite", (count) =>
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    return yield* Effect.forEach(Array.from({ length: count }), () => SqliteDriver.make({ filename }))
  }),
)
