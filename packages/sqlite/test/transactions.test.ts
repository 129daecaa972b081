/** What a transaction of the one connection promises, tried on real files and real failures (S1 to S6). */
import { SafeIntegers } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import type { CommitRows } from "@cairn/core"
import { openWithClient } from "./internal/openWithClient.js"
import { driverOver } from "../src/SqliteDriver.js"
import { makeBareClient } from "./internal/bareClient.js"
import { claimOf, leaseOf, newRun, stepCommit } from "./internal/rows.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const open = (busyTimeoutMs = 5_000) =>
  Effect.gen(function* () {
    const filename = yield* temporaryFile
    const { client, database } = yield* openWithClient({ filename, busyTimeoutMs })
    return { filename, client, database, driver: driverOver(database, filename) }
  })

/** An open store with one run that a worker owns. */
const owned = (runId = "r") =>
  Effect.gen(function* () {
    const store = yield* open()
    yield* store.driver.createRun(newRun(runId))
    yield* store.driver.beat("worker", 60_000)
    const [run] = yield* store.driver.claim(claimOf("worker"))
    return { ...store, lease: leaseOf(run!) }
  })

describe("a commit that fails", () => {
  it.scopedLive("at COMMIT itself leaves no transaction open and nothing written", () =>
    Effect.gen(function* () {
      const { client, driver, lease } = yield* owned()
      // A deferred foreign key is checked by COMMIT, and by nothing before it.
      yield* client.unsafe("create table parent (id integer primary key) strict")
      yield* client.unsafe(
        "create table child (id integer references parent (id) deferrable initially deferred) strict",
      )
      yield* client.unsafe("create trigger dangle after insert on cairn_step begin insert into child values (1); end")
      const error = yield* Effect.flip(driver.commit([stepCommit(lease, 0)]))
      expect(error).toMatchObject({ _tag: "StoreError", reason: "Constraint", operation: "commit" })
      expect((yield* driver.load("test", "r"))!).toMatchObject({ run: { seq: 0 }, steps: [] })
      yield* client.unsafe("drop trigger dangle")
      expect(yield* driver.commit([stepCommit(lease, 0)])).toMatchObject([{ _tag: "Committed" }])
    }),
  )

  it.scopedLive("for a full disk says so, and goes on by itself when there is space again", () =>
    Effect.gen(function* () {
      const { client, driver, lease } = yield* owned()
      const [{ page_count: pages }] = (yield* client.unsafe<{ page_count: number }>("pragma page_count")) as [
        { page_count: number },
      ]
      yield* client.unsafe(`pragma max_page_count = ${pages + 2}`)
      const large: CommitRows = { ...stepCommit(lease, 0) }
      const steps = [{ ...large.steps[0]!, result: JSON.stringify("x".repeat(1_000_000)) }]
      expect(yield* Effect.flip(driver.commit([{ ...large, steps }]))).toMatchObject({ reason: "Full" })
      expect((yield* driver.load("test", "r"))!).toMatchObject({ run: { seq: 0 }, steps: [] })
      yield* client.unsafe("pragma max_page_count = 1000000")
      expect(yield* driver.commit([{ ...large, steps }])).toMatchObject([{ _tag: "Committed" }])
      expect(yield* client.unsafe("pragma integrity_check")).toEqual([{ integrity_check: "ok" }])
    }),
  )

  it.scopedLive("because the step is there already is a Constraint, and a batch with it writes nothing", () =>
    Effect.gen(function* () {
      const { driver, lease } = yield* owned()
      yield* driver.commit([stepCommit(lease, 0)])
      const again = { ...stepCommit(lease, 1), steps: stepCommit(lease, 0).steps }
      expect(yield* Effect.flip(driver.commit([again]))).toMatchObject({ reason: "Constraint" })
      expect((yield* driver.findRun("test", "r"))!.seq).toBe(1)
    }),
  )

  it.scopedLive("on a file that may not be written is a Permission", () =>
    Effect.gen(function* () {
      const { client, driver } = yield* open()
      yield* client.unsafe("pragma query_only = on")
      expect(yield* Effect.flip(driver.createRun(newRun("a")))).toMatchObject({ reason: "Permission" })
    }),
  )

  it.scopedLive("in a body that throws is rolled back and gives the connection on", () =>
    Effect.gen(function* () {
      const { database, driver } = yield* open()
      const insert = { text: "insert into cairn_worker (worker_id, until) values ('lost', 1)", params: [] }
      const failed = yield* Effect.flip(
        database.transaction("test", "usual", (session) =>
          Effect.zipRight(session.run(insert), Effect.die(new Error("a bug"))),
        ),
      )
      expect(failed).toMatchObject({ _tag: "StoreError", reason: "Unknown", cause: new Error("a bug") })
      const rows = yield* database.query("test", { text: "select * from cairn_worker", params: [] })
      expect(rows).toEqual([])
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
    }),
  )
})

