/** One run of many whose output SQLite refuses. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { refusesOneOutput } from "../../sql/test/support/refusedOutput.js"
import { openWithClient } from "./internal/openWithClient.js"
import { temporaryFile } from "./internal/temporaryFile.js"

refusesOneOutput(
  "SQLite",
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const driver = yield* SqliteDriver.make({ filename })
    const { client } = yield* openWithClient({ filename })
    // There is no JSON that it would refuse by itself.
    yield* client.unsafe(
      `create trigger refuses before insert on cairn_step when new.result like '%refused%'
        begin select raise(abort, 'as the test says'); end`,
    )
    return { driver, refused: "refused" }
  }),
)
