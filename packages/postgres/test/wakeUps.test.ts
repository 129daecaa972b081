/** Wake-ups between processes (D18, N1 to N3), each tried over two stores of one schema. */
import { fromDriver, type CheckpointDriver, type CheckpointStoreService } from "@cairn/core"
import { PostgresDriver, type PostgresStoreOptions } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, FiberId, Logger } from "effect"
import { Client, type Notification } from "pg"
import { wakeChannel } from "../src/internal/identifiers.js"
import { makeCuttingProxy } from "./internal/cuttingProxy.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { claimOf, leaseOf, newRun, stepCommit } from "./internal/rows.js"

const database = useDatabase()

const open = (schema: string, options: PostgresStoreOptions = {}) =>
  PostgresDriver.make({ url: database.url, schema, maxConnections: 2, applicationName: schema, ...options })

/** Counts the wake-ups of a driver, and waits for the next one. */
const wakesOf = (driver: CheckpointDriver) => {
  let count = 0
  let next = Deferred.unsafeMake<void>(FiberId.none)
  driver.onWakeUp!(() => {
    count++
    Deferred.unsafeDone(next, Effect.void)
  })
  return {
    count: () => count,
    /** Ends at the first wake-up after `act`; fails after ten seconds. */
    after: <A, E, R>(act: Effect.Effect<A, E, R>) =>
      Effect.suspend(() => {
        const heard = (next = Deferred.unsafeMake<void>(FiberId.none))
        const wake = Effect.timeoutFail(Deferred.await(heard), { duration: 10_000, onTimeout: () => "no wake-up" })
        return Effect.zipLeft(act, wake)
      }),
  }
}

/** Ends the connections that listen, and only those. */
const endListeners = (schema: string) =>
  query(database, "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", [
    `${schema} (listen)`,
  ])

