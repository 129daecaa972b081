/** Sleeps and deadlines of months, over a SQLite file. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { sleeps } from "../../sql/test/support/sleeping.js"
import { openWithClient } from "./internal/openWithClient.js"
import { temporaryFile } from "./internal/temporaryFile.js"

sleeps(
  "SQLite",
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const driver = yield* SqliteDriver.make({ filename })
    const { client } = yield* openWithClient({ filename })
    const pass = (ms: number) =>
      Effect.forEach(
        ["cairn_wait", "cairn_run"],
        (table) => Effect.orDie(client.unsafe(`update ${table} set wake_at = wake_at - ?`, [ms])),
        { discard: true },
      )
    return { driver, pass }
  }),
)
