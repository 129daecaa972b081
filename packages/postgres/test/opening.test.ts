import { CheckpointStore, type StoreError } from "@cairn/core"
import { PostgresDriver, PostgresMigrations, PostgresStore, type PostgresStoreOptions } from "@cairn/postgres"
import { migrate } from "@cairn/sql"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { openDatabase } from "../src/internal/openDatabase.js"
import { freshName, freshSchema, query, urlAs, useDatabase } from "./internal/database.js"
import { claimOf, leaseOf, newRun, ownedRuns, stepCommit } from "./internal/rows.js"

const database = useDatabase()

const open = (options: PostgresStoreOptions = {}) =>
  PostgresDriver.make({ url: database.url, listen: false, maxConnections: 2, ...options })

const failureOf = <A, R>(effect: Effect.Effect<A, StoreError, R>) => Effect.scoped(Effect.flip(effect))

/** A role that may log in and nothing else, gone with the scope. */
const freshRole = Effect.acquireRelease(
  Effect.promise(async () => {
    const role = freshName("role")
    await database.query(`create role ${role} login password 'secret'`)
    return { role, url: urlAs(database.url, role, "secret") }
  }),
  ({ role }) => Effect.promise(() => database.query(`drop owned by ${role}; drop role ${role}`)),
)

/** Runs every kind of statement once. */
const useAll = (options: PostgresStoreOptions) =>
  Effect.gen(function* () {
    const driver = yield* open(options)
    const [lease] = yield* ownedRuns(driver, "worker", ["r"])
    const commit = stepCommit(lease!, 0, { status: "review", parked: "{}", release: true })
    const effect = { operation: "o", payload: "1", payloadHash: "h", outcome: null, claimToken: "t", sends: 1 }
    const intent = { ...effect, path: "p", generation: 0, idempotencyKey: "k", state: "intended" as const }
    yield* driver.commit([{ ...commit, effects: [intent] }])
    expect(yield* driver.recordOutcome({ ...lease!, ...intent, claimToken: "t", state: "failed", outcome: "2" })).toBe(
      true,
    )
    expect((yield* driver.loadOpen("test", "r", ["p"])).effects).toMatchObject([{ state: "failed", outcome: "2" }])
    expect(yield* driver.unpark("test", "r")).toBe(true)
    const [again] = yield* driver.claim(claimOf("worker"))
    expect(leaseOf(again!).fence).toBe(2)
    yield* driver.releaseWorker("worker")
    expect((yield* driver.load("test", "r"))!).toMatchObject({
      run: { status: "pending", seq: 1 },
      steps: [{ seq: 1 }],
    })
    return driver
  })

describe("schemas", () => {
  it.scopedLive("may have any name, whatever the search path, and leave public alone", () =>
    Effect.gen(function* () {
      const { url } = yield* freshRole
      const role = new URL(url).username
      yield* query(database, `alter role ${role} set search_path = pg_catalog`)
      yield* query(database, `grant create on database ${database.name} to ${role}`)
      for (const schema of ['my-App."x"', "SELECT", "x'; drop schema public; --", "käse $1 %s"]) {
        yield* useAll({ url, schema })
        const tables = yield* query(database, "select 1 from pg_tables where schemaname = $1", [schema])
        expect(tables).toHaveLength(13)
      }
      const inPublic = yield* query(
        database,
        "select relname from pg_class where relnamespace = (select oid from pg_namespace where nspname = 'public')",
      )
      expect(inPublic).toEqual([])
    }),
  )

  it.scopedLive("keep apart what they hold", () =>
    Effect.gen(function* () {
      const one = yield* open({ schema: yield* freshSchema(database) })
      const two = yield* open({ schema: yield* freshSchema(database) })
      yield* one.createRun(newRun("a"))
      expect(yield* two.findRun("test", "a")).toBeNull()
    }),
  )

  it.effect.each(["", "pg_mine", "x".repeat(64), "a\u0000b"])(
    "of the name %j are refused, before anything is sent",
    (schema) =>
      Effect.gen(function* () {
        const error = yield* failureOf(PostgresDriver.make({ host: "nowhere.invalid", schema }))
        expect(error.message).toContain("cannot be used")
        expect(() => PostgresMigrations.sql({ schema })).toThrow(TypeError)
      }),
  )
})

describe("ids that look like SQL", () => {
  it.scopedLive("are stored as they are, and harm nothing", () =>
    Effect.gen(function* () {
      const driver = yield* open({ schema: yield* freshSchema(database) })
      yield* driver.beat("worker", 600_000)
      for (const runId of ["x'; DROP TABLE run;--", "a' OR 1=1--", "$.a') --", "$1", "%", "_", "\\", '"', "{a,NULL}"]) {
        yield* driver.createRun(newRun(runId))
        const claimed = yield* driver.claim(claimOf("worker", { runIds: [runId] }))
        expect(claimed.map((run) => run.runId)).toEqual([runId])
      }
    }),
  )
})

