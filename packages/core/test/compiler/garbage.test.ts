/** Whatever a caller without types puts together, `compile()` gives diagnostics or a plan, and throws nothing. */
import { Effect, Either, Schema } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { z } from "zod"
import { compile, diagnosticCodes, Effects, OnUnknown, Operation, Plan, Workflow } from "../../src/index.js"

const onUnknown = OnUnknown.retryWithKey({ keyWindow: "1 hour" })
const Send = Operation.make("mail.send", { payload: Schema.String, success: Schema.Void, onUnknown })
const fail = (): never => {
  throw new Error("unreadable")
}
/** Throws when it is printed, but not when it is only looked at. */
const hostile = { toJSON: fail, toString: fail, valueOf: fail, [Symbol.toPrimitive]: fail }
/** Throws at the first look. */
const unreadable = new Proxy({}, { get: fail, ownKeys: fail, getPrototypeOf: fail })

const junk = fc.oneof(
  fc.anything(),
  // fast-check prints its counterexamples, so the hostile ones come out of a thunk.
  fc.constant(null).map(() => hostile),
  fc.constantFrom<unknown>(
    null,
    undefined,
    "",
    NaN,
    0,
    -1,
    Symbol("s"),
    1n,
    Object.create(null),
    [],
    {},
    () => 1,
    [null],
    new Map(),
  ),
)
const name = fc.oneof(
  fc.constantFrom<unknown>(
    "a",
    "b",
    "__proto__",
    "constructor",
    "",
    "\0",
    "\ud800",
    "x".repeat(300),
    "x".repeat(100_000),
    "a/b",
  ),
  junk,
)
const schema = fc.oneof(
  fc.constantFrom<unknown>(
    Schema.Void,
    Schema.String,
    Schema.DateFromSelf,
    Schema.Unknown,
    z.string(),
    z.date(),
    Schema.Struct({ a: Schema.Date }),
  ),
  fc.constant({ "~standard": { validate: 5 } }),
  fc.constant({ "~standard": { version: 1, vendor: "x", validate: () => null, jsonSchema: { output: () => 5 } } }),
  junk,
)
const operation = fc.oneof(
  fc.constant(Send),
  fc
    .record({
      name,
      payload: schema,
      success: schema,
      failure: schema,
      onUnknown: fc.oneof(fc.constant(onUnknown), junk),
      timeout: junk,
    })
    .map(({ name, ...definition }) => (Operation as any).make(name, definition)),
  fc.dictionary(fc.string(), fc.oneof(fc.constant(Send), junk)).map((members) => (Operation as any).oneOf(members)),
  junk,
)
const effects = fc.oneof(
  fc.array(fc.oneof(fc.constant(Effects.read("r")), fc.constant(Effects.transaction), operation, junk), {
    maxLength: 3,
  }),
  junk,
)
const retry = fc.oneof(
  fc.constant(undefined),
  fc.record({ times: junk, delay: junk, maxDelay: junk, when: junk }),
  junk,
)
const run = fc.oneof(
  fc.constant(() => 1),
  junk,
)
const spec = fc.oneof(
  fc.record({ effects, output: schema, retry, timeout: junk, onInvalid: junk }, { requiredKeys: [] }),
  junk,
)
const performSpec = fc.oneof(
  fc.record(
    {
      payload: run,
      optional: junk,
      settle: junk,
      compensate: fc.oneof(fc.record({ operation, payload: run }), junk),
      retry,
    },
    { requiredKeys: [] },
  ),
  junk,
)

