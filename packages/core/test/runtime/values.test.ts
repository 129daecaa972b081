/** What functions see of input and results: the stored value, the same on the first run as on a resume. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Option, Schema } from "effect"
import { deepStrictEqual } from "node:assert"
import { inspect } from "node:util"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import {
  makeBench,
  makeMortal,
  quiet,
  refuseUnhandled,
  startDoomed,
  startWorker,
  storeLayer,
  withWorker,
} from "./support/bench.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const make = (name = "values"): any =>
  (Workflow.make as any)(name, { version: 1, input: Schema.parseJson(), durability: "step" })

const runOnce = (workflow: AnyWorkflow, input: unknown = null) =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    const exit = yield* Effect.gen(function* () {
      const handle = yield* Cairn.start(workflow, input, { runId: "r" })
      return yield* Effect.exit(handle.result)
    }).pipe(withWorker(bench, [workflow]), Effect.withClock(makeVirtualClock()), Effect.provide(quiet))
    return exit as Exit.Exit<any, any>
  })

/** Runs a workflow on a worker that dies once `step` is committed, and on a second one to its end. */
const runTwice = (workflow: AnyWorkflow, step: string) =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    let killed = false
    const mortal = makeMortal(bench.store, (point, site) =>
      Effect.sync(() => {
        if (point !== "afterCommit" || site.step !== step) return
        mortal.kill()
        killed = true
      }),
    )
    yield* startDoomed(mortal, { workflows: [workflow] })
    const result = yield* Effect.gen(function* () {
      const handle = yield* Cairn.start(workflow, null, { runId: "r" })
      yield* startWorker(bench.store, { workflows: [workflow] })
      return yield* handle.result
    }).pipe(Effect.scoped, Effect.provide(storeLayer(bench.store)))
    expect(killed).toBe(true)
    return result as any
  }).pipe(Effect.withClock(makeVirtualClock()), Effect.provide(quiet))

class Money extends Schema.Class<Money>("Money")({ cents: Schema.BigInt, at: Schema.Date }) {
  get euros() {
    return Number(this.cents) / 100
  }
}

const Id = Schema.String.pipe(Schema.brand("Id"))

interface Round {
  readonly self?: Round | undefined
}
const Round: Schema.Schema<Round> = Schema.Struct({ self: Schema.optional(Schema.suspend(() => Round)) })

const cases: Record<string, readonly [schema: any, value: unknown]> = {
  "a Date": [Schema.Date, new Date(86_400_000)],
  "a bigint": [Schema.Struct({ wei: Schema.BigInt }), { wei: 10n ** 30n }],
  "an Option": [Schema.Array(Schema.Option(Schema.Date)), [Option.none(), Option.some(new Date(1))]],
  "a Map": [Schema.Map({ key: Schema.String, value: Schema.Date }), new Map([["a", new Date(5)]])],
  "a Set": [Schema.Set(Schema.BigInt), new Set([1n, 2n])],
  bytes: [Schema.Uint8ArrayFromBase64, new Uint8Array([0, 1, 255])],
  "a brand": [Id, Id.make("i1")],
  "a class": [Money, new Money({ cents: 1234n, at: new Date(9) })],
  "nothing at all": [Schema.Void, undefined],
  null: [Schema.NullOr(Schema.String), null],
  "an absent key": [Schema.Struct({ a: Schema.optional(Schema.String), b: Schema.Null }), { b: null }],
  "minus zero and the smallest number": [Schema.Array(Schema.Number), [-0, 5e-324, 1e308, 2 ** 53 + 2]],
  "unusual keys": [
    Schema.Record({ key: Schema.String, value: Schema.Number }),
    { user_id: 1, userId: 2, "a.b": 3, "": 4, " ": 5, "0": 6, constructor: 7, $ref: 8, _tag: 9, type: 10, lc: 11 },
  ],
  "text that databases dislike": [
    Schema.Array(Schema.String),
    ["\u0000", "\ud800", "\udc00x", "\u2028", "é", "e\u0301"],
  ],
  "an envelope that other libraries would revive": [
    Schema.Struct({
      lc: Schema.Number,
      type: Schema.String,
      id: Schema.Array(Schema.String),
      kwargs: Schema.Struct({}),
    }),
    { lc: 1, type: "constructor", id: ["x"], kwargs: {} },
  ],
}

