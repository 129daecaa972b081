/** One test body, three stores: a line decides where runs are kept. */
import {
  Cairn,
  CheckpointStore,
  Faults,
  MemoryStore,
  NotPerformed,
  OnUnknown,
  Operation,
  Worker,
  Workflow,
  type StoreError,
} from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { SqliteStore } from "@cairn/sqlite"
import { Deferred, Effect, Layer, Schema } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { useDatabase } from "./internal/database.js"

const database = useDatabase()
let folder = ""

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "cairn-swapping-"))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const Charge = Operation.make("payments.charge", {
  payload: Schema.Struct({ customer: Schema.String, cents: Schema.Int }),
  success: Schema.Struct({ id: Schema.String }),
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  // After a crash it is waited for: the lease, then this.
  timeout: "300 millis",
})

const invoice = Workflow.make("invoice", { version: 1, input: Schema.Struct({ customer: Schema.String }) })
  .step("price", { effects: [], output: Schema.Int }, ({ input }) => input.customer.length * 100)
  .perform("charge", Charge, {
    payload: ({ input, results }) => ({ customer: input.customer, cents: results.price }),
    retry: { times: 2 },
  })
  .output(Schema.String, ({ results }) => `${results.charge.id} for ${results.price}`)
  .compile()

/** The line that differs. */
const stores: Readonly<Record<string, () => Layer.Layer<CheckpointStore, StoreError>>> = {
  memory: () => MemoryStore.layer,
  SQLite: () => SqliteStore.layer({ filename: path.join(folder, "runs.sqlite") }),
  Postgres: () => PostgresStore.layer({ url: database.url }),
}

describe("one workflow, the same on every store", () => {
  it.each(Object.keys(stores))("runs on %s", async (name) => {
    const sent: Array<string> = []
    const charge = Charge.toLayer(({ cents }, { idempotencyKey }) => {
      sent.push(idempotencyKey)
      return sent.length === 1
        ? Effect.fail(new NotPerformed({ problem: "the provider is busy" }))
        : Effect.succeed({ id: `charge of ${cents}` })
    })
    const cairn = await Cairn.open({ store: stores[name]!(), workflows: [invoice], handlers: charge })
    try {
      const run = await cairn.start(invoice, { customer: "ada" }, { runId: "one" })
      expect(await run.result()).toBe("charge of 300 for 300")
      expect(sent).toEqual(["default/one/charge#0", "default/one/charge#1"])
      // Attached to, not run again.
      const again = await cairn.start(invoice, { customer: "ada" }, { runId: "one" })
      expect(await again.result()).toBe("charge of 300 for 300")
      expect(sent).toHaveLength(2)
    } finally {
      await cairn.close()
    }
  })

  it.each(Object.keys(stores))("goes on after a crash, under the same key, on %s", async (name) => {
    const sent: Array<string> = []
    const charge = Charge.toLayer(({ cents }, { idempotencyKey }) => {
      sent.push(idempotencyKey)
      return Effect.succeed({ id: `charge of ${cents}` })
    })
    const worker = (faults: Layer.Layer<never>) =>
      Layer.build(
        Worker.layer({ workflows: [invoice], lease: "500 millis", pollInterval: "20 millis", drain: 0 }).pipe(
          Layer.provide(charge),
          Layer.provide(faults),
        ),
      )
    const body = Effect.gen(function* () {
      const crashed = yield* Deferred.make<void>()
      // Nothing of it goes on, neither the run nor its heart: to the store it is a process that was killed.
      const crash = Layer.succeed(Faults, {
        reach: (point, { step }) =>
          Effect.gen(function* () {
            if (point === "afterEffect" && step === "charge") yield* Deferred.succeed(crashed, undefined)
            if (yield* Deferred.isDone(crashed)) return yield* Effect.never
          }),
      })
      yield* worker(crash)
      const run = yield* Cairn.start(invoice, { customer: "grace" }, { runId: "two" })
      yield* Deferred.await(crashed)
      expect(sent).toEqual(["default/two/charge#0"])

      yield* worker(Layer.empty)
      expect(yield* run.result).toBe("charge of 500 for 500")
      // What became of it was not known: asked again under the same key, which the provider knows.
      expect(sent).toEqual(["default/two/charge#0", "default/two/charge#0"])
      const { run: row, steps } = yield* Effect.flatMap(CheckpointStore, (store) => store.load("default", "two"))
      expect(row.fence).toBeGreaterThanOrEqual(2)
      expect(steps.map(({ path }) => path)).toEqual(["price", "charge"])
    })
    await Effect.runPromise(Effect.provide(Effect.scoped(body), Layer.fresh(stores[name]!())))
  })
})
