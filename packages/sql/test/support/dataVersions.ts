/** Rows that a run has read are changed while it sleeps: registered by each store's own tests over its own database. */
import {
  Cairn,
  DataVersion,
  Effects,
  Faults,
  Worker,
  Workflow,
  contextFromDriver,
  type AnyWorkflow,
  type CheckpointDriver,
  type FaultPoint,
  type OnStale,
} from "@cairn/core"
import { SqlClient } from "@effect/sql/SqlClient"
import { Effect, Exit, Layer, Logger, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"

/** A store with a table `stock (sku text primary key, amount bigint, note text, seen .., picture ..)`. */
export interface Place {
  readonly driver: CheckpointDriver
  /** The table's name, as any connection may write it. */
  readonly stock: string
  /** The first parameter of a statement. */
  readonly parameter: string
  /** A statement over a connection of its own. */
  readonly run: (text: string) => Effect.Effect<unknown, any>
  /** What the database calls the state that a read has seen; null where it has no name for it. */
  readonly snapshot: RegExp | null
}

interface Row {
  readonly sku: string
  readonly amount: unknown
}

const quiet = Logger.remove(Logger.defaultLogger)

/** Sleeps for a second, in the store, between reading the rows of a prefix and using them. */
const quoting = (place: Place, onStale: OnStale, inTransaction = false) => {
  const calls: Array<number> = []
  const Stock = DataVersion.query("stock", (prefix: string) => ({
    text: `select sku, amount, note, seen, picture from ${place.stock} where sku like ${place.parameter}`,
    parameters: [`${prefix}%`],
  }))
  const workflow = (Workflow.make("w", { version: 1, input: Schema.Null }) as any)
    .step(
      "read",
      { effects: inTransaction ? [Effects.transaction, Stock] : [Stock], output: Schema.Array(Schema.String), onStale },
      function* (): any {
        const rows: ReadonlyArray<any> = yield* Stock.read("a")
        calls.push(rows.length)
        return rows.map(({ amount, sku }) => `${sku}:${String(amount)}`).sort()
      },
    )
    .sleep("night", "1100 millis")
    .output(Schema.String, ({ results }: any) => results.read.join())
    .compile() as AnyWorkflow
  expect(workflow.diagnostics).toEqual([])
  return { calls, workflow }
}

const rowOf = ({ driver }: Place) => Effect.map(driver.findRun("default", "r"), (row) => row!)

const until = (place: Place, status: string) =>
  Effect.repeat(Effect.zipRight(Effect.sleep(5), rowOf(place)), { until: (row) => row.status === status })

type Reach = (point: FaultPoint, step: string) => Effect.Effect<void>

const beside =
  (place: Place, workflow: AnyWorkflow, reach?: Reach) =>
  <A, E>(effect: Effect.Effect<A, E, any>): Effect.Effect<A, E> => {
    const worker = Worker.layer({ workflows: [workflow], pollInterval: "20 millis", drain: 0 }) as Layer.Layer<any>
    const faults =
      reach === undefined ? Layer.empty : Layer.succeed(Faults, { reach: (point, { step }) => reach(point, step) })
    const live = worker.pipe(
      Layer.provide(faults),
      Layer.provideMerge(Layer.succeedContext(contextFromDriver(place.driver))),
      Layer.provide(quiet),
    )
    return Effect.provide(effect, live as Layer.Layer<any>) as Effect.Effect<A, E>
  }

/** Runs to its sleep, lets something happen, and gives what the run has come to, parked or ended. */
const changedAsleep = (place: Place, of: ReturnType<typeof quoting>, change: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const handle = yield* Cairn.start(of.workflow, null, { runId: "r" })
    yield* until(place, "sleeping")
    for (const text of change) yield* place.run(text)
    return yield* Effect.exit(handle.result)
  }).pipe(beside(place, of.workflow))

const expectHeld = (body: Effect.Effect<void, any, Scope.Scope>): Promise<void> =>
  Effect.runPromise(Effect.scoped(body))

const asStood = "a1:5,a2:7"