describe("a value that a step leaves behind", () => {
  for (const [what, [schema, value]] of Object.entries(cases)) {
    it.live(`${what} is the same live and after a resume, prototypes included`, () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        let calls = 0
        const workflow: AnyWorkflow = make()
          .step("make", { effects: [], output: schema }, () => {
            calls++
            return value
          })
          .step("look", { effects: [], output: Schema.Null }, ({ results }: any) => {
            seen.push(results.make)
            return null
          })
          .output(Schema.Boolean, ({ results }: any) => {
            seen.push(results.make)
            return true
          })
          .compile()
        expect(yield* runOnce(workflow)).toEqual(Exit.succeed(true))
        expect(yield* runTwice(workflow, "make")).toBe(true)
        // Once a run: a value of nothing does not make its step run again.
        expect(calls).toBe(2)
        expect(seen.length).toBeGreaterThanOrEqual(4)
        for (const one of seen) deepStrictEqual(one, seen[0])
        deepStrictEqual(seen[0], value)
      }),
    )
  }

  const refused: Record<string, readonly [schema: any, value: unknown, field: string]> = {
    NaN: [Schema.Struct({ cost: Schema.Number }), { cost: NaN }, ".cost"],
    infinity: [Schema.Array(Schema.Number), [1, Infinity], "[1]"],
    "a circle": [Round, circle(), ".self"],
    "another type": [Schema.Struct({ a: Schema.Int }), { a: "1" }, ".a"],
    "a missing key": [Schema.Struct({ a: Schema.Int }), {}, ".a"],
    "a key named __proto__": [
      Schema.Record({ key: Schema.String, value: Schema.Struct({ x: Schema.Int }) }),
      JSON.parse('{"__proto__":{"x":1}}'),
      ".__proto__",
    ],
  }
  for (const [what, [schema, value, field]] of Object.entries(refused)) {
    it.live(`${what} is refused before the commit, once, with step and field`, () =>
      Effect.gen(function* () {
        let calls = 0
        const workflow: AnyWorkflow = make()
          .step("make", { effects: [], output: schema, retry: { times: 3 } }, () => {
            calls++
            return value
          })
          .compile()
        const exit = yield* runOnce(workflow)
        expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
          error: { _tag: "RunFailed", step: "make", details: { tag: "InvalidValue" } },
        })
        expect(String(Exit.isFailure(exit) && (exit.cause as any).error.problem)).toContain(
          `output of step 'make', at ${field}`,
        )
        expect(calls).toBe(1)
        expect(({} as any).x).toBeUndefined()
      }),
    )
  }

  it.live("that a later step changes is unchanged for the steps after it", () =>
    Effect.gen(function* () {
      const workflow: AnyWorkflow = make()
        .step("make", { effects: [], output: Schema.mutable(Schema.Array(Schema.Number)) }, () => [1])
        .step("change", { effects: [], output: Schema.Number }, ({ input, results }: any) => {
          input.push("changed")
          results.make.push(2)
          return results.make.length
        })
        .step("look", { effects: [], output: Schema.parseJson() }, ({ input, results }: any) => [input, results.make])
        .output(Schema.parseJson(), ({ results }: any) => [results.change, results.look])
        .compile()
      expect(yield* runOnce(workflow, ["given"])).toEqual(Exit.succeed([2, [["given"], [1]]]))
    }),
  )

  it.live("that its own function keeps and changes afterwards is what was committed", () =>
    Effect.gen(function* () {
      const kept: Array<number> = [1]
      const workflow: AnyWorkflow = make()
        .step("make", { effects: [], output: Schema.Array(Schema.Number) }, () => kept)
        .step("look", { effects: [], output: Schema.Number }, ({ results }: any) => {
          kept.push(2)
          return results.make.length
        })
        .output(Schema.Number, ({ results }: any) => results.look)
        .compile()
      expect(yield* runOnce(workflow)).toEqual(Exit.succeed(1))
    }),
  )
})

function circle(): object {
  const object: Record<string, unknown> = {}
  object["self"] = object
  return object
}

