/** What is bound arrives as it was, whether alone or in arrays, and what the server answers is read whatever it answers. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, FastCheck } from "effect"
import { openDatabase } from "../src/internal/openDatabase.js"
import { useDatabase } from "./internal/database.js"

const database = useDatabase()

const open = Effect.suspend(() => openDatabase({ url: database.url, listen: false, migrate: true, maxConnections: 1 }))

// No NUL, which no text of Postgres holds, and no half of a pair, which no UTF-8 does.
const text = FastCheck.oneof(
  FastCheck.constantFrom("", "NULL", "null", "\\", '"', "{", "}", ",", "'", " ", '\\"', "\n", "{a,b}", "ß", "🪨"),
  FastCheck.fullUnicodeString().map((value) => value.replaceAll("\u0000", "")),
)
const rows = FastCheck.array(FastCheck.tuple(FastCheck.option(text), FastCheck.option(FastCheck.integer())), {
  maxLength: 20,
})

describe("a named statement", () => {
  it.scopedLive("binds texts and numbers in arrays as they are, however often it is executed", () =>
    Effect.gen(function* () {
      const { database } = yield* open
      const each = `select t as "text", n as "number" from unnest($1::text[], $2::bigint[]) as bound (t, n)`
      yield* Effect.promise(() =>
        FastCheck.assert(
          FastCheck.asyncProperty(rows, async (given) => {
            const params = [given.map(([t]) => t), given.map(([, n]) => n)]
            const found = await Effect.runPromise(database.query("test", { text: each, params }))
            expect(found).toEqual(given.map(([t, n]) => ({ text: t, number: n === null ? null : String(n) })))
          }),
          { numRuns: 100 },
        ),
      )
    }),
  )

  it.scopedLive("that gives no columns gives no rows, again and again", () =>
    Effect.gen(function* () {
      const { database } = yield* open
      const deletes = { text: "delete from cairn.worker where worker_id = $1", params: ["nobody"] }
      for (let time = 0; time < 3; time++) expect(yield* database.write("test", deletes)).toEqual([])
    }),
  )

  it.scopedLive("that fails says why, and leaves its connection to the next one", () =>
    Effect.gen(function* () {
      const { database } = yield* open
      const divide = (by: number) => database.query("test", { text: `select 10 / $1::int as "tenth"`, params: [by] })
      for (const by of [0, 5, 0, 2]) {
        if (by === 0) expect(yield* Effect.flip(divide(by))).toMatchObject({ reason: "Constraint" })
        else expect(yield* divide(by)).toEqual([{ tenth: String(10 / by) }])
      }
      const throws = {
        toString: () => {
          throw new RangeError("it cannot be written")
        },
      }
      const unwritten = database.query("test", { text: `select 10 / $1::int as "tenth"`, params: [throws] })
      expect(yield* Effect.flip(unwritten)).toMatchObject({ cause: { message: "it cannot be written" } })
      expect(yield* divide(5)).toEqual([{ tenth: "2" }])
      const unheard = database.query("test", { text: "select $1::int as never_parsed", params: [throws] })
      expect(yield* Effect.flip(unheard)).toMatchObject({ cause: { message: "it cannot be written" } })
      const broken = database.query("test", { text: "select from nowhere where x = $1", params: [1] })
      expect(yield* Effect.flip(broken)).toMatchObject({ reason: "SchemaVersion" })
      expect(yield* divide(1)).toEqual([{ tenth: "10" }])
    }),
  )
})
