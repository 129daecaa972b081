/** How often a call goes to the server: the price of a call is the network's round trip, and an idle worker pays all day. */
import { Cairn, CheckpointStore, fromDriver, Worker, Workflow, type CheckpointDriver } from "@cairn/core"
import type { Connection } from "@effect/sql/SqlConnection"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Schema, TestClock, TestContext } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import type { Pooled } from "../src/internal/pooledConnection.js"
import { makePostgresDatabase } from "../src/internal/postgresDatabase.js"
import { driverOver } from "../src/PostgresDriver.js"
import { freshSchema, useDatabase } from "./internal/database.js"
import { unnamed } from "./internal/unnamed.js"
import { claimOf, leaseOf, newRun, stepCommit } from "./internal/rows.js"

const database = useDatabase()

/** A client that counts what its connections send. */
const counting = (client: Pooled) => {
  let sent = 0
  const counted = (connection: Connection): Connection =>
    Object.assign(Object.create(connection) as Connection, unnamed(connection), {
      execute: (...args: Parameters<Connection["execute"]>) => {
        sent++
        return connection.execute(...args)
      },
      executeRaw: (...args: Parameters<Connection["executeRaw"]>) => {
        sent++
        return connection.executeRaw(...args)
      },
    })
  const take: Pooled["take"] = (taken) =>
    client.take((cause, it) => taken(cause, it && { ...it, connection: counted(it.connection) }))
  return { client: { take }, sent: () => sent }
}

const open = Effect.gen(function* () {
  const schema = yield* freshSchema(database)
  const { client, dialect, options } = yield* openDatabase({ url: database.url, schema, listen: false })
  const counted = counting(client)
  const driver = yield* driverOver(dialect, makePostgresDatabase(counted.client, dialect, options), options)
  const trips = <A, E>(call: (driver: CheckpointDriver) => Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      const before = counted.sent()
      return Effect.map(call(driver), (value) => ({ value, trips: counted.sent() - before }))
    })
  return { driver, sent: counted.sent, trips }
})

describe("round trips", () => {
  it.scopedLive("of an idle worker are one a look, without a transaction, and four a heartbeat before it", () =>
    Effect.gen(function* () {
      const { trips } = yield* open
      expect((yield* trips((driver) => driver.beat("worker", 600_000))).trips).toBe(4)
      expect(yield* trips((driver) => driver.claim(claimOf("worker")))).toEqual({ value: [], trips: 1 })
    }),
  )

  it.scopedLive("of a commit are one, for one run and for a hundred; a refused one is looked at once more", () =>
    Effect.gen(function* () {
      const { driver, trips } = yield* open
      for (let n = 0; n < 100; n++) yield* driver.createRun(newRun(`run ${n}`))
      yield* driver.beat("worker", 600_000)
      const claimed = yield* trips((driver) => driver.claim(claimOf("worker")))
      expect([claimed.value.length, claimed.trips]).toEqual([100, 6])
      const leases = claimed.value.map(leaseOf)
      expect((yield* trips((driver) => driver.commit([stepCommit(leases[0]!, 0)]))).trips).toBe(1)
      const batch = leases.slice(1).map((lease) => stepCommit(lease, 0))
      expect((yield* trips((driver) => driver.commit(batch))).trips).toBe(1)
      const refused = yield* trips((driver) => driver.commit([stepCommit(leases[0]!, 0), stepCommit(leases[1]!, 1)]))
      expect([refused.trips, refused.value.map(({ _tag }) => _tag)]).toEqual([2, ["Refused", "Committed"]])
    }),
  )

  it.scopedLive("of a batch that wakes parents are five, however many children and parents are in it", () =>
    Effect.gen(function* () {
      const { driver, trips } = yield* open
      for (let n = 0; n < 20; n++) yield* driver.createRun(newRun(`run ${n}`))
      yield* driver.beat("worker", 600_000)
      const leases = (yield* driver.claim(claimOf("worker"))).map(leaseOf)
      const batch = leases.map((lease, n) => ({
        ...stepCommit(lease, 0),
        // Ten of them have ended, each a child of one of the others.
        wakesParent: n < 10 ? leases[n + 10]!.runId : null,
      }))
      const { trips: sent, value } = yield* trips((driver) => driver.commit(batch))
      expect(new Set(value.map(({ _tag }) => _tag))).toEqual(new Set(["Committed"]))
      expect(sent).toBe(5)
    }),
  )

  it.scopedLive("of a start are one, of those at once three, of a load four", () =>
    Effect.gen(function* () {
      const { trips } = yield* open
      expect((yield* trips((driver) => driver.createRuns([newRun("a")]))).trips).toBe(1)
      expect((yield* trips((driver) => driver.createRuns([newRun("b"), newRun("c")]))).trips).toBe(3)
      expect((yield* trips((driver) => driver.load("test", "a"))).trips).toBe(4)
    }),
  )
})

