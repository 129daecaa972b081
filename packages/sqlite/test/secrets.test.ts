/** What a run holds shows in no error: not in its text, its cause, or what a logger makes of it. */
import { SqliteDriver } from "@cairn/sqlite"
import type { StoreError } from "@cairn/core"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect } from "effect"
import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { inspect } from "node:util"
import { openWithClient } from "./internal/openWithClient.js"
import { driverOver } from "../src/SqliteDriver.js"
import { claimOf, leaseOf, newRun, stepCommit } from "./internal/rows.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const secret = "s3cret-value"

const shown = (error: StoreError): string =>
  [
    String(error),
    error.stack,
    JSON.stringify(error),
    inspect(error, { depth: 30, showHidden: true }),
    Cause.pretty(Cause.fail(error), { renderErrorCause: true }),
  ].join("\n")

const expectNoSecret = (error: StoreError): void => {
  expect(error._tag).toBe("StoreError")
  expect(shown(error)).not.toContain(secret)
}

describe("an error", () => {
  it.scopedLive("of a call names run and file, and no payload, result or token", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const { client, database } = yield* openWithClient({ filename, busyTimeoutMs: 20 })
      const driver = driverOver(database, filename)
      const run = { ...newRun("r"), input: JSON.stringify(secret) }
      yield* driver.createRun(run)
      yield* driver.beat("worker", 600_000)
      const [row] = yield* driver.claim({ ...claimOf("worker"), claimToken: secret })
      const lease = leaseOf(row!)
      const commit = (base: number) => ({
        ...stepCommit(lease, base, { output: JSON.stringify(secret) }),
        steps: [{ ...stepCommit(lease, 0).steps[0]!, seq: base + 1, result: JSON.stringify(secret) }],
      })
      yield* driver.commit([commit(0)])
      // The step is there already.
      expectNoSecret(yield* Effect.flip(driver.commit([commit(1)])))
      // Another process writes.
      const other = yield* openWithClient({ filename })
      yield* other.client.unsafe("begin immediate")
      const busy = yield* Effect.flip(driver.createRun({ ...run, runId: "s" }))
      expect(busy.reason).toBe("Busy")
      expectNoSecret(busy)
      yield* other.client.unsafe("rollback")
      // The table is gone, or holds what nobody can read.
      yield* client.unsafe("update cairn_run set fence = 9007199254740993")
      const corrupt = yield* Effect.flip(driver.load("test", "r"))
      expect(corrupt.reason).toBe("Corrupt")
      expectNoSecret(corrupt)
      yield* client.unsafe("drop table cairn_step")
      expectNoSecret(yield* Effect.flip(driver.load("test", "r")))
      yield* client.unsafe("drop table cairn_run")
      expectNoSecret(yield* Effect.flip(driver.createRun({ ...run, runId: "t" })))
      expectNoSecret(yield* Effect.flip(driver.commit([commit(1)])))
    }),
  )

  it.scopedLive("of opening names the file, and nothing of what is in it", () =>
    Effect.gen(function* () {
      const folder = dirname(yield* temporaryFile)
      const notOne = join(folder, "text.db")
      yield* Effect.promise(() => writeFile(notOne, `${secret} `.repeat(500)))
      const directory = join(folder, "directory.db")
      yield* Effect.promise(() => mkdir(directory))
      for (const filename of [notOne, directory, join(folder, "absent", "runs.db")]) {
        const error = yield* Effect.scoped(Effect.flip(SqliteDriver.make({ filename })))
        expect(error.message).toContain(filename)
        expectNoSecret(error)
      }
    }),
  )
})
