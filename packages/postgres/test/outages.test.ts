/** Servers and connections that go away under a store that is in use: a call fails typed or is repeated, the process stays. */
import { fromDriver, type CheckpointDriver, type Lease } from "@cairn/core"
import { PostgresDriver } from "@cairn/postgres"
import { makeTestDatabase, startPostgres } from "@cairn/postgres-server"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Fiber, Logger } from "effect"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { ownedRuns, stepCommit } from "./internal/rows.js"

const database = useDatabase()

/** Every connection of a store, the listening one included. */
const terminateAll = (name: string) =>
  query(
    database,
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name in ($1, $1 || ' (listen)')",
    [name],
  )

/**
 * Commits steps one after the other until the run has so many, as a worker does: what is retryable is sent again, and
 * what had landed is known by it.
 */
const commitAll = (driver: CheckpointDriver, lease: Lease, steps: number) =>
  Effect.gen(function* () {
    const store = fromDriver(driver)
    let resent = 0
    for (let base = 0; base < steps;) {
      const { attempts: _, run, ...rest } = stepCommit(lease, base)
      const commit = { ...rest, run: { ...run, failure: null, parked: null }, attempts: [] }
      const sent = yield* Effect.either(Effect.flatMap(store.commit([commit]), ([result]) => result!))
      if (Either.isRight(sent)) base++
      else if (sent.left._tag === "StoreError" && sent.left.isRetryable) resent++
      else return yield* sent.left
    }
    return resent
  })

const expectSteps = (driver: CheckpointDriver, leases: ReadonlyArray<Lease>, steps: number) =>
  Effect.forEach(leases, ({ runId }) =>
    Effect.map(driver.load("test", runId), (rows) => {
      expect(rows!.run.seq).toBe(steps)
      expect(rows!.steps.map(({ seq }) => seq)).toEqual(Array.from({ length: steps }, (_, index) => index + 1))
    }),
  )

/** Without the warnings that each lost connection is worth elsewhere. */
const quietly = Effect.provide(Logger.remove(Logger.defaultLogger))

const ids = Array.from({ length: 6 }, (_, index) => `run ${index}`)

describe("connections that the server ends", () => {
  it.scopedLive("while they are idle, in a commit and between, twenty times, cost no process and no commit", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const options = { url: database.url, schema, applicationName: schema, maxConnections: 4 }
      const driver = yield* quietly(PostgresDriver.make(options))
      const leases = yield* ownedRuns(driver, "worker", ids)
      for (let round = 0; round < 10; round++) {
        yield* Effect.all(
          leases.map(() => driver.now),
          { concurrency: "unbounded" },
        )
        yield* terminateAll(schema)
        // Idle connections were ended: the next call has to find its way by itself.
        expect(yield* driver.now).toBeGreaterThan(0)
      }
      const committing = yield* Effect.fork(
        Effect.forEach(leases, (lease) => commitAll(driver, lease, 100), { concurrency: "unbounded" }),
      )
      for (let round = 0; round < 20; round++) {
        yield* terminateAll(schema)
        yield* driver.now
      }
      yield* Fiber.join(committing)
      yield* expectSteps(driver, leases, 100)
    }),
  )

  it.scopedLive("go on in one process without an error that nobody hears", () =>
    Effect.gen(function* () {
      const unheard: Array<unknown> = []
      const note = (error: unknown) => void unheard.push(error)
      process.on("uncaughtExceptionMonitor", note)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.off("uncaughtExceptionMonitor", note)))
      const schema = yield* freshSchema(database)
      const driver = yield* quietly(PostgresDriver.make({ url: database.url, schema, applicationName: schema }))
      for (let round = 0; round < 20; round++) {
        const calls = Effect.all(
          Array.from({ length: 10 }, () => Effect.either(driver.beat("worker", 60_000))),
          { concurrency: "unbounded" },
        )
        yield* Effect.all([calls, terminateAll(schema)], { concurrency: "unbounded" })
      }
      expect((yield* driver.beat("worker", 60_000)).leases).toEqual([])
      expect(unheard).toEqual([])
    }),
  )
})

const ownServer = Effect.acquireRelease(
  Effect.promise(() => startPostgres()),
  (server) => Effect.promise(() => server.stop()),
)

describe("a server", () => {
  it.scopedLive(
    "that crashes in the middle of commits and comes back has each step once",
    () =>
      Effect.gen(function* () {
        const server = yield* ownServer
        const own = yield* Effect.promise(() => makeTestDatabase(server.url))
        const driver = yield* quietly(PostgresDriver.make({ url: own.url, maxConnections: 4, retryTimeoutMs: 300 }))
        const leases = yield* ownedRuns(driver, "worker", ids)
        const committing = yield* Effect.fork(
          Effect.forEach(leases, (lease) => commitAll(driver, lease, 300), { concurrency: "unbounded" }),
        )
        const reached = (seq: number) =>
          Effect.repeat(Effect.option(driver.findRun("test", "run 0")), {
            until: (found) => found._tag === "Some" && found.value!.seq >= seq,
          })
        for (const seq of [30, 120]) {
          yield* reached(seq)
          yield* Effect.promise(() => server.crash())
          yield* Effect.promise(() => server.start())
        }
        const resent = yield* Fiber.join(committing)
        expect(resent.reduce((sum, one) => sum + one, 0)).toBeGreaterThan(0)
        yield* expectSteps(driver, leases, 300)
      }),
    120_000,
  )

  it.scopedLive("that stays away is Unavailable after the limit, and found again without a new store", () =>
    Effect.gen(function* () {
      const server = yield* ownServer
      const options = { url: server.url, listen: false, maxConnections: 2, retryTimeoutMs: 100 }
      const driver = yield* PostgresDriver.make(options)
      yield* Effect.promise(() => server.crash())
      const calls = [
        Effect.asVoid(driver.now),
        Effect.asVoid(driver.findRun("test", "a")),
        Effect.asVoid(driver.load("test", "a")),
        Effect.asVoid(driver.beat("worker", 60_000)),
      ]
      for (const call of calls) {
        expect(yield* Effect.flip(call)).toMatchObject({ reason: "Unavailable", isRetryable: true })
      }
      yield* Effect.promise(() => server.start())
      expect(yield* driver.now).toBeGreaterThan(0)
    }),
  )
})