describe("migrating", () => {
  it.scopedLive("records each version once, and begins no transaction where the tables are current", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      yield* open({ schema })
      const { database: opened, dialect } = yield* openDatabase({ url: database.url, schema, listen: false })
      expect(yield* query(database, `select version from ${schema}.migration`)).toEqual([{ version: "1" }])
      yield* migrate(dialect, { ...opened, transaction: () => Effect.dieMessage("a transaction was begun") })
    }),
  )

  it.scopedLive("refuses tables of a later version and leaves them alone", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      yield* open({ schema })
      yield* query(database, `insert into ${schema}.migration values (99, 'later', 0)`)
      const error = yield* failureOf(open({ schema }))
      expect(error).toMatchObject({ reason: "SchemaVersion" })
      expect(error.message).toContain("of version 99, this code needs version 1")
    }),
  )

  it.scopedLive("a role that may only read and write starts on the tables that the printed SQL made, and runs", () =>
    Effect.gen(function* () {
      const { role, url } = yield* freshRole
      const schema = 'of "the" admin'
      yield* query(database, PostgresMigrations.sql({ schema, grantTo: role }))
      yield* Effect.addFinalizer(() => query(database, `drop schema "of ""the"" admin" cascade`))
      yield* useAll({ url, schema, migrate: false })
      yield* open({ url, schema })
      const { database: opened, dialect } = yield* openDatabase({ url, schema, listen: false })
      const dropping = opened.query("test", { text: `drop table ${dialect.table("run")}`, params: [] })
      expect(yield* Effect.flip(dropping)).toMatchObject({ reason: "Permission" })
    }),
  )

  it.scopedLive("a role that may not create the tables is told which SQL to run", () =>
    Effect.gen(function* () {
      const { url } = yield* freshRole
      const schema = freshName()
      const error = yield* failureOf(open({ url, schema }))
      expect(error).toMatchObject({
        _tag: "StoreError",
        reason: "Permission",
        isRetryable: false,
        operation: "migrate",
      })
      expect(error.message).toContain(`PostgresMigrations.sql({ schema: "${schema}" })`)
      const untouched = yield* failureOf(open({ schema, migrate: false }))
      expect(untouched).toMatchObject({ reason: "SchemaVersion" })
      expect(untouched.message).toContain(`PostgresMigrations.sql({ schema: "${schema}" })`)
      expect(yield* query(database, "select 1 from pg_namespace where nspname = $1", [schema])).toEqual([])
    }),
  )

  it.scopedLive("a role that may create tables, but no schema, uses a schema that is there", () =>
    Effect.gen(function* () {
      const { role, url } = yield* freshRole
      const schema = yield* freshSchema(database)
      yield* query(database, `create schema ${schema}; grant all on schema ${schema} to ${role}`)
      yield* useAll({ url, schema })
    }),
  )

  it.scopedLive("tables that are dropped while the store is open are an error that says what to do", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const driver = yield* open({ schema })
      yield* query(database, `drop table ${schema}.run cascade`)
      const error = yield* Effect.flip(driver.findRun("test", "a"))
      expect(error).toMatchObject({ reason: "SchemaVersion" })
      expect(error.message).toContain(`PostgresMigrations.sql({ schema: "${schema}" })`)
      yield* query(database, `drop schema ${schema} cascade`)
      expect(yield* Effect.flip(driver.createRun(newRun("a")))).toMatchObject({ reason: "SchemaVersion" })
    }),
  )

  it.scopedLive(
    "sixteen processes that start at once on an empty database all start, and migrate it once, five times",
    () =>
      Effect.gen(function* () {
        const processes = yield* Effect.promise(() => Promise.all(Array.from({ length: 16 }, startProcess)))
        yield* Effect.addFinalizer(() => Effect.sync(() => processes.forEach(({ end }) => end())))
        for (let round = 0; round < 5; round++) {
          const schema = yield* freshSchema(database)
          const said = yield* Effect.promise(() => Promise.all(processes.map(({ tell }) => tell(schema))))
          expect(said).toEqual(processes.map(() => "ready"))
          expect(yield* query(database, `select version from ${schema}.migration`)).toEqual([{ version: "1" }])
        }
      }),
    180_000,
  )
})

const script = fileURLToPath(new URL("internal/startingProcess.ts", import.meta.url))

/** Starts a process, waits until it is ready to be told, and tells it one line at a time. */
const startProcess = async () => {
  const arguments_ = ["--conditions=@cairn/source", "--import", "tsx", script, database.url]
  const child = spawn(process.execPath, arguments_, { stdio: ["pipe", "pipe", "inherit"] })
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => String((await lines.next()).value)
  expect(await next()).toBe("waiting")
  return {
    tell: (line: string): Promise<string> => {
      child.stdin.write(`${line}\n`)
      return next()
    },
    end: () => child.stdin.end(),
  }
}

