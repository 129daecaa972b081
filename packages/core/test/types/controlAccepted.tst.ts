/** Programs of what steers a run that type-check, with the exact types that they give. */
import { Effect, Schema, Stream } from "effect"
import { describe, expect, test } from "tstyche"
import { z } from "zod"
import {
  Effects,
  Operation,
  Output,
  Workflow,
  type Approved,
  type Expired,
  type Item,
  type ItemError,
  type Items,
  type Outcome,
  type Performs,
  type Rejected,
  type RunCanceled,
  type RunFailed,
} from "../../src/index.js"
import type { failureOfWorkflow, needsOfWorkflow, outputOfWorkflow } from "../../src/builder/Workflow.js"
import { CardDeclined, Charge, Email, flow, Model, NotBillable, payment, Publish, Refund, Web } from "./fixtures.js"

const idle = { effects: [], output: Schema.Void } as const
const nothing = (): void => {}

describe("branch", () => {
  test("results are a union told apart by case", () => {
    flow
      .step("before", { effects: [], output: Schema.Number }, () => 1)
      .branch("route", ({ input }) => (input.cents > 100 ? "large" : "small"), {
        large: (f) =>
          f.step("check", { effects: [], output: Schema.String }, ({ input, results }) => {
            expect(input.cents).type.toBe<number>()
            expect(results).type.toBe<{ readonly before: number }>()
            return ""
          }),
        small: (f) => f,
      })
      .step("after", idle, ({ results }) => {
        expect(results).type.toBe<{
          readonly before: number
          readonly route:
            | { readonly case: "large"; readonly results: { readonly check: string } }
            | { readonly case: "small"; readonly results: {} }
        }>()
        if (results.route.case === "large") expect(results.route.results.check).type.toBe<string>()
      })
  })

  test("a choice that was made by a step", () => {
    flow
      .step("pick", { effects: [], output: Schema.Literal("a", "b") }, () => "a")
      .branch("go", ({ results }) => results.pick, { a: (f) => f, b: (f) => f })
  })

  test("two cases may use the same name, and what follows the branch too", () => {
    flow
      .branch("route", () => "a" as "a" | "b", {
        a: (f) => f.step("run", { effects: [], output: Schema.String }, () => ""),
        b: (f) => f.step("run", { effects: [], output: Schema.Number }, () => 1),
      })
      .step("run", { effects: [], output: Schema.Boolean }, ({ results }) => {
        expect(results.route.results.run).type.toBe<string | number>()
        return true
      })
  })

  test("failures and requirements of all cases are the workflow's", () => {
    const used = flow
      .branch("route", () => "pay" as "pay" | "read", {
        pay: (f) =>
          f
            .perform("charge", Charge, { payload: () => payment })
            .perform("mail", Email, { payload: () => ({ to: "" }) }),
        read: (f) =>
          f.step("read", { effects: [Effects.read(Model)], output: Schema.String }, () =>
            Effect.flatMap(Model, (model) => model.complete("")),
          ),
      })
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<CardDeclined>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Model | Performs<"payments.charge"> | Performs<"mail.send">>()
  })

  test("a fragment in a case sees what is outside, and its results stay inside", () => {
    const bill = Workflow.fragment<{ input: { cents: number }; results: { before: number } }>()((f) =>
      f.perform("charge", Charge, { payload: ({ results }) => ({ customer: "c", cents: results.before }) }),
    )
    const used = flow
      .step("before", { effects: [], output: Schema.Number }, () => 1)
      .branch("route", () => "a", { a: (f) => f.use(bill) })
      .step("after", idle, ({ results }) => {
        expect(results.route.results).type.toBe<{ readonly charge: { readonly id: string } }>()
      })
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<CardDeclined>()
  })

  test("a function that adds more or less leaves both possibilities", () => {
    const more: boolean = Math.random() > 2
    flow
      .branch("route", () => "a", {
        a: (f) => (more ? f.step("x", { effects: [], output: Schema.String }, () => "") : f),
      })
      .step("after", idle, ({ results }) => {
        expect(results.route).type.toBe<
          | { readonly case: "a"; readonly results: {} }
          | { readonly case: "a"; readonly results: { readonly x: string } }
        >()
      })
  })

  test("steps in a case are checked and inferred as anywhere: all four forms of run, compensation, transactions", () => {
    flow.branch("route", () => "a", {
      a: (f) =>
        f
          .step("gen", { effects: [Effects.read(Model)], output: Schema.String }, function* () {
            return yield* (yield* Model).complete("")
          })
          .step("promise", { effects: [Email], output: Schema.Void }, async ({ perform }) => {
            await perform(Email, { to: "" })
          })
          .step("book", { effects: [Effects.transaction], output: Schema.Void }, async ({ query, results }) => {
            await query("insert", [results.gen])
          })
          .perform("charge", Charge, {
            payload: ({ results }) => ({ customer: results.gen, cents: 1 }),
            compensate: { operation: Refund, payload: ({ result }) => ({ charge: result.id }) },
          }),
    })
  })
})

