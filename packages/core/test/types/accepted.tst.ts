/** Programs that type-check, with the exact types that they give. */
import * as Legacy from "@effect/schema/Schema"
import { Effect, Schema, type Scope } from "effect"
import { describe, expect, test } from "tstyche"
import * as v from "valibot"
import { z } from "zod"
import {
  Effects,
  fromLegacySchema,
  Operation,
  Output,
  Workflow,
  type Fragment,
  type Outcome,
  type Performs,
  type StoreWithTransactions,
} from "../../src/index.js"
import type {
  failureOfWorkflow,
  givenOfWorkflow,
  needsOfWorkflow,
  outputOfWorkflow,
} from "../../src/builder/Workflow.js"
import {
  CardDeclined,
  Charge,
  Clock,
  Email,
  flow,
  Model,
  NotBillable,
  payment,
  Publish,
  Refund,
  Web,
} from "./fixtures.js"

describe("the four forms of run", () => {
  test("an Effect, a promise, a plain value and a generator function", () => {
    flow
      .step("effect", { effects: [], output: Schema.Number }, () => Effect.succeed(1))
      .step("promise", { effects: [], output: Schema.Number }, async () => 1)
      .step("plain", { effects: [], output: Schema.Number }, () => 1)
      .step("generator", { effects: [], output: Schema.Number }, function* () {
        return yield* Effect.succeed(1)
      })
      .step("last", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results).type.toBe<{
          readonly effect: number
          readonly promise: number
          readonly plain: number
          readonly generator: number
        }>()
      })
  })

  test("a generator function that uses several services and fails in several ways", () => {
    const used = flow
      .step(
        "read",
        { effects: [Effects.read(Model), Effects.read(Web), Effects.local(Clock)], output: Schema.String },
        function* ({ input }) {
          const model = yield* Model
          const web = yield* Web
          const at = yield* (yield* Clock).now
          const page = yield* web.get(input.email)
          return `${yield* model.complete(page)} ${at}`
        },
      )
      .compile()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Model | Web | Clock>()
  })

  test("a generator function that performs its one operation", () => {
    flow.step("pay", { effects: [Charge], output: Schema.String }, function* ({ input }) {
      const receipt = yield* Charge.perform({ customer: input.email, cents: input.cents })
      expect(receipt).type.toBe<{ readonly id: string }>()
      return receipt.id
    })
  })

  test("a generator function that yields nothing", () => {
    flow
      .step("quiet", { effects: [], output: Schema.Number }, function* () {
        return 1
      })
      .step("last", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results.quiet).type.toBe<number>()
      })
  })

  test("outputs that are not yet validated", () => {
    const output = Schema.Struct({ cents: Schema.Int })
    flow
      .step("plain", { effects: [], output }, () => Output.json("{}"))
      .step("effect", { effects: [Effects.read(Model)], output }, () =>
        Effect.map(
          Effect.flatMap(Model, (model) => model.extract("")),
          Output.unvalidated,
        ),
      )
      .step("promise", { effects: [], output }, async () => Output.unvalidated({}))
      .step("generator", { effects: [Effects.read(Model)], output }, function* () {
        return Output.unvalidated(yield* (yield* Model).extract(""))
      })
      .step("last", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results).type.toBe<{
          readonly plain: { readonly cents: number }
          readonly effect: { readonly cents: number }
          readonly promise: { readonly cents: number }
          readonly generator: { readonly cents: number }
        }>()
      })
  })

  test("one operation through helpers, retried, timed out, and in a scope", () => {
    const pay = (cents: number) => Effect.map(Charge.perform({ customer: "c", cents }), ({ id }) => id)
    flow.step("pay", { effects: [Charge], output: Schema.String }, ({ input }) =>
      Effect.acquireUseRelease(
        Effect.void,
        () => pay(input.cents),
        () => Effect.void,
      ),
    )
  })

  test("a scope needs no declaration", () => {
    const scoped: Effect.Effect<void, never, Scope.Scope> = Effect.acquireRelease(Effect.void, () => Effect.void)
    flow.step("scoped", { effects: [], output: Schema.Void }, () => scoped)
  })

  test("a literal list held as const", () => {
    const effects = [Effects.read(Model), Effects.local(Clock)] as const
    flow.step("read", { effects, output: Schema.String }, () => Effect.flatMap(Model, (model) => model.complete("")))
  })
})

