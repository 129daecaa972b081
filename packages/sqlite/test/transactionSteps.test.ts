/** Transaction steps over a SQLite file, and workers that are killed in them. */
import { SqliteDriver } from "@cairn/sqlite"
import { SqlClient } from "@effect/sql/SqlClient"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { booking, errorOf, runOn, transactionSteps } from "../../sql/test/support/transactionSteps.js"
import { makeBareClient } from "./internal/bareClient.js"
import { startChild } from "./internal/childProcess.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const opened = Effect.gen(function* () {
  const filename = yield* temporaryFile
  const driver = yield* SqliteDriver.make({ filename })
  const client = yield* makeBareClient(filename)
  yield* client.unsafe("create table ledger (name text primary key) strict")
  const names = client.unsafe<{ readonly name: string }>("select name from ledger order by name")
  return {
    filename,
    client,
    driver,
    second: yield* SqliteDriver.make({ filename }),
    ledger: "ledger",
    parameter: "?",
    names: Effect.map(names, (rows) => rows.map((row) => row.name)),
  }
})

transactionSteps("SQLite", opened)

describe("a transaction step of SQLite", () => {
  it.scopedLive("goes on after a statement that failed, as SQLite does", () =>
    Effect.gen(function* () {
      const { driver, names } = yield* opened
      const workflow = booking(function* () {
        const sql = yield* SqlClient
        yield* sql`insert into ledger (name) values ('a')`
        yield* Effect.flip(sql`insert into ledger (name) values ('a')`)
        yield* sql`insert into ledger (name) values ('b')`
        return "done"
      })
      expect(yield* runOn(driver, workflow)).toEqual(Exit.succeed("done"))
      expect(yield* names).toEqual(["a", "b"])
    }),
  )

  it.scopedLive("fails where SQLite has ended the transaction by itself, and nothing of it is committed", () =>
    Effect.gen(function* () {
      const { client, driver, names, second } = yield* opened
      yield* client.unsafe(
        "create trigger no_b before insert on ledger when new.name = 'b' begin select raise(rollback, 'no b'); end",
      )
      const workflow = booking(function* () {
        const sql = yield* SqlClient
        yield* sql`insert into ledger (name) values ('a')`
        yield* Effect.ignore(sql`insert into ledger (name) values ('b')`)
        return "a success that is none"
      })
      const error = errorOf(yield* runOn(driver, workflow))
      expect(error).toMatchObject({ _tag: "RunFailed", details: { tag: "TransactionAborted" } })
      expect(yield* names).toEqual([])
      expect((yield* second.load("default", "r"))!.steps).toEqual([])
    }),
  )

  it.scopedLive("fails where its COMMIT breaks a deferred constraint, and is tried again", () =>
    Effect.gen(function* () {
      const { client, driver, names } = yield* opened
      yield* client.unsafe(
        "create table line (entry text references ledger (name) deferrable initially deferred) strict",
      )
      let calls = 0
      const workflow = booking(
        function* () {
          const sql = yield* SqlClient
          yield* sql`insert into line (entry) values ('a')`
          if (++calls === 2) yield* sql`insert into ledger (name) values ('a')`
          return "done"
        },
        { retry: { times: 1, delay: 1 } },
      )
      expect(yield* runOn(driver, workflow)).toEqual(Exit.succeed("done"))
      expect(yield* names).toEqual(["a"])
      expect(yield* client.unsafe("select * from line")).toEqual([{ entry: "a" }])
    }),
  )

  it.scopedLive("finds a table that was missing in its first attempt", () =>
    Effect.gen(function* () {
      const { client, driver } = yield* opened
      let calls = 0
      const workflow = booking(
        () =>
          Effect.gen(function* () {
            const sql = yield* SqlClient
            if (++calls === 2) yield* sql`create table later (name text) strict`
            yield* sql`insert into later (name) values ('a')`
            return "done"
          }),
        { retry: { times: 1, delay: 1 } },
      )
      expect(yield* runOn(driver, workflow)).toEqual(Exit.succeed("done"))
      expect(yield* client.unsafe("select * from later")).toEqual([{ name: "a" }])
    }),
  )

  const points = ["afterClaim", "body", "afterGate", "beforeCommit", "afterCommit"]
  it.scopedLive.each(points)("whose worker is killed at '%s' has its row and its checkpoint, or neither", (point) =>
    Effect.gen(function* () {
      const { filename, names, second } = yield* opened
      const killed = yield* startChild("books.ts", filename, point)
      expect(yield* Effect.promise(() => killed.ended)).toBe("SIGKILL")
      const steps = (yield* second.load("default", "r"))!.steps.map((step) => step.path)
      const isCommitted = point === "afterCommit"
      expect(steps.includes("book")).toBe(isCommitted)
      expect(yield* names).toHaveLength(isCommitted ? 1 : 0)
      const next = yield* startChild("books.ts", filename)
      expect(yield* Effect.promise(next.line)).toBe("booked")
      expect(yield* names).toEqual([`by ${isCommitted ? killed.process.pid : next.process.pid}`])
    }),
  )
})