describe("match", () => {
  const Choice = Schema.Union(
    Schema.Struct({ tool: Schema.Literal("search"), query: Schema.String }),
    Schema.Struct({ tool: Schema.Literal("fetch"), url: Schema.String }),
  )

  test("each case sees its member as value", () => {
    flow
      .step("think", { effects: [], output: Choice }, () => Output.json("{}"))
      .match("act", "tool", ({ results }) => results.think, {
        search: (f) =>
          f.step("run", { effects: [], output: Schema.Array(Schema.String) }, ({ value }) => {
            expect(value).type.toBe<{ readonly tool: "search"; readonly query: string }>()
            return [value.query]
          }),
        fetch: (f) =>
          f.step("run", { effects: [], output: Schema.String }, ({ value }) => {
            expect(value).type.toBe<{ readonly tool: "fetch"; readonly url: string }>()
            return value.url
          }),
      })
      .step("after", idle, ({ results }) => {
        expect(results.act).type.toBe<
          | { readonly case: "search"; readonly results: { readonly run: ReadonlyArray<string> } }
          | { readonly case: "fetch"; readonly results: { readonly run: string } }
        >()
      })
  })

  test("a settled outcome, told apart by a boolean", () => {
    flow
      .perform("charge", Charge, { payload: () => payment, settle: true })
      .match("paid", "ok", ({ results }) => results.charge, {
        true: (f) => f.step("id", { effects: [], output: Schema.String }, ({ value }) => value.value.id),
        false: (f) => f.step("code", { effects: [], output: Schema.String }, ({ value }) => value.error.code),
      })
  })

  test("a match in a match: the inner value shadows the outer, the rest of the scope stays", () => {
    flow.loop(
      "turns",
      { state: Choice, initial: () => ({ tool: "fetch", url: "" }), maxIterations: 2 },
      (f) =>
        f.match("outer", "tool", ({ state }) => state, {
          search: (g) =>
            g.match("inner", "kind", () => ({ kind: "x", n: 1 }) as const, {
              x: (h) =>
                h.step("deep", idle, ({ outer, state, turn, value }) => {
                  expect(value).type.toBe<{ readonly kind: "x"; readonly n: 1 }>()
                  expect(turn).type.toBe<number>()
                  expect(state).type.toBe<Schema.Schema.Type<typeof Choice>>()
                  expect(outer).type.toBe<{}>()
                }),
            }),
          fetch: (g) => g,
        }),
      ({ state }) => ({ done: true, state }),
    )
  })
})