type Call = (flow: any) => any
const plainCall: fc.Arbitrary<Call> = fc.oneof(
  fc.tuple(name, spec, run).map(
    ([n, s, r]): Call =>
      (flow) =>
        flow.step(n, s, r),
  ),
  fc.tuple(name, operation, performSpec).map(
    ([n, o, s]): Call =>
      (flow) =>
        flow.perform(n, o, s),
  ),
  fc.oneof(junk, fc.constant({ nodes: [] })).map(
    (fragment): Call =>
      (flow) =>
        flow.use(fragment),
  ),
)
/** A function that builds a body, more or less. */
const build: fc.Arbitrary<unknown> = fc.oneof(
  fc.array(plainCall, { maxLength: 2 }).map((calls) => (flow: any) => calls.reduce((so, add) => add(so), flow)),
  fc.constant((flow: any) => flow.branch("inner", () => "a", { a: (f: any) => f.end("end", () => 1) })),
  run,
)
const builds = fc.oneof(fc.dictionary(fc.string(), build), junk)
const controlSpec = fc.oneof(
  fc.record(
    {
      ...{ state: schema, initial: run, maxIterations: fc.oneof(fc.constant(2), junk), onLimit: junk },
      ...{ item: schema, items: run, key: run, concurrency: junk, onFailure: junk },
      ...{ schema, signal: name, timeout: junk, onTimeout: fc.oneof(fc.constant("fail"), junk) },
      ...{ decision: schema, show: run, deadline: fc.oneof(fc.constant("1 day"), junk), onReject: junk, who: junk },
      ...{ escalate: fc.oneof(fc.array(fc.oneof(fc.record({ after: junk, who: junk }), junk)), junk), validFor: junk },
      ...{ input: run, settle: junk },
    },
    { requiredKeys: [] },
  ),
  junk,
)
const child = fc.oneof(
  fc
    .array(plainCall, { maxLength: 2 })
    .map((calls) =>
      calls.reduce((so, add) => add(so), (Workflow as any).make("child", { version: 1, input: Schema.Void })).compile(),
    ),
  junk,
)
const controlCall: fc.Arbitrary<Call> = fc
  .tuple(
    fc.constantFrom(
      "branch",
      "match",
      "loop",
      "forEach",
      "parallel",
      "sleep",
      "sleepUntil",
      "signal",
      "review",
      "child",
      "fail",
      "end",
    ),
    name,
    fc.record({ spec: controlSpec, run, build, builds, child, junk }),
  )
  .map(([kind, n, given]): Call => {
    const { build, builds, child, junk, run, spec } = given
    const args: Readonly<Record<string, ReadonlyArray<unknown>>> = {
      branch: [run, builds],
      match: [junk, run, builds],
      loop: [spec, build, run],
      forEach: [spec, build],
      parallel: [builds],
      signal: [spec],
      review: [spec],
      child: [child, spec],
      fail: [run],
      end: [run],
    }
    return (flow) => {
      try {
        return flow[kind](n, ...(args[kind] ?? [junk]))
      } catch (thrown) {
        // A body is the caller's own function: what it throws is thrown where it is given.
        expect((thrown as Error).message).toBe("unreadable")
        return flow
      }
    }
  })
const call: fc.Arbitrary<Call> = fc.oneof(plainCall, controlCall)
const compact = fc.oneof(fc.record({ effects, run, retry, timeout: junk }, { requiredKeys: [] }), run)
const window = fc.oneof(
  fc.constant(undefined),
  fc.record({ schema, initial: junk, maxBytes: fc.oneof(fc.constant(9), junk), compact }, { requiredKeys: [] }),
  junk,
)
const options = fc.oneof(
  fc.record({ version: junk, input: schema, failure: schema, window }, { requiredKeys: [] }),
  junk,
)

const hold = (workflow: { readonly plan: Either.Either<Plan, unknown>; readonly diagnostics: ReadonlyArray<any> }) => {
  if (Either.isRight(workflow.plan)) {
    expect(workflow.diagnostics).toEqual([])
    expect(JSON.parse(JSON.stringify(workflow.plan.right))).toStrictEqual(workflow.plan.right)
    return
  }
  expect(workflow.diagnostics.length).toBeGreaterThan(0)
  for (const { code, message, step } of workflow.diagnostics) {
    expect(diagnosticCodes).toHaveProperty(code)
    expect(message.startsWith(`${code}: `)).toBe(true)
    expect(step === null || typeof step === "string").toBe(true)
  }
  expect((workflow.plan.left as Error).message).toContain("problem")
}