/** Registers the promises for one store. */
export const dataVersions = (name: string, open: Effect.Effect<Place, any, Scope.Scope>): void => {
  const test = (title: string, body: (place: Place) => Effect.Effect<void, any>): void =>
    it(`${title}`, () => expectHeld(Effect.flatMap(open, body)), 60_000)

  describe(`rows that a run has read, on ${name}`, () => {
    const found: ReadonlyArray<readonly [what: string, change: (stock: string) => ReadonlyArray<string>]> = [
      ["were changed", (stock) => [`update ${stock} set amount = 6 where sku = 'a1'`]],
      ["were changed in a column that is null", (stock) => [`update ${stock} set note = 'null' where sku = 'a1'`]],
      ["were deleted", (stock) => [`delete from ${stock} where sku = 'a2'`]],
      ["were joined by another one", (stock) => [`insert into ${stock} (sku, amount) values ('a3', 9)`]],
      ["were replaced, as many as there were", (stock) => [`update ${stock} set sku = 'a9' where sku = 'a2'`]],
    ]
    for (const [what, change] of found) {
      test(`and that ${what} while it slept, are read again`, (place) =>
        Effect.gen(function* () {
          const of = quoting(place, "rerun")
          const exit = yield* changedAsleep(place, of, change(place.stock))
          expect(of.calls).toHaveLength(2)
          expect(Exit.isSuccess(exit)).toBe(true)
        }))
    }

    test("and that were changed while it slept, give the result of what is there now", (place) =>
      Effect.gen(function* () {
        const of = quoting(place, "rerun")
        const change = [`update ${place.stock} set amount = 6 where sku = 'a1'`]
        expect(yield* changedAsleep(place, of, change)).toEqual(Exit.succeed("a1:6,a2:7"))
        const { steps } = (yield* place.driver.load("default", "r"))!
        expect(steps.map(({ path }) => path)).toEqual(["read", "night"])
      }))

    test("and that were changed while it slept, park it where a person is to say what follows", (place) =>
      Effect.gen(function* () {
        const of = quoting(place, "review")
        yield* Effect.gen(function* () {
          const handle = yield* Cairn.start(of.workflow, null, { runId: "r" })
          yield* until(place, "sleeping")
          yield* place.run(`update ${place.stock} set amount = 6 where sku = 'a1'`)
          const { parked } = yield* until(place, "review")
          expect(JSON.parse(parked!)).toMatchObject({ reason: "DataStale", step: "read" })
          yield* Cairn.resume({ runId: "r" })
          expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(asStood))
        }).pipe(beside(place, of.workflow))
      }))

    const unreported: ReadonlyArray<readonly [what: string, change: (stock: string) => ReadonlyArray<string>]> = [
      ["nothing was changed", () => []],
      [
        "other rows of the table were changed, added and deleted",
        (stock) => [
          `update ${stock} set amount = 6 where sku = 'b1'`,
          `insert into ${stock} (sku, amount) values ('b2', 1)`,
          `delete from ${stock} where sku = 'b1'`,
        ],
      ],
      [
        "they were changed, and are as they were again",
        (stock) => [
          `update ${stock} set amount = 6 where sku = 'a1'`,
          `delete from ${stock} where sku = 'a2'`,
          `insert into ${stock} (sku, amount, note) values ('a2', 7, '')`,
          `update ${stock} set amount = 5 where sku = 'a1'`,
        ],
      ],
    ]
    for (const [what, change] of unreported) {
      test(`are left alone where ${what}`, (place) =>
        Effect.gen(function* () {
          const of = quoting(place, "fail")
          expect(yield* changedAsleep(place, of, change(place.stock))).toEqual(Exit.succeed(asStood))
          expect(of.calls).toEqual([2])
        }))
    }

    test("in a transaction are noted with its commit; such a step is not run again", (place) =>
      Effect.gen(function* () {
        const of = quoting(place, "rerun", true)
        yield* Effect.gen(function* () {
          const handle = yield* Cairn.start(of.workflow, null, { runId: "r" })
          const { seq } = yield* until(place, "sleeping")
          const query = {
            namespace: "default",
            runId: "r",
            newestFirst: false,
            after: null,
            limit: null,
            withResults: true,
          }
          const [note] = yield* place.driver.loadSteps({ ...query, scopes: [":data/"] })
          const [read] = JSON.parse(note!.result!) as ReadonlyArray<{ readonly snapshot: string | null }>
          expect(note!.seq).toBeLessThan(seq)
          if (place.snapshot === null) expect(read!.snapshot).toBeNull()
          else expect(read!.snapshot).toMatch(place.snapshot)
          yield* place.run(`update ${place.stock} set amount = 6 where sku = 'a1'`)
          const { parked } = yield* until(place, "review")
          expect(JSON.parse(parked!).problem).toContain("it is not run again, for 'read' (transaction) has happened")
          yield* Cairn.resume({ runId: "r" })
          expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(asStood))
        }).pipe(beside(place, of.workflow))
      }))

    test("are those of statements of SqlClient too, in the order that they say", (place) =>
      Effect.gen(function* () {
        const Sorted = DataVersion.query(
          "sorted",
          (sku: string) =>
            Effect.flatMap(
              SqlClient,
              (sql) => sql<Row>`select sku from ${sql.literal(place.stock)} where sku >= ${sku} order by amount`,
            ),
          { ordered: true },
        )
        const workflow = Workflow.make("w", { version: 1, input: Schema.Null })
          .step("read", { effects: [Sorted], output: Schema.String, onStale: "rerun" }, function* () {
            return (yield* Sorted.read("a")).map(({ sku }) => sku).join()
          })
          .sleep("night", "1100 millis")
          .output(Schema.String, ({ results }) => results.read)
          .compile()
        const of = { calls: [], workflow: workflow as AnyWorkflow }
        const change = [`update ${place.stock} set amount = 8 where sku = 'a1'`]
        expect(yield* changedAsleep(place, of, change)).toEqual(Exit.succeed("b1,a2,a1"))
      }))

    test("are only looked at: what a look writes is not there afterwards", (place) =>
      Effect.gen(function* () {
        const Writing = DataVersion.query("writing", () =>
          Effect.flatMap(SqlClient, (sql) =>
            Effect.zipRight(
              sql`delete from ${sql.literal(place.stock)} where sku = 'a1'`,
              sql<Row>`select sku from ${sql.literal(place.stock)} where sku like 'a%'`,
            ),
          ),
        )
        const workflow = Workflow.make("w", { version: 1, input: Schema.Null })
          .step("read", { effects: [Writing], output: Schema.Number }, () =>
            Effect.map(Writing.read(null), (rows) => rows.length),
          )
          .sleep("night", "1100 millis")
          .output(Schema.Number, ({ results }) => results.read)
          .compile()
        const of = { calls: [], workflow: workflow as AnyWorkflow }
        expect(yield* changedAsleep(place, of, [])).toEqual(Exit.succeed(1))
        const rows = (yield* place.run(`select sku from ${place.stock}`)) as ReadonlyArray<unknown>
        expect(rows).toHaveLength(3)
      }))

    test("whose query fails by then are not compared: a person is asked", (place) =>
      Effect.gen(function* () {
        const of = quoting(place, "rerun")
        yield* Effect.gen(function* () {
          const handle = yield* Cairn.start(of.workflow, null, { runId: "r" })
          yield* until(place, "sleeping")
          yield* place.run(`drop table ${place.stock}`)
          const { parked } = yield* until(place, "review")
          expect(JSON.parse(parked!).problem).toContain("cannot be compared")
          yield* Cairn.resume({ runId: "r" })
          expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(asStood))
        }).pipe(beside(place, of.workflow))
      }))

    for (const point of ["afterClaim", "beforeCommit", "afterCommit"] as const) {
      test(`are read again once, also where its worker ends at '${point}' of going back`, (place) =>
        Effect.gen(function* () {
          const of = quoting(place, "rerun")
          let isArmed = false
          const ended = Effect.unsafeMakeLatch(false)
          yield* Effect.gen(function* () {
            yield* Cairn.start(of.workflow, null, { runId: "r" })
            yield* until(place, "sleeping")
            yield* place.run(`update ${place.stock} set amount = 6 where sku = 'a1'`)
            isArmed = true
            yield* ended.await
          }).pipe(
            beside(place, of.workflow, (at, step) =>
              Effect.suspend(() =>
                isArmed && at === point && (step === "read" || point === "afterClaim")
                  ? Effect.zipRight(ended.open, Effect.never)
                  : Effect.void,
              ),
            ),
          )
          const resumed = Effect.flatMap(Cairn.attach(of.workflow, { runId: "r" }), ({ result }) => Effect.exit(result))
          expect(yield* resumed.pipe(beside(place, of.workflow))).toEqual(Exit.succeed("a1:6,a2:7"))
          expect(of.calls).toEqual([2, 2])
        }))
    }
  })
}
