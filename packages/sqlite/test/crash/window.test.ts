/** The window of a run over a file, with processes that are killed. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { windowsOfKilledWorkers } from "../../../sql/test/support/window.js"
import { temporaryFile } from "../internal/temporaryFile.js"

windowsOfKilledWorkers(
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const script = new URL("../children/carries.ts", import.meta.url)
    return { driver: yield* SqliteDriver.make({ filename }), script, args: [filename] }
  }),
)
