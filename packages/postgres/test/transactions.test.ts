/** What a transaction of the pool promises, tried on a real server and real failures (G1 to G7). */
import { fromDriver } from "@cairn/core"
import { PostgresDriver, type PostgresStoreOptions } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { reserving } from "../src/internal/pooledConnection.js"
import { driverOver } from "../src/PostgresDriver.js"
import { makeCuttingProxy } from "./internal/cuttingProxy.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"
import { claimOf, leaseOf, newRun, ownedRuns, stepCommit } from "./internal/rows.js"

const database = useDatabase()

const open = (options: PostgresStoreOptions = {}) =>
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const opened = yield* openDatabase({ url: database.url, schema, listen: false, maxConnections: 2, ...options })
    const driver = yield* driverOver(opened.dialect, opened.database, opened.options)
    return { ...opened, driver, schema }
  })

const insertWorker = (schema: string, id: string) => ({
  text: `insert into ${schema}.worker (worker_id, until) values ($1, 1)`,
  params: [id],
})

const workersOf = (schema: string) =>
  Effect.map(query(database, `select worker_id from ${schema}.worker order by 1`), (rows) =>
    rows.map((row) => row["worker_id"]),
  )

/** Runs a statement on a connection of its own, in a transaction that stays open until the scope ends. */
const holding = (url: string, text: string) =>
  Effect.gen(function* () {
    const other = yield* openDatabase({ url, listen: false, maxConnections: 1 })
    const connection = yield* reserving(other.client)
    yield* connection.execute("begin", [], undefined)
    yield* connection.execute(text, [], undefined)
    yield* Effect.addFinalizer(() => Effect.ignore(connection.execute("rollback", [], undefined)))
    return connection
  })

describe("a transaction", () => {
  it.scopedLive("whose body keeps the failure of a statement to itself fails, and writes nothing", () =>
    Effect.gen(function* () {
      const opened = yield* open()
      const swallowing = opened.database.transaction("test", "usual", (session) =>
        session
          .run(insertWorker(opened.schema, "lost"))
          .pipe(
            Effect.zipRight(Effect.ignore(session.run({ text: "select 1 / 0", params: [] }))),
            Effect.as("a success that is none"),
          ),
      )
      expect(yield* Effect.flip(swallowing)).toMatchObject({ _tag: "StoreError", reason: "Constraint" })
      expect(yield* workersOf(opened.schema)).toEqual([])
    }),
  )

  it.scopedLive("whose body throws is rolled back, is not tried again, and gives its connection back", () =>
    Effect.gen(function* () {
      const opened = yield* open({ maxConnections: 1 })
      let tries = 0
      const failing = opened.database.transaction("test", "usual", (session) =>
        Effect.zipRight(
          session.run(insertWorker(opened.schema, "lost")),
          Effect.sync(() => {
            tries++
            throw new Error("a bug")
          }),
        ),
      )
      expect(yield* Effect.flip(failing)).toMatchObject({ reason: "Unknown", cause: new Error("a bug") })
      expect(tries).toBe(1)
      expect(yield* workersOf(opened.schema)).toEqual([])
      expect((yield* opened.driver.createRun(newRun("a"))).created).toBe(true)
    }),
  )

  it.scopedLive("that fails at COMMIT itself is an error, and the next one runs", () =>
    Effect.gen(function* () {
      const { driver, schema } = yield* open({ maxConnections: 1 })
      yield* query(
        database,
        `create table ${schema}.parent (id int primary key);
create table ${schema}.child (id int references ${schema}.parent deferrable initially deferred);
create function ${schema}.dangle() returns trigger language plpgsql as 'begin insert into ${schema}.child values (1); return new; end';
create trigger dangle after insert on ${schema}.run for each row execute function ${schema}.dangle();
create trigger dangle after insert on ${schema}.step for each row execute function ${schema}.dangle()`,
      )
      expect(yield* Effect.flip(driver.createRun(newRun("a")))).toMatchObject({ reason: "Constraint" })
      yield* query(database, `drop trigger dangle on ${schema}.run`)
      const [lease] = yield* ownedRuns(driver, "worker", ["a"])
      expect(yield* Effect.flip(driver.commit([stepCommit(lease!, 0)]))).toMatchObject({ reason: "Constraint" })
      expect((yield* driver.load("test", "a"))!).toMatchObject({ run: { seq: 0 }, steps: [] })
      yield* query(database, `drop trigger dangle on ${schema}.step`)
      expect(yield* driver.commit([stepCommit(lease!, 0)])).toMatchObject([{ _tag: "Committed" }])
    }),
  )

  it.scopedLive("that is interrupted in the middle ends first, whole", () =>
    Effect.gen(function* () {
      const { database: opened, driver, schema } = yield* open({ maxConnections: 1 })
      const inside = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const fiber = yield* Effect.fork(
        opened.transaction("test", "usual", (session) =>
          session
            .run(insertWorker(schema, "a"))
            .pipe(
              Effect.zipRight(Deferred.succeed(inside, undefined)),
              Effect.zipRight(Deferred.await(goOn)),
              Effect.zipRight(session.run(insertWorker(schema, "b"))),
            ),
        ),
      )
      yield* Deferred.await(inside)
      const interrupting = yield* Effect.fork(Fiber.interrupt(fiber))
      const waiting = yield* Effect.fork(driver.now)
      yield* Effect.yieldNow()
      // Whoever waits for the only connection can be interrupted, and takes it from nobody.
      expect(Exit.isInterrupted(yield* Fiber.interrupt(waiting))).toBe(true)
      yield* Deferred.succeed(goOn, undefined)
      yield* Fiber.join(interrupting)
      expect(yield* workersOf(schema)).toEqual(["a", "b"])
      expect(yield* driver.now).toBeGreaterThan(0)
    }),
  )
})

