/**
 * What the published table explores: for each policy a workflow that performs in both forms, one that runs ahead of the
 * database, one that takes back, and,
 * where the store has transactions, one that books rows.
 */
import { Cairn, Effects, OnUnknown, Operation, Workflow, type AnyWorkflow } from "@cairn/core"
import type { CheckpointStore, StoreError } from "@cairn/core"
import { Effect, Schema, type Layer } from "effect"
import { TestWorker, type ExploreOptions } from "../src/index.js"

const Receipt = Schema.Struct({ id: Schema.String, at: Schema.Date })

/** The four policies, by name. */
export const policies = {
  retryWithKey: OnUnknown.retryWithKey({ keyWindow: "24 hours" }),
  checkFirst: OnUnknown.checkFirst(),
  recordFirst: OnUnknown.recordFirst(),
  review: OnUnknown.review(),
} as const

class Declined extends Schema.TaggedError<Declined>()("Declined", { code: Schema.String }) {}

/** A step without effects, an operation in its own form, one inside a step, and another step without effects. */
export const paying = (
  policy: keyof typeof policies,
  timeout: "10 seconds" | "1 second" = "10 seconds",
): AnyWorkflow => {
  const Charge = Operation.make("payments.charge", {
    ...{ payload: Schema.Struct({ cents: Schema.Int }), success: Receipt, failure: Declined, timeout },
    onUnknown: policies[policy],
  })
  const Mail = Operation.make("mail.send", {
    ...{ payload: Schema.Struct({ body: Schema.String }), success: Schema.Void, timeout },
    onUnknown: policies[policy],
  })
  return Workflow.make(`paying-${policy}`, { version: 1, input: Schema.Int })
    .step("price", { effects: [], output: Schema.Int }, ({ input }) => input * 100)
    .perform("charge", Charge, { payload: ({ results }) => ({ cents: results.price }) })
    .step("mail", { effects: [Mail], output: Schema.Date }, function* ({ results }) {
      yield* Mail.perform({ body: results.charge.id })
      return results.charge.at
    })
    .step("note", { effects: [], output: Schema.String }, async ({ results }) => `${results.mail.getTime()}`)
    .output(Schema.String, ({ results }) => `${results.charge.id} ${results.note}`)
    .compile()
}

/** Steps that touch nothing outside before an operation and after it, several in a row. */
export const runningAhead = (timeout: "10 seconds" | "1 second" = "10 seconds"): AnyWorkflow => {
  const Charge = Operation.make("payments.charge", {
    ...{ payload: Schema.Struct({ cents: Schema.Int }), success: Receipt, timeout },
    onUnknown: policies.retryWithKey,
  })
  return Workflow.make("running-ahead", { version: 1, input: Schema.Int })
    .step("count", { effects: [], output: Schema.Int }, ({ input }) => input + 1)
    .step("price", { effects: [], output: Schema.Int }, ({ results }) => results.count * 100)
    .perform("charge", Charge, { payload: ({ results }) => ({ cents: results.price }) })
    .step("note", { effects: [], output: Schema.String }, ({ results }) => `${results.charge.at.getTime()}`)
    .step("sum", { effects: [], output: Schema.Int }, ({ results }) => results.price + results.note.length)
    .output(Schema.String, ({ results }) => `${results.charge.id} ${results.sum}`)
    .compile()
}

/** Two charges, then a step that fails for good: both are taken back, the last one first. */
export const takingBack = (): AnyWorkflow => {
  const onUnknown = policies.retryWithKey
  const Charge = Operation.make("payments.charge", {
    ...{ payload: Schema.Struct({ cents: Schema.Int }), success: Receipt, onUnknown },
  })
  const Refund = Operation.make("payments.refund", {
    ...{ payload: Schema.Struct({ charge: Schema.String }), success: Schema.Void, onUnknown },
  })
  const charge = (cents: number) => ({
    payload: () => ({ cents }),
    compensate: { operation: Refund, payload: ({ result }: any) => ({ charge: result.id }) },
  })
  return Workflow.make("taking-back", { version: 1, input: Schema.Int })
    .perform("first", Charge, charge(100))
    .perform("second", Charge, charge(200))
    .step("refuse", { effects: [], output: Schema.Void }, () => {
      throw new Error("sold out")
    })
    .compile()
}

const input: ExploreOptions<AnyWorkflow>["input"] = 7 as never

export interface Subject {
  readonly workflow: AnyWorkflow
  readonly options: Pick<ExploreOptions<AnyWorkflow>, "input" | "invariant">
}

/** On a real clock an answer that is lost is waited for as long as its operation may take: not for long. */
export const subjects = (clock: "virtual" | "real"): ReadonlyArray<Subject> => [
  ...(Object.keys(policies) as ReadonlyArray<keyof typeof policies>).map((policy) => ({
    workflow: paying(policy, clock === "real" ? "1 second" : "10 seconds"),
    options: { input },
  })),
  { workflow: runningAhead(clock === "real" ? "1 second" : "10 seconds"), options: { input } },
  { workflow: takingBack(), options: { input } },
]

// ---- transactions ------------------------------------------------------------------------------------------------

/** How a database spells the first parameter of a statement. */
export type Parameter = "?" | "$1"

const transaction = { effects: [Effects.transaction], retry: { times: 5, delay: "50 millis" } } as const

/** Two steps that book a row each, a charge between them; the second one ends the run. */
export const booking = (parameter: Parameter): Subject => {
  const Charge = Operation.make("payments.charge", {
    ...{ payload: Schema.Struct({ cents: Schema.Int }), success: Receipt, onUnknown: policies.retryWithKey },
  })
  const insert = (step: string): string => `insert into ledger (run, step) values (${parameter}, '${step}')`
  const workflow = Workflow.make("booking", { version: 1, input: Schema.String })
    .step("book", { ...transaction, output: Schema.Int }, async ({ input, query }) => {
      await query(insert("book"), [input])
      return 100
    })
    .perform("charge", Charge, { payload: ({ results }) => ({ cents: results.book }) })
    .step("close", { ...transaction, output: Schema.String }, async ({ input, query, results }) => {
      await query(insert("close"), [input])
      return results.charge.id
    })
    .output(Schema.String, ({ results }) => results.close)
    .compile()
  const options: ExploreOptions<typeof workflow> = {
    input: ({ namespace }) => namespace,
    // Exactly one row a step, whatever happens; none where the run never came to the step.
    invariant: ({ namespace, status, query, count }) =>
      Effect.map(query(`select step from ledger where run = ${parameter}`, [namespace]), (rows) =>
        ["book", "close"].flatMap((step) => {
          const booked = rows.filter((row) => row.step === step).length
          count(step, booked)
          return booked === 1 || (booked === 0 && status !== "completed")
            ? []
            : [`step '${step}' has booked ${booked} rows, and the run is '${status}'`]
        }),
      ),
  }
  return { workflow, options: options as Subject["options"] }
}

const preparing = Workflow.make("preparing", { version: 1, input: Schema.Null })
  .step("ledger", { effects: [Effects.transaction], output: Schema.Void }, async ({ query }) => {
    await query("create table ledger (run text not null, step text not null)")
  })
  .compile()

/** Makes the table that `booking` writes to: by a workflow, like everything else. */
export const makeLedger = (store: Layer.Layer<CheckpointStore, StoreError>): Promise<unknown> =>
  Effect.runPromise(
    Effect.flatMap(Cairn.start(preparing, null, { runId: "ledger" }), TestWorker.result).pipe(
      Effect.provide(TestWorker.layer({ workflows: [preparing], store } as never)),
    ) as Effect.Effect<unknown, unknown>,
  )
