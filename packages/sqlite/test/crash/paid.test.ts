/** What a run has paid over a file, with processes that are killed. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { paidByKilledWorkers } from "../../../sql/test/support/paid.js"
import { temporaryFile } from "../internal/temporaryFile.js"

paidByKilledWorkers(
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const script = new URL("../children/pays.ts", import.meta.url)
    return { driver: yield* SqliteDriver.make({ filename }), script, args: [filename] }
  }),
)