describe("what the server has undone", () => {
  it.scopedLive("by a deadlock or a serialisation failure is tried again", () =>
    Effect.gen(function* () {
      const { database: opened, schema } = yield* open()
      for (const code of ["40P01", "40001"]) {
        let tries = 0
        const done = yield* opened.transaction("test", "usual", (session) =>
          Effect.suspend(() => {
            tries++
            const raised = { text: `do 'begin raise exception using errcode = ''${code}''; end'`, params: [] }
            const last = tries < 3 ? Effect.asVoid(session.run(raised)) : Effect.void
            return Effect.as(Effect.zipRight(session.run(insertWorker(schema, `${code} ${tries}`)), last), "done")
          }),
        )
        expect([done, tries]).toEqual(["done", 3])
      }
      expect(yield* workersOf(schema)).toEqual(["40001 3", "40P01 3"])
    }),
  )

  it.scopedLive("in a statement alone is tried again as well", () =>
    Effect.gen(function* () {
      const { driver, schema } = yield* open()
      const [lease] = yield* ownedRuns(driver, "worker", ["a"])
      yield* query(
        database,
        `create sequence ${schema}.tries;
create function ${schema}.refuse() returns trigger language plpgsql as
  'begin if nextval(''${schema}.tries'') < 3 then raise exception using errcode = ''40001''; end if; return new; end';
create trigger refuse before update on ${schema}.run for each row execute function ${schema}.refuse()`,
      )
      expect(yield* driver.commit([stepCommit(lease!, 0)])).toMatchObject([{ _tag: "Committed" }])
      expect(yield* query(database, `select last_value from ${schema}.tries`)).toEqual([{ last_value: "3" }])
    }),
  )

  it.scopedLive("again and again is Busy in the end, and can be retried", () =>
    Effect.gen(function* () {
      const { database: opened } = yield* open({ retryTimeoutMs: 30 })
      const raised = { text: "do 'begin raise exception using errcode = ''40001''; end'", params: [] }
      const error = yield* Effect.flip(opened.transaction("test", "usual", (session) => session.run(raised)))
      expect(error).toMatchObject({ reason: "Busy", isRetryable: true })
    }),
  )

  it.scopedLive("because a lock was held too long is Busy, for transactions and for commits", () =>
    Effect.gen(function* () {
      const { driver, schema } = yield* open({ lockTimeoutMs: 50, retryTimeoutMs: 0 })
      const [lease] = yield* ownedRuns(driver, "worker", ["a"])
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* holding(database.url, `select 1 from ${schema}.run for update`)
          const began = performance.now()
          expect(yield* Effect.flip(driver.commit([stepCommit(lease!, 0)]))).toMatchObject({ reason: "Busy" })
          expect(yield* Effect.flip(driver.releaseWorker("worker"))).toMatchObject({ reason: "Busy" })
          expect(performance.now() - began).toBeLessThan(3_000)
          // A claimer passes over what another one holds.
          yield* driver.createRun(newRun("b"))
          expect((yield* driver.claim(claimOf("worker"))).map(({ runId }) => runId)).toEqual(["b"])
        }),
      )
      expect(yield* driver.commit([stepCommit(lease!, 0)])).toMatchObject([{ _tag: "Committed" }])
    }),
  )

  it.scopedLive("and limits are those of the transaction: no session keeps one", () =>
    Effect.gen(function* () {
      const { database: opened, driver } = yield* open({
        maxConnections: 1,
        lockTimeoutMs: 77,
        statementTimeoutMs: 7_777,
      })
      const [lease] = yield* ownedRuns(driver, "worker", ["a"])
      yield* driver.commit([stepCommit(lease!, 0)])
      const settings = ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"]
      const text = `select ${settings.map((name) => `current_setting('${name}') as ${name}`).join(", ")}`
      const [row] = yield* opened.query("test", { text, params: [] })
      expect(Object.values(row!)).toEqual(["0", "0", "0"])
    }),
  )
})

