/** What `compile()` says of branches, loops, lists, waits, children and ends, for callers without types; and their plans. */
import { readFileSync } from "node:fs"
import { Duration, Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { Effects, OnUnknown, Operation, Workflow, type Diagnostic, type PlanNode } from "../../src/index.js"
import { compensationPath, isCompensationPath } from "../../src/dsl/internal/compensation.js"

const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })
const Send = Operation.make("mail.send", { payload: Schema.String, success: Schema.Void, onUnknown })
const Undo = Operation.make("mail.recall", { payload: Schema.Void, success: Schema.Void, onUnknown })

/** The builder as callers without types meet it. */
const make: any = Workflow.make
const flow: any = make("orders", { version: 1, input: Schema.Void, failure: Schema.String })
const idle = { effects: [], output: Schema.Void }
const nothing = (): void => {}
const same = (f: any) => f
const loopSpec = { state: Schema.Number, initial: () => 1, maxIterations: 3 }
const next = () => ({ done: true, state: 1 })
const listSpec = { items: () => [], key: (item: string) => item }
const reviewSpec = { decision: Schema.Void, show: () => 1, deadline: "2 days", onReject: "fail", onTimeout: "fail" }

const diagnosticsOf = (built: any): ReadonlyArray<Diagnostic> => built.compile().diagnostics
const messagesOf = (built: any): ReadonlyArray<string> => diagnosticsOf(built).map((d) => d.message)

/** The five ways into a body, and one through two of them. */
const bodies: ReadonlyArray<readonly [string, (build: (f: any) => any) => any]> = [
  ["a case of a branch", (build) => flow.branch("n", () => "a", { other: same, a: build })],
  ["a case of a match", (build) => flow.match("n", "t", () => ({ t: "a" }), { a: build })],
  ["an arm", (build) => flow.parallel("n", { a: build, other: same })],
  ["a turn", (build) => flow.loop("n", loopSpec, build, next)],
  ["an item", (build) => flow.forEach("n", listSpec, build)],
  [
    "a turn in an item in a case",
    (build) =>
      flow.branch("n", () => "a", {
        a: (f: any) => f.forEach("list", listSpec, (g: any) => g.loop("turns", loopSpec, build, next)),
      }),
  ],
]

const wrongSteps: ReadonlyArray<readonly [string, (f: any) => any, RegExp]> = [
  ["effects", (f) => f.step("x", { effects: [Send, Undo], output: Schema.Void }, nothing), /^CRN101: step 'x'/],
  ["unknown effects", (f) => f.step("x", { effects: [5], output: Schema.Void }, nothing), /^CRN103: step 'x'/],
  ["names", (f) => f.step("x", idle, nothing).step("x", idle, nothing), /^CRN104: step name 'x' is already taken/],
  ["the name of the node around it", (f) => f.step("n", idle, nothing), /^CRN104: step name 'n' is already taken/],
  [
    "operations of one name",
    (f) =>
      f
        .perform("x", Send, { payload: nothing })
        .perform("y", Operation.make("mail.send", { payload: Schema.Number, success: Schema.Void, onUnknown }), {
          payload: nothing,
        }),
    /^CRN104: operation name 'mail.send' stands for two/,
  ],
  ["schemas", (f) => f.step("x", { effects: [], output: Schema.DateFromSelf }, nothing), /^CRN105: output of step 'x'/],
  ["functions", (f) => f.step("x", idle), /^CRN107: step 'x' has no function to run/],
  [
    "reads",
    (f) => f.step("x", { effects: [Effects.read("r"), Send], output: Schema.Void }, nothing),
    /^CRN108: step 'x' reads and performs/,
  ],
  ["options", (f) => f.step("x", { ...idle, timeout: 0 }, nothing), /^CRN110: timeout of step 'x'/],
  ["reach", (f) => f.fail("x", () => "").step("y", idle, nothing), /^CRN111: nothing after 'x' is reached/],
  ["bodies", (f) => f.branch("x", () => "a", { a: () => 5 }), /^CRN107: case 'a' of 'x' gives no flow/],
]

