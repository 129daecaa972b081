/** Code of another plan comes to a run that it cannot go on with (X10, field case P024): it is parked, and nothing is done. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { Cairn, type FaultPoint } from "../../src/index.js"
import { refuseUnhandled, storeLayer, type Bench } from "./support/bench.js"
import {
  around,
  both,
  branch,
  careful,
  child,
  deployed,
  each,
  loop,
  match,
  op,
  parallel,
  perform,
  review,
  same,
  sender,
  signal,
  sleep,
  step,
  type Flow,
} from "./support/deploys.js"
import { crashAt, errorOf, resumeOn, test } from "./support/paying.js"

refuseUnhandled()

const parks = (
  bench: Bench,
  plans: readonly [Flow, Flow],
  at: readonly [FaultPoint, string],
  step: string,
  problem: RegExp,
  of = op,
) =>
  Effect.gen(function* () {
    const { again, exit } = yield* deployed(bench, plans, at, of)
    const parked = errorOf(exit)
    expect(parked).toMatchObject({ _tag: "RunParked", reason: "IncompatibleCheckpoint", step })
    expect(parked.problem).toMatch(problem)
    expect(parked.problem).toContain(`'${step}'`)
    expect(parked.problem).toContain("give the changed workflow a new version")
    expect(again).toEqual([])
  })

const gone = /this code has no such step/
const before = /which is not done, stands before it now/
const nothingThere = /nothing is performed there now/
const other = /is committed as '.*', and is '.*' now/
const swapped = /which was committed after it, stands before it now/
const arms = (x: Flow) => parallel("p", { x, y: step("q") })
const pay = perform("pay")

describe("an operation that may have happened is not sent again by another name, or later", () => {
  const changes: Record<string, readonly [Flow, RegExp]> = {
    renamed: [perform("pay2"), gone],
    removed: [same, gone],
    "moved into a branch": [branch("b", pay), gone],
    "moved into an arm": [arms(pay), gone],
    "moved into a loop": [loop("pay", perform("in")), nothingThere],
    "made a branch": [branch("pay", perform("in")), nothingThere],
    "made a local step": [step("pay"), nothingThere],
    "with an operation before it": [both(perform("new"), pay), before],
    "with a local step before it": [both(step("new"), pay), before],
    "with a sleep before it": [both(sleep("new"), pay), before],
  }
  for (const [how, [after, problem]] of Object.entries(changes)) {
    for (const point of ["afterIntent", "afterEffect"] as const) {
      test(`${how} (${point}, retryWithKey)`, (bench) => parks(bench, [pay, after], [point, "pay"], "pay", problem))
    }
  }

  const ofReview: Record<string, readonly [Flow, RegExp]> = {
    renamed: [perform("pay2", careful), gone],
    removed: [same, gone],
    "with an operation before it": [both(perform("new", careful), perform("pay", careful)), before],
  }
  for (const [how, [after, problem]] of Object.entries(ofReview)) {
    for (const point of ["afterIntent", "afterEffect"] as const) {
      test(`${how} (${point}, review)`, (bench) =>
        parks(bench, [perform("pay", careful), after], [point, "pay"], "pay", problem, careful))
    }
  }

  const inside: Record<string, readonly [(body: Flow) => Flow, string]> = {
    "an arm": [arms, "p:x/pay"],
    "a case": [(body) => branch("b", body), "b:x/pay"],
    "a turn": [(body) => loop("l", body), "l[0]/pay"],
    "an item": [(body) => each("e", body), "e[k1]/pay"],
  }
  for (const [where, [within, path]] of Object.entries(inside)) {
    test(`renamed in ${where}`, (bench) =>
      parks(bench, [within(pay), within(perform("pay2"))], ["afterEffect", path], path, gone))
    test(`with a step before it in ${where}`, (bench) =>
      parks(bench, [within(pay), within(both(step("new"), pay))], ["afterEffect", path], path, before))
  }
})

describe("a loop or forEach that has begun is not begun again", () => {
  const turn = ["afterEffect", "b[1]/pay"] as const
  const item = ["afterEffect", "b[k2]/pay"] as const
  const nested = (of: Flow) => loop("o", of)
  const changes: Record<string, readonly [Flow, Flow, readonly [FaultPoint, string], string, RegExp]> = {
    "a loop renamed": [loop("b"), loop("b2"), turn, "b[0]", gone],
    "a loop removed": [loop("b"), same, turn, "b[0]", gone],
    "a loop with an operation before it": [loop("b"), both(perform("new"), loop("b")), turn, "b[0]", before],
    "a loop made a forEach": [loop("b"), each("b"), turn, "b[0]", other],
    "a loop made an operation": [loop("b"), perform("b"), turn, "b[0]", other],
    "a loop moved into an arm": [loop("b"), arms(loop("b")), turn, "b[0]", gone],
    "a loop's body renamed": [loop("b"), loop("b", perform("pay2")), turn, "b[0]/pay", gone],
    "a loop's body with an operation before": [
      loop("b"),
      loop("b", both(perform("new"), pay)),
      turn,
      "b[1]/pay",
      before,
    ],
    "a nested loop renamed": [
      nested(loop("b")),
      nested(loop("b2")),
      ["afterEffect", "o[0]/b[1]/pay"],
      "o[0]/b[0]",
      gone,
    ],
    "a forEach renamed": [each("b"), each("b2"), item, "b[]", gone],
    "a forEach removed": [each("b"), same, item, "b[]", gone],
    "a forEach with an operation before it": [each("b"), both(perform("new"), each("b")), item, "b[]", before],
    "a forEach made a loop": [each("b"), loop("b"), item, "b[]", other],
    "a forEach made an operation": [each("b"), perform("b"), item, "b[]", other],
    "a forEach's body renamed": [each("b"), each("b", perform("pay2")), item, "b[k1]/pay", gone],
    "a forEach's body with an operation before": [
      each("b"),
      each("b", both(perform("new"), pay)),
      item,
      "b[k2]/pay",
      before,
    ],
    "a forEach of a branch renamed": [
      branch("r", each("b")),
      branch("r", each("b2")),
      ["afterEffect", "r:x/b[k2]/pay"],
      "r:x/b[]",
      gone,
    ],
  }
  for (const [how, [one, two, at, path, problem]] of Object.entries(changes)) {
    test(how, (bench) => parks(bench, [one, two], at, path, problem))
  }
})

describe("what a run waits for is not gone past", () => {
  const waits: Record<string, (name: string) => Flow> = { sleep, signal, review, child }
  const waitsThere = (kind: string) => new RegExp(`the run waits at 'b' \\(${kind}\\)`)
  for (const [kind, wait] of Object.entries(waits)) {
    const changes: Record<string, Flow> = {
      removed: perform("n"),
      renamed: both(wait("b2"), perform("n")),
      "made an operation": both(perform("b"), perform("n")),
      "with an operation before it": both(perform("n"), wait("b")),
    }
    for (const [how, after] of Object.entries(changes)) {
      test(`a ${kind} ${how}`, (bench) => {
        const plans = [both(wait("b"), perform("n")), after] as const
        return parks(bench, plans, ["afterCommit", "b"], "b", waitsThere(kind))
      })
    }
  }

  for (const point of ["afterEffect", "afterCommit"] as const) {
    test(`a child renamed that is there already (${point})`, (bench) =>
      Effect.gen(function* () {
        yield* parks(bench, [child("b"), child("b2")], [point, "b"], "b", waitsThere("child"))
        const { runs } = yield* Effect.provide(Cairn.list({ workflow: "kid" }), storeLayer(bench.store))
        expect(runs.map(({ runId }) => runId)).toEqual(["r/b"])
      }))
  }
})

describe("what is committed and has another meaning now parks the run", () => {
  const done = ["beforeCommit", "z"] as const
  const kinds: Record<string, readonly [Flow, string]> = {
    step: [step("b"), "b"],
    perform: [perform("b"), "b"],
    branch: [branch("b", step("in")), "b"],
    "branch of another case": [branch("b", step("in"), "y"), "b"],
    match: [match("b", step("in")), "b"],
    loop: [loop("b", step("in")), "b[0]"],
    forEach: [each("b", step("in")), "b[]"],
    parallel: [parallel("b", { v: step("in"), w: step("in") }), "b:v/in"],
    sleep: [(flow) => flow.sleep("b", "1 millis"), "b"],
  }
  for (const [from, [one, path]] of Object.entries(kinds)) {
    for (const [to, [two]] of Object.entries(kinds)) {
      if (from === to) continue
      test(`a ${from} made a ${to}`, (bench) => parks(bench, [one, two], done, path, /'b/))
    }
  }

  const moved: Record<string, readonly [Flow, Flow, string, RegExp]> = {
    "two steps swapped": [both(step("b"), step("c")), both(step("c"), step("b")), "b", swapped],
    "a step and a loop swapped": [both(step("b"), loop("c")), both(loop("c"), step("b")), "b", swapped],
    "a step and arms swapped": [both(step("b"), arms(step("c"))), both(arms(step("c")), step("b")), "b", swapped],
    "steps of a case swapped": [
      branch("b", both(step("c"), step("d"))),
      branch("b", both(step("d"), step("c"))),
      "b:x/c",
      swapped,
    ],
    "an arm added": [
      both(arms(same), step("b")),
      both(parallel("p", { x: same, y: step("q"), w: step("q") }), step("b")),
      "b",
      before,
    ],
    "a case with more": [
      both(branch("b", step("c")), step("d")),
      both(branch("b", both(step("c"), step("e"))), step("d")),
      "d",
      before,
    ],
  }
  for (const [how, [one, two, path, problem]] of Object.entries(moved)) {
    test(how, (bench) => parks(bench, [one, two], done, path, problem))
  }
})

describe("a run that code could not go on with", () => {
  test("goes on after Cairn.resume under code that can, with the same key", (bench) =>
    Effect.gen(function* () {
      const { again, exit, sent } = yield* deployed(bench, [pay, perform("pay2")], ["afterEffect", "pay"])
      expect([errorOf(exit).reason, again]).toEqual(["IncompatibleCheckpoint", []])
      const { keys, layer } = sender(op)
      expect(yield* Effect.provide(Cairn.resume({ runId: "r" }), storeLayer(bench.store))).toBe(true)
      expect(Exit.isSuccess(yield* resumeOn(bench, around(pay), layer))).toBe(true)
      expect(keys).toEqual(sent)
    }))

  const stands = { "has begun": ["afterCommit", "first"], "is new": ["afterClaim", ""] } as const
  for (const [how, [point, path]] of Object.entries(stands)) {
    test(`is known as such once a deploy is taken back that it was worked on by: a run that ${how}`, (bench) =>
      Effect.gen(function* () {
        const first = perform("first")
        const { keys, layer } = sender(op)
        yield* crashAt(bench, around(both(first, pay)), layer, point, path)
        keys.length = 0
        yield* crashAt(bench, around(both(first, perform("pay2"))), layer, "afterEffect", "pay2")
        expect(keys.splice(0)).toContain("default/r/pay2#0")
        const parked = errorOf(yield* resumeOn(bench, around(both(first, pay)), layer))
        expect(parked).toMatchObject({ reason: "IncompatibleCheckpoint", step: "pay2" })
        expect(keys).toHaveLength(0)
      }))
  }
})
