import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { Context, Effect, Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import {
  Effects,
  OnUnknown,
  Operation,
  Plan,
  planFormat,
  Workflow,
  type Diagnostic,
  type PlanStep,
} from "../../src/index.js"

const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })
class Model extends Context.Tag("Model")<Model, { readonly ask: Effect.Effect<string> }>() {}

const Charge = Operation.make("payments.charge", {
  payload: Schema.Struct({ customer: Schema.String, cents: Schema.Int }),
  success: Schema.Struct({ id: Schema.String }),
  onUnknown,
})
const Refund = Operation.make("payments.refund", { payload: Schema.Void, success: Schema.Void, onUnknown })
const Email = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String }),
  success: Schema.Void,
  onUnknown,
})
const Publish = Operation.make("cms.publish", { payload: Schema.Void, success: Schema.Void, onUnknown })

/** The builder as callers without types meet it. */
const untyped: any = Workflow
const Ops: any = Operation
const flow: any = Workflow.make("orders", { version: 1, input: Schema.Void })
const idle = { effects: [], output: Schema.Void }
const nothing = (): void => {}

const diagnosticsOf = (built: any): ReadonlyArray<Diagnostic> => built.compile().diagnostics
const messagesOf = (built: any): ReadonlyArray<string> => diagnosticsOf(built).map((d) => d.message)

describe("compile() says what the types say", () => {
  const typeTests = readFileSync(new URL("../types/rejected.tst.ts", import.meta.url), "utf8")

  // Each text is asserted whole by a type test as well: the test below looks it up there.
  const shared: ReadonlyArray<readonly [string, () => any, string]> = [
    [
      "two declared operations",
      () => flow.step("pay", { effects: [Charge, Email], output: Schema.Void }, nothing),
      "CRN101: step 'pay' has 2 external effects (payments.charge + mail.send); one step each, or Operation.oneOf if only one of them is performed",
    ],
    [
      "a list that is none",
      () => flow.step("pay", { effects: "all", output: Schema.Void }, nothing),
      "CRN101: effects of step 'pay' must be written out as a literal list (an array variable hides how many operations it holds); use 'as const'",
    ],
    [
      "a choice inside a choice",
      () => flow.perform("say", Ops.oneOf({ inner: Operation.oneOf({ mail: Email }) }), { payload: nothing }),
      "CRN101: case 'inner' of Operation.oneOf must be an operation made by Operation.make; list the operations of the inner choice instead",
    ],
    [
      "a name that is taken",
      () => flow.step("a", idle, nothing).step("a", idle, nothing),
      "CRN104: step name 'a' is already taken; every step of a scope has a name of its own",
    ],
    [
      "an output that is no JSON",
      () => flow.step("at", { effects: [], output: Schema.DateFromSelf }, nothing),
      "CRN105: output of step 'at' does not encode to JSON; use a schema whose encoded side is JSON, e.g. Schema.Date for Schema.DateFromSelf",
    ],
    [
      "a read beside an operation",
      () => flow.step("ask", { effects: [Effects.read(Model), Email], output: Schema.Void }, nothing),
      "CRN108: step 'ask' reads and performs 'mail.send'; after a crash the read would run again and disagree with what was sent; read in the step before",
    ],
  ]

  it.each(shared)("%s", (_, build, message) => {
    expect(messagesOf(build())[0]).toMatch(new RegExp(`^${message.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}`))
    expect(typeTests).toContain(JSON.stringify(message))
  })
})