describe("compile() walks into every body", () => {
  it.each(
    bodies.flatMap(([where, put]) =>
      wrongSteps.map(([what, wrong, message]) => [what, where, put, wrong, message] as const),
    ),
  )("%s in %s", (_, __, put, wrong, message) => {
    const found = messagesOf(put(wrong))
    expect(found).toEqual([expect.stringMatching(message)])
  })

  it.each(bodies)("and has nothing to say of a body that is right: %s", (_, put) => {
    const right = (f: any) =>
      f
        .step("x", idle, nothing)
        .perform("y", Send, { payload: () => "" })
        .sleep("z", "1 day")
    expect(messagesOf(put(right))).toEqual([])
  })
})

describe("names of a scope", () => {
  it("a body may not repeat a name that is seen from it, however far outside", () => {
    const inside = flow
      .step("before", idle, nothing)
      .parallel("p", { a: (f: any) => f.forEach("list", listSpec, (g: any) => g.sleep("before", 1)) })
    expect(messagesOf(inside)).toEqual([
      "CRN104: step name 'before' is already taken; every step of a scope has a name of its own",
    ])
  })

  it("cases and arms do not see each other, and what follows sees neither", () => {
    const built = flow
      .branch("b", () => "a", { a: (f: any) => f.step("x", idle, nothing), b: (f: any) => f.step("x", idle, nothing) })
      .parallel("p", { a: (f: any) => f.step("x", idle, nothing), b: (f: any) => f.step("x", idle, nothing) })
      .step("x", idle, nothing)
    expect(messagesOf(built)).toEqual([])
  })

  it("a name without a result is taken as well", () => {
    for (const built of [
      flow.sleep("x", 1).sleepUntil("x", new Date()),
      flow.signal("x", { schema: Schema.Void }).review("x", reviewSpec),
      flow.sleep("x", 1).end("x", nothing),
      flow.sleep("x", 1).fail("x", () => ""),
    ]) {
      expect(messagesOf(built)).toEqual([expect.stringMatching(/^CRN104: step name 'x' is already taken/)])
    }
  })

  it.each<readonly [string, any, RegExp]>([
    ["an empty case", flow.branch("b", () => "", { "": same }), /^CRN104: the case name "" cannot be used/],
    ["a case with NUL", flow.branch("b", () => "", { "a\0": same }), /^CRN104: the case name .* NUL/],
    ["an arm with half a surrogate pair", flow.parallel("b", { "\ud800": same }), /^CRN104: the case name .* half of/],
    ["a case of a long name", flow.branch("b", () => "", { ["x".repeat(256)]: same }), /^CRN104: the case name/],
    ["an empty signal", flow.signal("s", { schema: Schema.Void, signal: "" }), /^CRN104: the signal name "" cannot/],
    ["a signal that is a number", flow.signal("s", { schema: Schema.Void, signal: 5 }), /^CRN104: the signal name/],
    ["a node without a name", flow.sleep(undefined, 1), /^CRN104: the step name/],
  ])("%s", (_, built, message) => {
    expect(messagesOf(built)).toEqual([expect.stringMatching(message)])
  })
})

describe("CRN105: what is stored has a schema", () => {
  it.each<readonly [string, any, RegExp]>([
    [
      "a state",
      flow.loop("l", { ...loopSpec, state: Schema.DateFromSelf }, same, next),
      /^CRN105: state of loop 'l' does not/,
    ],
    [
      "no state",
      flow.loop("l", { ...loopSpec, state: undefined }, same, next),
      /^CRN105: state of loop 'l' has no schema/,
    ],
    [
      "an item",
      flow.forEach("e", { ...listSpec, item: Schema.BigIntFromSelf }, same),
      /^CRN105: item of forEach 'e' does not/,
    ],
    [
      "an item's schema that is none",
      flow.forEach("e", { ...listSpec, item: 5 }, same),
      /^CRN105: item of forEach 'e' has no/,
    ],
    ["a payload", flow.signal("s", { schema: Schema.DateFromSelf }), /^CRN105: payload of signal 's' does not/],
    ["no payload", flow.signal("s"), /^CRN105: payload of signal 's' has no schema/],
    [
      "a decision",
      flow.review("r", { ...reviewSpec, decision: Schema.Unknown }),
      /^CRN105: decision of review 'r' does not/,
    ],
    ["no decision", flow.review("r", { ...reviewSpec, decision: null }), /^CRN105: decision of review 'r' has no/],
  ])("%s", (_, built, message) => {
    expect(messagesOf(built)).toEqual([expect.stringMatching(message)])
  })
})

