/** Code of another plan comes to a run that it can go on with (X10, field case P091): the run goes on, and does nothing again. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Layer, Schema } from "effect"
import { Cairn, Effects, OnUnknown, Operation, type AnyWorkflow, type FaultPoint } from "../../src/index.js"
import { intercepted, refuseUnhandled, storeLayer, type Bench } from "./support/bench.js"
import {
  around,
  both,
  branch,
  child,
  deployed,
  each,
  loop,
  op,
  parallel,
  perform,
  review,
  sender,
  signal,
  sleep,
  step,
  type Flow,
} from "./support/deploys.js"
import { crashAt, resumeOn, test } from "./support/paying.js"

refuseUnhandled()

const pay = perform("pay")
const stepWith =
  (name: string, options: object): Flow =>
  (flow) =>
    flow.step(name, { effects: [], output: Schema.Int, ...options }, () => 3)

/** What stands between two steps before and after it, where the worker dies in between, and what is sent from there on. */
type Deploy = readonly [before: Flow, after: Flow, at: readonly [FaultPoint, string], again: ReadonlyArray<string>]

describe("a deploy lets a run go on", () => {
  const inDoubt = ["afterEffect", "pay"] as const
  const last = ["beforeCommit", "z"] as const
  const turn = ["afterEffect", "l[1]/pay"] as const
  const item = ["afterEffect", "e[k2]/pay"] as const
  const arms = (x: Flow) => parallel("p", { x, y: step("q") })
  const deploys: Record<string, Deploy> = {
    "that adds a step after an operation in doubt": [pay, both(pay, step("n")), inDoubt, ["pay"]],
    "that adds an operation after one in doubt": [pay, both(pay, perform("n")), inDoubt, ["pay", "n"]],
    "that changes a step that has not begun": [both(pay, step("b")), both(pay, perform("b")), inDoubt, ["pay", "b"]],
    "that removes a step that has not begun": [both(pay, step("b")), pay, inDoubt, ["pay"]],
    "that swaps steps that have not begun": [
      both(pay, both(step("b"), step("c"))),
      both(pay, both(step("c"), step("b"))),
      inDoubt,
      ["pay"],
    ],
    "that moves what has not begun into a branch": [
      both(pay, step("b")),
      both(pay, branch("r", step("b"))),
      inDoubt,
      ["pay"],
    ],
    "that retries a committed step more often": [stepWith("b", {}), stepWith("b", { retry: { times: 3 } }), last, []],
    "that gives a step a time limit": [stepWith("b", {}), stepWith("b", { timeout: "1 hour" }), last, []],
    "that lets a step read": [stepWith("b", {}), stepWith("b", { effects: [Effects.read("model")] }), last, []],
    "after a branch, with cases that were not chosen": [
      branch("r", step("b")),
      (flow) => flow.branch("r", () => "x", { x: step("b"), w: perform("other") }),
      last,
      [],
    ],
    "with a step added to the end of an arm that is open": [
      arms(pay),
      arms(both(pay, step("n"))),
      ["afterEffect", "p:x/pay"],
      ["p:x/pay"],
    ],
    "with an arm added to what is open": [
      arms(pay),
      parallel("p", { x: pay, y: step("q"), w: step("q") }),
      ["afterEffect", "p:x/pay"],
      ["p:x/pay"],
    ],
    "with a step added to the end of a loop's body": [loop("l"), loop("l", both(pay, step("n"))), turn, ["l[1]/pay"]],
    "with more turns": [
      loop("l"),
      (flow) =>
        flow.loop("l", { state: Schema.Int, initial: () => 0, maxIterations: 9 }, pay, ({ turn }: any) => ({
          done: turn === 2,
          state: 1,
        })),
      turn,
      ["l[1]/pay", "l[2]/pay"],
    ],
    "with a step before those of a body, in a turn that has not begun": [
      loop("l", both(step("s"), pay)),
      loop("l", both(step("n"), both(step("s"), pay))),
      ["beforeCommit", "l[1]/s"],
      ["l[1]/pay"],
    ],
    "with a step before those of a body, in a loop that is over": [
      both(loop("l"), step("b")),
      both(loop("l", both(step("n"), pay)), step("b")),
      ["beforeCommit", "b"],
      [],
    ],
    "with a step added to the end of a forEach's body": [
      each("e"),
      each("e", both(pay, step("n"))),
      item,
      ["e[k2]/pay", "e[k3]/pay"],
    ],
    "with more items at a time": [each("e"), each("e", pay, 3), item, ["e[k2]/pay", "e[k3]/pay"]],
    "with a step added after a sleep": [
      both(sleep("b"), pay),
      both(sleep("b"), both(pay, step("n"))),
      ["afterCommit", "b"],
      ["pay"],
    ],
    "with a step added after a signal": [signal("b"), both(signal("b"), pay), ["afterCommit", "b"], ["pay"]],
    "with a step added after a review": [review("b"), both(review("b"), pay), ["afterCommit", "b"], ["pay"]],
    "with a step added after a child": [child("b"), both(child("b"), pay), ["afterCommit", "b"], ["pay"]],
    "before it has begun": [pay, perform("pay2"), ["beforeCommit", "a"], ["pay2"]],
  }
  for (const [how, [before, after, at, again]] of Object.entries(deploys)) {
    test(how, (bench) =>
      Effect.gen(function* () {
        const ended = yield* deployed(bench, [before, after], at)
        expect(ended.exit).toEqual(Exit.succeed(2))
        expect([...ended.again].sort()).toEqual(again.map((path) => `default/r/${path}#0`).sort())
      }),
    )
  }
})