describe("loop", () => {
  const Draft = Schema.Struct({ notes: Schema.Array(Schema.String), at: Schema.Date })

  test("the body sees state and turn, next sees the turn's results, the result is the state", () => {
    flow
      .step("before", { effects: [], output: Schema.Number }, () => 1)
      .loop(
        "agent",
        {
          state: Draft,
          initial: ({ results }) => ({ notes: [String(results.before)], at: new Date() }),
          maxIterations: 20,
        },
        (f) =>
          f.step("think", { effects: [], output: Schema.String }, ({ outer, results, state, turn }) => {
            expect(state).type.toBe<{ readonly notes: ReadonlyArray<string>; readonly at: Date }>()
            expect(turn).type.toBe<number>()
            expect(outer).type.toBe<{}>()
            expect(results).type.toBe<{ readonly before: number }>()
            return ""
          }),
        ({ results, state, turn }) => {
          expect(results).type.toBe<{ readonly before: number; readonly think: string }>()
          return { done: turn > 3, state: { ...state, notes: [...state.notes, results.think] } }
        },
      )
      .step("after", idle, ({ results }) => {
        expect(results.agent).type.toBe<{ readonly notes: ReadonlyArray<string>; readonly at: Date }>()
      })
  })

  test("a loop in a loop sees the outer one", () => {
    flow.loop(
      "o",
      { state: Schema.Number, initial: () => 1, maxIterations: 2, onLimit: "stop" },
      (f) =>
        f.loop(
          "i",
          { state: Schema.String, initial: ({ state }) => String(state), maxIterations: 2 },
          (g) =>
            g.step("t", { effects: [], output: Schema.Number }, ({ outer, state }) => {
              expect(outer.state).type.toBe<number>()
              expect(outer.outer).type.toBe<{}>()
              return state.length + outer.state + outer.turn
            }),
          ({ outer, results, state }) => ({ done: results.t > outer.turn, state }),
        ),
      ({ results }) => ({ done: true, state: results.i.length }),
    )
  })

  test("a Zod state: initial and next give its input side", () => {
    flow.loop(
      "z",
      { state: z.object({ n: z.number().default(0) }), initial: () => ({}), maxIterations: 1 },
      (f) => f.step("t", { effects: [], output: Schema.Number }, ({ state }) => state.n),
      () => ({ done: true, state: {} }),
    )
  })

  test("a literal in a state keeps its type", () => {
    flow.loop(
      "l",
      { state: Schema.Literal("a", "b"), initial: () => "a", maxIterations: 1 },
      (f) => f,
      ({ state }) => ({
        done: state === "b",
        state: "b",
      }),
    )
  })
})

describe("forEach", () => {
  const lines: ReadonlyArray<{ readonly id: string; readonly cents: number }> = []

  test("the body sees item and key, the result is counts and a reader", () => {
    flow
      .forEach("each", { items: () => lines, key: (line) => line.id }, (f) =>
        f
          .perform("charge", Charge, { payload: ({ item, key }) => ({ customer: key, cents: item.cents }) })
          .step("id", { effects: [], output: Schema.String }, ({ item, key, outer, results }) => {
            expect(item).type.toBe<{ readonly id: string; readonly cents: number }>()
            expect(key).type.toBe<string>()
            expect(outer).type.toBe<{}>()
            return results.charge.id
          }),
      )
      .step("after", { effects: [], output: Schema.Number }, async ({ results }) => {
        expect(results.each).type.toBe<Items<{ readonly charge: { readonly id: string }; readonly id: string }>>()
        expect(results.each.total).type.toBe<number>()
        for await (const item of results.each) {
          expect(item).type.toBe<{
            readonly key: string
            readonly ok: true
            readonly results: { readonly charge: { readonly id: string }; readonly id: string }
          }>()
        }
        return results.each.succeeded + results.each.failed
      })
  })

  test("collect: an item may have failed, and its failure is none of the workflow's", () => {
    const used = flow
      .forEach("each", { items: () => ["a"], key: (id) => id, onFailure: "collect", concurrency: 100 }, (f) =>
        f.perform("charge", Charge, { payload: ({ item }) => ({ customer: item, cents: 1 }) }),
      )
      .step("after", { effects: [], output: Schema.Number }, ({ results }) =>
        Stream.runCount(
          Stream.filter(
            Stream.fromAsyncIterable(results.each, (error) => error),
            (item) => {
              if (!item.ok) expect(item.error).type.toBe<ItemError<CardDeclined>>()
              return item.ok
            },
          ),
        ),
      )
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<never>()
    expect<Item<{}>>().type.toBe<{ readonly key: string; readonly ok: true; readonly results: {} }>()
  })

  test("stop: failures of items are the workflow's", () => {
    const used = flow
      .forEach("each", { items: () => ["a"], key: (id) => id }, (f) =>
        f.perform("charge", Charge, { payload: () => payment }),
      )
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<CardDeclined>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Performs<"payments.charge">>()
  })

  test("items that are no JSON, by their schema", () => {
    flow.forEach("days", { items: () => [new Date()], item: Schema.Date, key: (day) => day.toISOString() }, (f) =>
      f.step("day", { effects: [], output: Schema.Number }, ({ item }) => {
        expect(item).type.toBe<Date>()
        return item.getDate()
      }),
    )
  })

  test("items that a schema completes: the body sees its type", () => {
    flow.forEach(
      "leads",
      {
        items: () => [{ name: "a" }],
        item: z.object({ name: z.string(), score: z.number().default(0) }),
        key: (lead) => lead.name,
      },
      (f) => f.step("score", { effects: [], output: Schema.Number }, ({ item }) => item.score),
    )
  })

  test("items from results and from the outer item", () => {
    flow
      .step(
        "list",
        { effects: [], output: Schema.Array(Schema.Struct({ id: Schema.String, tags: Schema.Array(Schema.String) })) },
        () => [],
      )
      .forEach("outer", { items: ({ results }) => results.list, key: ({ id }) => id }, (f) =>
        f.forEach("inner", { items: ({ item }) => item.tags, key: (tag) => tag }, (g) =>
          g.step("join", { effects: [], output: Schema.String }, ({ item, outer }) => `${outer.item.id} ${item}`),
        ),
      )
  })
})

