/** Compensation and cancels over a file, with processes that are killed. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { takingBack } from "../../../sql/test/support/takingBack.js"
import { temporaryFile } from "../internal/temporaryFile.js"

takingBack(
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const script = new URL("../children/takesBack.ts", import.meta.url)
    return { driver: yield* SqliteDriver.make({ filename }), script, args: [filename] }
  }),
)
