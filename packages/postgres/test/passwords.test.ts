/** A password shows nowhere: not in errors, not in what they hold, not in logs. */
import { PostgresDriver, type PostgresStoreOptions } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Logger, Redacted } from "effect"
import { inspect } from "node:util"
import { freshName, query, urlAs, useDatabase } from "./internal/database.js"

const database = useDatabase()

const password = "S3nt:nel@/?#"
const spellings = [password, encodeURIComponent(password), encodeURI(password), "S3nt", "nel@"]

const shown = (error: Error): string =>
  [
    String(error),
    error.stack,
    JSON.stringify(error),
    inspect(error, { depth: 30, showHidden: true }),
    Cause.pretty(Cause.fail(error), { renderErrorCause: true }),
  ].join("\n")

/** Everything that a failing start shows, logs included. */
const everythingOf = (options: PostgresStoreOptions) =>
  Effect.gen(function* () {
    const logged: Array<string> = []
    const logger = Logger.make((entry) => void logged.push(inspect(entry, { depth: 30, showHidden: true })))
    const error = yield* Effect.flip(
      PostgresDriver.make(options).pipe(
        Effect.tapErrorCause(Effect.logError),
        Effect.provide(Logger.replace(Logger.defaultLogger, logger)),
      ),
    )
    return [shown(error), ...logged].join("\n")
  })

const expectNoPassword = (text: string): void => {
  expect(text.length).toBeGreaterThan(50)
  for (const spelling of spellings) expect(text).not.toContain(spelling)
}

/** A role with that password and no rights. */
const role = Effect.acquireRelease(
  Effect.promise(async () => {
    const name = freshName("role")
    await database.query(`create role ${name} login password '${password}'`)
    return name
  }),
  (name) => query(database, `drop role ${name}`),
)

describe("the password", () => {
  it.scopedLive("opens the database, as a part and in the url", () =>
    Effect.gen(function* () {
      const name = yield* role
      yield* query(database, `grant create on database ${database.name} to ${name}`)
      yield* Effect.addFinalizer(() => query(database, `drop owned by ${name}`))
      const { now } = yield* PostgresDriver.make({ url: urlAs(database.url, name, password) })
      expect(yield* now).toBeGreaterThan(0)
      const { hostname, port } = new URL(database.url)
      const parts = { host: hostname, port: Number(port), database: database.name, username: name }
      yield* PostgresDriver.make({ ...parts, password: Redacted.make(password) })
    }),
  )

  it.scopedLive("shows in nothing that a failing start says", () =>
    Effect.gen(function* () {
      const name = yield* role
      const url = urlAs(database.url, name, password)
      const changed = (change: (url: URL) => void): string => {
        const other = new URL(url)
        change(other)
        return other.href
      }
      const starts: Readonly<Record<string, PostgresStoreOptions>> = {
        "a migration that it may not do": { url, schema: freshName() },
        "a wrong host": { url: changed((other) => (other.hostname = "nowhere.invalid")) },
        "a closed port": { url: changed((other) => (other.port = "1")) },
        "a wrong database": { url: changed((other) => (other.pathname = "/nothing")) },
        "a wrong role": { url: changed((other) => (other.username = "nobody_here")) },
        "a wrong password": { url: urlAs(database.url, "postgres", password) },
        "a refused encryption": { url, ssl: true },
        "a url that is not escaped": { url: `postgres://${name}:${password}@localhost:5432/app` },
        "a url that cannot be read": { url: `postgres://${name}:S3nt:nel@local host:port/app` },
        "a url that is redacted": { url: Redacted.make(`postgres://${name}:${password}@localhost/app`) },
        "no url at all": { url: `${name}:${password}` },
      }
      for (const [what, options] of Object.entries(starts)) {
        const everything = yield* everythingOf(options)
        expect(everything, what).toMatch(/StoreError/)
        expectNoPassword(everything)
      }
    }),
  )

  it.scopedLive("shows in nothing that is logged while wake-ups cannot be had", () =>
    Effect.gen(function* () {
      const name = yield* role
      yield* query(database, `grant create on database ${database.name} to ${name}`)
      yield* Effect.addFinalizer(() => query(database, `drop owned by ${name}`))
      const logged: Array<string> = []
      const logger = Logger.make((entry) => void logged.push(inspect(entry, { depth: 30, showHidden: true })))
      const listenUrl = new URL(urlAs(database.url, name, password))
      listenUrl.port = "1"
      const driver = yield* PostgresDriver.make({
        url: urlAs(database.url, name, password),
        schema: freshName(),
        listenUrl: listenUrl.href,
      }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
      expect(driver.capabilities.notify).toBe(true)
      expect(logged.join("\n")).toContain("ECONNREFUSED")
      expectNoPassword(logged.join("\n"))
      expectNoPassword(inspect(driver, { depth: 30, showHidden: true }))
    }),
  )
})