describe("parallel", () => {
  test("the result holds each arm's results", () => {
    const used = flow
      .parallel("both", {
        page: (f) =>
          f.step("get", { effects: [Effects.read(Web)], output: Schema.String }, () =>
            Effect.flatMap(Web, (web) => web.get("")),
          ),
        pay: (f) => f.perform("get", Charge, { payload: () => payment }),
        rest: (f) => f.sleep("pause", "1 second"),
      })
      .step("after", idle, ({ results }) => {
        expect(results.both).type.toBe<{
          readonly page: { readonly get: string }
          readonly pay: { readonly get: { readonly id: string } }
          readonly rest: {}
        }>()
      })
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<CardDeclined>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Web | Performs<"payments.charge">>()
  })
})

describe("waits", () => {
  test("sleeps take values and functions, and leave no result", () => {
    flow
      .step("due", { effects: [], output: Schema.Date }, () => new Date())
      .sleep("a", "2 days")
      .sleep("b", ({ input }) => input.cents * 1_000)
      .sleepUntil("c", new Date(0))
      .sleepUntil("d", ({ results }) => results.due)
      .step("after", idle, ({ results }) => {
        expect(results).type.toBe<{ readonly due: Date }>()
      })
  })

  test("a signal gives its payload; with a timeout that goes on, an outcome", () => {
    const Paid = Schema.Struct({ at: Schema.Date })
    flow
      .signal("plain", { schema: Paid })
      .signal("named", { schema: Paid, signal: "invoice.paid" })
      .signal("fails", { schema: Paid, timeout: "2 days", onTimeout: "fail" })
      .signal("goes on", { schema: Paid, timeout: "2 days", onTimeout: "continue" })
      .step("after", idle, ({ results }) => {
        expect(results).type.toBe<{
          readonly plain: { readonly at: Date }
          readonly named: { readonly at: Date }
          readonly fails: { readonly at: Date }
          readonly "goes on": Outcome<{ readonly at: Date }, "timeout">
        }>()
      })
  })

  test("a review gives what its options let a run go on with", () => {
    const decision = Schema.Struct({ note: Schema.String })
    const ask = { decision, show: () => 1, deadline: "2 days" } as const
    flow
      .review("strict", { ...ask, onReject: "fail", onTimeout: "fail" })
      .review("lost", { ...ask, onReject: "fail", onTimeout: "reject" })
      .review("soft", { ...ask, onReject: "continue", onTimeout: "fail" })
      .review("softest", {
        ...ask,
        onReject: "continue",
        onTimeout: "reject",
        who: "treasury",
        escalate: [{ after: "1 day", who: "cfo" }],
        validFor: "1 hour",
        show: ({ input }) => input,
      })
      .step("after", idle, ({ results }) => {
        expect(results).type.toBe<{
          readonly strict: Approved<{ readonly note: string }>
          readonly lost: Approved<{ readonly note: string }>
          readonly soft: Approved<{ readonly note: string }> | Rejected
          readonly softest: Approved<{ readonly note: string }> | Rejected | Expired
        }>()
        expect(results.strict.at).type.toBe<Date>()
      })
  })
})

