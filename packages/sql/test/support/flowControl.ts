/** Limits and schedules over a database that several workers share, each with connections of its own. */
import {
  Cairn,
  CheckpointStore,
  fromDriver,
  Worker,
  Workflow,
  type AnyWorkflow,
  type CheckpointDriver,
  type RunRow,
} from "@cairn/core"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schema, type Scope } from "effect"

const quiet = Logger.remove(Logger.defaultLogger)

interface Fleet {
  readonly client: Layer.Layer<CheckpointStore>
  /** First claims, by the store's clock. */
  readonly starts: ReadonlyArray<RunRow>
}

/** Starts a worker on each driver. */
const fleetOf = (drivers: ReadonlyArray<CheckpointDriver>, workflow: AnyWorkflow) =>
  Effect.gen(function* () {
    const starts: Array<RunRow> = []
    const stores = drivers.map((driver) =>
      fromDriver({
        ...driver,
        claim: (request) =>
          Effect.tap(driver.claim(request), (rows) =>
            Effect.sync(() => starts.push(...rows.filter(({ fence }) => fence === 1))),
          ),
      }),
    )
    for (const store of stores) {
      const live = Worker.layer({ workflows: [workflow], concurrency: 8, pollInterval: 20, maxPollInterval: 20 })
      yield* Layer.build(
        live.pipe(Layer.provide(Layer.succeed(CheckpointStore, store)), Layer.provide(quiet)) as Layer.Layer<Worker>,
      )
    }
    return { client: Layer.succeed(CheckpointStore, stores[0]!), starts } satisfies Fleet as Fleet
  })

/** Counts how many are under way at once, of each name and of all. */
const makeMeter = () => {
  const now = new Map<string, number>()
  const most = new Map<string, number>()
  const add = (name: string, by: number) => {
    const count = (now.get(name) ?? 0) + by
    now.set(name, count)
    most.set(name, Math.max(most.get(name) ?? 0, count))
  }
  return {
    most,
    during: async (name: string, ms: number) => {
      for (const one of [name, "all"]) add(one, 1)
      await new Promise((resolve) => setTimeout(resolve, ms))
      for (const one of [name, "all"]) add(one, -1)
    },
  }
}

const Order = Schema.Struct({ customer: Schema.String, n: Schema.Number })

const startAndAwait = (client: Fleet["client"], workflow: AnyWorkflow, inputs: ReadonlyArray<typeof Order.Type>) =>
  Effect.gen(function* () {
    const handles = yield* Effect.forEach(inputs, (input) => Cairn.start(workflow, input), { concurrency: 8 })
    return yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
  }).pipe(Effect.provide(client))

const orders = (count: number, customers: number): ReadonlyArray<typeof Order.Type> =>
  Array.from({ length: count }, (_, n) => ({ customer: `customer ${n % customers}`, n }))

/** Registers the tests. `open` gives as many drivers of one database as are asked for. */
export const flowControl = (
  store: string,
  open: (count: number) => Effect.Effect<ReadonlyArray<CheckpointDriver>, unknown, Scope.Scope>,
): void => {
  describe(`four workers on ${store}`, () => {
    it.scopedLive(
      "execute one run of each key at a time, and of all no more than the workflow says",
      () =>
        Effect.gen(function* () {
          const meter = makeMeter()
          const workflow = Workflow.make("limited", {
            version: 1,
            input: Order,
            limits: { concurrency: 4, perKey: { key: ({ input }) => input.customer, concurrency: 1 } },
          })
            .step("work", { effects: [], output: Schema.Void }, ({ input }) => meter.during(input.customer, 15))
            .compile()
          const { client } = yield* fleetOf(yield* open(4), workflow)
          yield* startAndAwait(client, workflow, orders(36, 6))
          expect(meter.most.get("all")).toBeLessThanOrEqual(4)
          // They did run beside each other: one at a time would keep every limit.
          expect(meter.most.get("all")).toBeGreaterThan(1)
          for (let n = 0; n < 6; n++) expect(meter.most.get(`customer ${n}`)).toBe(1)
        }),
      60_000,
    )

    it.scopedLive(
      "begin no more runs in any stretch of time than the rate says, and all of them in the end",
      () =>
        Effect.gen(function* () {
          const [count, per] = [4, 400]
          const workflow = Workflow.make("rated", { version: 1, input: Order, limits: { rate: { count, per } } })
            .step("work", { effects: [], output: Schema.Void }, () => undefined)
            .compile()
          const { client, starts } = yield* fleetOf(yield* open(4), workflow)
          yield* startAndAwait(client, workflow, orders(14, 3))
          const times = starts.map(({ updatedAt }) => updatedAt).sort((a, b) => a - b)
          expect(times).toHaveLength(14)
          for (let n = count; n < times.length; n++) expect(times[n]! - times[n - count]!).toBeGreaterThanOrEqual(per)
          // Not much slower either: three full stretches, and what polling adds.
          expect(times.at(-1)! - times[0]!).toBeLessThan(20 * per)
        }),
      60_000,
    )

    it.scopedLive(
      "start the run of each instant of a schedule once",
      () =>
        Effect.gen(function* () {
          const seen: Array<number> = []
          const workflow = Workflow.make("scheduled", { version: 1, input: Order })
            .step("work", { effects: [], output: Schema.Void }, ({ input }) => void seen.push(input.n))
            .compile()
          const drivers = yield* open(4)
          // Before the workers are there: all of them know when it is due, and meet.
          const made = yield* Effect.provideService(
            Cairn.schedule(workflow, {
              ...{ id: "each second", cron: "* * * * * *", timeZone: "UTC", input: { customer: "c", n: 7 } },
            }),
            CheckpointStore,
            fromDriver(drivers[0]!),
          )
          const { client, starts } = yield* fleetOf(drivers, workflow)
          yield* Effect.repeat(Effect.sleep(20), { until: () => seen.length >= 3 })
          yield* Effect.provide(Cairn.unschedule({ id: "each second" }), client)
          const instants = starts.map(({ runId }) => Date.parse(runId.slice(runId.indexOf("@") + 1)))
          // Where the workers took longer than a second to be there, the instants before the latest are passed over.
          expect(instants[0]).toBeGreaterThanOrEqual(made.nextAt.getTime())
          expect(new Set(instants).size).toBe(instants.length)
          for (let n = 1; n < instants.length; n++) expect(instants[n]! - instants[n - 1]!).toBe(1_000)
        }),
      60_000,
    )
  })
}
