/** Programs of what steers a run that do not type-check, each with the text that stands where the mistake is. */
import { Effect, Schema } from "effect"
import { describe, expect, test } from "tstyche"
import { z } from "zod"
import { Effects, Workflow } from "../../src/index.js"
import { CardDeclined, Charge, Email, flow, Hidden, NotBillable, payment } from "./fixtures.js"

const idle = { effects: [], output: Schema.Void } as const
const nothing = (): void => {}
const ask = { decision: Schema.Void, show: () => 1, deadline: "2 days" } as const
const billable = Workflow.make("billable", {
  version: 1,
  input: Schema.Struct({ cents: Schema.Int }),
  failure: NotBillable,
})

describe("CRN101 to CRN103: a step in a body is held to its effects as any other", () => {
  test("two operations in a case", () => {
    expect(
      flow.branch("go", () => "a", {
        a: (f) => f.step("pay", { effects: [Charge, Email], output: Schema.Void }, nothing),
      }),
    ).type.toRaiseError("CRN101: step 'pay' has 2 external effects (payments.charge + mail.send)")
  })

  test("an undeclared operation in a turn", () => {
    expect(
      flow.loop(
        "turns",
        { state: Schema.Number, initial: () => 1, maxIterations: 1 },
        (f) => f.step("mail", idle, () => Email.perform({ to: "" })),
        ({ state }) => ({ done: true, state }),
      ),
    ).type.toRaiseError("CRN102: step 'mail' performs 'mail.send' without declaring it in effects")
  })

  test("an undeclared service for an item", () => {
    expect(
      flow.forEach("each", { items: () => ["a"], key: (id) => id }, (f) =>
        f.step("hide", idle, () => Effect.flatMap(Hidden, (hidden) => hidden.send)),
      ),
    ).type.toRaiseError("CRN103: step 'hide' uses a service that its effects do not declare")
  })
})

describe("CRN104: names are literal and free in all of their scope", () => {
  const before = flow.step("a", idle, nothing)

  test("each of them takes its name", () => {
    expect(before.branch("a", () => "x", { x: (f) => f })).type.toRaiseError(
      "CRN104: step name 'a' is already taken; every step of a scope has a name of its own",
    )
    expect(before.match("a", "t", () => ({ t: "x" }) as const, { x: (f) => f })).type.toRaiseError(
      "CRN104: step name 'a' is already taken",
    )
    expect(
      before.loop(
        "a",
        { state: Schema.Number, initial: () => 1, maxIterations: 1 },
        (f) => f,
        () => ({ done: true, state: 1 }),
      ),
    ).type.toRaiseError("CRN104: step name 'a' is already taken")
    expect(before.forEach("a", { items: () => ["x"], key: (id) => id }, (f) => f)).type.toRaiseError(
      "CRN104: step name 'a' is already taken",
    )
    expect(before.parallel("a", { x: (f) => f })).type.toRaiseError("CRN104: step name 'a' is already taken")
    expect(before.sleep("a", 1)).type.toRaiseError("CRN104: step name 'a' is already taken")
    expect(before.sleepUntil("a", new Date())).type.toRaiseError("CRN104: step name 'a' is already taken")
    expect(before.signal("a", { schema: Schema.Void })).type.toRaiseError("CRN104: step name 'a' is already taken")
    expect(before.review("a", { ...ask, onReject: "fail", onTimeout: "fail" })).type.toRaiseError(
      "CRN104: step name 'a' is already taken",
    )
    expect(before.child("a", flow.compile(), { input: () => payment as never })).type.toRaiseError(
      "CRN104: step name 'a' is already taken",
    )
    expect(before.end("a", nothing)).type.toRaiseError("CRN104: step name 'a' is already taken")
    expect(billable.step("a", idle, nothing).fail("a", () => new NotBillable({ why: "" }))).type.toRaiseError(
      "CRN104: step name 'a' is already taken",
    )
  })

  test("a name without a result is taken as well", () => {
    expect(flow.sleep("pause", 1).step("pause", idle, nothing)).type.toRaiseError(
      "CRN104: step name 'pause' is already taken",
    )
  })

  test("in a body: a name from outside, from far outside, of its own node, and twice", () => {
    expect(before.branch("go", () => "x", { x: (f) => f.step("a", idle, nothing) })).type.toRaiseError(
      "CRN104: step name 'a' is already taken",
    )
    expect(
      before.parallel("p", {
        x: (f) => f.forEach("each", { items: () => ["x"], key: (id) => id }, (g) => g.step("a", idle, nothing)),
      }),
    ).type.toRaiseError("CRN104: step name 'a' is already taken")
    expect(flow.parallel("p", { x: (f) => f.step("p", idle, nothing) })).type.toRaiseError(
      "CRN104: step name 'p' is already taken",
    )
    expect(flow.parallel("p", { x: (f) => f.step("b", idle, nothing).step("b", idle, nothing) })).type.toRaiseError(
      "CRN104: step name 'b' is already taken",
    )
  })

  test("a name that is no literal", () => {
    const name: string = "computed"
    expect(flow.sleep(name, 1)).type.toRaiseError("CRN104: a step's name must be a literal")
    expect(flow.branch("go", () => "x", { x: (f) => f.sleep(name, 1) })).type.toRaiseError(
      "CRN104: a step's name must be a literal",
    )
  })
})