describe("child", () => {
  const bill = Workflow.make("bill", { version: 1, input: Schema.Struct({ due: Schema.Date }), failure: NotBillable })
    .step("read", { effects: [Effects.read(Model)], output: Schema.String }, () =>
      Effect.flatMap(Model, (model) => model.complete("")),
    )
    .perform("charge", Charge, { payload: () => payment })
    .output(Schema.Struct({ id: Schema.String }), ({ results }) => results.charge)
    .compile()

  test("gives its output; its failures and requirements are the parent's", () => {
    const used = flow
      .child("bill", bill, { input: ({ input }) => ({ due: new Date(input.cents) }) })
      .step("after", idle, ({ results }) => {
        expect(results.bill).type.toBe<{ readonly id: string }>()
      })
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<NotBillable | CardDeclined>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Model | Performs<"payments.charge">>()
  })

  test("settled, its end is an outcome", () => {
    const used = flow
      .child("bill", bill, { input: () => ({ due: new Date() }), settle: true })
      .step("after", idle, ({ results }) => {
        expect(results.bill).type.toBe<
          Outcome<{ readonly id: string }, NotBillable | CardDeclined | RunFailed | RunCanceled>
        >()
      })
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<never>()
  })

  test("a literal in its input keeps its type", () => {
    const typed = Workflow.make("typed", { version: 1, input: Schema.Struct({ to: Schema.Literal("cms", "slack") }) })
    flow.child("typed", typed.compile(), { input: () => ({ to: "cms" }) })
  })

  test("without an output, it gives nothing", () => {
    const quiet = flow.compile()
    flow.child("quiet", quiet, { input: ({ input }) => input }).step("after", idle, ({ results }) => {
      expect(results.quiet).type.toBe<void>()
    })
  })
})

