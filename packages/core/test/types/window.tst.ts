/** Workflows whose runs carry a window: what type-checks, what does not, and what is inferred. */
import { Effect, Schema } from "effect"
import { describe, expect, test } from "tstyche"
import { z } from "zod"
import { Effects, Output, Plan, Workflow, type Performs } from "../../src/index.js"
import { Charge, Email, Hidden, Model, ModelError, payment, Web } from "./fixtures.js"

const Notes = Schema.Struct({ notes: Schema.Array(Schema.String), seen: Schema.DateFromNumber })
type Notes = typeof Notes.Type
const input = Schema.Struct({ task: Schema.String })
const idle = { effects: [], output: Schema.Void } as const

const agent = Workflow.make("agent", {
  version: 1,
  input,
  window: { schema: Notes, initial: ({ input }) => ({ notes: [input.task], seen: new Date(0) }) },
})

describe("a window", () => {
  test("is seen and changed by steps, in whatever style", () => {
    agent
      .step("value", idle, ({ window, changeWindow }) => {
        expect(window).type.toBe<Notes>()
        changeWindow((now) => {
          expect(now).type.toBe<Notes>()
          return { ...now, notes: [] }
        })
      })
      .step("promise", idle, async ({ window }) => {
        expect(window).type.toBe<Notes>()
      })
      .step("generator", { effects: [Effects.read(Model)], output: Schema.String }, function* ({ window }) {
        expect(window).type.toBe<Notes>()
        const model = yield* Model
        return yield* model.complete(window.notes.join())
      })
      .step("transaction", { effects: [Effects.transaction], output: Schema.Void }, ({ window, query }) => {
        expect(window).type.toBe<Notes>()
        expect(query).type.not.toBe<never>()
      })
  })

  test("is seen in turns, items, cases and arms, and by what steers", () => {
    agent
      .loop(
        "turns",
        { state: Schema.Number, initial: ({ window }) => window.notes.length, maxIterations: 3 },
        (flow) =>
          flow.step("think", idle, ({ changeWindow, turn, window }) => {
            expect(window).type.toBe<Notes>()
            changeWindow((now) => ({ ...now, notes: [...now.notes, String(turn)] }))
          }),
        ({ state, window }) => ({ done: window.notes.length > 3, state }),
      )
      .forEach("each", { items: ({ window }) => window.notes, key: (note) => note }, (flow) =>
        flow.step("read", idle, ({ item, window }) => {
          expect(item).type.toBe<string>()
          expect(window).type.toBe<Notes>()
        }),
      )
      .branch("go", ({ window }) => (window.notes.length > 1 ? "a" : "b"), {
        a: (flow) => flow.step("in", idle, ({ window }) => void window.seen),
        b: (flow) => flow.sleepUntil("wait", ({ window }) => window.seen),
      })
      .review("look", {
        decision: Schema.Void,
        show: ({ window }) => window.notes,
        deadline: "1 day",
        onReject: "fail",
        onTimeout: "fail",
      })
      .output(Schema.Number, ({ window }) => window.notes.length)
  })

  test("is there where it was declared, and only there", () => {
    const plain = Workflow.make("plain", { version: 1, input })
    plain.step("a", idle, (context) => {
      expect(context).type.not.toHaveProperty("window")
      expect(context).type.not.toHaveProperty("changeWindow")
    })
  })

  test("is not seen where a crash would have it looked at again: by what performs, matches, or starts a child", () => {
    const child = Workflow.make("child", { version: 1, input: Schema.String }).compile()
    agent
      .step("charge", { effects: [Charge], output: Schema.Void }, (context) => {
        expect(context).type.not.toHaveProperty("window")
        context.changeWindow((now) => now)
        return Effect.asVoid(Charge.perform(payment))
      })
      .perform("mail", Email, {
        payload: (context) => {
          expect(context).type.not.toHaveProperty("window")
          return { to: context.input.task }
        },
      })
      .match(
        "kind",
        "t",
        (context) => {
          expect(context).type.not.toHaveProperty("window")
          return { t: "x" } as const
        },
        { x: (flow) => flow },
      )
      .child("child", child, {
        input: (context) => {
          expect(context).type.not.toHaveProperty("window")
          return ""
        },
      })
  })

  test("may be of any schema that is stored as JSON", () => {
    Workflow.make("zod", {
      version: 1,
      input,
      window: { schema: z.object({ n: z.number() }), initial: { n: 1 } },
    }).step("a", idle, ({ window }) => expect(window).type.toBe<{ n: number }>())
    expect(
      Workflow.make("dates", { version: 1, input, window: { schema: Schema.DateFromSelf, initial: new Date() } }),
    ).type.toRaiseError("CRN105: window of workflow 'dates' does not encode to JSON")
  })

  test("begins and changes with what its schema takes", () => {
    expect(
      Workflow.make("a", { version: 1, input, window: { schema: Schema.Number, initial: "1" } }),
    ).type.toRaiseError("is not assignable to type")
    expect(
      agent.step("a", idle, ({ changeWindow }) => changeWindow(() => ({ notes: 1, seen: new Date() }))),
    ).type.toRaiseError("Type 'number' is not assignable to type")
  })
})

describe("a computed workflow", () => {
  test("has a window without a type, and needs what compacts it", () => {
    const computed = Plan.make("a", {
      version: 1,
      input,
      window: {
        schema: Schema.String,
        initial: "",
        compact: {
          effects: [Effects.read(Model)],
          run: ({ window }) => Effect.flatMap(Model, (model) => model.complete(String(window))),
        },
      },
      steps: [
        Plan.step("a", idle, ({ changeWindow, window }) => changeWindow(() => String(window))),
        Plan.perform("mail", Email, { payload: () => ({ to: "" }) }),
      ],
    })
    expect<ReturnType<NonNullable<typeof computed._types>>[2]>().type.toBe<Model | Performs<"mail.send">>()
    expect(Plan.make).type.not.toBeCallableWith("a", {
      version: 1,
      input,
      window: { schema: Schema.String, initial: "", compact: { effects: [Charge], run: () => "" } },
      steps: [],
    })
  })
})

