/** Large outputs and a busy event loop: no transaction waits for this process meanwhile (field case P056). */
import { Cairn, CheckpointStore, contextFromDriver, Worker, Workflow } from "@cairn/core"
import { PostgresDriver } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Schema } from "effect"
import pg from "pg"
import { freshSchema, query, useDatabase } from "./internal/database.js"

const database = useDatabase()

const outputChars = 5_000_000
const runs = 50

/** So long the event loop is busy with something else, again and again, with pauses of a few milliseconds. */
const busyMs = 30

const busyLoop = Effect.acquireRelease(
  Effect.sync(() =>
    setInterval(() => {
      const until = performance.now() + busyMs
      while (performance.now() < until);
    }, busyMs + 5),
  ),
  (timer) => Effect.sync(() => clearInterval(timer)),
)

/** A connection of its own: what is asked over the other would have to wait for it. */
interface Seen {
  readonly worst_ms: number
  /** The same of transactions that are open while this process does whatever it does. */
  readonly control_ms: number
  readonly samples: number
  readonly active: number
}

const watcher = async (schema: string) => {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  const { rows } = await client.query(`select * from ${schema}.watch()`)
  await client.end()
  return rows[0] as Seen
}

/** Transactions one after the other, on the same event loop. */
const control = (schema: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new pg.Client({ connectionString: database.url, application_name: `${schema} control` })
      await client.connect()
      let isOver = false
      const transactions = async () => {
        while (!isOver) for (const text of ["begin", "select 1", "select 2", "commit"]) await client.query(text)
        await client.end()
      }
      const ended = transactions()
      return () => {
        isOver = true
        return ended
      }
    }),
    (end) => Effect.promise(end),
  )

/** Watches on the server, every few milliseconds: whoever has a busy event loop would see only what it leaves behind. */
const watching = (schema: string) =>
  Effect.gen(function* () {
    yield* query(database, `create table ${schema}.enough ()`)
    yield* query(
      database,
      `create function ${schema}.watch(out worst_ms float8, out control_ms float8, out samples int, out active int) language plpgsql as $$
        declare
          age float8;
          other float8;
          busy int;
        begin
          worst_ms := 0; control_ms := 0; samples := 0; active := 0;
          loop
            perform pg_stat_clear_snapshot();
            select
              coalesce(max(idle_ms) filter (where name = '${schema}'), 0),
              coalesce(max(idle_ms) filter (where name = '${schema} control'), 0),
              count(*) filter (where name = '${schema}' and state = 'active')
            into age, other, busy from (
              select application_name as name, state, case when state like 'idle in%' then
                extract(epoch from clock_timestamp() - state_change) * 1000 end as idle_ms
              from pg_stat_activity
            ) as sessions;
            worst_ms := greatest(worst_ms, age);
            control_ms := greatest(control_ms, other);
            samples := samples + 1;
            active := greatest(active, busy);
            exit when exists (select from ${schema}.enough);
            perform pg_sleep(0.002);
          end loop;
        end $$`,
    )
    const fiber = yield* Effect.fork(Effect.promise(() => watcher(schema)))
    return Effect.zipRight(query(database, `insert into ${schema}.enough default values`), Fiber.join(fiber))
  })

const large = Workflow.make("large", { version: 1, input: Schema.String })
  .step("text", { effects: [], output: Schema.String }, ({ input }) => input.repeat(outputChars))
  .output(Schema.Int, ({ results }) => results.text.length)
  .compile()

describe("50 runs at once with outputs of 5 MB, on an event loop that is busy", () => {
  it.scopedLive("leave no connection idle in a transaction, and none of them waits in vain for the pool", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const options = { url: database.url, schema, applicationName: schema, maxConnections: 4, listen: false }
      const context = contextFromDriver(yield* PostgresDriver.make(options))
      const store = Layer.succeedContext(context)
      const said: Array<unknown> = []
      const worker = Worker.layer({ workflows: [large], concurrency: runs }).pipe(
        Layer.provideMerge(store),
        Layer.provide(
          Logger.replace(
            Logger.defaultLogger,
            Logger.make(({ message }) => void said.push(message)),
          ),
        ),
      )
      const seen = yield* watching(schema)
      const lengths = yield* Effect.gen(function* () {
        yield* busyLoop
        yield* control(schema)
        const ids = Array.from({ length: runs }, (_, n) => `run-${n}`)
        const handles = yield* Effect.forEach(ids, (runId) => Cairn.start(large, "x", { runId }), {
          concurrency: "unbounded",
        })
        const lengths = yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
        const { findRun } = yield* CheckpointStore
        for (const runId of ids) expect(yield* findRun("default", runId)).toMatchObject({ fence: 1, recoveries: 0 })
        return lengths
      }).pipe(Effect.scoped, Effect.provide(worker))
      const { active, control_ms: controlMs, samples, worst_ms: worstMs } = yield* seen
      expect(lengths).toEqual(Array.from({ length: runs }, () => outputChars))
      // Where the machine does much else, still far less than transactions that are open while outputs are encoded.
      expect(worstMs).toBeLessThan(Math.max(200, controlMs / 4))
      // It has looked, and has seen the store at work.
      expect(samples).toBeGreaterThan(500)
      expect(active).toBeGreaterThan(0)
      expect(said).toEqual([])
    }),
  )
})