describe("CRN107: every part is there", () => {
  const child = make("child", { version: 1, input: Schema.Void }).compile()
  const input = nothing

  it.each<readonly [string, any, RegExp]>([
    ["no choice", flow.branch("b", undefined, { a: same }), /^CRN107: step 'b' has no on;/],
    ["no cases", flow.branch("b", () => "a"), /^CRN107: 'b' has no case; give an object with a function for each/],
    ["cases of nothing", flow.branch("b", () => "a", {}), /^CRN107: 'b' has no case/],
    ["no arms", flow.parallel("p", null), /^CRN107: 'p' has no arm/],
    ["a case that is no function", flow.branch("b", () => "a", { a: 5 }), /^CRN107: case 'a' of 'b' gives no flow/],
    [
      "a case that gives nothing",
      flow.branch("b", () => "a", { a: nothing }),
      /^CRN107: case 'a' of 'b' gives no flow/,
    ],
    [
      "an arm that gives a closed workflow",
      flow.parallel("p", { a: (f: any) => f.output(Schema.Void, nothing) }),
      /^CRN107: arm 'a' of 'p' gives no flow/,
    ],
    [
      "an arm that gives the flow around it",
      flow.parallel("p", { a: () => flow }),
      /^CRN107: arm 'a' of 'p' gives no flow/,
    ],
    ["no tag", flow.match("m", undefined, nothing, { a: same }), /^CRN107: step 'm' has no tag/],
    ["no value", flow.match("m", "t", 5, { a: same }), /^CRN107: step 'm' has no value/],
    ["no body", flow.loop("l", loopSpec, undefined, next), /^CRN107: the body of 'l' gives no flow/],
    ["a body that gives nothing", flow.forEach("e", listSpec, nothing), /^CRN107: the body of 'e' gives no flow/],
    ["no first state", flow.loop("l", { ...loopSpec, initial: 1 }, same, next), /^CRN107: step 'l' has no initial/],
    ["no next", flow.loop("l", loopSpec, same), /^CRN107: step 'l' has no next/],
    ["no items", flow.forEach("e", { ...listSpec, items: [] }, same), /^CRN107: step 'e' has no items/],
    ["no key", flow.forEach("e", { ...listSpec, key: "id" }, same), /^CRN107: step 'e' has no key/],
    ["a timeout alone", flow.signal("s", { schema: Schema.Void, timeout: 1 }), /^CRN107: step 's' has no onTimeout/],
    [
      "an onTimeout alone",
      flow.signal("s", { schema: Schema.Void, onTimeout: "fail" }),
      /^CRN107: step 's' has no timeout/,
    ],
    ["nothing to show", flow.review("r", { ...reviewSpec, show: undefined }), /^CRN107: step 'r' has no show/],
    [
      "no child",
      flow.child("c", undefined, { input }),
      /^CRN107: step 'c' has no workflow; give what .compile\(\) gave/,
    ],
    ["a child that is not compiled", flow.child("c", flow, { input }), /^CRN107: step 'c' has no workflow/],
    ["no input for a child", flow.child("c", child), /^CRN107: step 'c' has no input/],
    ["no failure", flow.fail("f"), /^CRN107: step 'f' has no failure/],
    ["no output of an end", flow.end("e", 5), /^CRN107: step 'e' has no output/],
  ])("%s", (_, built, message) => {
    expect(messagesOf(built)).toEqual([expect.stringMatching(message)])
  })

  it("a failure that the workflow does not declare, in the words of the types", () => {
    const message =
      "CRN107: 'no' fails the run, and the workflow declares no failure; add failure: <schema> to Workflow.make"
    const plain = make("plain", { version: 1, input: Schema.Void })
    expect(messagesOf(plain.parallel("p", { a: (f: any) => f.fail("no", () => "") }))).toEqual([message])
    expect(readFileSync(new URL("../types/controlRejected.tst.ts", import.meta.url), "utf8")).toContain(message)
  })

  it("what is wrong in a fragment is told of the workflow that uses it", () => {
    const fragment = (Workflow as any).fragment()((f: any) => f.branch("b", () => "a", { a: 5 }))
    expect(messagesOf(flow.use(fragment))).toEqual([expect.stringMatching(/^CRN107: case 'a' of 'b' gives no flow/)])
  })

  it("a body is built once, when its node is added", () => {
    let built = 0
    const once = flow.parallel("p", { a: (f: any) => (built++, f.step("x", idle, nothing)) })
    once.compile()
    once.step("y", idle, nothing).compile()
    expect(built).toBe(1)
  })
})

