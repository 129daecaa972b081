/** Programs that do not type-check, each with the text that stands where the mistake is. */
import { Effect, Layer, Option, Schema, pipe } from "effect"
import { describe, expect, test } from "tstyche"
import * as v from "valibot"
import { z } from "zod"
import { Effects, MemoryStore, OnUnknown, Operation, Worker, Workflow } from "../../src/index.js"
import {
  Charge,
  chargeQuietly,
  Clock,
  Email,
  flow,
  Hidden,
  mailQuietly,
  Model,
  payment,
  Publish,
  Refund,
} from "./fixtures.js"

declare const coin: boolean
const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })

describe("CRN101: at most one external effect a step", () => {
  test("two declared operations", () => {
    expect(flow.step("pay", { effects: [Charge, Email], output: Schema.Void }, () => Effect.void)).type.toRaiseError(
      "CRN101: step 'pay' has 2 external effects (payments.charge + mail.send); one step each, or Operation.oneOf if only one of them is performed",
    )
  })

  test("three declared operations", () => {
    expect(
      flow.step("pay", { effects: [Charge, Email, Publish], output: Schema.Void }, () => Effect.void),
    ).type.toRaiseError("CRN101: step 'pay' has 3 external effects (payments.charge + mail.send + cms.publish)")
  })

  test("the same operation twice", () => {
    expect(flow.step("pay", { effects: [Charge, Charge], output: Schema.Void }, () => Effect.void)).type.toRaiseError(
      "CRN101: step 'pay' has 2 external effects (payments.charge + payments.charge)",
    )
  })

  test("an operation and a transaction", () => {
    expect(
      flow.step("pay", { effects: [Charge, Effects.transaction], output: Schema.Void }, () => Effect.void),
    ).type.toRaiseError("CRN101: step 'pay' has 2 external effects (payments.charge + transaction)")
  })

  test("a choice and an operation", () => {
    const choice = Operation.oneOf({ mail: Email, page: Publish })
    expect(flow.step("pay", { effects: [choice, Charge], output: Schema.Void }, () => Effect.void)).type.toRaiseError(
      "CRN101: step 'pay' has 2 external effects (",
    )
  })

  test("a list held in a variable", () => {
    const effects = [Charge, Email]
    expect(flow.step("pay", { effects, output: Schema.Void }, () => Effect.void)).type.toRaiseError(
      "CRN101: effects of step 'pay' must be written out as a literal list (an array variable hides how many operations it holds); use 'as const'",
    )
  })

  test("a list that spreads a variable", () => {
    const reads = [Effects.read(Model)]
    expect(flow.step("pay", { effects: [...reads, Charge], output: Schema.Void }, () => Effect.void)).type.toRaiseError(
      "CRN101: effects of step 'pay' must be written out as a literal list",
    )
  })

  test("an element that is one operation or another", () => {
    expect(
      flow.step("pay", { effects: [coin ? Charge : Email], output: Schema.Void }, () => Effect.void),
    ).type.toRaiseError("CRN101: step 'pay' declares a choice of operations; declare it as Operation.oneOf({ .. })")
  })

  test("a choice inside a choice", () => {
    expect(Operation.oneOf({ inner: Operation.oneOf({ mail: Email }) })).type.toRaiseError(
      "CRN101: case 'inner' of Operation.oneOf must be an operation made by Operation.make; list the operations of the inner choice instead",
    )
  })

  test("a second operation through zip", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        Effect.asVoid(Effect.zip(Charge.perform(payment), Email.perform({ to: "" }))),
      ),
    ).type.toRaiseError(
      "CRN101: step 'pay' performs several external effects; one step each, or Operation.oneOf if only one of them is performed",
    )
  })

  test("a second operation through zipRight", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        Effect.zipRight(Charge.perform(payment), Email.perform({ to: "" })),
      ),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("a second operation through all", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        Effect.all([Charge.perform(payment), Email.perform({ to: "" })], { discard: true }),
      ),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("a second operation through flatMap", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        Effect.flatMap(Charge.perform(payment), ({ id }) => Email.perform({ to: id })),
      ),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("a second operation through andThen, tap and pipe", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        pipe(Charge.perform(payment), Effect.tap(Email.perform({ to: "" })), Effect.andThen(Effect.void)),
      ),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("a second operation through orElse", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        Effect.orElse(Effect.asVoid(Charge.perform(payment)), () => Email.perform({ to: "" })),
      ),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("a second operation in nested helper functions", () => {
    const both = Effect.zipRight(chargeQuietly, mailQuietly("a"))
    const hidden = (): typeof both => Effect.uninterruptible(both)
    expect(flow.step("pay", { effects: [Charge], output: Schema.Void }, () => hidden())).type.toRaiseError(
      "CRN101: step 'pay' performs several external effects",
    )
  })

  test("a second operation in a finalizer", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        Effect.ensuring(Effect.asVoid(Charge.perform(payment)), Email.perform({ to: "" })),
      ),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("a second operation in Effect.gen", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, () =>
        Effect.gen(function* () {
          yield* Charge.perform(payment)
          yield* Email.perform({ to: "" })
        }),
      ),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("a second operation in a generator function", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, function* () {
        yield* Charge.perform(payment)
        yield* Email.perform({ to: "" })
      }),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })

  test("two operations where none is declared", () => {
    expect(
      flow.step("pay", { effects: [], output: Schema.Void }, () => Effect.zipRight(chargeQuietly, mailQuietly("a"))),
    ).type.toRaiseError("CRN101: step 'pay' performs several external effects")
  })
})

