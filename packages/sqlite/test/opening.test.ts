import { CheckpointStore, StoreError } from "@cairn/core"
import { SqliteDriver, SqliteStore } from "@cairn/sqlite"
import { migrate } from "@cairn/sql"
import type { SqliteClient } from "@effect/sql-sqlite-node/SqliteClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { existsSync } from "node:fs"
import { mkdir, readFile, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { checkFileSystem, networkFileSystem } from "../src/internal/fileSystem.js"
import type { SqliteStoreOptions } from "../src/internal/openDatabase.js"
import { openWithClient } from "./internal/openWithClient.js"
import { runtimeProblem } from "../src/internal/runtimeCheck.js"
import { sqliteDialect } from "../src/internal/sqliteDialect.js"
import { makeBareClient } from "./internal/bareClient.js"
import { newRun } from "./internal/rows.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const pragmasOf = (options: SqliteStoreOptions) =>
  Effect.scoped(
    Effect.flatMap(openWithClient(options), ({ client }) =>
      Effect.forEach(["journal_mode", "synchronous", "busy_timeout", "foreign_keys", "journal_size_limit"], (name) =>
        Effect.map(client.unsafe(`pragma ${name}`), ([row]) => Object.values(row as object)[0] as unknown),
      ),
    ),
  )

const failureOf = <A, R>(effect: Effect.Effect<A, StoreError, R>) => Effect.scoped(Effect.flip(effect))

describe("opening", () => {
  it.scopedLive("sets every pragma, on a new file and on one that is opened again", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const full = ["wal", 2, 0, 1, 67_108_864]
      expect(yield* pragmasOf({ filename })).toEqual(full)
      expect(yield* pragmasOf({ filename })).toEqual(full)
      expect(yield* pragmasOf({ filename, synchronous: "normal" })).toEqual(["wal", 1, 0, 1, 67_108_864])
      expect(yield* pragmasOf({ filename, synchronous: "full" })).toEqual(full)
    }),
  )

  it.scopedLive("opens a database in memory, and says that no other process sees it", () =>
    Effect.gen(function* () {
      const driver = yield* SqliteDriver.make({ filename: ":memory:" })
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
      expect(driver.capabilities.multiProcess).toBe(false)
    }),
  )

  it.scopedLive("leaves one file behind when it is closed", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const create = Effect.flatMap(CheckpointStore, (store) => store.createRun(newRun("a")))
      yield* Effect.provide(create, Layer.fresh(SqliteStore.layer({ filename })))
      expect(existsSync(filename)).toBe(true)
      expect(existsSync(`${filename}-wal`)).toBe(false)
    }),
  )

  // Field case P124: SQLite would open the file that is named up to the NUL.
  it.scopedLive("refuses a name that is none, and opens nothing", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      for (const name of [`${filename}\0.sqlite`, "\0", "", undefined, 7]) {
        const error = yield* failureOf(SqliteDriver.make({ filename: name as string }))
        expect(error).toMatchObject({ _tag: "StoreError", reason: "Unknown" })
        expect(error.message).toContain("'filename'")
      }
      expect(existsSync(filename)).toBe(false)
    }),
  )

  // Field case P102: with a deadline that is none a busy file would be tried for ever.
  it.scopedLive("refuses a deadline that is none", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      for (const busyTimeoutMs of [Number.NaN, Number.POSITIVE_INFINITY, -1, 0.5, 2 ** 31, "5", null, Symbol("s")]) {
        const error = yield* failureOf(SqliteDriver.make({ filename, busyTimeoutMs: busyTimeoutMs as number }))
        expect(error, String(busyTimeoutMs)).toMatchObject({ _tag: "StoreError", reason: "Unknown" })
        expect(error.message).toContain("'busyTimeoutMs'")
      }
      expect(existsSync(filename)).toBe(false)
      yield* SqliteDriver.make({ filename, busyTimeoutMs: 0 })
    }),
  )

  it.scopedLive("refuses a directory that is not there, and creates none", () =>
    Effect.gen(function* () {
      const filename = join(dirname(yield* temporaryFile), "absent", "runs.sqlite")
      const error = yield* failureOf(SqliteDriver.make({ filename }))
      expect(error).toMatchObject({ _tag: "StoreError", reason: "Unavailable", operation: `open '${filename}'` })
      expect(existsSync(dirname(filename))).toBe(false)
    }),
  )

  it.scopedLive("refuses a file that is no database, and leaves it as it is", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const text = "not a database, but long enough to have a header. ".repeat(40)
      yield* Effect.promise(() => writeFile(filename, text))
      expect(yield* failureOf(SqliteDriver.make({ filename }))).toMatchObject({ reason: "Corrupt" })
      expect(yield* Effect.promise(() => readFile(filename, "utf8"))).toBe(text)
    }),
  )

  it.scopedLive("refuses a directory in the file's place", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      yield* Effect.promise(() => mkdir(filename))
      expect(yield* failureOf(SqliteDriver.make({ filename }))).toMatchObject({ reason: "Unavailable" })
    }),
  )

  it.scopedLive("is Busy, not ready, where another connection keeps the file locked", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      // A rollback journal lets one connection lock all others out.
      const other = yield* openWithClient({ filename })
      yield* other.client.unsafe("pragma journal_mode = delete")
      yield* other.client.unsafe("begin exclusive")
      expect(yield* failureOf(SqliteDriver.make({ filename, busyTimeoutMs: 50 }))).toMatchObject({ reason: "Busy" })
      yield* other.client.unsafe("rollback")
    }),
  )
})