describe("CRN105: what is stored is JSON", () => {
  test("the state of a loop", () => {
    expect(
      flow.loop(
        "turns",
        { state: Schema.DateFromSelf, initial: () => new Date(), maxIterations: 1 },
        (f) => f,
        ({ state }) => ({ done: true, state }),
      ),
    ).type.toRaiseError(
      "CRN105: state of loop 'turns' does not encode to JSON; use a schema whose encoded side is JSON, e.g. Schema.Date for Schema.DateFromSelf",
    )
  })

  test("items without a schema", () => {
    expect(
      flow.forEach("days", { items: () => [new Date()], key: (day) => day.toISOString() }, (f) => f),
    ).type.toRaiseError(
      "CRN105: items of forEach 'days' are not JSON as they are; add item: <schema of one item>, whose encoded side is JSON",
    )
    expect(
      flow.forEach("days", { items: ({ input }) => [{ at: new Date(input.cents) }], key: () => "" }, (f) => f),
    ).type.toRaiseError("CRN105: items of forEach 'days' are not JSON as they are")
    expect(
      flow.forEach("odd", { items: () => [] as ReadonlyArray<unknown>, key: () => "" }, (f) => f),
    ).type.toRaiseError("CRN105: items of forEach 'odd' are not JSON as they are")
  })

  test("the schema of an item", () => {
    expect(
      flow.forEach("days", { items: () => [new Date()], item: Schema.DateFromSelf, key: () => "" }, (f) => f),
    ).type.toRaiseError("CRN105: item of forEach 'days' does not encode to JSON")
  })

  test("the payload of a signal and the decision of a review", () => {
    expect(flow.signal("paid", { schema: z.date() })).type.toRaiseError(
      "CRN105: payload of signal 'paid' does not encode to JSON",
    )
    expect(
      flow.review("ok", { ...ask, decision: Schema.BigIntFromSelf, onReject: "fail", onTimeout: "fail" }),
    ).type.toRaiseError("CRN105: decision of review 'ok' does not encode to JSON")
  })
})