describe("a worker", () => {
  const idle = Workflow.make("idle", { version: 1, input: Schema.Null }).compile()
  const patient = Workflow.make("patient", { version: 1, input: Schema.Null })
    .step("work", { effects: [], output: Schema.Void }, () => Effect.never)
    .compile()

  /** A driver that counts its calls: those under way, heartbeats, looks for runs, for schedules and at what has arrived. */
  const watched = (driver: CheckpointDriver, notify = true) => {
    const calls = { underWay: 0, beats: 0, looks: 0, schedules: 0, heeded: 0 }
    const counted = <A, E>(
      kind: Exclude<keyof typeof calls, "underWay">,
      call: Effect.Effect<A, E>,
    ): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        calls.underWay++
        return Effect.ensuring(
          call,
          Effect.sync(() => {
            calls.underWay--
            calls[kind]++
          }),
        )
      })
    const woken: CheckpointDriver = {
      ...driver,
      // What this counts is what the pool carries; the connection that listens is another one.
      capabilities: { ...driver.capabilities, notify },
      beat: (...args) => counted("beats", driver.beat(...args)),
      claim: (...args) => counted("looks", driver.claim(...args)),
      loadReached: (...args) => counted("heeded", driver.loadReached(...args)),
      nextSchedules: (...args) => counted("schedules", driver.nextSchedules(...args)),
    }
    return { calls, woken }
  }

  /** Lets what the clock has woken end: until no call is under way and none has come for a while, in real time. */
  const settled = (sent: () => number, calls: { readonly underWay: number }) =>
    Effect.promise(async () => {
      for (let before = -1; before !== sent() || calls.underWay > 0;) {
        before = sent()
        await new Promise((resolve) => setTimeout(resolve, 25))
      }
    })

  it.scopedLive(
    "that is idle and is woken sends at most 10 statements a minute over its pool, as the README counts, once it has been idle for two",
    () =>
      Effect.gen(function* () {
        const { driver, sent } = yield* open
        const { calls, woken } = watched(driver)
        yield* Effect.gen(function* () {
          yield* Layer.build(
            Worker.layer({ workflows: [idle] }).pipe(Layer.provide(Layer.succeed(CheckpointStore, fromDriver(woken)))),
          )
          const minute = Effect.gen(function* () {
            const before = sent()
            for (let second = 0; second < 60; second++) {
              yield* TestClock.adjust("1 second")
              yield* settled(sent, calls)
            }
            return sent() - before
          })
          yield* Effect.replicateEffect(minute, 2)
          const before = { ...calls }
          const minutes = yield* Effect.replicateEffect(minute, 5)
          expect(Math.max(...minutes)).toBeLessThanOrEqual(10)
          // Nothing but heartbeats of four statements, and looks of one for runs and for schedules: each once in 60 to 80 seconds.
          const [beats, looks] = [calls.beats - before.beats, calls.looks - before.looks]
          const schedules = calls.schedules - before.schedules
          expect(minutes.reduce((sum, count) => sum + count)).toBe(4 * beats + looks + schedules)
          for (const times of [beats, looks, schedules]) {
            expect(times).toBeGreaterThanOrEqual(3)
            expect(times).toBeLessThanOrEqual(5)
          }
        }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))
      }),
    60_000,
  )

  for (const [what, notify, least, most] of [
    ["is told of what arrives never looks", true, 0, 0],
    ["is told of nothing looks 80 times a minute at most", false, 60, 80],
  ] as const) {
    it.scopedLive(
      `that waits for steps and ${what} at what has arrived, with one statement for all of its runs`,
      () =>
        Effect.gen(function* () {
          const { driver, sent } = yield* open
          const { calls, woken } = watched(driver, notify)
          const store = Layer.succeed(CheckpointStore, fromDriver(woken))
          yield* Effect.gen(function* () {
            yield* Layer.build(Worker.layer({ workflows: [patient], drain: 0 }).pipe(Layer.provide(store)))
            yield* Effect.forEach(["a", "b", "c"], (runId) =>
              Effect.provide(Cairn.start(patient, null, { runId }), store),
            )
            const during = (seconds: number) =>
              Effect.gen(function* () {
                for (let second = 0; second < seconds; second++) {
                  yield* TestClock.adjust("1 second")
                  yield* settled(sent, calls)
                }
              })
            yield* during(10)
            const [before, from] = [{ ...calls }, sent()]
            yield* during(60)
            const [beats, looks] = [calls.beats - before.beats, calls.looks - before.looks]
            const heeded = calls.heeded - before.heeded
            expect(beats).toBe(6)
            // The clock moves on while an answer is under way: then the next look is a little later.
            expect(heeded).toBeGreaterThanOrEqual(least)
            expect(heeded).toBeLessThanOrEqual(most)
            expect(looks).toBeLessThanOrEqual(81)
            expect(sent() - from).toBe(4 * beats + looks + heeded + calls.schedules - before.schedules)
          }).pipe(Effect.scoped, Effect.provide(TestContext.TestContext))
        }),
      60_000,
    )
  }
})