describe("wake-ups", () => {
  it.scopedLive("D18: come with a start and an unpark of another process, when the run can be claimed", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const [sender, hearer] = [yield* open(schema, { listen: false }), yield* open(schema)]
      expect([sender.capabilities.notify, hearer.capabilities.notify]).toEqual([false, true])
      expect(sender.onWakeUp).toBeUndefined()
      const wakes = wakesOf(hearer)
      yield* hearer.beat("worker", 600_000)
      expect((yield* wakes.after(sender.createRun(newRun("a")))).created).toBe(true)
      const [run] = yield* hearer.claim(claimOf("worker"))
      expect(run!.runId).toBe("a")
      yield* sender.commit([stepCommit(leaseOf(run!), 0, { status: "review", parked: "{}", release: true })])
      expect(yield* wakes.after(sender.unpark("test", "a"))).toBe(true)
      expect((yield* hearer.claim(claimOf("worker"))).map(({ runId }) => runId)).toEqual(["a"])
    }),
  )

  it.scopedLive(
    "come for nothing else: not for a start that found its run, not for commits, not from other schemas",
    () =>
      Effect.gen(function* () {
        const schema = yield* freshSchema(database)
        const [sender, hearer] = [yield* open(schema, { listen: false }), yield* open(schema)]
        const elsewhere = yield* open(yield* freshSchema(database), { listen: false })
        const wakes = wakesOf(hearer)
        yield* wakes.after(sender.createRun(newRun("a")))
        expect(wakes.count()).toBe(1)
        expect((yield* sender.createRun(newRun("a"))).created).toBe(false)
        expect(yield* sender.unpark("test", "a")).toBe(false)
        yield* sender.beat("worker", 600_000)
        const [run] = yield* sender.claim(claimOf("worker"))
        yield* sender.commit([stepCommit(leaseOf(run!), 0)])
        yield* elsewhere.createRun(newRun("a"))
        // What was sent comes in order: when the last one is there, none of the others will come any more.
        yield* wakes.after(sender.createRun(newRun("b")))
        expect(wakes.count()).toBe(2)
      }),
  )

  it.scopedLive("carry nothing that a listener of the channel could read", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const sender = yield* open(schema, { listen: false })
      const client = yield* Effect.acquireRelease(
        Effect.sync(() => new Client({ connectionString: database.url })),
        (client) => Effect.promise(() => client.end()),
      )
      const heard = yield* Deferred.make<Notification>()
      client.on("notification", (message) => Deferred.unsafeDone(heard, Effect.succeed(message)))
      yield* Effect.promise(() => client.connect())
      yield* Effect.promise(() => client.query(`listen ${wakeChannel(schema)}`))
      yield* sender.createRun(newRun("secret run"))
      const { channel, payload } = yield* Deferred.await(heard)
      expect(payload).toBe("")
      expect(channel).toMatch(/^cairn_[0-9a-f]{16}$/)
    }),
  )

  it.scopedLive("come back after the connection was ended, and the listeners are woken for what they missed", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const logged: Array<string> = []
      const logger = Logger.make(({ message }) => void logged.push(String(message)))
      const sender = yield* open(schema, { listen: false })
      const hearer = yield* open(schema).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
      const wakes = wakesOf(hearer)
      for (let round = 0; round < 5; round++) {
        // The wake-up is that of the new connection, and it finds the run of the time in between.
        yield* wakes.after(Effect.zipRight(endListeners(schema), sender.createRun(newRun(`missed ${round}`))))
        yield* hearer.beat("worker", 600_000)
        expect(yield* hearer.claim(claimOf("worker"))).toHaveLength(1)
        yield* wakes.after(sender.createRun(newRun(`heard ${round}`)))
        expect(yield* hearer.claim(claimOf("worker"))).toHaveLength(1)
      }
      expect(logged.filter((message) => message.includes("no wake-ups"))).toHaveLength(5)
      expect(logged.filter((message) => message.includes("are back"))).toHaveLength(5)
    }),
  )

  it.scopedLive("come back after a socket died without a word", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const proxy = yield* makeCuttingProxy(database.url)
      const sender = yield* open(schema, { listen: false })
      const hearer = yield* open(schema, { listenUrl: proxy.url, listenProbeMs: 50 })
      const wakes = wakesOf(hearer)
      yield* wakes.after(sender.createRun(newRun("a")))
      proxy.swallow(true)
      yield* sender.createRun(newRun("b"))
      yield* Effect.promise(() => proxy.swallowed())
      expect(wakes.count()).toBe(1)
      // Its connection still looks alive on both sides; only the answer to the probe is missing.
      yield* wakes.after(Effect.sync(() => proxy.swallow(false)))
      yield* wakes.after(sender.createRun(newRun("c")))
    }),
  )

  it.scopedLive("are not needed to open a store: without them it says so and goes on trying", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const listenUrl = new URL(database.url)
      listenUrl.port = "1"
      const driver = yield* open(schema, { listenUrl: listenUrl.href })
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
    }),
  )
})

describe("a store", () => {
  /** Waits as an idle worker does: until a wake-up or the next look. Gives how long it took. */
  const found = (store: CheckpointStoreService, pollMs: number, act: Effect.Effect<unknown, unknown>) =>
    Effect.scoped(
      Effect.gen(function* () {
        const ear = yield* store.signals.listen("runnable")
        yield* store.beat("worker", 600_000)
        const began = performance.now()
        yield* act
        for (;;) {
          if ((yield* store.claim(claimOf("worker"))).length > 0) return performance.now() - began
          yield* ear.wait(pollMs)
        }
      }),
    )

  it.scopedLive("finds a run at once by a wake-up, and within the poll interval while nobody is heard", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const sender = yield* open(schema, { listen: false })
      const hearer = yield* open(schema)
      const store = fromDriver(hearer)
      expect(yield* found(store, 30_000, sender.createRun(newRun("heard")))).toBeLessThan(5_000)
      const deaf = fromDriver(yield* open(schema, { listen: false }))
      const late = Effect.forkDaemon(Effect.delay(sender.createRun(newRun("polled")), 20))
      expect(yield* found(deaf, 100, late)).toBeLessThan(5_000)
      const wakes = wakesOf(hearer)
      yield* wakes.after(endListeners(schema))
      expect(yield* found(store, 30_000, sender.createRun(newRun("heard again")))).toBeLessThan(5_000)
    }),
  )
})