const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>

describe("a deploy lets go on", () => {
  const failing: Flow = (flow) =>
    flow.step("b", { effects: [], output: Schema.Int }, () => {
      throw new Error("broken")
    })

  test("a run that has failed and is tried again, with a step before the one that has failed", (bench) =>
    Effect.gen(function* () {
      const { keys, layer } = sender(op)
      const [broken, mended] = [around(both(pay, failing)), around(both(pay, both(step("n"), step("b"))))]
      yield* crashAt(bench, broken, layer, "afterCommit", "b")
      expect((yield* bench.driver.findRun("default", "r"))!.status).toBe("failed")
      yield* provided(bench, Cairn.retry(mended, { runId: "r" }))
      expect(yield* resumeOn(bench, mended, layer)).toEqual(Exit.succeed(2))
      expect(keys).toEqual(["default/r/pay#0"])
    }))

  test("a fork that takes results over at paths to which it has not come", (bench) =>
    Effect.gen(function* () {
      const { keys, layer } = sender(op)
      const one = around(both(step("b"), both(loop("l"), pay)))
      const two = around(both(step("b"), both(loop("l"), both(pay, step("n")))))
      yield* crashAt(bench, one, layer, "beforeCommit", "z")
      const sent = keys.splice(0)
      expect(sent).toEqual(["l[0]/pay", "l[1]/pay", "pay"].map((path) => `default/r/${path}#0`))
      const exit = yield* Effect.gen(function* () {
        yield* Cairn.fork(two, { runId: "r", newRunId: "f", step: "b", effects: "reuse" })
        return yield* resumeOn(bench, two, layer, {}, "f")
      }).pipe((forked) => provided(bench, forked))
      expect(exit).toEqual(Exit.succeed(2))
      expect(keys).toEqual([])
    }))

  test("a run that is being taken back, with a step after what has begun", (bench) =>
    Effect.gen(function* () {
      const undo: any = Operation.make("undo", {
        payload: Schema.Int,
        success: Schema.Int,
        onUnknown: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
      })
      const { keys, layer } = sender(op)
      const undone = sender(undo)
      const paid =
        (name: string): Flow =>
        (flow) =>
          flow.perform(name, op, { payload: () => 1, compensate: { operation: undo, payload: () => 1 } })
      const needs = Layer.merge(layer, undone.layer) as Layer.Layer<any>
      yield* crashAt(bench, around(both(paid("p"), both(paid("q"), failing))), needs, "afterEffect", "q/compensate")
      const exit = yield* resumeOn(bench, around(both(paid("p"), both(paid("q"), both(failing, step("n"))))), needs)
      expect(exit).toMatchObject({ cause: { error: { _tag: "RunFailed", step: "b" } } })
      expect(keys).toEqual(["default/r/p#0", "default/r/q#0"])
      expect([...new Set(undone.keys)]).toEqual(["default/r/q/compensate#0", "default/r/p/compensate#0"])
    }))

  test("items that were under way beside each other, however often it is resumed with fewer at a time", (bench) =>
    Effect.gen(function* () {
      const { keys, layer } = sender(op)
      const hold: Flow = (flow) =>
        flow.step("hold", { effects: [], output: Schema.Int }, ({ key }: any) =>
          isHeld ? Effect.never : Effect.succeed(key.length),
        )
      let isHeld = true
      const body = both(pay, hold)
      const [wide, narrow] = [around(each("e", body, 3)), around(each("e", body, 1))]
      yield* crashAt(bench, wide, layer, "afterCommit", "e[k3]/pay")
      expect(keys).toHaveLength(3)
      isHeld = false
      for (const _ of [1, 2]) yield* crashAt(bench, narrow, layer, "beforeCommit", "e[k1]/hold")
      expect(yield* resumeOn(bench, narrow, layer)).toEqual(Exit.succeed(2))
      expect([...keys].sort()).toEqual(["k1", "k2", "k3"].map((key) => `default/r/e[${key}]/pay#0`))
    }))
})

describe("what a run has is read", () => {
  test("once for each plan that it comes to, and never under the one that it was begun with", (bench) =>
    Effect.gen(function* () {
      const { layer } = sender(op)
      const read: Array<string> = []
      const watched: Bench = {
        ...bench,
        store: intercepted(bench.store, (method) => Effect.sync(() => read.push(method))),
      }
      const wide = ["loadHistory", "loadPerformed", "listRuns"]
      const reads = () => read.splice(0).filter((method) => wide.includes(method))
      const [one, two] = [around(both(loop("l"), pay)), around(both(loop("l"), both(pay, step("n"))))]
      const crash = (workflow: AnyWorkflow) => crashAt(watched, workflow, layer, "afterIntent", "pay")
      yield* crash(one)
      yield* crash(one)
      expect(reads()).toEqual([])
      yield* crash(two)
      expect(reads()).toEqual(wide)
      yield* crash(two)
      expect(reads()).toEqual([])
      yield* crash(one)
      expect(reads()).toEqual(wide)
      expect(yield* resumeOn(watched, one, layer)).toEqual(Exit.succeed(2))
      expect(reads()).toEqual([])
    }))
})