describe("compile() finds what only callers without types can do", () => {
  it.each<readonly [string, () => any, RegExp]>([
    [
      "a transaction beside an operation",
      () => flow.step("pay", { effects: [Charge, Effects.transaction], output: Schema.Void }, nothing),
      /^CRN101: step 'pay' has 2 external effects \(payments.charge \+ transaction\)/,
    ],
    [
      "the same operation twice",
      () => flow.step("pay", { effects: [Charge, Charge], output: Schema.Void }, nothing),
      /^CRN101: step 'pay' has 2/,
    ],
    [
      "something that is no effect",
      () => flow.step("a", { effects: [Model], output: Schema.Void }, nothing),
      /^CRN103: step 'a' lists something in effects/,
    ],
    [
      "a hole in the list",
      () => flow.step("a", { effects: Object.assign(Array(2), { 1: Charge }), output: Schema.Void }, nothing),
      /^CRN103: step 'a' lists something/,
    ],
    [
      "a read of nothing",
      () => flow.step("a", { effects: [(Effects as any).read(null)], output: Schema.Void }, nothing),
      /^CRN103: step 'a' lists something/,
    ],
    ["an empty step name", () => flow.step("", idle, nothing), /^CRN104: the step name "" cannot be used: it is empty/],
    ["a step name with NUL", () => flow.step("a\0", idle, nothing), /^CRN104: the step name .* NUL character at 1/],
    [
      "half a surrogate pair in a name",
      () => flow.step("\ud800", idle, nothing),
      /^CRN104: the step name .* half of a surrogate pair/,
    ],
    [
      "a very long name",
      () => flow.step("x".repeat(300), idle, nothing),
      /^CRN104: the step name .* 300 characters, at most 255/,
    ],
    [
      "a name that is a symbol",
      () => flow.step(Symbol("s"), idle, nothing),
      /^CRN104: the step name .* expected a string, got symbol/,
    ],
    [
      "a workflow without a name",
      () => untyped.make(undefined, { version: 1, input: Schema.Void }),
      /^CRN104: the workflow's name .* expected a string, got undefined/,
    ],
    [
      "an operation without a name",
      () =>
        flow.perform("a", Ops.make("", { payload: Schema.Void, success: Schema.Void, onUnknown }), {
          payload: nothing,
        }),
      /^CRN104: the operation name "" cannot be used/,
    ],
    ["no output schema", () => flow.step("a", { effects: [] }, nothing), /^CRN105: output of step 'a' has no schema/],
    [
      "no payload schema",
      () => flow.perform("a", Ops.make("o", { success: Schema.Void, onUnknown }), { payload: nothing }),
      /^CRN105: payload of operation 'o' has no schema/,
    ],
    [
      "a failure that is no schema",
      () =>
        flow.perform("a", Ops.make("o", { payload: Schema.Void, success: Schema.Void, failure: 5, onUnknown }), {
          payload: nothing,
        }),
      /^CRN105: failure of operation 'o' has no schema/,
    ],
    [
      "a workflow failure that is no schema",
      () => untyped.make("w", { version: 1, input: Schema.Void, failure: 5 }),
      /^CRN105: failure of workflow 'w' has no schema/,
    ],
    ["no input schema", () => untyped.make("w", { version: 1 }), /^CRN105: input of workflow 'w' has no schema/],
    ["an output schema that is none", () => flow.output(5, nothing), /^CRN105: output of the workflow has no schema/],
    [
      "a compensation that is no JSON",
      () =>
        flow.perform("a", Charge, {
          payload: nothing,
          compensate: {
            operation: Ops.make("o", { payload: Schema.Void, success: Schema.BigIntFromSelf, onUnknown }),
            payload: nothing,
          },
        }),
      /^CRN105: success of operation 'o' does not encode to JSON/,
    ],
    [
      "a record that would lose undefined",
      () =>
        flow.step(
          "a",
          { effects: [], output: Schema.Record({ key: Schema.String, value: Schema.UndefinedOr(Schema.String) }) },
          nothing,
        ),
      /^CRN105: output of step 'a' .* \(\.\*: a key whose value is undefined/,
    ],
    ["no function to run", () => flow.step("a", idle), /^CRN107: step 'a' has no function to run/],
    ["no operation", () => flow.perform("a", null, { payload: nothing }), /^CRN107: step 'a' has no operation/],
    ["no payload function", () => flow.perform("a", Charge), /^CRN107: step 'a' has no payload/],
    [
      "half a compensation",
      () => flow.perform("a", Charge, { payload: nothing, compensate: { operation: Refund } }),
      /^CRN107: step 'a' has no complete compensate/,
    ],
    [
      "an output without a function",
      () => flow.output(Schema.Void),
      /^CRN107: the output of the workflow has no function/,
    ],
    [
      "a fragment that is none",
      () => flow.use({ kind: "fragment" }),
      /^CRN107: .use was given something that is no fragment/,
    ],
    [
      "a fragment whose function returns no flow",
      () => flow.use(untyped.fragment()(() => 5)),
      /^CRN107: .use was given something that is no fragment/,
    ],
    [
      "a choice of nothing",
      () => flow.perform("a", Operation.oneOf({}), { payload: nothing }),
      /^CRN107: Operation.oneOf lists no operation/,
    ],
    [
      "a choice of what are no operations",
      () => flow.perform("a", Ops.oneOf({ x: 5 }), { payload: nothing }),
      /^CRN101: case 'x' of Operation.oneOf must be an operation/,
    ],
    [
      "a choice of null",
      () => flow.perform("a", Ops.oneOf(null), { payload: nothing }),
      /^CRN107: Operation.oneOf lists no operation/,
    ],
    [
      "a version that is no whole number",
      () => untyped.make("w", { version: 1.5, input: Schema.Void }),
      /^CRN110: version of workflow 'w' must be a whole number from 1; got 1.5/,
    ],
    [
      "retry.times below zero",
      () => flow.step("a", { ...idle, retry: { times: -1 } }, nothing),
      /^CRN110: retry.times of step 'a' must be a whole number from 0; got -1/,
    ],
    ["retry: null", () => flow.step("a", { ...idle, retry: null }, nothing), /^CRN110: retry.times of step 'a'/],
    [
      "retry.when that is no function",
      () => flow.step("a", { ...idle, retry: { times: 1, when: true } }, nothing),
      /^CRN110: retry.when of step 'a' must be a function/,
    ],
    [
      "a delay that is no duration",
      () => flow.step("a", { ...idle, retry: { times: 1, delay: "soon" } }, nothing),
      /^CRN110: retry.delay of step 'a' must be a finite duration .* got "soon"/,
    ],
    [
      "a timeout of zero",
      () => flow.step("a", { ...idle, timeout: 0 }, nothing),
      /^CRN110: timeout of step 'a' must be a finite duration over zero; got 0/,
    ],
    [
      "an infinite timeout of an operation",
      () =>
        flow.perform("a", Ops.make("o", { payload: Schema.Void, success: Schema.Void, onUnknown, timeout: Infinity }), {
          payload: nothing,
        }),
      /^CRN110: timeout of operation 'o' must be a finite duration/,
    ],
    [
      "no policy",
      () => flow.perform("a", Ops.make("o", { payload: Schema.Void, success: Schema.Void }), { payload: nothing }),
      /^CRN110: onUnknown of operation 'o' must be a policy/,
    ],
    [
      "a policy without its window",
      () =>
        flow.perform(
          "a",
          Ops.make("o", { payload: Schema.Void, success: Schema.Void, onUnknown: (OnUnknown as any).retryWithKey() }),
          { payload: nothing },
        ),
      /^CRN110: onUnknown.keyWindow of operation 'o'/,
    ],
    ...(["checkFirst", "recordFirst"] as const).flatMap((policy) =>
      [{ maxSends: 0 }, { keyWindow: 0 }, { keyWindow: null }].map((limits): [string, () => any, RegExp] => [
        `${policy} with ${JSON.stringify(limits)}`,
        () =>
          flow.perform(
            "a",
            Ops.make("o", {
              payload: Schema.Void,
              success: Schema.Void,
              onUnknown: (OnUnknown as any)[policy](limits),
            }),
            { payload: nothing },
          ),
        /^CRN110: onUnknown\.(maxSends|keyWindow) of operation 'o'/,
      ]),
    ),
    [
      "onInvalid.then of another word",
      () => flow.step("a", { ...idle, onInvalid: { retries: 0, then: "ignore" } }, nothing),
      /^CRN110: onInvalid.then of step 'a' must be "review" or "fail"; got "ignore"/,
    ],
    [
      "a compensation without a policy",
      () =>
        flow.perform("a", Charge, {
          payload: nothing,
          compensate: { operation: Ops.make("o", { payload: Schema.Void, success: Schema.Void }), payload: nothing },
        }),
      /^CRN110: onUnknown of operation 'o'/,
    ],
  ])("%s", (_, build, message) => {
    const found = diagnosticsOf(build())
    expect(found).toHaveLength(1)
    expect(found[0]!.message).toMatch(message)
    expect(found[0]!.message.startsWith(`${found[0]!.code}: `)).toBe(true)
  })

  it("two operations of one name that say different things, and not two that say the same", () => {
    const make = (success: Schema.Schema<any, any>) => Ops.make("o", { payload: Schema.Void, success, onUnknown })
    const both = (a: unknown, b: unknown) =>
      flow.perform("a", a, { payload: nothing }).perform("b", b, { payload: nothing })
    expect(messagesOf(both(make(Schema.Void), make(Schema.String)))).toEqual([
      "CRN104: operation name 'o' stands for two different operations; their handlers could not be told apart, rename one",
    ])
    expect(messagesOf(both(make(Schema.String), make(Schema.String)))).toEqual([])
  })
})

describe("compile() tells everything at once, as values", () => {
  const broken = untyped
    .make("", { version: 0 })
    .step("a", { effects: [Charge, Email], output: Schema.Unknown, timeout: -1 })
    .step("a", { effects: null, output: null }, nothing)
    .perform("b", Ops.oneOf({}), {})
    .use(null)
    .output(Schema.DateFromSelf)
    .compile()

  it("with every code, in the order of checks and steps", () => {
    expect(broken.diagnostics.map((d: Diagnostic) => `${d.code} ${d.step}`)).toEqual([
      "CRN107 null", // .use(null)
      "CRN104 null", // the workflow's name
      "CRN104 a", // taken
      "CRN107 a", // no run
      "CRN107 b", // no payload
      "CRN107 null", // no function of the output
      "CRN101 a",
      "CRN101 a", // effects: null
      "CRN105 null", // input
      "CRN105 a",
      "CRN105 a",
      "CRN107 b", // a choice of nothing
      "CRN105 null", // output
      "CRN110 null", // version
      "CRN110 a", // timeout
    ])
  })

  it("as a typed error whose message lists them", () => {
    const error = Either.getOrThrow(Either.flip(broken.plan)) as { _tag: string; message: string }
    expect(error._tag).toBe("CompileError")
    expect(error.message.split("\n")).toHaveLength(1 + broken.diagnostics.length)
  })
})

describe("a plan", () => {
  interface Changes {
    readonly step?: string
    readonly effect?: string
    readonly field?: string
    readonly version?: number
    readonly times?: number
    readonly window?: string
  }
  const build = (changes: Changes = {}) => {
    const Send = Ops.make("mail.send", {
      payload: Schema.Struct({ to: Schema.String, body: Schema.String }),
      success: Schema.Struct({ id: Schema.String }),
      onUnknown: OnUnknown.retryWithKey({ keyWindow: (changes.window ?? "24 hours") as "24 hours" }),
    })
    return (
      untyped.make("mails", { version: changes.version ?? 1, input: Schema.Struct({ to: Schema.String }) }) as any
    )
      .step(
        changes.step ?? "text",
        {
          effects: [Effects.read(changes.effect ?? "model")],
          output: Schema.Struct({ [changes.field ?? "body"]: Schema.String, at: Schema.Date }),
          retry: { times: changes.times ?? 1 },
        },
        nothing,
      )
      .perform("send", Send, { payload: nothing, compensate: { operation: Refund, payload: nothing } })
      .output(Schema.Date, nothing)
      .compile()
  }
  const plan = (changes?: Changes): Plan => Either.getOrThrow(build(changes).plan)

  it("is plain JSON data", () => {
    expect(JSON.parse(JSON.stringify(plan()))).toStrictEqual(plan())
    expect(Object.getPrototypeOf(plan())).toBe(Object.prototype)
  })

  it("says its format, what it takes and gives as JSON Schema, and its steps with every default", () => {
    expect(plan()).toMatchObject({
      format: planFormat,
      workflow: "mails",
      version: 1,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      input: { type: "object", required: ["to"] },
      output: { type: "string" },
      failure: null,
      nodes: [
        {
          kind: "step",
          name: "text",
          path: "text",
          effects: [{ kind: "read", name: "model" }],
          operations: [],
          output: { type: "object", properties: { body: { type: "string" }, at: { type: "string" } } },
          timeoutMs: null,
          retry: { times: 1, delayMs: 1_000, maxDelayMs: 300_000 },
          onInvalid: { retries: 0, then: "fail" },
        },
        {
          kind: "perform",
          effects: [{ kind: "external", name: "mail.send" }],
          operations: [
            {
              name: "mail.send",
              case: null,
              timeoutMs: 30_000,
              onUnknown: { policy: "retryWithKey", keyWindowMs: 86_400_000 },
            },
          ],
          optional: false,
          settle: false,
          compensate: { path: "send/compensate", operations: [{ name: "payments.refund" }], retry: { times: 5 } },
        },
      ],
    })
  })

  it("has the same hash when it is built again", () => {
    expect(plan().hash).toBe(plan().hash)
  })

  it("has the same hash whatever the order of fields in a schema", () => {
    const of = (output: Schema.Schema<any, any>) =>
      (Either.getOrThrow(flow.step("a", { effects: [], output }, nothing).compile().plan) as Plan).hash
    expect(of(Schema.Struct({ a: Schema.String, b: Schema.Number }))).toBe(
      of(Schema.Struct({ b: Schema.Number, a: Schema.String })),
    )
  })

  it("has the hash of its canonical JSON, which names a plan in stored runs", () => {
    const canonical = (value: unknown): string => {
      if (typeof value !== "object" || value === null) return JSON.stringify(value)
      if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
      const members = Object.entries(value).map(([key, member]): [string, unknown] =>
        key === "required" && Array.isArray(member) ? [key, [...(member as Array<string>)].sort()] : [key, member],
      )
      members.sort(([a], [b]) => (a < b ? -1 : 1))
      return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`
    }
    const { hash, ...rest } = plan()
    expect(hash).toBe(createHash("sha256").update(canonical(rest)).digest("hex"))
    // That of an earlier build of this code: runs that it has begun are compared with it (X10).
    expect(hash).toBe("db1b10ad403fb51a70548289d73217155475fcab8a29a7c635ef677ca1931973")
  })

  it.each<readonly [string, Changes]>([
    ["a step's name", { step: "other" }],
    ["an effect", { effect: "web" }],
    ["a schema", { field: "text" }],
    ["the version", { version: 2 }],
    ["an option", { times: 2 }],
    ["an operation's policy", { window: "1 hour" }],
  ])("has another hash when %s changes", (_, changes) => {
    expect(plan(changes).hash).not.toBe(plan().hash)
  })

  it("lists each member of a choice with its case", () => {
    const choice = Operation.oneOf({ mail: Email, page: Publish })
    const { nodes } = Either.getOrThrow(flow.perform("say", choice, { payload: nothing }).compile().plan) as Plan
    expect((nodes[0] as PlanStep).operations.map(({ name, case: which }) => [which, name])).toEqual([
      ["mail", "mail.send"],
      ["page", "cms.publish"],
    ])
  })

  it("keeps odd names, escaped in the path", () => {
    const names = ["__proto__", "constructor", "a/b", "a~b", "größe", " "]
    const built = names.reduce((so, name) => so.step(name, idle, nothing), flow).compile()
    const { nodes } = Either.getOrThrow(built.plan) as Plan
    expect(nodes.map(({ name }) => name)).toEqual(names)
    expect(new Set(nodes.map(({ path }) => path)).size).toBe(names.length)
    expect(JSON.parse(JSON.stringify(nodes))).toStrictEqual(nodes)
  })

  it("of 1,000 steps is compiled in a moment", () => {
    const output = Schema.Struct({ a: Schema.String, b: Schema.Number })
    let long = flow
    for (let i = 0; i < 1_000; i++) long = long.step(`s${i}`, { effects: [], output }, nothing)
    const began = performance.now()
    expect((Either.getOrThrow(long.compile().plan) as Plan).nodes).toHaveLength(1_000)
    expect(performance.now() - began).toBeLessThan(5_000)
  })
})