describe("what a step's function is given", () => {
  test("input and results by name", () => {
    flow.step("a", { effects: [], output: Schema.String }, ({ input, results, signal }) => {
      expect(input).type.toBe<{ readonly email: string; readonly cents: number }>()
      expect(results).type.toBe<{}>()
      expect(signal).type.toBe<AbortSignal>()
      return ""
    })
  })

  test("results are the decoded side: Date, Option and defaults included", () => {
    flow
      .step(
        "invoice",
        {
          effects: [],
          output: Schema.Struct({
            due: Schema.Date,
            wei: Schema.BigInt,
            note: Schema.optional(Schema.String),
            count: Schema.optionalWith(Schema.Number, { default: () => 0 }),
          }),
        },
        () => ({ due: new Date(), wei: 1n, count: 1 }),
      )
      .step("next", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results.invoice).type.toBe<{
          readonly due: Date
          readonly wei: bigint
          readonly note?: string | undefined
          readonly count: number
        }>()
      })
  })

  test("a recursive schema", () => {
    interface Tree {
      readonly name: string
      readonly kids: ReadonlyArray<Tree>
    }
    const Tree: Schema.Schema<Tree> = Schema.Struct({
      name: Schema.String,
      kids: Schema.Array(Schema.suspend((): Schema.Schema<Tree> => Tree)),
    })
    flow
      .step("tree", { effects: [], output: Tree }, () => ({ name: "root", kids: [] }))
      .step("next", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results.tree).type.toBe<Tree>()
      })
  })

  test("perform in promise style gives the operation's success", () => {
    flow.step("pay", { effects: [Charge], output: Schema.String }, async ({ perform }) => {
      const receipt = await perform(Charge, payment)
      expect(receipt).type.toBe<{ readonly id: string }>()
      return receipt.id
    })
  })

  test("perform in promise style takes a choice that was declared", () => {
    const choice = Operation.oneOf({ mail: Email, page: Publish })
    flow.step("say", { effects: [choice], output: Schema.Void }, async ({ perform }) => {
      await perform(choice, { case: "mail", payload: { to: "a" } })
    })
  })

  test("query in a transaction step", () => {
    const used = flow
      .step("book", { effects: [Effects.transaction], output: Schema.Void }, async ({ query }) => {
        const rows = await query<{ id: number }>("select id from t where a = $1", [1])
        expect(rows).type.toBe<ReadonlyArray<{ id: number }>>()
      })
      .compile()
    expect<needsOfWorkflow<typeof used>>().type.toBe<StoreWithTransactions>()
  })
})