describe("CRN102: performs only what is declared", () => {
  test("an Effect", () => {
    expect(flow.step("mail", { effects: [], output: Schema.Void }, () => Email.perform({ to: "" }))).type.toRaiseError(
      "CRN102: step 'mail' performs 'mail.send' without declaring it in effects; add the operation to the step's effects",
    )
  })

  test("an Effect of a step that declares another operation", () => {
    expect(
      flow.step("mail", { effects: [Charge], output: Schema.Void }, () => Email.perform({ to: "" })),
    ).type.toRaiseError("CRN102: step 'mail' performs 'mail.send' without declaring it in effects")
  })

  test("a generator function", () => {
    expect(
      flow.step("mail", { effects: [], output: Schema.Void }, function* () {
        yield* Email.perform({ to: "" })
      }),
    ).type.toRaiseError("CRN102: step 'mail' performs 'mail.send' without declaring it in effects")
  })

  test("a generator function that also uses a service", () => {
    expect(
      flow.step("mail", { effects: [Effects.local(Clock)], output: Schema.Void }, function* () {
        yield* (yield* Clock).now
        yield* Email.perform({ to: "" })
      }),
    ).type.toRaiseError("CRN102: step 'mail' performs 'mail.send' without declaring it in effects")
  })

  test("perform in promise style, with the step's own name", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, async ({ perform }) => {
        await perform(Email, { to: "" })
      }),
    ).type.toRaiseError("CRN102: step 'pay' performs 'mail.send' without declaring it in effects")
  })

  test("perform in promise style where nothing is declared", () => {
    expect(
      flow.step("pay", { effects: [], output: Schema.Void }, async ({ perform }) => {
        await perform(Email, { to: "" })
      }),
    ).type.toRaiseError("Property 'perform' does not exist")
  })

  test("query in promise style without a transaction", () => {
    expect(
      flow.step("pay", { effects: [Charge], output: Schema.Void }, async ({ query }) => {
        await query("select 1")
      }),
    ).type.toRaiseError("Property 'query' does not exist")
  })

  test("a payload of another shape in promise style", () => {
    expect(
      flow.step("pay", { effects: [Email], output: Schema.Void }, async ({ perform }) => {
        await perform(Email, { too: "" })
      }),
    ).type.toRaiseError("'too' does not exist in type")
  })
})