describe("migrating", () => {
  const versions = (filename: string) =>
    Effect.scoped(
      Effect.flatMap(openWithClient({ filename }), ({ client }) =>
        client.unsafe("select version from cairn_migration"),
      ),
    )

  it.scopedLive("records each version once, and writes nothing where the tables are current", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      expect(yield* versions(filename)).toEqual([{ version: 1 }])
      expect(yield* versions(filename)).toEqual([{ version: 1 }])
      const { database } = yield* openWithClient({ filename })
      yield* migrate(sqliteDialect, { ...database, transaction: () => Effect.dieMessage("a transaction was begun") })
    }),
  )

  it.scopedLive("refuses tables of a later version and leaves them alone", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      yield* Effect.scoped(
        Effect.flatMap(openWithClient({ filename }), ({ client }) =>
          client.unsafe("insert into cairn_migration (version, name, applied_at) values (99, 'later', 0)"),
        ),
      )
      const error = yield* failureOf(SqliteDriver.make({ filename }))
      expect(error.reason).toBe("SchemaVersion")
      expect(error.message).toContain("of version 99, this code needs version 1")
    }),
  )

  it.scopedLive("creates nothing where it may not, and opens what the printed script has created", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      expect(yield* failureOf(SqliteDriver.make({ filename, migrate: false }))).toMatchObject({
        reason: "SchemaVersion",
      })
      const other = yield* makeBareClient(filename)
      expect(yield* other.unsafe("select name from sqlite_master")).toEqual([])

      expect(yield* runScript(other)).toBeGreaterThan(8)
      const driver = yield* SqliteDriver.make({ filename, migrate: false })
      expect((yield* driver.createRun(newRun("a"))).created).toBe(true)
    }),
  )
})

/** Runs the printed script as a person would; gives the number of its statements. */
const runScript = (client: SqliteClient) =>
  Effect.gen(function* () {
    const statements = SqliteDriver.migrationScript().trimEnd().replace(/;$/, "").split(";\n")
    for (const statement of statements) yield* client.unsafe(statement)
    return statements.length
  })

describe("network file systems", () => {
  const on = (type: number, allow = false, platform = "linux") =>
    checkFileSystem("/somewhere/runs.sqlite", allow, { platform, statfs: async () => ({ type }) })

  it.effect("are refused by the type of the directory, unless they are allowed", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(on(0x6969))
      expect(error.reason).toBe("Unavailable")
      expect(error.message).toContain("NFS")
      expect(error.message).toContain("allowNetworkFileSystem")
      yield* on(0x6969, true)
      yield* on(0x6969, false, "darwin")
    }),
  )

  it.each([0x6969, 0x517b, 0xfe534d42, 0xff534d42, 0xff534d42 | 0, 0x65735546, 0x01021997])("knows %d", (type) => {
    expect(networkFileSystem(type)).not.toBeNull()
  })

  it.each([0xef53, 0x01021994, 0x58465342, 0x9123683e])("takes %d for a local one", (type) => {
    expect(networkFileSystem(type)).toBeNull()
  })
})

describe("versions of Node and better-sqlite3", () => {
  it.each([
    ["24.19.0", "12.11.1"],
    ["25.0.0", "12.0.0"],
    ["20.20.2", "13.0.0"],
  ])("Node %s with better-sqlite3 %s is warned of, with the remedy", (node, sqlite) => {
    expect(runtimeProblem(node, sqlite)).toMatch(/override|use Node/)
  })

  it.each([
    ["20.20.2", "12.11.1"],
    ["24.18.3", "12.11.1"],
    ["24.19.0", "13.0.0"],
    ["22.19.0", "13.0.0"],
  ])("Node %s with better-sqlite3 %s is fine", (node, sqlite) => {
    expect(runtimeProblem(node, sqlite)).toBeNull()
  })
})