describe("an interruption", () => {
  it.scopedLive("in the middle of a transaction waits until it has ended, whole", () =>
    Effect.gen(function* () {
      const { client, database, driver } = yield* open()
      const inside = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const row = (id: string) => ({
        text: `insert into cairn_worker (worker_id, until) values ('${id}', 1)`,
        params: [],
      })
      const fiber = yield* Effect.fork(
        database.transaction("test", "usual", (session) =>
          session
            .run(row("a"))
            .pipe(
              Effect.zipRight(Deferred.succeed(inside, undefined)),
              Effect.zipRight(Deferred.await(goOn)),
              Effect.zipRight(session.run(row("b"))),
            ),
        ),
      )
      yield* Deferred.await(inside)
      const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
      yield* Effect.yieldNow()
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(interrupting)
      expect(yield* client.unsafe("select count(*) as n from cairn_worker")).toEqual([{ n: 2 }])
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
    }),
  )

  it.scopedLive("ends the wait for a busy file at once", () =>
    Effect.gen(function* () {
      const { driver, filename } = yield* open(60_000)
      const other = yield* makeBareClient(filename)
      yield* other.unsafe("begin immediate")
      const waiting = yield* Effect.fork(driver.createRun(newRun("a")))
      yield* Effect.yieldNow()
      expect(Exit.isInterrupted(yield* Fiber.interrupt(waiting))).toBe(true)
      yield* other.unsafe("rollback")
      expect(yield* driver.findRun("test", "a")).toBeNull()
    }),
  )
})

describe("a busy file", () => {
  it.scopedLive("is waited for without stopping the event loop, and then written", () =>
    Effect.gen(function* () {
      const { driver, filename } = yield* open()
      const other = yield* makeBareClient(filename)
      yield* other.unsafe("begin immediate")
      const waiting = yield* Effect.fork(driver.createRun(newRun("a")))
      // This fiber goes on while that one waits: it is the one who frees the file.
      yield* Effect.yieldNow()
      expect(yield* driver.findRun("test", "a")).toBeNull()
      yield* other.unsafe("commit")
      expect((yield* Fiber.join(waiting)).created).toBe(true)
    }),
  )

  it.scopedLive("that stays busy is an error that can be retried, after the deadline and not before", () =>
    Effect.gen(function* () {
      const { driver, filename } = yield* open(100)
      const other = yield* makeBareClient(filename)
      yield* other.unsafe("begin immediate")
      const from = performance.now()
      const error = yield* Effect.flip(driver.createRun(newRun("a")))
      expect(error).toMatchObject({ reason: "Busy", isRetryable: true })
      expect(performance.now() - from).toBeGreaterThanOrEqual(100)
      yield* other.unsafe("commit")
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
    }),
  )

  it.scopedLive("lets a heartbeat pass those who waited before it", () =>
    Effect.gen(function* () {
      const { driver, filename } = yield* open()
      const other = yield* makeBareClient(filename)
      yield* other.unsafe("begin immediate")
      const order: Array<string> = []
      const noted = <A, E>(name: string, effect: Effect.Effect<A, E>) =>
        Effect.tap(effect, () => Effect.sync(() => order.push(name)))
      const creates = yield* Effect.fork(
        Effect.forEach(
          Array.from({ length: 400 }, (_, index) => `run ${index}`),
          (runId) => noted("create", driver.createRun(newRun(runId))),
          { concurrency: "unbounded", discard: true },
        ),
      )
      yield* Effect.yieldNow()
      const beat = yield* Effect.fork(noted("beat", driver.beat("worker", 60_000)))
      yield* Effect.yieldNow()
      expect(order).toEqual([])
      yield* other.unsafe("commit")
      yield* Fiber.join(beat)
      yield* Fiber.join(creates)
      expect(order).toHaveLength(401)
      // It waits for its own next try and for one turn of the event loop, never for the line.
      expect(order.indexOf("beat")).toBeLessThan(200)
    }),
  )
})