describe("CRN103: every service is classified", () => {
  test("an Effect that needs a service", () => {
    expect(
      flow.step("hide", { effects: [], output: Schema.Void }, () => Effect.flatMap(Hidden, (hidden) => hidden.send)),
    ).type.toRaiseError(
      "CRN103: step 'hide' uses a service that its effects do not declare; add Effects.read(..) or Effects.local(..)",
    )
  })

  test("the message shows the service", () => {
    expect(
      flow.step("hide", { effects: [], output: Schema.Void }, () => Effect.flatMap(Hidden, (hidden) => hidden.send)),
    ).type.toRaiseError("readonly service: Hidden")
  })

  test("a generator function that needs a service beside a declared one", () => {
    expect(
      flow.step("hide", { effects: [Effects.read(Model)], output: Schema.Void }, function* () {
        yield* Model
        yield* (yield* Hidden).send
      }),
    ).type.toRaiseError("CRN103: step 'hide' uses a service that its effects do not declare")
  })

  test("requirements of type any", () => {
    const untyped = Effect.void as Effect.Effect<void, never, any>
    expect(flow.step("any", { effects: [], output: Schema.Void }, () => untyped)).type.toRaiseError(
      "CRN103: step 'any' has 'any' as its requirements; nothing can be checked, give the effect a type",
    )
  })

  test("requirements of type any in a generator function", () => {
    const untyped = Effect.void as Effect.Effect<void, never, any>
    expect(
      flow.step("any", { effects: [], output: Schema.Void }, function* () {
        yield* untyped
      }),
    ).type.toRaiseError("CRN103: step 'any' has 'any' as its requirements")
  })

  test("something in effects that is no effect", () => {
    expect(flow.step("odd", { effects: [Model], output: Schema.Void }, () => {})).type.toRaiseError("not assignable")
  })
})

describe("CRN104: names are literal and free", () => {
  test("a step of the same name", () => {
    expect(
      flow
        .step("a", { effects: [], output: Schema.Void }, () => {})
        .step("a", { effects: [], output: Schema.Void }, () => {}),
    ).type.toRaiseError("CRN104: step name 'a' is already taken; every step of a scope has a name of its own")
  })

  test("a perform of the same name, some steps later", () => {
    expect(
      flow
        .step("a", { effects: [], output: Schema.Void }, () => {})
        .step("b", { effects: [], output: Schema.Void }, () => {})
        .perform("a", Email, { payload: () => ({ to: "" }) }),
    ).type.toRaiseError("CRN104: step name 'a' is already taken")
  })

  test("a step named like one of a fragment before it", () => {
    const greeting = Workflow.fragment<{ input: unknown; results: {} }>()((f) =>
      f.step("greet", { effects: [], output: Schema.String }, () => "hi"),
    )
    expect(flow.use(greeting).step("greet", { effects: [], output: Schema.Void }, () => {})).type.toRaiseError(
      "CRN104: step name 'greet' is already taken",
    )
  })

  test("a fragment with a step named like one before it", () => {
    const greeting = Workflow.fragment<{ input: unknown; results: {} }>()((f) =>
      f.step("greet", { effects: [], output: Schema.String }, () => "hi"),
    )
    expect(flow.step("greet", { effects: [], output: Schema.Void }, () => {}).use(greeting)).type.toRaiseError(
      "CRN104: the fragment's step 'greet' is already taken; rename it in one of the two",
    )
  })

  test("the same fragment twice", () => {
    const greeting = Workflow.fragment<{ input: unknown; results: {} }>()((f) =>
      f.step("greet", { effects: [], output: Schema.String }, () => "hi"),
    )
    expect(flow.use(greeting).use(greeting)).type.toRaiseError("CRN104: the fragment's step 'greet' is already taken")
  })

  test("a step in a fragment named like a result that it needs", () => {
    expect(
      Workflow.fragment<{ input: unknown; results: { a: string } }>()((f) =>
        f.step("a", { effects: [], output: Schema.String }, () => "hi"),
      ),
    ).type.toRaiseError("CRN104: step name 'a' is already taken")
  })

  test("a name that is no literal", () => {
    const name: string = "computed"
    expect(flow.step(name, { effects: [], output: Schema.Void }, () => {})).type.toRaiseError(
      "CRN104: a step's name must be a literal; build workflows of computed steps with Plan.make",
    )
  })

  test("a perform whose name is no literal", () => {
    const name: string = "computed"
    expect(flow.perform(name, Email, { payload: () => ({ to: "" }) })).type.toRaiseError(
      "CRN104: a step's name must be a literal; build workflows of computed steps with Plan.make",
    )
  })
})

