/** Runs of every status, also of one in which nothing is paused by the driver: the column is written past it. */
import { SqliteDriver } from "@cairn/sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { openWithClient } from "./internal/openWithClient.js"
import { claimOf, newRun } from "./internal/rows.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const statuses = ["pending", "running", "sleeping", "waiting", "review"] as const

describe("a paused run", () => {
  it.scopedLive("is not claimed, whatever its status, until it is not paused (D7)", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const driver = yield* SqliteDriver.make({ filename })
      const { client } = yield* openWithClient({ filename })
      yield* driver.beat("worker", 600_000)
      for (const status of statuses) {
        yield* driver.createRun(newRun(status))
        yield* client.unsafe("update cairn_run set status = ?, wake_at = 1, paused_at = 1 where run_id = ?", [
          status,
          status,
        ])
      }
      expect(yield* driver.claim(claimOf("worker"))).toEqual([])
      expect(yield* driver.claim(claimOf("worker", statuses))).toEqual([])
      yield* client.unsafe("update cairn_run set paused_at = null")
      expect(yield* driver.claim(claimOf("worker"))).toHaveLength(statuses.length)
    }),
  )
})
