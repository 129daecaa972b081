/** Running ahead of the store, and where a run waits for it: before and after whatever touches the outside (W2, W3, W6; P050). */
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Effects, StoreError, type AnyWorkflow, type CheckpointStoreService, type Commit } from "../../src/index.js"
import { adding, followClock, make, row, start, test } from "./support/adding.js"
import { makeMortal, refuseUnhandled, startDoomed, startWorker, type Bench } from "./support/bench.js"
import { elapsing } from "./support/virtualClock.js"
import { Charge, chargeAt, Model, modelSays, Provider, type Receipt } from "./support/operations.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

type Mode = "step" | "barrier"

const names = ["a", "b", "c"] as const

const range = (from: number, through: number) => Array.from({ length: through - from + 1 }, (_, index) => from + index)

/** Three local steps, a charge, and three more. `look` is called at the beginning of each. */
const charging = (durability: Mode, look: (step: string) => Effect.Effect<void>): AnyWorkflow => {
  const local = (flow: any, name: string): any =>
    flow.step(name, { effects: [], output: Schema.String }, () => Effect.as(look(name), name))
  let flow = make("charging", 1, durability)
  for (const name of names) flow = local(flow, name)
  flow = flow.perform("pay", Charge, { payload: () => ({ customer: "ada", cents: 1 }) })
  for (const name of names) flow = local(flow, `${name}2`)
  return flow.compile()
}

const durable = (bench: Bench, runId = "r") =>
  Effect.map(Effect.orDie(bench.driver.load("default", runId)), (rows) => rows!.steps.map(({ path }) => path))

/** The store, with something done before each batch is written. */
const before = (
  store: CheckpointStoreService,
  act: (batch: ReadonlyArray<Commit>) => Effect.Effect<void, StoreError>,
) => ({
  ...store,
  commit: (batch: ReadonlyArray<Commit>) => Effect.zipRight(act(batch), store.commit(batch)),
})

describe("a run that runs ahead", () => {
  for (const mode of ["step", "barrier"] as const) {
    test(`has everything before an operation durable when it is sent, and its outcome before what follows (${mode})`, (bench) =>
      Effect.gen(function* () {
        const seen: Array<readonly [string, ReadonlyArray<string>]> = []
        const look = (step: string) =>
          Effect.flatMap(durable(bench), (paths) => Effect.sync(() => void seen.push([step, paths])))
        const workflow = charging(mode, look)
        const handlers = Charge.toLayer(() => Effect.as(look("pay"), { id: "ch_1", at: new Date(1) }))
        yield* startWorker(bench.store, { workflows: [workflow] }, handlers)
        yield* (yield* start(bench, workflow, "r")).result
        const at = new Map(seen)
        expect(at.get("pay")).toEqual(["a", "b", "c"])
        expect(at.get("a2")).toEqual(["a", "b", "c", "pay"])
        // What is local runs ahead in one mode, and waits in the other.
        expect(at.get("c")).toEqual(mode === "step" ? ["a", "b"] : [])
        expect(at.get("c2")).toEqual(["a", "b", "c", "pay", ...(mode === "step" ? ["a2", "b2"] : [])])
        expect(yield* durable(bench)).toHaveLength(7)
        // One intent, its outcome, and the end; or one for each step as well.
        expect(bench.commits).toHaveLength(mode === "step" ? 8 : 3)
      }))
  }

  test("says how far it has got, and how much of that is durable", (bench) =>
    Effect.gen(function* () {
      const reached = yield* Effect.makeLatch(false)
      const goOn = yield* Effect.makeLatch(false)
      const gate = yield* Effect.makeLatch(false)
      const workflow = charging("barrier", (step) =>
        step === "c" ? Effect.zipRight(reached.open, goOn.await) : Effect.void,
      )
      yield* startWorker(
        before(bench.store, () => gate.await),
        { workflows: [workflow] },
        chargeAt(new Provider()),
      )
      const handle = yield* start(bench, workflow, "r")
      yield* reached.await
      // The client's store is the worker's under another name: its signals are the same.
      expect([yield* handle.seq, yield* handle.durableSeq]).toEqual([2, 0])
      yield* gate.open
      yield* goOn.open
      yield* handle.result
      expect([yield* handle.seq, yield* handle.durableSeq]).toEqual([8, 8])
    }))

  test("is not reported as ended before its end is durable (W3)", (bench) =>
    Effect.gen(function* () {
      const gate = Effect.unsafeMakeLatch(false)
      const workflow = adding()
      yield* startWorker(
        before(bench.store, () => gate.await),
        { workflows: [workflow] },
      )
      const handle = yield* start(bench, workflow, "r")
      yield* Effect.sleep("5 seconds")
      expect((yield* handle.poll).status).toBe("running")
      yield* gate.open
      expect(yield* handle.result).toBe(3)
      expect((yield* row(bench, "r")).status).toBe("completed")
    }))

  test("is written by a worker that stops, before it releases it (W7)", (bench) =>
    Effect.gen(function* () {
      let slow = true
      const reached = yield* Effect.makeLatch(false)
      const workflow = charging("barrier", (step) =>
        step === "c" ? Effect.zipRight(reached.open, Effect.never) : Effect.void,
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const store = before(bench.store, () => (slow ? Effect.sleep(200) : Effect.void))
          yield* startWorker(store, { workflows: [workflow], drain: "1 second" }, chargeAt(new Provider()))
          yield* start(bench, workflow, "r")
          yield* reached.await
        }),
      )
      slow = false
      expect(yield* durable(bench)).toEqual(["a", "b"])
      expect(yield* row(bench, "r")).toMatchObject({ status: "pending", leaseOwner: null, seq: 2 })
    }))

  test("pays for nothing while the store does not take what it has (W6)", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      let away = true
      let asked = 0
      const workflow = make("reading")
        .step("a", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("2 seconds"), null))
        .step("b", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("2 seconds"), null))
        .step("ask", { effects: [Effects.read(Model)], output: Schema.Number }, () =>
          Effect.flatMap(Model, (model) => model.ask("?")),
        )
        .output(Schema.Number, ({ results }: any) => results.ask)
        .compile()
      const store = before(bench.store, () =>
        away
          ? Effect.fail(new StoreError({ reason: "Unavailable", operation: "commit", problem: "as the test says" }))
          : Effect.void,
      )
      yield* startWorker(
        store,
        { workflows: [workflow] },
        modelSays(() => ++asked),
      )
      const handle = yield* start(bench, workflow, "r")
      yield* Effect.sleep("15 seconds")
      expect(asked).toBe(0)
      away = false
      expect(yield* handle.result).toBe(1)
      expect((yield* row(bench, "r")).fence).toBe(1)
    }))
})