describe("CRN105: what is stored is JSON", () => {
  test("a Date", () => {
    expect(flow.step("at", { effects: [], output: Schema.DateFromSelf }, () => new Date())).type.toRaiseError(
      "CRN105: output of step 'at' does not encode to JSON; use a schema whose encoded side is JSON, e.g. Schema.Date for Schema.DateFromSelf",
    )
  })

  test("a Date inside a struct inside a list", () => {
    const output = Schema.Array(Schema.Struct({ at: Schema.DateFromSelf }))
    expect(flow.step("at", { effects: [], output }, () => [])).type.toRaiseError(
      "CRN105: output of step 'at' does not encode to JSON",
    )
  })

  test("a bigint", () => {
    expect(flow.step("wei", { effects: [], output: Schema.BigIntFromSelf }, () => 1n)).type.toRaiseError(
      "CRN105: output of step 'wei' does not encode to JSON",
    )
  })

  test("a Map", () => {
    const output = Schema.MapFromSelf({ key: Schema.String, value: Schema.Number })
    expect(flow.step("map", { effects: [], output }, () => new Map<string, number>())).type.toRaiseError(
      "CRN105: output of step 'map' does not encode to JSON",
    )
  })

  test("a Set", () => {
    expect(
      flow.step("set", { effects: [], output: Schema.SetFromSelf(Schema.String) }, () => new Set<string>()),
    ).type.toRaiseError("CRN105: output of step 'set' does not encode to JSON")
  })

  test("bytes", () => {
    expect(
      flow.step("bytes", { effects: [], output: Schema.Uint8ArrayFromSelf }, () => new Uint8Array()),
    ).type.toRaiseError("CRN105: output of step 'bytes' does not encode to JSON")
  })

  test("an Option", () => {
    const output = Schema.Struct({ name: Schema.OptionFromSelf(Schema.String) })
    expect(flow.step("opt", { effects: [], output }, () => ({ name: Option.none() }))).type.toRaiseError(
      "CRN105: output of step 'opt' does not encode to JSON",
    )
  })

  test("unknown", () => {
    expect(flow.step("odd", { effects: [], output: Schema.Unknown }, () => 1)).type.toRaiseError(
      "CRN105: output of step 'odd' does not encode to JSON",
    )
  })

  test("unknown in a member", () => {
    expect(
      flow.step("odd", { effects: [], output: Schema.Struct({ a: Schema.Unknown }) }, () => ({ a: 1 })),
    ).type.toRaiseError("CRN105: output of step 'odd' does not encode to JSON")
  })

  test("any", () => {
    expect(flow.step("odd", { effects: [], output: Schema.Any }, () => 1)).type.toRaiseError(
      "CRN105: output of step 'odd' does not encode to JSON",
    )
  })

  test("any in a member", () => {
    expect(
      flow.step("odd", { effects: [], output: Schema.Struct({ a: Schema.Any }) }, () => ({ a: 1 })),
    ).type.toRaiseError("CRN105: output of step 'odd' does not encode to JSON")
  })

  test("any in a list of a record", () => {
    const output = Schema.Record({ key: Schema.String, value: Schema.Array(Schema.Any) })
    expect(flow.step("odd", { effects: [], output }, () => ({}))).type.toRaiseError(
      "CRN105: output of step 'odd' does not encode to JSON",
    )
  })

  test("a symbol", () => {
    expect(flow.step("sym", { effects: [], output: Schema.SymbolFromSelf }, () => Symbol.iterator)).type.toRaiseError(
      "CRN105: output of step 'sym' does not encode to JSON",
    )
  })

  test("a Zod date", () => {
    expect(
      flow.step("zod", { effects: [], output: z.object({ at: z.date() }) }, () => ({ at: new Date() })),
    ).type.toRaiseError("CRN105: output of step 'zod' does not encode to JSON")
  })

  test("Zod any and unknown", () => {
    expect(flow.step("zod", { effects: [], output: z.object({ a: z.any() }) }, () => ({ a: 1 }))).type.toRaiseError(
      "CRN105: output of step 'zod' does not encode to JSON",
    )
    expect(flow.step("zod", { effects: [], output: z.unknown() }, () => 1)).type.toRaiseError(
      "CRN105: output of step 'zod' does not encode to JSON",
    )
  })

  test("a Zod transform to a Date: its output is what is stored", () => {
    const output = z.string().transform((text) => new Date(text))
    expect(flow.step("zod", { effects: [], output }, () => "2026-01-01")).type.toRaiseError(
      "CRN105: output of step 'zod' does not encode to JSON",
    )
  })

  test("a Valibot bigint", () => {
    expect(
      flow.step("vali", { effects: [], output: v.object({ wei: v.bigint() }) }, () => ({ wei: 1n })),
    ).type.toRaiseError("CRN105: output of step 'vali' does not encode to JSON")
  })

  test("the payload of an operation", () => {
    expect(Operation.make("o.p", { payload: Schema.DateFromSelf, success: Schema.Void, onUnknown })).type.toRaiseError(
      "CRN105: payload of operation 'o.p' does not encode to JSON",
    )
  })

  test("the success of an operation", () => {
    expect(
      Operation.make("o.p", { payload: Schema.Void, success: Schema.BigIntFromSelf, onUnknown }),
    ).type.toRaiseError("CRN105: success of operation 'o.p' does not encode to JSON")
  })

  test("the failure of an operation", () => {
    expect(
      Operation.make("o.p", { payload: Schema.Void, success: Schema.Void, failure: Schema.Unknown, onUnknown }),
    ).type.toRaiseError("CRN105: failure of operation 'o.p' does not encode to JSON")
  })

  test("the input of a workflow", () => {
    expect(Workflow.make("w", { version: 1, input: Schema.DateFromSelf })).type.toRaiseError(
      "CRN105: input of workflow 'w' does not encode to JSON",
    )
  })

  test("the failure of a workflow", () => {
    expect(Workflow.make("w", { version: 1, input: Schema.Void, failure: Schema.DateFromSelf })).type.toRaiseError(
      "CRN105: failure of workflow 'w' does not encode to JSON",
    )
  })

  test("the output of a workflow", () => {
    expect(flow.output(Schema.DateFromSelf, () => new Date())).type.toRaiseError(
      "CRN105: output of the workflow does not encode to JSON",
    )
  })
})