describe("CRN107: a case is there for each choice", () => {
  test("a missing case of a branch", () => {
    expect(
      flow.branch("route", ({ input }) => (input.cents > 9 ? "large" : "small"), { small: (f) => f }),
    ).type.toRaiseError(
      "CRN107: branch 'route' has no case 'large'; add a function for it, (flow) => flow where nothing is to be done",
    )
    expect(flow.branch("route", () => "large", {})).type.toRaiseError("CRN107: branch 'route' has no case 'large'")
  })

  test("a case that is never taken", () => {
    expect(
      flow.branch("route", ({ input }) => (input.cents > 9 ? "large" : "small"), {
        large: (f) => f,
        small: (f) => f,
        samll: (f) => f,
      }),
    ).type.toRaiseError("CRN107: branch 'route' never takes case 'samll'; correct its name, or leave it out")
  })

  test("a choice of any string", () => {
    expect(flow.branch("route", ({ input }) => input.email, { a: (f) => f })).type.toRaiseError(
      "CRN107: branch 'route' may choose any string; give literals",
    )
  })

  test("a missing case of a match, and one that is never taken", () => {
    const value = () => payment as unknown as { readonly tool: "search" } | { readonly tool: "fetch" }
    expect(flow.match("act", "tool", value, { search: (f) => f })).type.toRaiseError(
      "CRN107: branch 'act' has no case 'fetch'",
    )
    expect(
      flow.match("act", "tool", () => value(), { search: (f) => f, fetch: (f) => f, stop: (f: any) => f }),
    ).type.toRaiseError("CRN107: branch 'act' never takes case 'stop'")
  })

  test("a match on a member that is not there, or tells nothing apart", () => {
    expect(flow.match("act", "tool", () => ({ kind: "x" }), { x: (f) => f })).type.toRaiseError("is missing in type")
    expect(flow.match("act", "tool", ({ input }) => ({ tool: input.email }), { x: (f) => f })).type.toRaiseError(
      "CRN107: branch 'act' may choose any string",
    )
  })

  test("a case that gives no flow", () => {
    expect(flow.branch("go", () => "a", { a: () => {} })).type.toRaiseError("is not assignable to type 'AnyFlow'")
    expect(flow.branch("go", () => "a", { a: (f) => f.output(Schema.Void, nothing) })).type.toRaiseError(
      "Property '_flow' is missing in type 'Closed<void",
    )
    expect(flow.parallel("go", { a: () => 5 })).type.toRaiseError("is not assignable")
    expect(flow.forEach("go", { items: () => ["a"], key: (id) => id }, () => {})).type.toRaiseError("is not assignable")
  })
})

describe("what a scope adds is seen in it, and nowhere else", () => {
  test("results of a case, a turn, an item or an arm are not beside it", () => {
    const made = { effects: [], output: Schema.String } as const
    const used = flow
      .branch("route", () => "a", { a: (f) => f.step("inner", made, () => "") })
      .parallel("both", { a: (f) => f.step("arm", made, () => "") })
      .forEach("each", { items: () => ["a"], key: (id) => id }, (f) => f.step("of item", made, () => ""))
      .loop(
        "turns",
        { state: Schema.Number, initial: () => 1, maxIterations: 1 },
        (f) => f.step("of turn", made, () => ""),
        () => ({ done: true, state: 1 }),
      )
    expect(used.step("x", idle, ({ results }) => void results.inner)).type.toRaiseError(
      "Property 'inner' does not exist",
    )
    expect(used.step("x", idle, ({ results }) => void results.arm)).type.toRaiseError("Property 'arm' does not exist")
    expect(used.step("x", idle, ({ results }) => void results["of item"])).type.toRaiseError("'of item' does not exist")
    expect(used.step("x", idle, ({ results }) => void results["of turn"])).type.toRaiseError("'of turn' does not exist")
  })

  test("two arms, or two cases, do not see each other", () => {
    const made = { effects: [], output: Schema.String } as const
    expect(
      flow.parallel("both", {
        a: (f) => f.step("one", made, () => ""),
        b: (f) => f.step("two", made, ({ results }) => results.one),
      }),
    ).type.toRaiseError("Property 'one' does not exist")
  })

  test("state, turn, item, key, value and outer", () => {
    const outside = flow
      .loop(
        "turns",
        { state: Schema.Number, initial: () => 1, maxIterations: 1 },
        (f) => f,
        () => ({ done: true, state: 1 }),
      )
      .forEach("each", { items: () => ["a"], key: (id) => id }, (f) => f)
      .match("act", "t", () => ({ t: "x" }) as const, { x: (f) => f })
    expect(outside.step("x", idle, ({ state }) => void state)).type.toRaiseError("Property 'state' does not exist")
    expect(outside.step("x", idle, ({ turn }) => void turn)).type.toRaiseError("Property 'turn' does not exist")
    expect(outside.step("x", idle, ({ item }) => void item)).type.toRaiseError("Property 'item' does not exist")
    expect(outside.step("x", idle, ({ key }) => void key)).type.toRaiseError("Property 'key' does not exist")
    expect(outside.step("x", idle, ({ value }) => void value)).type.toRaiseError("Property 'value' does not exist")
    expect(outside.step("x", idle, ({ outer }) => void outer)).type.toRaiseError("Property 'outer' does not exist")
  })

  test("the loop around a list stands in outer", () => {
    expect(
      flow.loop(
        "turns",
        { state: Schema.Number, initial: () => 1, maxIterations: 1 },
        (f) =>
          f.forEach("each", { items: () => ["a"], key: (id) => id }, (g) => g.step("x", idle, ({ turn }) => void turn)),
        () => ({ done: true, state: 1 }),
      ),
    ).type.toRaiseError("Property 'turn' does not exist")
  })
})