describe("the clock", () => {
  it.scopedLive("is the same whatever the time zone of role, session or process", () =>
    Effect.gen(function* () {
      const { role, url } = yield* freshRole
      const schema = yield* freshSchema(database)
      const plain = yield* open({ schema })
      yield* query(
        database,
        `grant all on schema ${schema} to ${role}; grant all on all tables in schema ${schema} to ${role}`,
      )
      for (const zone of ["Pacific/Kiritimati", "America/St_Johns", "UTC", "Asia/Kathmandu"]) {
        yield* query(database, `alter role ${role} set timezone = '${zone}'`)
        yield* query(database, `alter role ${role} set datestyle = 'German, DMY'`)
        const elsewhere = yield* open({ url, schema })
        const before = yield* plain.now
        const { now, until } = yield* elsewhere.beat("worker", 60_000)
        expect(now).toBeGreaterThanOrEqual(before)
        expect(now).toBeLessThanOrEqual(yield* plain.now)
        expect(until).toBe(now + 60_000)
        yield* elsewhere.createRun(newRun(zone))
        expect(yield* plain.claim(claimOf("worker", { runIds: [zone] }))).toHaveLength(1)
      }
    }),
  )

  it.scopedLive("is read when a statement runs, not when its transaction began", () =>
    Effect.gen(function* () {
      const { database: opened, dialect } = yield* openDatabase({ url: database.url, listen: false })
      const clock = { text: `select ${dialect.now} as now`, params: [] }
      const [first, second] = yield* opened.transaction("test", "usual", (session) =>
        Effect.gen(function* () {
          const [one] = yield* session.run(clock)
          yield* session.run({ text: "select pg_sleep(0.02)", params: [] })
          const [two] = yield* session.run(clock)
          return [Number(one!["now"]), Number(two!["now"])]
        }),
      )
      expect(second! - first!).toBeGreaterThanOrEqual(20)
    }),
  )

  it.scopedLive(
    "and every default of a role can be changed without harm: isolation, read only, encoding of bytes",
    () =>
      Effect.gen(function* () {
        const { role, url } = yield* freshRole
        const schema = yield* freshSchema(database)
        yield* query(database, `create schema ${schema}; grant all on schema ${schema} to ${role}`)
        yield* query(database, `alter role ${role} set default_transaction_isolation = 'serializable'`)
        yield* query(database, `alter role ${role} set bytea_output = 'escape'`)
        yield* query(database, `alter role ${role} set standard_conforming_strings = on`)
        yield* useAll({ url, schema })
      }),
  )
})

describe("connecting", () => {
  it.scopedLive("to a database of another encoding is refused, with the reason", () =>
    Effect.gen(function* () {
      const name = freshName()
      yield* query(
        database,
        `create database ${name} template template0 encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'`,
      )
      yield* Effect.addFinalizer(() => query(database, `drop database ${name} with (force)`))
      const url = new URL(database.url)
      url.pathname = `/${name}`
      const error = yield* failureOf(open({ url: url.href }))
      expect(error.message).toContain("SQL_ASCII")
      expect(error.message).toContain("UTF8")
    }),
  )

  it.scopedLive("takes parts instead of a url, and a url that is redacted", () =>
    Effect.gen(function* () {
      const { hostname, password, port, username } = new URL(database.url)
      const parts = { host: hostname, port: Number(port), database: database.name, username }
      const schema = yield* freshSchema(database)
      const driver = yield* PostgresDriver.make({ ...parts, password: Redacted.make(password), schema })
      yield* driver.createRun(newRun("a"))
      const again = yield* open({ url: Redacted.make(database.url), schema })
      expect((yield* again.findRun("test", "a"))!.runId).toBe("a")
    }),
  )

  it.scopedLive("is one line for a store", () =>
    Effect.gen(function* () {
      const layer = PostgresStore.layer({ url: database.url, schema: yield* freshSchema(database) })
      const create = Effect.flatMap(CheckpointStore, (store) => store.createRun(newRun("a")))
      expect((yield* Effect.provide(create, Layer.fresh(layer))).created).toBe(true)
      expect((yield* Effect.provide(create, Layer.fresh(layer))).created).toBe(false)
    }),
  )

  it.effect.each([
    { maxConnections: 0 },
    { lockTimeoutMs: -1 },
    { statementTimeoutMs: 1.5 },
    { url: "mysql://localhost/app" },
  ])("with %j is refused", (options) =>
    Effect.map(failureOf(PostgresDriver.make(options)), (error) =>
      expect(error.operation).toBe("read the options of the Postgres store"),
    ),
  )
})