describe("CRN106: a transaction step needs a store with transactions", () => {
  test("a worker on a store without", () => {
    const used = flow.step("book", { effects: [Effects.transaction], output: Schema.Void }, () => {}).compile()
    const live = Worker.layer({ workflows: [used] }).pipe(Layer.provide(MemoryStore.layer))
    const launch = (layer: Layer.Layer<Worker, unknown>): void => void layer
    expect(launch(live)).type.toRaiseError(
      `StoreWithTransactions<"CRN106: a transaction step needs a store with transactions; provide SqliteStore or PostgresStore">`,
    )
  })
})

describe("CRN107: what a step relies on is there", () => {
  test("a payload that may be null without optional: true", () => {
    expect(
      flow.perform("mail", Email, { payload: ({ input }) => (input.cents > 0 ? { to: "a" } : null) }),
    ).type.toRaiseError("CRN107: step 'mail' may skip its operation; say so with optional: true")
  })

  test("a payload of exactly the operation's type, or null", () => {
    const to: { readonly to: string } = { to: "a" }
    expect(flow.perform("mail", Email, { payload: () => (coin ? to : null) })).type.toRaiseError(
      "CRN107: step 'mail' may skip its operation; say so with optional: true",
    )
  })

  const billing = Workflow.fragment<{ input: { email: string }; results: { extract: { cents: number } } }>()((f) =>
    f.perform("bill", Charge, {
      payload: ({ input, results }) => ({ customer: input.email, cents: results.extract.cents }),
    }),
  )

  test("a fragment whose results are not there", () => {
    expect(flow.use(billing)).type.toRaiseError(
      "CRN107: the fragment needs results that are not there yet: 'extract'; add the step before .use, with the output it asks for",
    )
  })

  test("a fragment whose results have another type", () => {
    expect(flow.step("extract", { effects: [], output: Schema.String }, () => "x").use(billing)).type.toRaiseError(
      "CRN107: the fragment needs results that are not there yet: 'extract'",
    )
  })

  test("a fragment that needs another input", () => {
    const other = Workflow.fragment<{ input: { phone: string }; results: {} }>()((f) =>
      f.step("ring", { effects: [], output: Schema.String }, ({ input }) => input.phone),
    )
    expect(flow.use(other)).type.toRaiseError("CRN107: the fragment needs another input than this workflow has")
  })
})