describe("options", () => {
  const loop = { state: Schema.Struct({ n: Schema.Number }), initial: () => ({ n: 1 }), maxIterations: 1 } as const

  test("a state of another type, first and next", () => {
    expect(
      flow.loop(
        "turns",
        { ...loop, initial: () => ({ m: 1 }) },
        (f) => f,
        ({ state }) => ({ done: true, state }),
      ),
    ).type.toRaiseError("Property 'n' is missing in type '{ readonly m: 1; }'")
    expect(
      flow.loop(
        "turns",
        loop,
        (f) => f,
        () => ({ done: true, state: { n: "1" } }),
      ),
    ).type.toRaiseError("is not assignable")
    expect(
      flow.loop(
        "turns",
        loop,
        (f) => f,
        ({ state }) => ({ state }),
      ),
    ).type.toRaiseError("is missing in type")
  })

  test("a loop without a limit", () => {
    const { maxIterations, ...endless } = loop
    void maxIterations
    expect(
      flow.loop(
        "turns",
        endless,
        (f) => f,
        ({ state }) => ({ done: true, state }),
      ),
    ).type.toRaiseError("'maxIterations' is missing")
  })

  test("a key that is no text, and items that are no list", () => {
    expect(flow.forEach("each", { items: () => [1], key: (n) => n }, (f) => f)).type.toRaiseError(
      "is not assignable to type 'string'",
    )
    expect(flow.forEach("each", { items: ({ input }) => input, key: () => "" }, (f) => f)).type.toRaiseError(
      "is missing the following properties from type 'readonly never[]'",
    )
  })

  test("items that their schema does not take", () => {
    expect(
      flow.forEach("each", { items: () => ["a"], item: Schema.Number, key: () => "" }, (f) => f),
    ).type.toRaiseError("is not assignable")
  })

  test("a failure of an item is there with collect only", () => {
    expect(
      flow
        .forEach("each", { items: () => ["a"], key: (id) => id }, (f) => f)
        .step("x", idle, async ({ results }) => {
          for await (const item of results.each) void item.error
        }),
    ).type.toRaiseError("Property 'error' does not exist")
  })

  test("a list's result is no list", () => {
    expect(
      flow
        .forEach("each", { items: () => ["a"], key: (id) => id }, (f) => f)
        .step("x", idle, ({ results }) => void results.each.length),
    ).type.toRaiseError("Property 'length' does not exist")
  })

  test("half a timeout of a signal", () => {
    expect(flow.signal("paid", { schema: Schema.Void, timeout: "1 day" })).type.toRaiseError("'onTimeout' is missing")
    expect(flow.signal("paid", { schema: Schema.Void, onTimeout: "fail" })).type.toRaiseError("'timeout' is missing")
  })

  test("a review that does not say what a rejection or the deadline does", () => {
    expect(flow.review("ok", { ...ask, onTimeout: "fail" })).type.toRaiseError("'onReject' is missing")
    expect(flow.review("ok", { ...ask, onReject: "fail" })).type.toRaiseError("'onTimeout' is missing")
    expect(flow.review("ok", { ...ask, onReject: "reject", onTimeout: "fail" })).type.toRaiseError("is not assignable")
  })

  test("a decision that may be missing is asked for", () => {
    expect(
      flow
        .review("ok", { ...ask, decision: Schema.String, onReject: "continue", onTimeout: "reject" })
        .step("x", { effects: [], output: Schema.String }, ({ results }) => results.ok.decision),
    ).type.toRaiseError("Property 'decision' does not exist")
  })

  test("a time that is none", () => {
    expect(flow.sleep("pause", "soon")).type.toRaiseError("is not assignable")
    expect(flow.sleepUntil("pause", () => "tomorrow")).type.toRaiseError("is not assignable")
  })
})

