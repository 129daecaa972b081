/** What transaction steps promise, for any SQL store: registered by each store's own tests over its own database. */
import {
  Cairn,
  contextFromDriver,
  Effects,
  Faults,
  Output,
  Worker,
  Workflow,
  type AnyWorkflow,
  type CheckpointDriver,
  type FaultPoint,
  type FaultSite,
} from "@cairn/core"
import { SqlClient } from "@effect/sql/SqlClient"
import { Cause, Effect, Exit, Fiber, Layer, Logger, Option, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"

/** A store with a table `ledger (name text primary key)`. */
export interface Place {
  readonly driver: CheckpointDriver
  /** Another connection to the same data. */
  readonly second: CheckpointDriver
  /** The table's name, as any connection may write it. */
  readonly ledger: string
  /** The first parameter of a statement. */
  readonly parameter: string
  /** Names in the table, as another connection sees them. */
  readonly names: Effect.Effect<ReadonlyArray<string>, unknown>
}

export type Reach = (point: FaultPoint, site: FaultSite) => Effect.Effect<void>

const quiet = Logger.remove(Logger.defaultLogger)

/** Runs an effect beside a worker of its own. */
export const withWorker =
  (
    driver: CheckpointDriver,
    workflow: AnyWorkflow,
    options: { readonly reach?: Reach; readonly lease?: number } = {},
  ) =>
  <A, E>(effect: Effect.Effect<A, E, any>): Effect.Effect<A, E> => {
    const { lease = 30_000, reach } = options
    const worker = Worker.layer({ workflows: [workflow], lease, pollInterval: 50, drain: 0 }) as Layer.Layer<any>
    const faults = reach === undefined ? Layer.empty : Layer.succeed(Faults, { reach })
    const live = worker.pipe(
      Layer.provide(faults),
      Layer.provideMerge(Layer.succeedContext(contextFromDriver(driver))),
      Layer.provide(quiet),
    ) as Layer.Layer<any>
    return Effect.provide(effect, live) as Effect.Effect<A, E>
  }

export const finish = (workflow: AnyWorkflow, runId = "r"): Effect.Effect<Exit.Exit<unknown, any>, any, any> =>
  Effect.flatMap(Cairn.start(workflow, null, { runId }), (handle) => Effect.exit(handle.result))

export const runOn = (
  driver: CheckpointDriver,
  workflow: AnyWorkflow,
  options: Parameters<typeof withWorker>[2] = {},
) => finish(workflow).pipe(withWorker(driver, workflow, options))

export const errorOf = (exit: Exit.Exit<unknown, any>): any =>
  Exit.isFailure(exit) ? Option.getOrThrow(Cause.failureOption(exit.cause)) : exit.value

/** A workflow of one transaction step. */
export const booking = (run: (context: any) => any, spec: object = {}): AnyWorkflow =>
  (Workflow.make("book", { version: 1, input: Schema.Null }) as any)
    .step("book", { effects: [Effects.transaction], output: Schema.String, ...spec }, run)
    .output(Schema.String, ({ results }: any) => results.book)
    .compile()

export const stepsOf = (driver: CheckpointDriver) =>
  Effect.map(driver.load("default", "r"), (rows) => rows!.steps.map((step) => [step.path, step.effect]))

const expectHeld = (body: Effect.Effect<void, any, Scope.Scope>): Promise<void> =>
  Effect.runPromise(Effect.scoped(body))

/** Registers the promises for one store. */
export const transactionSteps = (name: string, opened: Effect.Effect<Place, any, Scope.Scope>): void => {
  const test = (title: string, body: (place: Place) => Effect.Effect<void, any>): void =>
    it(`${title}`, () => expectHeld(Effect.flatMap(opened, body)), 60_000)
  const insert = ({ ledger, parameter }: Place): string => `insert into ${ledger} (name) values (${parameter})`

  describe(`transaction steps on ${name}`, () => {
    test("write with their checkpoint, in each form of run", (place) =>
      Effect.gen(function* () {
        const book = (sql: SqlClient, row: string) =>
          sql`insert into ${sql.literal(place.ledger)} (name) values (${row})`
        const spec = { effects: [Effects.transaction], output: Schema.String } as const
        const workflow = Workflow.make("book", { version: 1, input: Schema.Null })
          .step("effect", spec, () =>
            Effect.as(
              Effect.flatMap(SqlClient, (sql) => book(sql, "effect")),
              "1",
            ),
          )
          .step("generator", spec, function* () {
            yield* book(yield* SqlClient, "generator")
            return "2"
          })
          .step("promise", spec, async ({ query }) => {
            await query(insert(place), ["promise"])
            const rows = await query<{ readonly name: string }>(`select name from ${place.ledger} order by name`)
            return rows.map((row) => row.name).join()
          })
          .step("value", spec, () => "4")
          .output(Schema.String, ({ results }) => results.promise)
          .compile()
        const exit = yield* runOn(place.driver, workflow)
        expect(exit).toEqual(Exit.succeed("effect,generator,promise"))
        expect(yield* place.names).toEqual(["effect", "generator", "promise"])
        expect(yield* stepsOf(place.second)).toEqual(
          ["effect", "generator", "promise", "value"].map((step) => [step, "transaction"]),
        )
      }))

    test("whose function fails leave nothing, and are tried again", (place) =>
      Effect.gen(function* () {
        let calls = 0
        const workflow = booking(
          async ({ query }) => {
            await query(insert(place), ["once"])
            if (++calls < 3) throw new Error(`call ${calls}`)
            return "done"
          },
          { retry: { times: 3, delay: 1 } },
        )
        expect(yield* runOn(place.driver, workflow)).toEqual(Exit.succeed("done"))
        expect(calls).toBe(3)
        expect(yield* place.names).toEqual(["once"])
        const { attempts } = yield* place.second.loadOpen("default", "r", ["book"])
        expect(attempts.map((attempt) => attempt.kind)).toEqual(["failed", "failed"])
      }))

    test("whose output is refused by its schema leave nothing, and are tried again", (place) =>
      Effect.gen(function* () {
        let calls = 0
        const workflow = booking(
          async ({ query }) => {
            calls += 1
            await query(insert(place), [`row ${calls}`])
            return Output.unvalidated(calls === 1 ? 1 : "text")
          },
          { onInvalid: { retries: 1, then: "fail" } },
        )
        expect(yield* runOn(place.driver, workflow)).toEqual(Exit.succeed("text"))
        expect(yield* place.names).toEqual(["row 2"])
      }))

    test("that take too long are rolled back", (place) =>
      Effect.gen(function* () {
        const workflow = booking(
          () => Effect.flatMap(SqlClient, (sql) => Effect.zipRight(sql.unsafe(insert(place), ["late"]), Effect.never)),
          { timeout: 100 },
        )
        const error = errorOf(yield* runOn(place.driver, workflow))
        expect(error).toMatchObject({ _tag: "RunFailed", details: { tag: "StepTimeout" } })
        expect(yield* place.names).toEqual([])
      }))

    test("nest transactions, also beside each other: what fails takes back its own rows only", (place) =>
      Effect.gen(function* () {
        const workflow = booking(function* () {
          const sql = yield* SqlClient
          const add = (row: string) => sql.unsafe(insert(place), [row])
          const good = sql.withTransaction(
            Effect.zipRight(add("good"), Effect.zipRight(Effect.yieldNow(), add("good too"))),
          )
          const bad = sql.withTransaction(
            Effect.zipRight(add("bad"), Effect.zipRight(Effect.yieldNow(), Effect.fail("no"))),
          )
          const deep = sql.withTransaction(
            Effect.zipRight(
              add("outer"),
              Effect.either(sql.withTransaction(Effect.zipRight(add("inner"), Effect.fail("no")))),
            ),
          )
          yield* Effect.all([Effect.either(good), Effect.either(bad), add("beside"), deep], {
            concurrency: "unbounded",
          })
          // A statement that fails in a nested transaction is taken back with it.
          yield* Effect.either(sql.withTransaction(add("good")))
          return "done"
        })
        expect(yield* runOn(place.driver, workflow)).toEqual(Exit.succeed("done"))
        expect(yield* place.names).toEqual(["beside", "good", "good too", "outer"])
      }))

    test("that leave a nested transaction open fail, and leave nothing", (place) =>
      Effect.gen(function* () {
        const workflow = booking(function* () {
          const sql = yield* SqlClient
          const begun = yield* Effect.makeLatch()
          yield* Effect.forkDaemon(
            sql.withTransaction(
              Effect.zipRight(sql.unsafe(insert(place), ["open"]), Effect.zipRight(begun.open, Effect.never)),
            ),
          )
          yield* begun.await
          return "done"
        })
        const error = errorOf(yield* runOn(place.driver, workflow))
        expect(error).toMatchObject({ _tag: "RunFailed", details: { tag: "TransactionAborted" } })
        expect(yield* place.names).toEqual([])
      }))

    test("refuse their client once they have ended", (place) =>
      Effect.gen(function* () {
        let kept: SqlClient | undefined
        let query: ((text: string, parameters: ReadonlyArray<unknown>) => Promise<unknown>) | undefined
        const workflow = booking((context) =>
          Effect.map(SqlClient, (sql) => {
            kept = sql
            query = context.query
            return "done"
          }),
        )
        expect(yield* runOn(place.driver, workflow)).toEqual(Exit.succeed("done"))
        const error = yield* Effect.flip(kept!.unsafe(insert(place), ["late"]))
        expect(error).toMatchObject({ _tag: "SqlError", message: expect.stringContaining("the step has ended") })
        yield* Effect.promise(() => expect(query!(insert(place), ["late"])).rejects.toMatchObject({ _tag: "SqlError" }))
        yield* Effect.flip(kept!.withTransaction(Effect.void))
        expect(yield* place.names).toEqual([])
      }))

    test("refuse statements that would end their transaction", (place) =>
      Effect.gen(function* () {
        const workflow = booking(function* () {
          const sql = yield* SqlClient
          yield* sql.unsafe(insert(place), ["row"])
          const refused = yield* Effect.forEach(["commit", "  ROLLBACK", "/* x */ begin", "select 1; commit"], (text) =>
            Effect.flip(sql.unsafe(text)),
          )
          return refused.map((error) => error._tag).join()
        })
        const exit = yield* runOn(place.driver, workflow)
        expect(exit).toEqual(Exit.succeed("SqlError,SqlError,SqlError,SqlError"))
        expect(yield* place.names).toEqual(["row"])
      }))

    test("wait for statements that their function did not wait for", (place) =>
      Effect.gen(function* () {
        const workflow = booking(({ query }) => {
          void query(insert(place), ["floating"])
          return "done"
        })
        expect(yield* runOn(place.driver, workflow)).toEqual(Exit.succeed("done"))
        expect(yield* place.names).toEqual(["floating"])
      }))

    test("of a worker that was taken over before are refused, and take back what they wrote", (place) =>
      Effect.gen(function* () {
        const stalled = yield* Effect.makeLatch()
        const claimed = yield* Effect.makeLatch()
        let calls = 0
        let stands = false
        const workflow = booking(function* () {
          const sql = yield* SqlClient
          calls += 1
          yield* sql.unsafe(insert(place), [`call ${calls}`])
          return `call ${calls}`
        })
        // The first worker stands still after its claim: it neither runs nor beats.
        const reach: Reach = (point) => {
          if (point === "afterClaim" && !stands) {
            stands = true
            return Effect.zipRight(claimed.open, stalled.await)
          }
          return point === "beforeBeat" && stands ? stalled.await : Effect.void
        }
        const loser = yield* Effect.fork(runOn(place.driver, workflow, { reach, lease: 300 }))
        yield* claimed.await
        expect(yield* runOn(place.second, workflow, { lease: 300 })).toEqual(Exit.succeed("call 1"))
        yield* stalled.open
        expect(yield* Fiber.join(loser)).toEqual(Exit.succeed("call 1"))
        expect(yield* place.names).toEqual(["call 1"])
      }))

    test("that follow each other, on the one connection that there is, cost no worker its lease", (place) =>
      Effect.gen(function* () {
        const steps = ["a", "b", "c", "d", "e", "f"]
        const spec = { effects: [Effects.transaction], output: Schema.Void }
        const slow = (name: string) => () =>
          Effect.zipRight(
            Effect.flatMap(SqlClient, (sql) => sql.unsafe(insert(place), [name])),
            Effect.sleep(250),
          )
        const workflow = steps
          .reduce(
            (flow, name) => flow.step(name, spec, slow(name)),
            Workflow.make("slow", { version: 1, input: Schema.Null }) as any,
          )
          .compile()
        expect(Exit.isSuccess(yield* runOn(place.driver, workflow, { lease: 900 }))).toBe(true)
        expect((yield* place.second.findRun("default", "r"))!).toMatchObject({ fence: 1, recoveries: 0, seq: 6 })
        expect(yield* place.names).toEqual(steps)
      }))

    test("with a timeout of more than a third of the lease are refused when the worker starts", (place) =>
      Effect.gen(function* () {
        const exit = yield* Effect.exit(
          runOn(
            place.driver,
            booking(() => "", { timeout: "11 seconds" }),
          ),
        )
        expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toContain(
          "CRN110: timeout of transaction step 'book' must be at most a third of the worker's lease (10000 ms)",
        )
      }))
  })
}