describe("compile() on garbage", () => {
  it("through the builder", () => {
    fc.assert(
      fc.property(
        name,
        options,
        fc.array(call, { maxLength: 5 }),
        fc.option(fc.tuple(schema, run)),
        (n, o, calls, out) => {
          const built = calls.reduce((flow, add) => add(flow), (Workflow as any).make(n, o))
          hold(out === null ? built.compile() : built.output(...out).compile())
        },
      ),
      { numRuns: 1_500 },
    )
  })

  it("through Plan.make", () => {
    const step = fc.oneof(
      fc.tuple(name, spec, run).map((args) => (Plan as any).step(...args)),
      fc.tuple(name, operation, performSpec).map((args) => (Plan as any).perform(...args)),
      junk,
    )
    fc.assert(
      fc.property(name, options, fc.oneof(fc.array(step, { maxLength: 4 }), junk), junk, (n, o, steps, output) => {
        hold((Plan as any).make(n, typeof o === "object" ? { ...o, steps, output } : o))
      }),
      { numRuns: 1_000 },
    )
  })

  it("through compile itself", () => {
    fc.assert(
      fc.property(junk, (definition) => {
        expect(Either.isLeft(compile(definition as never))).toBe(true)
      }),
      { numRuns: 500 },
    )
  })

  it("that throws at the first look", () => {
    expect(Either.isLeft(compile(unreadable as never))).toBe(true)
    const flow = (Workflow as any).make("w", { version: 1, input: Schema.Void })
    for (const part of [unreadable, hostile]) {
      const workflows = [
        flow.step(part, { effects: [], output: Schema.Void }, () => 1).compile(),
        flow.step("a", { effects: part, output: Schema.Void }, () => 1).compile(),
        flow.step("a", { effects: [part], output: Schema.Void }, () => 1).compile(),
        flow.step("a", { effects: [], output: part }, () => 1).compile(),
        flow.step("a", { effects: [], output: Schema.Void, retry: part }, () => 1).compile(),
        flow.branch("a", part, { a: (f: any) => f }).compile(),
        flow.branch("a", () => "a", { a: () => part }).compile(),
        flow
          .loop(
            "a",
            { state: part, initial: () => 1, maxIterations: part },
            (f: any) => f,
            () => 1,
          )
          .compile(),
        flow.sleep("a", part).compile(),
        flow.sleepUntil("a", part).compile(),
        flow.signal("a", { schema: part }).compile(),
        flow.review("a", { decision: Schema.Void, show: () => 1, deadline: part, escalate: [part] }).compile(),
        flow.child("a", part, { input: () => 1 }).compile(),
        flow.fail("a", part).compile(),
        flow.perform("a", part, { payload: () => 1 }).compile(),
        flow.output(part, () => 1).compile(),
        ...[
          part,
          { schema: part },
          { schema: Schema.String, maxBytes: part },
          { schema: Schema.String, compact: part },
          { schema: Schema.String, compact: { effects: part, run: () => "" } },
          { schema: Schema.String, compact: { effects: [], run: () => "", retry: part } },
        ].map((window) => (Workflow as any).make("w", { version: 1, input: Schema.Void, window }).compile()),
      ]
      for (const workflow of workflows) {
        expect(Either.isLeft(workflow.plan)).toBe(true)
        hold(workflow)
      }
    }
  })

  it("leaves no trace on Object.prototype", () => {
    const flow = (Workflow as any).make("__proto__", { version: 1, input: Schema.Void })
    const built = flow.step("__proto__", { effects: [], output: Schema.Void }, () => Effect.void).compile()
    expect(built.diagnostics).toEqual([])
    expect(Object.keys(Object.prototype)).toEqual([])
  })
})