describe("a lost connection", () => {
  const terminate = (schema: string) =>
    query(
      database,
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = $1`,
      [schema],
    )

  it.scopedLive("before COMMIT costs a try, not the call, and no place in the pool", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const options = { url: database.url, schema, applicationName: schema, listen: false, maxConnections: 1 }
      const { connections, database: opened } = yield* openDatabase(options)
      for (let round = 0; round < 50; round++) {
        let tries = 0
        yield* opened.transaction("test", "usual", (session) =>
          session
            .run(insertWorker(schema, `worker ${round}`))
            .pipe(
              Effect.zipRight(Effect.suspend(() => (++tries === 1 ? terminate(schema) : Effect.void))),
              Effect.zipRight(session.run({ text: "select 1", params: [] })),
            ),
        )
        expect(tries).toBe(2)
        expect(connections()).toEqual({ open: 1, idle: 1, waiting: 0 })
      }
      expect(yield* workersOf(schema)).toHaveLength(50)
    }),
  )

  it.scopedLive("while the event loop stood still in a transaction gives its place back as well", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const limits = { idleInTransactionTimeoutMs: 20, retryTimeoutMs: 0 }
      const options = { url: database.url, schema, listen: false, maxConnections: 1, ...limits }
      const { connections, database: opened } = yield* openDatabase(options)
      for (let round = 0; round < 20; round++) {
        const failed = yield* Effect.flip(
          opened.transaction("test", "usual", (session) =>
            session.run({ text: "select 1", params: [] }).pipe(
              Effect.tap(() => {
                const until = performance.now() + 60
                while (performance.now() < until);
              }),
              Effect.zipRight(session.run({ text: "select 1", params: [] })),
            ),
          ),
        )
        expect(failed).toMatchObject({ reason: "Unavailable" })
        expect(connections().waiting).toBe(0)
      }
      expect(yield* opened.query("test", { text: "select 1 as n", params: [] })).toEqual([{ n: 1 }])
      expect(connections()).toEqual({ open: 1, idle: 1, waiting: 0 })
    }),
  )

  it.scopedLive("right after COMMIT is an error that is not tried again here; sent again, it is known as done", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const proxy = yield* makeCuttingProxy(database.url)
      const driver = yield* PostgresDriver.make({ url: proxy.url, schema, listen: false, maxConnections: 1 })
      const [lease] = yield* ownedRuns(driver, "worker", ["a"])
      proxy.cutAt("SELECT 1\u0000")
      const error = yield* Effect.flip(driver.commit([stepCommit(lease!, 0)]))
      expect([proxy.cuts(), error.reason]).toEqual([1, "Unavailable"])
      expect((yield* driver.load("test", "a"))!).toMatchObject({ run: { seq: 1 }, steps: [{ seq: 1 }] })

      const commit = stepCommit(lease!, 0)
      const store = fromDriver(driver)
      const { updatedAt } = yield* store.findRun("test", "a")
      expect(
        yield* store.commit([{ ...commit, run: { ...commit.run, failure: null, parked: null }, attempts: [] }]),
      ).toMatchObject([{ _tag: "Right", right: updatedAt }])
      expect((yield* driver.load("test", "a"))!.steps).toHaveLength(1)
    }),
  )

  it.scopedLive("right after the COMMIT of a claim leaves a run that is claimed, once", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const proxy = yield* makeCuttingProxy(database.url)
      const driver = yield* PostgresDriver.make({ url: proxy.url, schema, listen: false, maxConnections: 1 })
      yield* driver.createRun(newRun("a"))
      yield* driver.beat("worker", 600_000)
      proxy.cutAt("COMMIT\u0000")
      expect(yield* Effect.flip(driver.claim(claimOf("worker")))).toMatchObject({ reason: "Unavailable" })
      expect(proxy.cuts()).toBe(1)
      expect((yield* driver.findRun("test", "a"))!).toMatchObject({ fence: 1, leaseOwner: "worker", recoveries: 0 })
      const { leases } = yield* driver.beat("worker", 600_000)
      expect(leases).toMatchObject([{ runId: "a", fence: 1 }])
    }),
  )

  it.scopedLive("that nobody tells of, a dead socket, is an error after the limit, and is not used again", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const proxy = yield* makeCuttingProxy(database.url)
      const limits = { statementTimeoutMs: 100, connectTimeoutMs: 1_000, retryTimeoutMs: 0 }
      const driver = yield* PostgresDriver.make({ url: proxy.url, schema, listen: false, maxConnections: 1, ...limits })
      proxy.swallow(true)
      expect(yield* Effect.flip(driver.now)).toMatchObject({ reason: "Unavailable", isRetryable: true })
      proxy.swallow(false)
      expect(yield* driver.now).toBeGreaterThan(0)
    }),
  )
})

describe("a commit", () => {
  it.scopedLive("that names an intent or an attempt twice leaves what the writes make of it in their order (D17)", () =>
    Effect.gen(function* () {
      const { driver } = yield* open()
      const [lease] = yield* ownedRuns(driver, "worker", ["a"])
      const effect = { operation: "o", payload: "1", payloadHash: "h", claimToken: "t", sends: 1, generation: 0 }
      const intent = { ...effect, idempotencyKey: "k", state: "intended", outcome: null } as const
      const settled = { ...intent, state: "succeeded", outcome: '"done"', sends: 2 } as const
      const attempt = { path: "p", attempt: 1, kind: "failed", error: "{}", output: null, retryInMs: null } as const
      yield* driver.commit([
        {
          ...stepCommit(lease!, 0),
          effects: [
            { ...intent, path: "p" },
            { ...settled, path: "p" },
            { ...settled, path: "q" },
            { ...intent, path: "q", sends: 9 },
          ],
          attempts: [attempt, { ...attempt, error: '{"last":true}' }],
        },
      ])
      const { attempts, effects } = yield* driver.loadOpen("test", "a", ["p", "q"])
      expect(effects.map(({ outcome, path, sends, state }) => [path, state, outcome, sends])).toEqual([
        ["p", "succeeded", '"done"', 2],
        ["q", "succeeded", '"done"', 2],
      ])
      expect(attempts.map(({ error }) => error)).toEqual(['{"last":true}'])
    }),
  )
})

describe("a pool of two", () => {
  it.scopedLive("lets a heartbeat through while every other call waits for a lock", () =>
    Effect.gen(function* () {
      const { driver, schema } = yield* open({ maxConnections: 2, lockTimeoutMs: 60_000 })
      const leases = yield* ownedRuns(driver, "worker", ["a", "b", "c"])
      const waiting = yield* Effect.scoped(
        Effect.gen(function* () {
          yield* holding(database.url, `select 1 from ${schema}.run for update`)
          const commits = yield* Effect.forkDaemon(
            Effect.forEach(leases, (lease) => driver.commit([stepCommit(lease, 0)]), { concurrency: "unbounded" }),
          )
          const blocked = query(database, "select 1 from pg_locks where not granted")
          yield* Effect.repeat(blocked, { until: (rows) => rows.length > 0 })
          expect((yield* driver.beat("worker", 600_000)).leases).toHaveLength(3)
          return commits
        }),
      )
      expect((yield* Fiber.join(waiting)).flat().map(({ _tag }) => _tag)).toEqual(Array(3).fill("Committed"))
    }),
  )
})

describe("a pool of one", () => {
  it.scopedLive("serves a hundred calls of every kind at once", () =>
    Effect.gen(function* () {
      const { driver } = yield* open({ maxConnections: 1 })
      const ids = Array.from({ length: 25 }, (_, index) => `run ${index}`)
      const leases = yield* ownedRuns(driver, "worker", ids)
      const calls = leases.flatMap((lease, index) => [
        Effect.asVoid(driver.commit([stepCommit(lease, 0)])),
        Effect.asVoid(driver.load("test", lease.runId)),
        Effect.asVoid(driver.createRun(newRun(`other ${index}`))),
        Effect.asVoid(driver.beat("worker", 600_000)),
      ])
      yield* Effect.all(calls, { concurrency: "unbounded", discard: true })
      expect((yield* driver.load("test", "run 24"))!.run.seq).toBe(1)
    }),
  )

  it.scopedLive("lets a heartbeat pass those who wait", () =>
    Effect.gen(function* () {
      const { driver } = yield* open({ maxConnections: 1 })
      const order: Array<string> = []
      const noted = <A, E>(name: string, effect: Effect.Effect<A, E>) =>
        Effect.tap(effect, () => Effect.sync(() => order.push(name)))
      const creates = yield* Effect.fork(
        Effect.forEach(
          Array.from({ length: 60 }, (_, index) => `run ${index}`),
          (runId) => noted("create", driver.createRun(newRun(runId))),
          { concurrency: "unbounded", discard: true },
        ),
      )
      yield* Effect.yieldNow()
      yield* noted("beat", driver.beat("worker", 60_000))
      yield* Fiber.join(creates)
      expect(order).toHaveLength(61)
      expect(order.indexOf("beat")).toBeLessThan(10)
    }),
  )
})

describe("batches over the same runs", () => {
  it.scopedLive("in any order wait for each other and never in a circle", () =>
    Effect.gen(function* () {
      // A join that hands rows on in the order in which they were given, which is each batch's own.
      for (const join of ["hashjoin", "mergejoin"])
        yield* query(database, `alter database ${database.name} set enable_${join} = off`)
      const { driver, schema } = yield* open({ maxConnections: 8, retryTimeoutMs: 0 })
      const ids = Array.from({ length: 12 }, (_, index) => `run ${index}`)
      const leases = yield* ownedRuns(driver, "worker", ids)
      const deadlocks = `select deadlocks::int as "count" from pg_stat_database where datname = current_database()`
      let committed = 0
      // Each batch holds all runs in an order of its own and builds on what it last saw: one of several wins.
      const flush = (n: number) =>
        Effect.gen(function* () {
          const rows = yield* query(database, `select run_id, seq::int as seq from ${schema}.run`)
          const seqs = new Map(rows.map((row) => [row["run_id"], Number(row["seq"])]))
          const turned = [...leases.slice(n % 12), ...leases.slice(0, n % 12)]
          const batch = (n % 2 === 0 ? turned : turned.reverse()).map((lease) =>
            stepCommit(lease, seqs.get(lease.runId)!),
          )
          const results = yield* driver.commit(batch)
          committed += results.filter(({ _tag }) => _tag === "Committed").length
        })
      yield* Effect.forEach(
        Array.from({ length: 400 }, (_, n) => n),
        flush,
        { concurrency: 8, discard: true },
      )
      const [{ steps, seqs } = { steps: 0, seqs: 0 }] = (yield* query(
        database,
        `select (select count(*)::int from ${schema}.step) as steps, (select sum(seq)::int from ${schema}.run) as seqs`,
      )) as ReadonlyArray<{ steps: number; seqs: number }>
      expect(committed).toBeGreaterThan(400)
      expect([steps, seqs]).toEqual([committed, committed])
      yield* query(database, "select pg_stat_force_next_flush()")
      expect(yield* query(database, deadlocks)).toEqual([{ count: 0 }])
    }),
  )
})

describe("a heartbeat and a claim at the same time", () => {
  it.scopedLive("agree: an owner that was told of a longer lease has not lost its run before it", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const make = PostgresDriver.make({ url: database.url, schema, listen: false, maxConnections: 2 })
      const [owner, other] = [yield* make, yield* make]
      yield* owner.createRun(newRun("a"))
      yield* other.beat("other", 600_000)
      for (let round = 0; round < 60; round++) {
        yield* owner.beat("owner", 600_000)
        yield* query(database, `update ${schema}.run set status = 'pending', lease_owner = null, claim_token = null`)
        const [run] = yield* owner.claim(claimOf("owner"))
        // Its lease has ended just now: both sides may win.
        yield* query(database, `update ${schema}.worker set until = 1 where worker_id = 'owner'`)
        const [beaten, taken] = yield* Effect.all([owner.beat("owner", 600_000), other.claim(claimOf("other"))], {
          concurrency: "unbounded",
        })
        // Whichever came first, both know the same owner.
        expect(beaten.leases.map(({ fence }) => fence).concat(taken.map(({ fence }) => fence))).toEqual([
          taken.length === 0 ? leaseOf(run!).fence : leaseOf(run!).fence + 1,
        ])
      }
    }),
  )
})