describe("child", () => {
  const bill = billable.compile()

  test("an input of another type", () => {
    expect(flow.child("bill", bill, { input: () => ({ cents: "1" }) })).type.toRaiseError("is not assignable")
    expect(flow.child("bill", bill, {})).type.toRaiseError("'input' is missing")
  })

  test("a workflow that is not compiled", () => {
    expect(flow.child("bill", billable, { input: () => ({ cents: 1 }) })).type.toRaiseError("is not assignable")
  })
})

describe("fail and end", () => {
  test("CRN107: a failure that the workflow does not declare", () => {
    expect(flow.fail("no", () => new NotBillable({ why: "" }))).type.toRaiseError(
      "CRN107: 'no' fails the run, and the workflow declares no failure; add failure: <schema> to Workflow.make",
    )
    expect(flow.branch("go", () => "a", { a: (f) => f.fail("no", () => "x") })).type.toRaiseError(
      "CRN107: 'no' fails the run, and the workflow declares no failure",
    )
  })

  test("a failure of another type than is declared", () => {
    expect(billable.fail("no", () => new CardDeclined({ code: "" }))).type.toRaiseError(
      "Property 'why' is missing in type 'CardDeclined' but required in type 'NotBillable'",
    )
    expect(
      billable.loop(
        "turns",
        { state: Schema.Number, initial: () => 1, maxIterations: 1 },
        (f) => f.fail("no", () => "no"),
        () => ({ done: true, state: 1 }),
      ),
    ).type.toRaiseError("is not assignable")
  })

  test("CRN107: a fragment that fails with what the workflow does not declare", () => {
    const guard = Workflow.fragment<{ input: { cents: number }; results: {}; failure: CardDeclined }>()((f) =>
      f.branch("guard", () => "bad" as "bad" | "ok", {
        bad: (g) => g.fail("bad", () => new CardDeclined({ code: "" })),
        ok: (g) => g,
      }),
    )
    expect(billable.use(guard)).type.toRaiseError(
      "CRN107: the fragment may fail with what this workflow does not declare; add it to failure: of Workflow.make",
    )
    expect(flow.use(guard)).type.toRaiseError("CRN107: the fragment may fail with what this workflow does not declare")
  })

  test("CRN111: nothing follows them in their scope", () => {
    expect(billable.fail("no", () => new NotBillable({ why: "" })).step("x", idle, nothing)).type.toRaiseError(
      "CRN111: nothing after 'no' is reached, for it ends every run that comes so far; move it before, or into a branch",
    )
    expect(flow.end("stop", nothing).output(Schema.Void, nothing)).type.toRaiseError(
      "CRN111: nothing after 'stop' is reached, for it ends every run that comes so far",
    )
    expect(flow.branch("go", () => "a", { a: (f) => f.end("stop", nothing).sleep("x", 1) })).type.toRaiseError(
      "CRN111: nothing after 'stop' is reached, for it ends every run that comes so far",
    )
  })

  test("CRN107: an end with another type than the output", () => {
    const early = flow.branch("go", () => "a" as "a" | "b", {
      a: (f) => f.forEach("each", { items: () => ["a"], key: (id) => id }, (g) => g.end("stop", () => "no number")),
      b: (f) => f,
    })
    expect(early.output(Schema.Number, () => 1)).type.toRaiseError(
      "CRN107: 'stop' ends the workflow with a value that does not fit this output; give both the same type",
    )
  })

  test("CRN107: an end with a value, and no output", () => {
    const early = flow.branch("go", () => "a" as "a" | "b", { a: (f) => f.end("stop", () => 1), b: (f) => f })
    expect(early.compile()).type.toRaiseError(
      "CRN107: 'stop' ends the workflow with a value, and the workflow has no output; add .output(schema, select) before .compile()",
    )
    expect(flow.end("stop", () => 1).compile()).type.toRaiseError("CRN107: 'stop' ends the workflow with a value")
  })
})

describe("requirements of bodies reach the worker", () => {
  test("CRN106 and handlers are asked for through every body", () => {
    const used = flow
      .parallel("p", {
        a: (f) =>
          f.branch("b", () => "x", {
            x: (g) => g.step("book", { effects: [Effects.transaction], output: Schema.Void }, nothing),
          }),
      })
      .compile()
    const none = (given: { readonly _types?: (given: any) => [any, any, never] }): void => void given
    expect(none(used)).type.toRaiseError("CRN106: a transaction step needs a store with transactions")
  })
})
