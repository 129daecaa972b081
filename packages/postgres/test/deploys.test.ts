/** Code of another plan comes to a run that is under way, on every store: nothing is sent again, and what fits goes on. */
import { Cairn, CheckpointStore, Faults, MemoryStore, OnUnknown, Operation, Worker, Workflow } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { SqliteStore } from "@cairn/sqlite"
import { Deferred, Effect, Either, Layer, Logger, Schema } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { useDatabase } from "./internal/database.js"

const database = useDatabase()
let folder = ""

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "cairn-deploys-"))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

const stores: Readonly<Record<string, () => Layer.Layer<CheckpointStore, unknown>>> = {
  memory: () => MemoryStore.layer,
  SQLite: () => SqliteStore.layer({ filename: path.join(folder, "runs.sqlite") }),
  Postgres: () => PostgresStore.layer({ url: database.url }),
}

const Pay = Operation.make("pay", {
  payload: Schema.Int,
  success: Schema.Int,
  onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  // After a crash it is waited for: the lease, then this.
  timeout: "100 millis",
})

const kid = Workflow.make("kid", { version: 1, input: Schema.Int }).sleep("nap", "1 hour").compile()

/** A loop of so many turns that its history takes more than one page, then what a deploy changes. */
const flow = () =>
  Workflow.make("deployed", { version: 1, input: Schema.Null }).loop(
    "l",
    { state: Schema.Int, initial: () => 0, maxIterations: 80 },
    (flow) => flow.step("s", { effects: [], output: Schema.Int }, ({ turn }) => turn),
    ({ turn }) => ({ done: turn === 69, state: turn }),
  )
const payload = { payload: () => 1 }
const paying = flow().perform("pay", Pay, payload).compile()
const renamed = flow().perform("pay2", Pay, payload).compile()
const before = flow().perform("new", Pay, payload).perform("pay", Pay, payload).compile()
const after = flow().perform("pay", Pay, payload).perform("new", Pay, payload).compile()
const parent = flow()
  .child("pay", kid, { input: () => 1 })
  .compile()
const parentRenamed = flow()
  .child("pay2", kid, { input: () => 1 })
  .compile()

const deploys = {
  "an operation in doubt is renamed": [paying, renamed, "afterEffect", "pay"],
  "an operation comes before one in doubt": [paying, before, "afterIntent", "pay"],
  "a child that was started is renamed": [parent, parentRenamed, "afterEffect", "pay"],
  "an operation comes after one in doubt": [paying, after, "afterEffect", null],
} as const

describe.each(Object.keys(stores))("on %s", (name) => {
  it.each(Object.keys(deploys) as Array<keyof typeof deploys>)("%s", async (how) => {
    const [one, two, at, parksAt] = deploys[how]
    const sent: Array<string> = []
    const handlers = Pay.toLayer((_, { idempotencyKey }) => Effect.sync(() => sent.push(idempotencyKey)))
    const runId = how.replaceAll(" ", "-")
    const worker = (workflow: typeof one | typeof two, faults: Layer.Layer<never>) =>
      Layer.build(
        Worker.layer({ workflows: [workflow, kid], lease: "300 millis", pollInterval: "20 millis", drain: 0 }).pipe(
          Layer.provide(Layer.mergeAll(handlers, faults, Logger.remove(Logger.defaultLogger))),
        ),
      )
    const body = Effect.gen(function* () {
      const crashed = yield* Deferred.make<void>()
      const crash = Layer.succeed(Faults, {
        reach: (point, { step }) =>
          Effect.gen(function* () {
            if (point === at && step === "pay") yield* Deferred.succeed(crashed, undefined)
            if (yield* Deferred.isDone(crashed)) return yield* Effect.never
          }),
      })
      yield* worker(one, crash)
      yield* Cairn.start(one, null, { runId })
      yield* Deferred.await(crashed)
      const keys = sent.splice(0)
      yield* worker(two, Layer.empty)
      const { result } = yield* Cairn.attach(two, { runId })
      const ended = yield* Effect.either(result)
      const { steps } = yield* Effect.flatMap(CheckpointStore, (store) => store.load("default", runId))
      if (parksAt === null) {
        expect(Either.isRight(ended)).toBe(true)
        expect(sent).toEqual([...keys, `default/${runId}/new#0`])
        expect(steps.map(({ effect }) => effect)).toEqual(["loop", "plan", "external:pay", "external:pay"])
      } else {
        const parked = { _tag: "RunParked", reason: "IncompatibleCheckpoint", step: parksAt }
        expect(Either.isLeft(ended) && ended.left).toMatchObject(parked)
        expect(sent).toEqual([])
        expect(steps.map(({ effect }) => effect)).toEqual(["loop"])
      }
    })
    await Effect.runPromise(Effect.provide(Effect.scoped(body), Layer.fresh(stores[name]!())) as Effect.Effect<void>)
  })
})
