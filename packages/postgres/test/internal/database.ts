/** One database a test file, and clean ends. */
import { makeTestDatabase, type TestDatabase } from "@cairn/postgres-server"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { afterAll, beforeAll } from "vitest"

/** The file's database. It is there while tests run. */
export const useDatabase = (): TestDatabase => {
  let database: TestDatabase | null = null
  beforeAll(async () => {
    database = await makeTestDatabase()
  })
  afterAll(() => database?.drop())
  const there = (): TestDatabase => {
    if (database === null) throw new Error("the database is there in tests only")
    return database
  }
  return {
    get name() {
      return there().name
    },
    get url() {
      return there().url
    },
    query: (text, values) => there().query(text, values),
    drop: () => there().drop(),
  }
}

export const freshName = (prefix = "test"): string => `${prefix}_${randomBytes(5).toString("hex")}`

/** A schema name of its own, whose schema is gone with the scope. */
export const freshSchema = (database: TestDatabase) =>
  Effect.acquireRelease(
    Effect.sync(() => freshName()),
    (schema) => Effect.promise(() => database.query(`drop schema if exists ${schema} cascade`)),
  )

/** The url of the same server and database as somebody else. */
export const urlAs = (url: string, role: string, password: string): string => {
  const as = new URL(url)
  as.username = encodeURIComponent(role)
  as.password = encodeURIComponent(password)
  return as.href
}

export const query = (database: TestDatabase, text: string, values: ReadonlyArray<unknown> = []) =>
  Effect.promise(() => database.query(text, values))
