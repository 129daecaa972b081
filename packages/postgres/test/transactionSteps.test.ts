/** Transaction steps over a Postgres schema, on a pool of one connection, and connections that are lost in them. */
import type { CheckpointDriver, FaultPoint } from "@cairn/core"
import { PostgresDriver } from "@cairn/postgres"
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import {
  booking,
  errorOf,
  finish,
  runOn,
  stepsOf,
  transactionSteps,
  withWorker,
  type Reach,
} from "../../sql/test/support/transactionSteps.js"
import { makeCuttingProxy } from "./internal/cuttingProxy.js"
import { freshSchema, query, useDatabase } from "./internal/database.js"

const database = useDatabase()

const opened = Effect.gen(function* () {
  const schema = yield* freshSchema(database)
  const options = { schema, listen: false, maxConnections: 1 } as const
  const proxy = yield* makeCuttingProxy(database.url)
  const driver = yield* PostgresDriver.make({ ...options, url: proxy.url })
  yield* query(database, `create table ${schema}.ledger (name text primary key)`)
  return {
    schema,
    proxy,
    driver,
    second: yield* PostgresDriver.make({ ...options, url: database.url }),
    ledger: `${schema}.ledger`,
    parameter: "$1",
    names: Effect.map(query(database, `select name from ${schema}.ledger order by name`), (rows) =>
      rows.map((row) => String(row["name"])),
    ),
  }
})

transactionSteps("Postgres", opened)

/** One row a call, and how often it was called. */
const counting = (ledger: string, inBody: (call: number, pid: number) => Effect.Effect<void> = () => Effect.void) => {
  const calls = { count: 0 }
  const workflow = booking(function* () {
    const sql = yield* SqlClient
    const call = ++calls.count
    const [{ pid }] = (yield* sql`select pg_backend_pid() as pid`) as any
    yield* sql.unsafe(`insert into ${ledger} (name) values ($1)`, [`call ${call}`])
    yield* inBody(call, pid)
    return `call ${call}`
  })
  return { calls, workflow }
}

/** Acts once, when a point is reached. */
const onceAt = (at: FaultPoint, act: Effect.Effect<unknown>): Reach => {
  let isDone = false
  return (point) => {
    if (point !== at || isDone) return Effect.void
    isDone = true
    return Effect.asVoid(act)
  }
}

/** What is lost is no attempt of the step: nothing of it is recorded. */
const expectNoAttempts = (driver: CheckpointDriver) =>
  Effect.map(driver.loadOpen("default", "r", ["book"]), ({ attempts }) => expect(attempts).toEqual([]))

describe("a transaction step of Postgres", () => {
  it.scopedLive("whose COMMIT was made and not answered is read back, and its function is not called again", () =>
    Effect.gen(function* () {
      const { driver, ledger, names, proxy, second } = yield* opened
      const { calls, workflow } = counting(ledger)
      const reach = onceAt(
        "beforeCommit",
        Effect.sync(() => proxy.cutAt("COMMIT\u0000")),
      )
      expect(yield* runOn(driver, workflow, { reach })).toEqual(Exit.succeed("call 1"))
      expect([proxy.cuts(), calls.count]).toEqual([1, 1])
      expect(yield* names).toEqual(["call 1"])
      expect(yield* stepsOf(second)).toEqual([["book", "transaction"]])
      yield* expectNoAttempts(second)
    }),
  )

  it.scopedLive("whose connection is lost before the COMMIT is sent is undone and done again", () =>
    Effect.gen(function* () {
      const { driver, ledger, names, proxy, second } = yield* opened
      const { calls, workflow } = counting(ledger)
      // The answer to the statement that writes the checkpoint.
      const reach = onceAt(
        "beforeCommit",
        Effect.sync(() => proxy.cutAt("SELECT 1\u0000")),
      )
      expect(yield* runOn(driver, workflow, { reach })).toEqual(Exit.succeed("call 2"))
      expect([proxy.cuts(), calls.count]).toEqual([1, 2])
      expect(yield* names).toEqual(["call 2"])
      yield* expectNoAttempts(second)
    }),
  )

  it.scopedLive("whose server process ends under its function is undone and done again", () =>
    Effect.gen(function* () {
      const { driver, ledger, names, second } = yield* opened
      const { calls, workflow } = counting(ledger, (call, pid) =>
        call === 1 ? Effect.asVoid(query(database, "select pg_terminate_backend($1)", [pid])) : Effect.void,
      )
      expect(yield* runOn(driver, workflow)).toEqual(Exit.succeed("call 2"))
      expect(calls.count).toBe(2)
      expect(yield* names).toEqual(["call 2"])
      yield* expectNoAttempts(second)
    }),
  )

  it.scopedLive("that keeps the failure of a statement to itself fails, whatever it gives, and leaves nothing", () =>
    Effect.gen(function* () {
      const { driver, ledger, names, second } = yield* opened
      const workflow = booking(function* () {
        const sql = yield* SqlClient
        yield* sql.unsafe(`insert into ${ledger} (name) values ('a')`)
        yield* Effect.ignore(sql.unsafe(`insert into ${ledger} (name) values ('a')`))
        return "a success that is none"
      })
      const error = errorOf(yield* runOn(driver, workflow))
      expect(error).toMatchObject({ _tag: "RunFailed", details: { tag: "TransactionAborted" } })
      expect(yield* names).toEqual([])
      expect((yield* second.load("default", "r"))!.steps).toEqual([])
    }),
  )

  it.scopedLive("that breaks a deferred constraint fails at its COMMIT, and is tried again", () =>
    Effect.gen(function* () {
      const { driver, ledger, names, schema } = yield* opened
      yield* query(
        database,
        `create table ${schema}.line (entry text references ${ledger} (name) deferrable initially deferred)`,
      )
      let calls = 0
      const workflow = booking(
        function* () {
          const sql = yield* SqlClient
          yield* sql.unsafe(`insert into ${schema}.line (entry) values ('a')`)
          if (++calls === 2) yield* sql.unsafe(`insert into ${ledger} (name) values ('a')`)
          return "done"
        },
        { retry: { times: 1, delay: 1 } },
      )
      expect(yield* runOn(driver, workflow)).toEqual(Exit.succeed("done"))
      expect(yield* names).toEqual(["a"])
    }),
  )

  it.scopedLive("of a worker that is taken over while it runs is refused, and takes back what it wrote", () =>
    Effect.gen(function* () {
      const { driver, ledger, names, schema, second } = yield* opened
      const { calls, workflow } = counting(ledger)
      const inside = yield* Effect.makeLatch()
      const goOn = yield* Effect.makeLatch()
      const reach = onceAt("beforeCommit", Effect.zipRight(inside.open, goOn.await))
      yield* Effect.gen(function* () {
        const loser = yield* Effect.fork(finish(workflow))
        yield* inside.await
        // The row of the run is free while the function runs: whoever takes over waits for nobody.
        const ended = `update ${schema}.worker set until = 0`
        yield* query(database, ended)
        yield* query(database, `update ${schema}.run set status = 'running'`)
        expect(yield* runOn(second, workflow)).toEqual(Exit.succeed("call 2"))
        yield* goOn.open
        expect(yield* loser).toEqual(Exit.succeed("call 2"))
      }).pipe(withWorker(driver, workflow, { reach }))
      expect(calls.count).toBe(2)
      expect(yield* names).toEqual(["call 2"])
      expect((yield* second.findRun("default", "r"))!).toMatchObject({ fence: 2, status: "completed" })
    }),
  )
})