describe("a child that does not compile", () => {
  const broken = make("bro$ken $1", { version: 1, input: Schema.DateFromSelf }).step("x", idle)

  it("is a problem of its parent, once for each of its own, and named", () => {
    const found = diagnosticsOf(
      flow.parallel("p", { a: (f: any) => f.child("bill", broken.compile(), { input: nothing }) }),
    )
    expect(found.map(({ code, step }) => [code, step])).toEqual([
      ["CRN107", "bill"],
      ["CRN105", "bill"],
    ])
    expect(found[0]!.message).toBe(
      "CRN107: in child workflow 'bro$ken $1': step 'x' has no function to run; give it as the third argument",
    )
  })

  it("through a child that has it as a child", () => {
    const middle = make("middle", { version: 1, input: Schema.Void }).child("inner", broken.compile(), {
      input: nothing,
    })
    expect(messagesOf(flow.child("outer", middle.compile(), { input: nothing }))[0]).toMatch(
      /^CRN107: in child workflow 'middle': in child workflow 'bro\$ken \$1': step 'x'/,
    )
  })
})

describe("CRN110: options are in their range", () => {
  const loop = (spec: object) => flow.loop("l", { ...loopSpec, ...spec }, same, next)
  const list = (spec: object) => flow.forEach("e", { ...listSpec, ...spec }, same)
  const signal = (spec: object) => flow.signal("s", { schema: Schema.Void, ...spec })
  const review = (spec: object) => flow.review("r", { ...reviewSpec, ...spec })

  it.each<readonly [string, any, RegExp]>([
    [
      "no limit",
      loop({ maxIterations: undefined }),
      /maxIterations of step 'l' must be a whole number from 1; got undefined$/,
    ],
    ["a limit of zero", loop({ maxIterations: 0 }), /maxIterations of step 'l'/],
    ["an endless limit", loop({ maxIterations: Infinity }), /maxIterations of step 'l'/],
    ["a limit that is no whole number", loop({ maxIterations: 1.5 }), /maxIterations of step 'l'/],
    [
      "onLimit of another word",
      loop({ onLimit: "continue" }),
      /onLimit of step 'l' must be "fail" or "stop"; got "continue"$/,
    ],
    [
      "no concurrency",
      list({ concurrency: 0 }),
      /concurrency of step 'e' must be a whole number from 1 to 10000; got 0$/,
    ],
    ["too much of it", list({ concurrency: 10_001 }), /concurrency of step 'e'/],
    ["endless concurrency", list({ concurrency: Infinity }), /concurrency of step 'e'/],
    ["onFailure of another word", list({ onFailure: "ignore" }), /onFailure of step 'e' must be "stop" or "collect"/],
    [
      "a sleep below zero",
      flow.sleep("z", -1),
      /the duration of step 'z' must be a finite duration that is not negative; got -1$/,
    ],
    ["an endless sleep", flow.sleep("z", "Infinity"), /the duration of step 'z'/],
    ["a sleep of nothing", flow.sleep("z"), /the duration of step 'z'/],
    ["a sleep of a word", flow.sleep("z", "soon"), /the duration of step 'z'.*got "soon"$/],
    ["a time that is none", flow.sleepUntil("z", new Date(Number.NaN)), /the time of step 'z' must be a valid Date/],
    ["a time that is a number", flow.sleepUntil("z", 5), /the time of step 'z' must be a valid Date; got 5$/],
    [
      "a signal's timeout of zero",
      signal({ timeout: 0, onTimeout: "fail" }),
      /timeout of step 's' must be a finite duration over zero/,
    ],
    ["an endless one", signal({ timeout: Infinity, onTimeout: "fail" }), /timeout of step 's'/],
    [
      "onTimeout of another word",
      signal({ timeout: 1, onTimeout: "reject" }),
      /onTimeout of step 's' must be "fail" or "continue"/,
    ],
    ["no deadline", review({ deadline: undefined }), /deadline of step 'r' must be a finite duration over zero/],
    ["a deadline of zero", review({ deadline: 0 }), /deadline of step 'r'/],
    ["an endless deadline", review({ deadline: Duration.infinity }), /deadline of step 'r'/],
    [
      "no onReject",
      review({ onReject: undefined }),
      /onReject of step 'r' must be "fail" or "continue"; got undefined$/,
    ],
    [
      "no onTimeout",
      review({ onTimeout: undefined }),
      /onTimeout of step 'r' must be "fail" or "reject"; got undefined$/,
    ],
    ["who that is nobody", review({ who: "" }), /who of step 'r' must be a name; got ""$/],
    ["an approval that never holds", review({ validFor: 0 }), /validFor of step 'r'/],
    [
      "escalations that are no list",
      review({ escalate: "cfo" }),
      /escalate of step 'r' must be a list of \{ after, who \}/,
    ],
    [
      "an escalation to nobody",
      review({ escalate: [{ after: 1 }] }),
      /escalate\[0\].who of step 'r' must be a name; got undefined$/,
    ],
    [
      "an escalation at once",
      review({ escalate: [{ after: 0, who: "a" }] }),
      /escalate\[0\].after of step 'r' must be a finite duration over/,
    ],
    [
      "escalations that do not ascend",
      review({
        escalate: [
          { after: "2 hours", who: "a" },
          { after: "2 hours", who: "b" },
        ],
      }),
      /escalate\[1\].after of step 'r' must be longer than the one before; got "2 hours"$/,
    ],
    [
      "an escalation after the deadline",
      review({
        escalate: [
          { after: "1 day", who: "a" },
          { after: "2 days", who: "b" },
        ],
      }),
      /escalate\[1\].after of step 'r' must be shorter than the deadline; got "2 days"$/,
    ],
  ])("%s", (_, built, message) => {
    expect(diagnosticsOf(built)).toEqual([
      { code: "CRN110", step: expect.any(String) as string, message: expect.stringMatching(message) as string },
    ])
  })

  it("the edges are in it", () => {
    for (const built of [
      loop({ maxIterations: 1, onLimit: "stop" }),
      list({ concurrency: 10_000, onFailure: "collect" }),
      list({ concurrency: 1 }),
      flow.sleep("z", 0),
      flow.sleep("z", nothing),
      flow.sleepUntil("z", new Date(0)),
      flow.sleepUntil("z", nothing),
      signal({ timeout: "1 millis", onTimeout: "continue" }),
      review({ onReject: "continue", onTimeout: "reject", validFor: "1 hour", who: "treasury" }),
      review({
        escalate: [
          { after: "1 hour", who: "a" },
          { after: "47 hours", who: "b" },
        ],
      }),
    ]) {
      expect(messagesOf(built)).toEqual([])
    }
  })
})