describe("perform", () => {
  const said = Operation.oneOf({ mail: Email, page: Publish })

  test("results: plain, settled, optional, both, and a choice", () => {
    flow
      .perform("plain", Charge, { payload: () => payment })
      .perform("settled", Charge, { payload: () => payment, settle: true })
      .perform("optional", Charge, { payload: ({ input }) => (input.cents > 0 ? payment : null), optional: true })
      .perform("both", Charge, { payload: () => null, optional: true, settle: true })
      .perform("choice", said, { payload: () => ({ case: "page", payload: { title: "" } }) })
      .step("next", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results).type.toBe<{
          readonly plain: { readonly id: string }
          readonly settled: Outcome<{ readonly id: string }, CardDeclined>
          readonly optional: { readonly id: string } | null
          readonly both: Outcome<{ readonly id: string }, CardDeclined> | null
          readonly choice:
            | { readonly case: "mail"; readonly result: void }
            | { readonly case: "page"; readonly result: { readonly url: string } }
        }>()
      })
  })

  test("a choice of the same operation under two names, chosen from results", () => {
    flow
      .step("pick", { effects: [], output: Schema.Literal("mail", "page") }, () => "mail")
      .perform("say", said, {
        optional: true,
        payload: ({ results }) =>
          results.pick === "mail" ? { case: "mail", payload: { to: "" } } : { case: "page", payload: { title: "" } },
      })
      .step("url", { effects: [], output: Schema.NullOr(Schema.String) }, ({ results }) =>
        results.say?.case === "page" ? results.say.result.url : null,
      )
  })

  test("payloads that are text, nothing, or may be null by themselves", () => {
    const make = { success: Schema.Void, onUnknown: Charge.members[0]!.onUnknown }
    const Text = Operation.make("text", { ...make, payload: Schema.String })
    const Nothing = Operation.make("nothing", { ...make, payload: Schema.Void })
    const Nullable = Operation.make("nullable", { ...make, payload: Schema.NullOr(Schema.String) })
    flow
      .perform("text", Text, { payload: ({ input }) => input.email })
      .perform("nothing", Nothing, { payload: () => {} })
      .perform("undefined", Nothing, { payload: () => undefined })
      .perform("null", Nullable, { payload: ({ input }) => (input.cents > 0 ? input.email : null) })
      .perform("optional", Text, { payload: ({ input }) => (input.cents > 0 ? input.email : null), optional: true })
      .step("next", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results.text).type.toBe<void>()
        expect(results.optional).type.toBe<void | null>()
      })
  })

  test("a choice keeps the failures and handlers of its members", () => {
    const pay = Operation.oneOf({ card: Charge, mail: Email })
    const used = flow.perform("pay", pay, { payload: () => ({ case: "card", payload: payment }) }).compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<CardDeclined>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Performs<"payments.charge"> | Performs<"mail.send">>()
  })

  test("retry.when sees the operation's failure", () => {
    flow.perform("pay", Charge, {
      payload: () => payment,
      retry: {
        times: 3,
        when: (error) => {
          expect(error).type.toBe<CardDeclined>()
          return error.code === "rate"
        },
      },
    })
  })

  test("retry.when of a step sees something unknown", () => {
    flow.step("a", { effects: [], output: Schema.Void, retry: { times: 1, when: (error) => error === "x" } }, () => {})
  })

  test("compensate sees the result", () => {
    const used = flow
      .perform("pay", Charge, {
        payload: () => payment,
        compensate: {
          operation: Refund,
          payload: ({ result, input }) => {
            expect(result).type.toBe<{ readonly id: string }>()
            expect(input.cents).type.toBe<number>()
            return { charge: result.id }
          },
        },
      })
      .compile()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Performs<"payments.charge"> | Performs<"payments.refund">>()
  })
})

describe("what a compiled workflow says", () => {
  test("given, output, failures and requirements", () => {
    const used = Workflow.make("orders", {
      version: 1,
      input: Schema.Struct({ at: Schema.Date }),
      failure: NotBillable,
    })
      .step("read", { effects: [Effects.read(Model)], output: Schema.String }, () =>
        Effect.flatMap(Model, (model) => model.complete("")),
      )
      .perform("pay", Charge, { payload: () => payment })
      .perform("mail", Email, { payload: () => ({ to: "" }) })
      .output(Schema.Struct({ id: Schema.String }), ({ results }) => ({ id: results.pay.id }))
      .compile()
    expect<givenOfWorkflow<typeof used>>().type.toBe<{ readonly at: Date }>()
    expect<outputOfWorkflow<typeof used>>().type.toBe<{ readonly id: string }>()
    expect<failureOfWorkflow<typeof used>>().type.toBe<NotBillable | CardDeclined>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Model | Performs<"payments.charge"> | Performs<"mail.send">>()
  })

  test("a settled failure is no failure of the workflow", () => {
    const used = flow.perform("pay", Charge, { payload: () => payment, settle: true }).compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<never>()
    expect<outputOfWorkflow<typeof used>>().type.toBe<void>()
  })

  test("a step's own errors are no failures of the workflow", () => {
    const used = flow.step("a", { effects: [], output: Schema.Void }, () => Effect.fail("oops")).compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<never>()
  })

  test("a handler may return an Effect or a promise, and is told its key", () => {
    Charge.toLayer((given, { idempotencyKey, fence, attempt, signal }) => {
      expect(given).type.toBe<{ readonly customer: string; readonly cents: number }>()
      expect(idempotencyKey).type.toBe<string>()
      expect(fence).type.toBe<number>()
      expect(attempt).type.toBe<number>()
      expect(signal).type.toBe<AbortSignal>()
      return Effect.fail(new CardDeclined({ code: "no" }))
    })
    Publish.toLayer(async ({ title }) => ({ url: title }))
  })
})

