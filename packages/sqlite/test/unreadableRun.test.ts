/** A run whose row SQLite gives back as what no number can hold. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { stopsNoNeighbour } from "../../sql/test/support/unreadableRun.js"
import { openWithClient } from "./internal/openWithClient.js"
import { temporaryFile } from "./internal/temporaryFile.js"

stopsNoNeighbour(
  "SQLite",
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const driver = yield* SqliteDriver.make({ filename })
    const { client } = yield* openWithClient({ filename })
    return {
      driver,
      set: (runId, to) => client.unsafe(`update cairn_run set ${to} where run_id = ?`, [runId]),
      setSchedule: (id, to) => client.unsafe(`update cairn_schedule set ${to} where schedule_id = ?`, [id]),
    }
  }),
)