describe("CRN111: every step can be reached", () => {
  const stop = (f: any) => f.fail("no", () => "")

  it.each<readonly [string, any, string]>([
    ["after a fail", stop(flow).step("x", idle, nothing), "no"],
    ["after an end", flow.end("stop", nothing).sleep("x", 1), "stop"],
    [
      "after a branch that always stops",
      flow.branch("b", () => "a", { a: stop, b: (f: any) => f.end("e", nothing) }).sleep("x", 1),
      "b",
    ],
    ["after a match that always stops", flow.match("m", "t", nothing, { a: stop }).sleep("x", 1), "m"],
    ["after a parallel with an arm that stops", flow.parallel("p", { a: stop, b: same }).sleep("x", 1), "p"],
    ["after a loop whose turn stops", flow.loop("l", loopSpec, stop, next).sleep("x", 1), "l"],
    ["in a case", flow.branch("b", () => "a", { a: (f: any) => stop(f).sleep("x", 1), b: same }), "no"],
  ])("%s", (_, built, after) => {
    expect(diagnosticsOf(built)).toEqual([
      {
        code: "CRN111",
        step: "x",
        message: `CRN111: nothing after '${after}' is reached, for it ends every run that comes so far; move it before, or into a branch`,
      },
    ])
  })

  it("and is, after what may go on", () => {
    for (const built of [
      flow.branch("b", () => "a", { a: stop, b: same }).sleep("x", 1),
      flow.forEach("e", listSpec, stop).sleep("x", 1),
      flow.parallel("p", { a: same }).sleep("x", 1),
      stop(flow.sleep("x", 1)),
    ]) {
      expect(messagesOf(built)).toEqual([])
    }
  })
})

