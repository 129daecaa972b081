/** Runs of every status, also of one in which nothing is paused by the driver: the column is written past it. */
import { PostgresDriver } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { claimOf, newRun } from "./internal/rows.js"

const database = useDatabase()

const statuses = ["pending", "running", "sleeping", "waiting", "review"] as const

describe("a paused run", () => {
  it.scopedLive("is not claimed, whatever its status, until it is not paused (D7)", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const driver = yield* PostgresDriver.make({ url: database.url, schema })
      yield* driver.beat("worker", 600_000)
      for (const status of statuses) {
        yield* driver.createRun(newRun(status))
        yield* query(database, `update ${schema}.run set status = $1, wake_at = 1, paused_at = 1 where run_id = $1`, [
          status,
        ])
      }
      expect(yield* driver.claim(claimOf("worker"))).toEqual([])
      expect(yield* driver.claim(claimOf("worker", { runIds: statuses }))).toEqual([])
      yield* query(database, `update ${schema}.run set paused_at = null`)
      expect(yield* driver.claim(claimOf("worker"))).toHaveLength(statuses.length)
    }),
  )
})
