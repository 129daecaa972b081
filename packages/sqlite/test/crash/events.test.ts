/** Events of a run over a file, with processes that are killed. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { followedRuns } from "../../../sql/test/support/followed.js"
import { temporaryFile } from "../internal/temporaryFile.js"

followedRuns(
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const script = new URL("../children/followed.ts", import.meta.url)
    return { driver: yield* SqliteDriver.make({ filename }), script, args: [filename] }
  }),
)