describe("the plan", () => {
  const child = make("bill", { version: 3, input: Schema.Void }).compile()
  const mail = { payload: () => "", compensate: { operation: Undo, payload: nothing } }
  interface Changes {
    readonly maxIterations?: number
    readonly concurrency?: number
    readonly case?: string
    readonly state?: Schema.Schema<any, any>
    readonly deadline?: string
    readonly signal?: string
    readonly settle?: boolean
  }
  const build = (changes: Changes = {}): any =>
    flow
      .loop(
        "agent",
        { state: Schema.Date, initial: nothing, maxIterations: 3, ...pick(changes, "state", "maxIterations") },
        (f: any) =>
          f.step("think", idle, nothing).match("act", "tool", nothing, {
            "a/b": (g: any) => g.perform("send", Send, mail),
            stop: (g: any) => g.end("stop", nothing),
          }),
        next,
      )
      .forEach("each", { ...listSpec, ...pick(changes, "concurrency") }, (f: any) =>
        f.parallel("par", { left: (g: any) => g.sleep("pause", "1 day"), right: same }),
      )
      .branch("route", nothing, {
        [changes.case ?? "large"]: (f: any) => f.review("ok", { ...reviewSpec, ...pick(changes, "deadline") }),
        small: same,
      })
      .signal("paid", { schema: Schema.String, ...pick(changes, "signal") })
      .child("bill", child, { input: nothing, ...pick(changes, "settle") })
      .sleepUntil("morning", nothing)
      .fail("no", () => "")
      .compile()
  const pick = (from: any, ...keys: ReadonlyArray<string>) =>
    Object.fromEntries(keys.filter((key) => key in from).map((key) => [key, from[key]]))
  const planOf = (changes?: Changes) =>
    Either.getOrThrow(build(changes).plan) as { readonly hash: string; readonly nodes: ReadonlyArray<any> }

  const pathsOf = (nodes: ReadonlyArray<any>): ReadonlyArray<string> =>
    nodes.flatMap((node) => [
      node.path as string,
      ...(node.compensate ? [node.compensate.path as string] : []),
      ...pathsOf(node.body ?? []),
      ...Object.values<any>(node.cases ?? node.arms ?? {}).flatMap(pathsOf),
    ])

  it("has a path for every node, with empty brackets for turns and items, and escaped names", () => {
    expect(pathsOf(planOf().nodes)).toEqual([
      "agent",
      "agent[]/think",
      "agent[]/act",
      "agent[]/act:a~002fb/send",
      "agent[]/act:a~002fb/send/compensate",
      "agent[]/act:stop/stop",
      "each",
      "each[]/par",
      "each[]/par:left/pause",
      "route",
      "route:large/ok",
      "paid",
      "bill",
      "morning",
      "no",
    ])
  })

  it("has every default filled in", () => {
    const nodes: ReadonlyArray<PlanNode> = planOf().nodes
    expect(nodes.map(({ kind }) => kind)).toEqual(["loop", "forEach", "branch", "signal", "child", "sleep", "fail"])
    expect(nodes[0]).toMatchObject({ maxIterations: 3, onLimit: "fail", state: { type: "string" } })
    expect(nodes[1]).toMatchObject({ concurrency: 10, onFailure: "stop", item: null })
    expect(nodes[2]).toMatchObject({
      cases: {
        small: [],
        large: [
          {
            kind: "review",
            deadlineMs: 172_800_000,
            onReject: "fail",
            onTimeout: "fail",
            who: null,
            escalate: [],
            validForMs: null,
          },
        ],
      },
    })
    expect(nodes[3]).toMatchObject({ signal: "paid", timeoutMs: null, onTimeout: "fail", payload: { type: "string" } })
    expect(nodes[4]).toMatchObject({ workflow: "bill", version: 3, settle: false })
  })

  it("says what it was given", () => {
    const built = flow
      .loop("l", { ...loopSpec, onLimit: "stop" }, same, next)
      .forEach("e", { ...listSpec, item: Schema.Date, concurrency: 4, onFailure: "collect" }, same)
      .signal("s", { schema: Schema.Void, signal: "other", timeout: "1 second", onTimeout: "continue" })
      .review("r", { ...reviewSpec, who: "a", escalate: [{ after: "1 hour", who: "b" }], validFor: "1 minute" })
      .child("c", child, { input: nothing, settle: true })
      .compile()
    expect((Either.getOrThrow(built.plan) as any).nodes).toMatchObject([
      { onLimit: "stop" },
      { concurrency: 4, onFailure: "collect", item: { type: "string" } },
      { signal: "other", timeoutMs: 1_000, onTimeout: "continue" },
      { who: "a", escalate: [{ afterMs: 3_600_000, who: "b" }], validForMs: 60_000 },
      { settle: true },
    ])
  })

  it("is plain JSON data, the same when it is built again", () => {
    expect(JSON.parse(JSON.stringify(planOf()))).toStrictEqual(planOf())
    expect(planOf().hash).toBe(planOf().hash)
  })

  it.each<readonly [string, Changes]>([
    ["a loop's limit", { maxIterations: 4 }],
    ["a loop's state", { state: Schema.Number }],
    ["a list's concurrency", { concurrency: 11 }],
    ["a case", { case: "huge" }],
    ["a deadline", { deadline: "3 days" }],
    ["a signal's name", { signal: "other" }],
    ["whether a child is settled", { settle: true }],
  ])("has another hash when %s changes", (_, changes) => {
    expect(planOf(changes).hash).not.toBe(planOf().hash)
  })

  it("keeps odd cases and arms, as cases", () => {
    const odd = Object.fromEntries(
      ["__proto__", "constructor", "a:b", "[]", "10", "2"].map((name) => [name, (f: any) => f.sleep("x", 1)]),
    )
    const { nodes } = Either.getOrThrow(flow.branch("b", nothing, odd).parallel("p", odd).compile().plan) as any
    expect(Object.keys(nodes[0].cases).sort()).toEqual(Object.keys(odd).sort())
    expect(Object.hasOwn(nodes[1].arms, "__proto__")).toBe(true)
    expect(new Set(pathsOf(nodes)).size).toBe(14)
    expect(Object.keys(Object.prototype)).toEqual([])
  })

  it("of a hundred bodies in each other is compiled", () => {
    const deep = (f: any, depth: number): any =>
      depth === 0 ? f.sleep("end", 1) : f.parallel(`p${depth}`, { a: (g: any) => deep(g, depth - 1) })
    expect(messagesOf(deep(flow, 100))).toEqual([])
  })
})

describe("the path of a compensation", () => {
  it("is told from that of a step which is named so", () => {
    for (const path of [
      "charge",
      "agent[3]/charge",
      "route:large/charge",
      "each[a~002fb]/par:left/charge",
      "compensate",
    ]) {
      expect(isCompensationPath(compensationPath(path))).toBe(true)
    }
    for (const path of [
      "compensate",
      "agent[3]/compensate",
      "agent[]/compensate",
      "route:large/compensate",
      "a~002fcompensate",
    ]) {
      expect(isCompensationPath(path)).toBe(false)
    }
  })
})