describe("CRN108: a step that performs reads nothing", () => {
  test("a read beside an operation", () => {
    expect(
      flow.step("ask", { effects: [Effects.read(Model), Email], output: Schema.Void }, () =>
        Effect.flatMap(Model, (model) => model.complete("")).pipe(Effect.flatMap((to) => Email.perform({ to }))),
      ),
    ).type.toRaiseError(
      "CRN108: step 'ask' reads and performs 'mail.send'; after a crash the read would run again and disagree with what was sent; read in the step before",
    )
  })

  test("a read by name beside an operation", () => {
    expect(
      flow.step("ask", { effects: [Email, Effects.read("openai")], output: Schema.Void }, () => {}),
    ).type.toRaiseError("CRN108: step 'ask' reads and performs 'mail.send'")
  })

  test("a read beside a transaction", () => {
    expect(
      flow.step("ask", { effects: [Effects.transaction, Effects.read(Model)], output: Schema.Void }, () => {}),
    ).type.toRaiseError("CRN108: step 'ask' reads and performs 'transaction'")
  })
})

describe("values of the wrong type are refused where they stand", () => {
  test("an Effect of another output", () => {
    expect(flow.step("n", { effects: [], output: Schema.Number }, () => Effect.succeed("no"))).type.toRaiseError(
      "Type 'string' is not assignable to type 'number | Unvalidated'",
    )
  })

  test("a plain value of another output", () => {
    expect(flow.step("n", { effects: [], output: Schema.Number }, () => "no")).type.toRaiseError(
      "Type 'string' is not assignable to type",
    )
  })

  test("a promise of another output", () => {
    expect(flow.step("n", { effects: [], output: Schema.Number }, async () => "no")).type.toRaiseError(
      "is not assignable to type",
    )
  })

  test("a payload with a wrong key", () => {
    expect(flow.perform("mail", Email, { payload: () => ({ too: "x" }) })).type.toRaiseError("Property 'to' is missing")
  })

  test("a payload with a wrong value", () => {
    expect(flow.perform("mail", Email, { payload: () => ({ to: 1 }) })).type.toRaiseError(
      "Type 'number' is not assignable to type 'string'",
    )
  })

  test("a payload of a choice with the shape of another case", () => {
    expect(
      flow.perform("say", Operation.oneOf({ mail: Email, page: Publish }), {
        payload: () => ({ case: "mail", payload: { title: "" } }),
      }),
    ).type.toRaiseError("not assignable")
  })

  test("a payload of a case that does not exist", () => {
    expect(
      flow.perform("say", Operation.oneOf({ mail: Email, page: Publish }), {
        payload: () => ({ case: "fax", payload: { title: "" } }),
      }),
    ).type.toRaiseError(`Type '"fax"' is not assignable to type '"mail" | "page"'`)
  })

  test("a compensation with a wrong payload", () => {
    expect(
      flow.perform("pay", Charge, {
        payload: () => payment,
        compensate: { operation: Refund, payload: ({ result }) => ({ charged: result.id }) },
      }),
    ).type.toRaiseError("Property 'charge' is missing")
  })

  test("results of a later step", () => {
    expect(
      flow
        .step("early", { effects: [], output: Schema.String }, ({ results }) => results.late)
        .step("late", { effects: [], output: Schema.String }, () => ""),
    ).type.toRaiseError("Property 'late' does not exist")
  })

  test("retry.when that reads what the operation's failure does not have", () => {
    expect(
      flow.perform("pay", Charge, { payload: () => payment, retry: { times: 1, when: (error) => error.nope } }),
    ).type.toRaiseError("Property 'nope' does not exist on type 'CardDeclined'")
  })

  test("a settled result that is read before it is told apart", () => {
    expect(
      flow
        .perform("pay", Charge, { payload: () => payment, settle: true })
        .step("id", { effects: [], output: Schema.String }, ({ results }) => results.pay.value.id),
    ).type.toRaiseError("Property 'value' does not exist")
  })

  test("an optional result that is read before it is known", () => {
    expect(
      flow
        .perform("pay", Charge, { payload: () => null, optional: true })
        .step("id", { effects: [], output: Schema.String }, ({ results }) => results.pay.id),
    ).type.toRaiseError("'results.pay' is possibly 'null'")
  })

  test("an operation without a policy", () => {
    expect(Operation.make("o.p", { payload: Schema.Void, success: Schema.Void })).type.toRaiseError(
      "Property 'onUnknown' is missing",
    )
  })

  test("a step that returns a workflow instead of a value: steps do not nest", () => {
    expect(
      flow.step("outer", { effects: [], output: Schema.Void }, () =>
        flow.step("inner", { effects: [], output: Schema.Void }, () => {}),
      ),
    ).type.toRaiseError("is not assignable to type")
  })

  test("a step function is given no builder", () => {
    expect(flow.step("outer", { effects: [], output: Schema.Void }, ({ step }) => step("inner"))).type.toRaiseError(
      "Property 'step' does not exist",
    )
  })

  test("a closed workflow takes no more steps", () => {
    expect(
      flow.output(Schema.Void, () => {}).step("more", { effects: [], output: Schema.Void }, () => {}),
    ).type.toRaiseError("Property 'step' does not exist")
  })

  test("a handler of another success", () => {
    expect(Publish.toLayer(() => Effect.succeed({ uri: "" }))).type.toRaiseError("is not assignable to type")
  })

  test("a handler that fails with what is not declared", () => {
    expect(Publish.toLayer(() => Effect.fail("no"))).type.toRaiseError("is not assignable to type")
  })

  test("a handler of checkFirst without its check, and a check where no policy asks for one", () => {
    const parts = { payload: Schema.Void, success: Schema.Struct({ id: Schema.String }) }
    const Checked = Operation.make("o.p", { ...parts, onUnknown: OnUnknown.checkFirst() })
    expect(Checked.toLayer(async () => ({ id: "" }))).type.toRaiseError("Expected 2 arguments, but got 1")
    expect(
      Publish.toLayer(async () => ({ url: "" }), { check: async () => ({ happened: false }) as const }),
    ).type.toRaiseError("Expected 1 arguments, but got 2")
    expect(
      Checked.toLayer(async () => ({ id: "" }), { check: async () => ({ happened: true, result: {} }) as const }),
    ).type.toRaiseError("is not assignable to type")
  })
})