describe("what compacts a window", () => {
  const make = { version: 1, input } as const

  test("is a plain function", () => {
    Workflow.make("a", {
      ...make,
      window: {
        schema: Notes,
        initial: { notes: [], seen: new Date(0) },
        maxBytes: 1_000,
        compact: (window) => {
          expect(window).type.toBe<Notes>()
          return { ...window, notes: window.notes.slice(-2) }
        },
      },
    })
  })

  test("or a step of its own, in whatever style; what it needs, a worker has to provide", () => {
    const generator = Workflow.make("a", {
      ...make,
      window: {
        schema: Schema.String,
        initial: "",
        compact: {
          effects: [Effects.read(Model)],
          retry: { times: 2 },
          timeout: "1 minute",
          onInvalid: { retries: 1, then: "review" },
          run: function* ({ input, rejected, signal, window }) {
            expect(window).type.toBe<string>()
            expect(input).type.toBe<{ readonly task: string }>()
            expect(signal).type.toBe<AbortSignal>()
            expect(rejected?.issues).type.toBe<string | undefined>()
            const model = yield* Model
            return yield* model.complete(window)
          },
        },
      },
    }).compile()
    expect(generator._types!).type.toBeCallableWith({ task: "" })
    expect<ReturnType<NonNullable<typeof generator._types>>[2]>().type.toBe<Model>()

    const effect = Workflow.make("a", {
      ...make,
      window: {
        schema: Schema.String,
        initial: "",
        compact: {
          effects: [Effects.read(Model), Effects.read(Web)],
          run: ({ window }) => Effect.flatMap(Model, (model) => Effect.map(model.extract(window), Output.unvalidated)),
        },
      },
    })
      .step("a", { effects: [Effects.read(Web)], output: Schema.String }, () =>
        Effect.flatMap(Web, (web) => web.get("")),
      )
      .compile()
    expect<ReturnType<NonNullable<typeof effect._types>>[2]>().type.toBe<Model | Web>()

    Workflow.make("a", {
      ...make,
      window: {
        schema: Schema.String,
        initial: "",
        compact: { effects: [Effects.read("openai")], run: async ({ window }) => window.slice(1) },
      },
    })
    Workflow.make("a", {
      ...make,
      window: { schema: Schema.String, initial: "", compact: { effects: [], run: ({ window }) => window.slice(1) } },
    })
  })

  test("gives a window", () => {
    expect(
      Workflow.make("a", { ...make, window: { schema: Schema.String, initial: "", compact: () => 1 } }),
    ).type.toRaiseError("Type 'number' is not assignable to type 'string'")
    expect(
      Workflow.make("a", {
        ...make,
        window: { schema: Schema.String, initial: "", compact: { effects: [], run: () => 1 } },
      }),
    ).type.toRaiseError("number")
  })

  test("CRN101: performs nothing", () => {
    expect(
      Workflow.make("a", {
        ...make,
        window: {
          schema: Schema.String,
          initial: "",
          compact: { effects: [Charge], run: () => Effect.as(Charge.perform(payment), "") },
        },
      }),
    ).type.toRaiseError("CRN101: compact of the window may only read")
    expect(
      Workflow.make("a", {
        ...make,
        window: { schema: Schema.String, initial: "", compact: { effects: [Effects.transaction], run: () => "" } },
      }),
    ).type.toRaiseError("CRN101: compact of the window may only read")
  })

  test("CRN103: needs only what it declares", () => {
    expect(
      Workflow.make("a", {
        ...make,
        window: {
          schema: Schema.String,
          initial: "",
          compact: { effects: [], run: () => Effect.flatMap(Hidden, (hidden) => Effect.as(hidden.send, "")) },
        },
      }),
    ).type.toRaiseError("CRN103: step 'window/compact' uses a service that its effects do not declare")
    expect(
      Workflow.make("a", {
        ...make,
        window: {
          schema: Schema.String,
          initial: "",
          compact: {
            effects: [],
            run: function* () {
              const model = yield* Model
              return yield* model.complete("")
            },
          },
        },
      }),
    ).type.toRaiseError("CRN103: step 'window/compact' uses a service that its effects do not declare")
  })
})

const fragment = Workflow.fragment<{ input: { task: string }; results: {}; window: Notes }>()((flow) =>
  flow.step("note", idle, ({ changeWindow, window }) =>
    changeWindow((now) => ({ ...now, notes: [...now.notes, ...window.notes] })),
  ),
)

describe("a fragment", () => {
  test("sees and changes the window that it asks for", () => {
    expect(agent.use(fragment).compile().diagnostics).type.not.toBe<never>()
    const plain = Workflow.fragment<{ input: { task: string }; results: {} }>()((flow) =>
      flow.step("b", idle, () => {}),
    )
    agent.use(plain).step("c", idle, ({ window }) => void window.notes)
  })

  test("CRN107: is refused where the workflow has another window, or none", () => {
    expect(Workflow.make("plain", { version: 1, input }).use(fragment)).type.toRaiseError(
      "CRN107: the fragment needs another window than this workflow has",
    )
    expect(
      Workflow.make("other", { version: 1, input, window: { schema: Schema.String, initial: "" } }).use(fragment),
    ).type.toRaiseError("CRN107: the fragment needs another window than this workflow has")
  })
})