describe("a run of steps that only compute, for 5 ms each and without a turn of the event loop", () => {
  const steps = 300
  /** What 50 ms of computing are, and the step that was begun. */
  const atMost = 10 + 1

  const computing = (elapse: (ms: number) => void, look: (step: number) => void): AnyWorkflow =>
    Array.from({ length: steps })
      .reduce<any>(
        (flow, _, step) =>
          flow.step(`s${step}`, { effects: [], output: Schema.Int }, () => {
            elapse(5)
            look(step)
            return step
          }),
        make("computing"),
      )
      .compile()

  const writtenSteps = (bench: Bench) => bench.commits.reduce((sum, { steps }) => sum + steps.length, 0)

  test("is ahead of the store by no more than 50 ms of them (W4)", (bench) =>
    Effect.gen(function* () {
      let most = 0
      const workflow = computing(yield* elapsing, (step) => {
        most = Math.max(most, step + 1 - writtenSteps(bench))
      })
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* (yield* start(bench, workflow, "r")).result
      expect(most).toBe(atMost)
      expect(writtenSteps(bench)).toBe(steps)
    }))

  for (const at of [7, 150, 298]) {
    test(`repeats no more than these when its worker is killed after step ${at} (W4)`, (bench) =>
      Effect.gen(function* () {
        const begun: Array<number> = []
        const workflow = computing(yield* elapsing, (step) => void begun.push(step))
        const doomed = makeMortal(bench.store, (point, { step }) =>
          Effect.sync(() => {
            if (point === "beforeCommit" && step === `s${at}`) doomed.kill()
          }),
        )
        yield* startDoomed(doomed, { workflows: [workflow] })
        const handle = yield* start(bench, workflow, "r")
        yield* Effect.repeat(Effect.sleep(10), { until: () => begun.includes(at) })
        yield* startWorker(bench.store, { workflows: [workflow] })
        yield* handle.result
        expect(begun).toEqual([...range(0, at), ...range(begun[at + 1]!, steps - 1)])
        expect(at + 1 - begun[at + 1]!).toBeLessThanOrEqual(atMost)
      }))
  }
})

describe("a worker that is killed at any instant, over a store of any latency", () => {
  test("leaves a prefix, and no operation that ran ahead of what it follows from", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      // Seeded: the same instants each time.
      let seed = 20261130
      const random = () => ((seed = (seed * 1103515245 + 12345) & 0x7fffffff), seed / 0x7fffffff)
      for (let round = 0; round < 200; round++) {
        const runId = `r${round}`
        const provider = new Provider()
        const ahead: Array<string> = []
        const workflow = charging(round % 2 === 0 ? "barrier" : "step", () => Effect.sleep(Math.floor(random() * 4)))
        const handlers = Charge.toLayer((payload, context) =>
          Effect.map(durable(bench, runId), (paths) => {
            if (paths.length < names.length) ahead.push(context.idempotencyKey)
            return provider.handle(payload, context, () => ({ id: "ch_1", at: new Date(1) })) as Receipt
          }),
        )
        const slow = before(bench.store, () => Effect.sleep(Math.floor(random() * 10)))
        const mortal = makeMortal(slow)
        yield* startDoomed(mortal, { workflows: [workflow], lease: "2 seconds" }, handlers)
        const handle = yield* start(bench, workflow, runId)
        yield* Effect.sleep(1 + Math.floor(random() * 60))
        mortal.kill()
        const { run, steps } = (yield* bench.driver.load("default", runId))!
        const order = ["a", "b", "c", "pay", "a2", "b2", "c2"]
        expect(steps.map(({ path }) => path)).toEqual(order.slice(0, steps.length))
        expect(run.seq).toBeGreaterThanOrEqual(steps.length)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* startWorker(slow, { workflows: [workflow], lease: "2 seconds" }, handlers)
            yield* handle.result
          }),
        )
        expect(ahead).toEqual([])
        expect(yield* durable(bench, runId)).toEqual(order)
        expect(provider.keys()).toHaveLength(1)
      }
    }))
})