describe("the results object", () => {
  const look = (check: (results: any) => void) =>
    Effect.gen(function* () {
      let problem: unknown = null
      const workflow: AnyWorkflow = make()
        .step("first", { effects: [], output: Schema.Number }, () => 1)
        .step("__proto__", { effects: [], output: Schema.String }, () => "own")
        .step("look", { effects: [], output: Schema.Null }, ({ results }: any) => {
          try {
            check(results)
          } catch (error) {
            problem = error
          }
          return null
        })
        .compile()
      expect(Exit.isSuccess(yield* runOnce(workflow))).toBe(true)
      if (problem !== null) throw problem
    })

  it.live("has the committed steps as its keys, and nothing else", () =>
    look((results) => {
      expect("first" in results).toBe(true)
      expect("look" in results).toBe(false)
      expect("toString" in results).toBe(false)
      expect(Object.keys(results)).toEqual(["first", "__proto__"])
      expect(results.constructor).toBeUndefined()
      expect(Object.hasOwn(results, "__proto__")).toBe(true)
    }),
  )

  it.live("can be spread, written as JSON and shown", () =>
    look((results) => {
      const spread = { ...results }
      expect(Object.entries(spread)).toEqual([
        ["first", 1],
        ["__proto__", "own"],
      ])
      expect(JSON.stringify(results)).toBe('{"first":1,"__proto__":"own"}')
      expect(inspect(results)).toBe("{ first: 1, ['__proto__']: 'own' }")
      const { first, ...rest } = results
      expect(first).toBe(1)
      expect(Object.keys(rest)).toEqual(["__proto__"])
    }),
  )

  it.live("gives a step named __proto__ as a result like any other", () =>
    look((results) => {
      expect(results["__proto__"]).toBe("own")
      expect(({} as any).own).toBeUndefined()
    }),
  )

  it.live("cannot be written to", () =>
    look((results) => {
      const writes: ReadonlyArray<() => unknown> = [
        () => (results.first = 2),
        () => (results.other = 2),
        () => delete results.first,
        () => Object.defineProperty(results, "x", { value: 1 }),
        () => Object.setPrototypeOf(results, Array.prototype),
        () => Object.freeze(results),
        () => Object.assign(results, { first: 3 }),
      ]
      for (const write of writes) expect(write).toThrow(TypeError)
      expect(results.first).toBe(1)
      expect(Object.keys(results)).toEqual(["first", "__proto__"])
    }),
  )
})

describe("a stored value that cannot be read", () => {
  it.live("parks the run before the step does anything, whatever the step makes of the exception", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      let effects = 0
      const workflowOf = (schema: any): AnyWorkflow =>
        make()
          .step("first", { effects: [], output: schema }, () => 1)
          .step("second", { effects: [], output: Schema.Number }, ({ results }: any) => {
            try {
              return results.first
            } catch {
              effects++
              return 0
            }
          })
          .output(Schema.Number, ({ results }: any) => results.second)
          .compile()
      const mortal = makeMortal(bench.store, (point, site) =>
        Effect.sync(() => {
          if (point === "afterCommit" && site.step === "first") mortal.kill()
        }),
      )
      yield* startDoomed(mortal, { workflows: [workflowOf(Schema.Number)] })
      const changed = workflowOf(Schema.Struct({ now: Schema.Number }))
      const exit = yield* Effect.gen(function* () {
        const handle = yield* Cairn.start(workflowOf(Schema.Number), null, { runId: "r" })
        yield* startWorker(bench.store, { workflows: [changed] })
        return yield* Effect.exit(handle.result)
      }).pipe(Effect.scoped, Effect.provide(storeLayer(bench.store)))
      expect(Exit.isFailure(exit) && exit.cause).toMatchObject({
        error: { _tag: "RunParked", reason: "IncompatibleCheckpoint", step: "first" },
      })
      const { steps } = (yield* bench.driver.load("default", "r"))!
      expect(steps.map(({ path }) => path).filter((path) => !path.startsWith(":"))).toEqual(["first"])
      expect(effects).toBe(1)
    }).pipe(Effect.withClock(makeVirtualClock()), Effect.provide(quiet)),
  )
})