describe("fail and end", () => {
  const billable = Workflow.make("billable", {
    version: 1,
    input: Schema.Struct({ cents: Schema.Int }),
    failure: NotBillable,
  })

  test("a case that fails or ends is no member of the union", () => {
    const used = billable
      .branch("route", ({ input }) => (input.cents > 9 ? "pay" : input.cents > 0 ? "free" : "bad"), {
        pay: (f) => f.perform("charge", Charge, { payload: () => payment }),
        free: (f) => f.end("nothing to pay", () => ({ id: null })),
        bad: (f) =>
          f
            .step("why", { effects: [], output: Schema.String }, () => "")
            .fail("bad", ({ results }) => new NotBillable({ why: results.why })),
      })
      .output(Schema.Struct({ id: Schema.NullOr(Schema.String) }), ({ results }) => {
        expect(results.route).type.toBe<{
          readonly case: "pay"
          readonly results: { readonly charge: { readonly id: string } }
        }>()
        return { id: results.route.results.charge.id }
      })
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<NotBillable | CardDeclined>()
    expect<outputOfWorkflow<typeof used>>().type.toBe<{ readonly id: string | null }>()
  })

  test("a workflow without an output ends with nothing", () => {
    const used = flow.branch("go", () => "a" as "a" | "b", { a: (f) => f.end("stop", nothing), b: (f) => f }).compile()
    expect<outputOfWorkflow<typeof used>>().type.toBe<void>()
    expect<failureOfWorkflow<typeof used>>().type.toBe<never>()
  })

  test("an end keeps a literal that the output lists", () => {
    flow
      .branch("go", () => "a" as "a" | "b", { a: (f) => f.end("stop", () => "none"), b: (f) => f })
      .output(Schema.Literal("none", "some"), () => "some")
      .compile()
  })

  test("a fragment fails with what it asks for, and passes its ends on", () => {
    const guard = Workflow.fragment<{ input: { cents: number }; results: {}; failure: NotBillable }>()((f) =>
      f.branch("guard", ({ input }) => (input.cents > 0 ? "ok" : input.cents < 0 ? "bad" : "free"), {
        ok: (g) => g,
        bad: (g) => g.fail("bad", () => new NotBillable({ why: "" })),
        free: (g) => g.end("free", () => 0),
      }),
    )
    const used = billable
      .use(guard)
      .output(Schema.Number, () => 1)
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<NotBillable>()
  })

  test("an item may fail with what the workflow declares", () => {
    billable
      .forEach("each", { items: () => ["a"], key: (id) => id, onFailure: "collect" }, (f) =>
        f.perform("charge", Charge, { payload: () => payment }).fail("no", () => new NotBillable({ why: "" })),
      )
      .step("after", idle, async ({ results }) => {
        for await (const item of results.each) {
          if (!item.ok) expect(item.error.failure).type.toBe<CardDeclined | NotBillable | null>()
        }
      })
  })

  test("from the depth of a loop in a list", () => {
    const used = billable
      .forEach("each", { items: () => ["a"], key: (id) => id, onFailure: "collect" }, (f) =>
        f.loop(
          "tries",
          { state: Schema.Number, initial: () => 0, maxIterations: 3 },
          (g) =>
            g.branch("go", ({ outer, state }) => (outer.item === "x" && state > 1 ? "stop" : "on"), {
              stop: (h) => h.end("stop", ({ state }) => state),
              on: (h) => h,
            }),
          ({ state }) => ({ done: false, state: state + 1 }),
        ),
      )
      .output(Schema.Number, ({ results }) => results.each.total)
      .compile()
    expect<outputOfWorkflow<typeof used>>().type.toBe<number>()
  })
})

describe("the research agent", () => {
  const Page = Schema.Struct({ title: Schema.String, body: Schema.String })
  const Choice = Schema.Union(
    Schema.Struct({ tool: Schema.Literal("fetch"), url: Schema.String }),
    Schema.Struct({ tool: Schema.Literal("stop"), ...Page.fields }),
  )

  test("a loop of a model's choices, and what it found", () => {
    const used = flow
      .loop(
        "agent",
        {
          state: Schema.Struct({ notes: Schema.Array(Schema.String), draft: Schema.NullOr(Page) }),
          initial: () => ({ notes: [], draft: null }),
          maxIterations: 20,
        },
        (f) =>
          f
            .step("think", { effects: [Effects.read(Model)], output: Choice }, ({ state }) =>
              Effect.map(
                Effect.flatMap(Model, (model) => model.extract(state.notes.join())),
                Output.unvalidated,
              ),
            )
            .match("act", "tool", ({ results }) => results.think, {
              fetch: (g) =>
                g.step("run", { effects: [Effects.read(Web)], output: Schema.String }, ({ value }) =>
                  Effect.flatMap(Web, (web) => web.get(value.url)),
                ),
              stop: (g) =>
                g.step("draft", { effects: [], output: Page }, ({ value }) => ({
                  title: value.title,
                  body: value.body,
                })),
            }),
        ({ results, state }) =>
          results.act.case === "stop"
            ? { done: true, state: { ...state, draft: results.act.results.draft } }
            : { done: false, state: { ...state, notes: [...state.notes, results.act.results.run] } },
      )
      .perform("publish", Operation.oneOf({ page: Publish, mail: Email }), {
        optional: true,
        payload: ({ results: { agent } }) =>
          agent.draft === null ? null : { case: "page", payload: { title: agent.draft.title } },
      })
      .compile()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Model | Web | Performs<"cms.publish"> | Performs<"mail.send">>()
  })
})