describe("a row of transactions", () => {
  it.scopedLive("lets timers fire in between", () =>
    Effect.gen(function* () {
      const { driver } = yield* open()
      let created = 0
      const createdWhenFired: Array<number> = []
      const timer = setInterval(() => createdWhenFired.push(created), 1)
      yield* Effect.forEach(
        Array.from({ length: 300 }, (_, index) => `run ${index}`),
        (runId) => Effect.tap(driver.createRun(newRun(runId)), () => Effect.sync(() => created++)),
        { concurrency: "unbounded", discard: true },
      )
      clearInterval(timer)
      expect(created).toBe(300)
      expect(createdWhenFired.filter((count) => count > 0 && count < 300).length).toBeGreaterThan(2)
    }),
  )
})

describe("fibers that commit in loops", () => {
  it.scopedLive("take turns: none waits for another's loop to end", () =>
    Effect.gen(function* () {
      const { driver } = yield* open()
      const ids = ["a", "b", "c", "d", "e"]
      for (const runId of ids) yield* driver.createRun(newRun(runId))
      yield* driver.beat("worker", 60_000)
      const order: Array<string> = []
      yield* Effect.forEach(
        yield* driver.claim(claimOf("worker")),
        (run) =>
          Effect.gen(function* () {
            for (let base = 0; base < 60; base++) {
              yield* driver.commit([stepCommit(leaseOf(run), base)])
              order.push(run.runId)
            }
          }),
        { concurrency: "unbounded", discard: true },
      )
      expect(order).toHaveLength(300)
      // The first has the connection to itself until the others are there; by its end nobody has been left out.
      const firstEnd = Math.min(...ids.map((id) => order.lastIndexOf(id)))
      for (const runId of ids) {
        expect(order.slice(0, firstEnd).filter((id) => id === runId).length).toBeGreaterThan(10)
      }
    }),
  )
})

describe("the connection", () => {
  it.scopedLive("is freed of a transaction that somebody else has left open", () =>
    Effect.gen(function* () {
      const { client, driver } = yield* open()
      yield* client.unsafe("begin")
      yield* client.unsafe("insert into cairn_worker (worker_id, until) values ('left', 1)")
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
      expect(yield* client.unsafe("select * from cairn_worker")).toEqual([])
      expect((yield* driver.findRun("test", "a"))!.runId).toBe("a")
    }),
  )

  it.scopedLive("does not remember that a statement could once not be prepared", () =>
    Effect.gen(function* () {
      const { client, driver } = yield* open()
      yield* client.unsafe("alter table cairn_run rename to cairn_away")
      expect(yield* Effect.flip(driver.findRun("test", "a"))).toMatchObject({ reason: "Unknown" })
      yield* client.unsafe("alter table cairn_away rename to cairn_run")
      expect(yield* driver.findRun("test", "a")).toBeNull()
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
      expect((yield* driver.findRun("test", "a"))!.runId).toBe("a")
    }),
  )

  it.scopedLive("gives numbers also where the application asks its client for bigints", () =>
    Effect.gen(function* () {
      const { driver } = yield* open()
      const { run } = yield* Effect.provideService(driver.createRun(newRun("a")), SafeIntegers, true)
      expect([run.seq, run.version, typeof run.createdAt]).toEqual([0, 1, "number"])
      const found = yield* Effect.provideService(driver.findRun("test", "a"), SafeIntegers, true)
      expect(found).toEqual(run)
      expect(yield* driver.findRun("test", "a")).toEqual(run)
    }),
  )
})