describe("fragments", () => {
  const billing = Workflow.fragment<{ input: { email: string }; results: { extract: { cents: number } } }>()((f) =>
    f.perform("charge", Charge, {
      payload: ({ input, results }) => ({ customer: input.email, cents: results.extract.cents }),
    }),
  )

  test("add their results and lose none", () => {
    const used = flow
      .step("other", { effects: [], output: Schema.String }, () => "x")
      .step("extract", { effects: [], output: Schema.Struct({ cents: Schema.Int, more: Schema.String }) }, () => ({
        cents: 1,
        more: "",
      }))
      .use(billing)
      .step("last", { effects: [], output: Schema.String }, ({ results }) => {
        expect(results).type.toBe<{
          readonly other: string
          readonly extract: { readonly cents: number; readonly more: string }
          readonly charge: { readonly id: string }
        }>()
        return results.other + results.charge.id
      })
      .compile()
    expect<failureOfWorkflow<typeof used>>().type.toBe<CardDeclined>()
    expect<needsOfWorkflow<typeof used>>().type.toBe<Performs<"payments.charge">>()
  })

  test("can be made of fragments", () => {
    const whole = Workflow.fragment<{ input: { email: string }; results: {} }>()((f) =>
      f
        .step("extract", { effects: [], output: Schema.Struct({ cents: Schema.Int }) }, () => ({ cents: 1 }))
        .use(billing),
    )
    expect(whole).type.toBeAssignableTo<Fragment<{ email: string }, never, any, CardDeclined, any>>()
    flow.use(whole).step("last", { effects: [], output: Schema.String }, ({ results }) => results.charge.id)
  })

  test("that need nothing", () => {
    const free = Workflow.fragment<{ input: unknown; results: {} }>()((f) =>
      f.step("free", { effects: [], output: Schema.String }, () => ""),
    )
    Workflow.make("any", { version: 1, input: Schema.Number }).use(free)
  })
})

describe("schemas of the old @effect/schema package", () => {
  test("keep their two sides", () => {
    const adapted = fromLegacySchema(Legacy.Struct({ due: Legacy.Date, n: Legacy.NumberFromString }), Legacy)
    expect(adapted).type.toBe<
      Schema.Schema<{ readonly due: Date; readonly n: number }, { readonly due: string; readonly n: string }>
    >()
    flow
      .step("old", { effects: [], output: adapted }, () => ({ due: new Date(), n: 1 }))
      .step("next", { effects: [], output: Schema.Void }, ({ results }) => {
        expect(results.old).type.toBe<{ readonly due: Date; readonly n: number }>()
      })
  })
})

describe("Standard Schemas", () => {
  const Lead = z.object({ company: z.string(), score: z.number().default(0) })

  test("Zod: a step returns the input side, later steps see the output side", () => {
    const used = Workflow.make("lead", { version: 1, input: Lead })
      .step("qualify", { effects: [Effects.read("openai")], output: Lead }, async ({ input }) => {
        expect(input).type.toBe<{ company: string; score: number }>()
        return { company: input.company }
      })
      .step("score", { effects: [], output: z.enum(["hot", "cold"]) }, ({ results }) => {
        expect(results.qualify).type.toBe<{ company: string; score: number }>()
        return results.qualify.score > 5 ? "hot" : "cold"
      })
      .output(z.object({ label: z.string() }), ({ results }) => ({ label: results.score }))
      .compile()
    expect<givenOfWorkflow<typeof used>>().type.toBe<{ company: string; score?: number | undefined }>()
    expect<outputOfWorkflow<typeof used>>().type.toBe<{ label: string }>()
  })

  test("Zod transforms", () => {
    flow
      .step("length", { effects: [], output: z.string().transform((text) => text.length) }, () => "four")
      .step("next", { effects: [], output: z.null() }, ({ results }) => {
        expect(results.length).type.toBe<number>()
        return null
      })
  })

  test("Valibot", () => {
    flow
      .step("lead", { effects: [], output: v.object({ score: v.optional(v.number(), 0) }) }, () => ({}))
      .step("next", { effects: [], output: v.null() }, ({ results }) => {
        expect(results.lead).type.toBe<{ score: number }>()
        return null
      })
  })

  test("operations over Zod and Valibot", () => {
    const Post = Operation.make("slack.post", {
      payload: z.object({ text: z.string(), channel: z.string().default("#all") }),
      success: v.object({ ts: v.string() }),
      onUnknown: Charge.members[0]!.onUnknown,
    })
    flow
      .perform("post", Post, { payload: () => ({ text: "", channel: "" }) })
      .step("next", { effects: [], output: Schema.String }, ({ results }) => results.post.ts)
  })
})