describe("numbers at their limits", () => {
  it.scopedLive("a number past 2^53 - 1 is refused on its way in", () =>
    Effect.gen(function* () {
      const { driver, lease } = yield* owned()
      const error = yield* Effect.flip(driver.commit([{ ...stepCommit(lease, 0), seq: 2 ** 53 }]))
      expect(error).toMatchObject({ reason: "Constraint" })
      expect(error.message).toContain("'seq' is 9007199254740992")
      expect((yield* driver.findRun("test", "r"))!.seq).toBe(0)
    }),
  )

  it.scopedLive("a run whose fence cannot grow is left alone, and its neighbours are claimed", () =>
    Effect.gen(function* () {
      const { client, driver } = yield* open()
      for (const runId of ["a", "b", "c"]) yield* driver.createRun(newRun(runId))
      yield* client.unsafe("update cairn_run set fence = 9007199254740991 where run_id = 'a'")
      yield* client.unsafe("update cairn_run set seq = 9223372036854775807 where run_id = 'b'")
      yield* driver.beat("worker", 60_000)
      expect((yield* driver.claim(claimOf("worker", ["a", "b", "c"]))).map(({ runId }) => runId)).toEqual(["c"])
      expect(yield* driver.claim(claimOf("worker"))).toEqual([])
      expect((yield* driver.findRun("test", "a"))!.fence).toBe(Number.MAX_SAFE_INTEGER)
      expect(yield* Effect.flip(driver.findRun("test", "b"))).toMatchObject({ reason: "Corrupt" })
    }),
  )

  it.scopedLive("parts of a millisecond are rounded up, never early", () =>
    Effect.gen(function* () {
      const { driver, lease } = yield* owned()
      const [done] = yield* driver.commit([
        stepCommit(lease, 0, { status: "sleeping", wakeInMs: 10_000.5, release: true }),
      ])
      const at = done!._tag === "Committed" ? done!.at : 0
      expect((yield* driver.findRun("test", "r"))!.wakeAt).toBe(at + 10_001)
    }),
  )
})

describe("a batch", () => {
  it.scopedLive("of any size is written and answered in its order", () =>
    Effect.gen(function* () {
      const { driver } = yield* open()
      const ids = Array.from({ length: 75 }, (_, index) => `run ${100 + index}`)
      for (const runId of ids) yield* driver.createRun(newRun(runId))
      yield* driver.beat("worker", 60_000)
      const runs = yield* driver.claim(claimOf("worker"))
      expect(runs.map(({ runId }) => runId)).toEqual(ids)
      const batch = runs.map((run, index) => {
        const commit = stepCommit(leaseOf(run), index % 10 === 3 ? 7 : 0)
        return index === 5 ? { ...commit, lease: { ...commit.lease, runId: "nobody" } } : commit
      })
      const results = yield* driver.commit(batch)
      expect(
        results.map((result) => (result._tag === "Committed" ? "." : result.run === null ? "0" : "r")).join(""),
      ).toBe(ids.map((_, index) => (index === 5 ? "0" : index % 10 === 3 ? "r" : ".")).join(""))
      const loaded = yield* Effect.forEach(ids, (runId) => driver.load("test", runId))
      expect(loaded.map((rows) => rows!.steps.length)).toEqual(
        ids.map((_, index) => (index === 5 || index % 10 === 3 ? 0 : 1)),
      )
    }),
  )

  it.scopedLive("with a run in it twice is refused before anything is written", () =>
    Effect.gen(function* () {
      const { driver, lease } = yield* owned()
      const twice = [stepCommit(lease, 0), stepCommit(lease, 1)]
      expect(yield* Effect.flip(driver.commit(twice))).toMatchObject({ reason: "Constraint" })
      expect((yield* driver.findRun("test", "r"))!.seq).toBe(0)
    }),
  )
})
