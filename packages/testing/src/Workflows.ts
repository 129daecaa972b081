/** Generated workflows, for properties that hold of any of them. */
import { Effects, NotPerformed, OnUnknown, Operation, Plan, type AnyOperation, type AnyWorkflow } from "@cairn/core"
import type { PlanOperation } from "@cairn/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import { virtualStartMs } from "./VirtualClock.js"
import type { ExploredRun } from "./internal/invariant.js"
import type { Answer, ProviderRequest } from "./internal/provider.js"

/**
 * A generated workflow with its input and its provider's answers: give all three to `explore`.
 *
 * @category models
 * @since 0.1.0
 */
export interface GeneratedWorkflow {
  readonly workflow: AnyWorkflow
  /** Tells each run its namespace, for transaction steps. */
  readonly input: (run: ExploredRun) => Given
  readonly simulate: Answer
  /** What it was made of, for people who look at a counterexample. */
  readonly parts: ReadonlyArray<Part>
}

interface Given {
  readonly amount: number
  readonly run: string
}

/** What is done about an unknown outcome. */
const policies: Readonly<Record<Policy, PlanOperation["onUnknown"]>> = {
  retryWithKey: OnUnknown.retryWithKey({ keyWindow: "7 days" }),
  checkFirst: OnUnknown.checkFirst(),
  recordFirst: OnUnknown.recordFirst(),
  review: OnUnknown.review(),
}
type Policy = "retryWithKey" | "checkFirst" | "recordFirst" | "review"

/** How the provider answers: at once, after it has refused or declined once, or never but with a decline. */
const moods = ["obliging", "busyFirst", "declinesFirst", "declines"] as const
type Mood = (typeof moods)[number]

/**
 * One generated step.
 *
 * *Shape.* `policy`: what is done about an unknown outcome. `act` and `tell` of a `choice`: the policies of its members.
 *
 * @category models
 * @since 0.1.0
 */
export type Part =
  | { readonly kind: "step"; readonly failsFirst: boolean }
  | { readonly kind: "transaction" }
  | { readonly kind: "stepWithOperation"; readonly mood: Mood; readonly policy: Policy }
  | {
      readonly kind: "choice"
      readonly mood: Mood
      readonly act: Policy
      readonly tell: Policy
      readonly tells: boolean
      readonly settle: boolean
    }
  | {
      readonly kind: "perform"
      readonly mood: Mood
      readonly policy: Policy
      readonly optional: boolean
      readonly settle: boolean
      readonly compensate: boolean
    }

/**
 * What is generated.
 *
 * *Shape.* `clock`: `real` for stores with a clock of their own: nothing waits long then, and steps without effects do not
 * fail. `book`: what a transaction step does; without it there are none.
 *
 * @category options
 * @since 0.1.0
 */
export interface WorkflowsOptions {
  readonly maxSteps?: number
  readonly clock?: "virtual" | "real"
  readonly book?: Book
}

/**
 * The function of a generated transaction step: `run` is the namespace of the explored run, `query` as steps have it.
 *
 * @category options
 * @since 0.1.0
 */
export type Book = (of: {
  readonly run: string
  readonly step: string
  readonly query: (text: string, parameters?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<unknown>>
}) => Promise<unknown>

class Refusal extends Schema.TaggedError<Refusal>()("Refusal", { code: Schema.String }) {}

const Act = Schema.Struct({ of: Schema.String, amount: Schema.Number, mood: Schema.Literal(...moods) })
const Acted = Schema.Struct({ receipt: Schema.String })

const makeOperations = (timeout: "20 seconds" | "1 second") => {
  const act = (policy: Policy) =>
    Operation.make(`provider.act.${policy}`, {
      ...{ payload: Act, success: Acted, failure: Refusal, timeout },
      onUnknown: policies[policy],
    })
  const acts = {
    ...{ retryWithKey: act("retryWithKey"), checkFirst: act("checkFirst") },
    ...{ recordFirst: act("recordFirst"), review: act("review") },
  }
  const undo = Operation.make("provider.undo", {
    ...{ payload: Act, success: Schema.Void, onUnknown: policies.retryWithKey, timeout },
  })
  return { acts, undo }
}
type Operations = ReturnType<typeof makeOperations>

/** Keys end in their generation: a provider that declines remembers it for the key, and takes the next one. */
const isFirstKey = ({ key }: ProviderRequest): boolean => key.endsWith("#0")

const simulate: Answer = (request) => {
  const { of, amount, mood } = request.payload as typeof Act.Type
  if (request.operation === "provider.undo") return undefined
  if (mood === "declines" || (mood === "declinesFirst" && isFirstKey(request))) {
    return Effect.fail(new Refusal({ code: "declined" }))
  }
  // The key's own first request was refused before it did anything; a later request under it is another matter.
  if (mood === "busyFirst" && isFirstKey(request)) return Effect.fail(new NotPerformed({ problem: "429" }))
  return { receipt: `${of}-${amount}` }
}

const retry = { times: 2, delay: "2 seconds" } as const

const plainStep = (name: string, failsFirst: boolean) => {
  const computed = ({ input, results }: { readonly input: Given; readonly results: object }) =>
    input.amount + Object.keys(results).length
  // What a process remembers must not show in a result: such a step fails at the very beginning of virtual time.
  return failsFirst
    ? Plan.step(name, { effects: [], output: Schema.Number, retry }, (context) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          now < virtualStartMs + 1_000 ? Effect.fail(new Error("not yet")) : Effect.succeed(computed(context)),
        ),
      )
    : Plan.step(name, { effects: [], output: Schema.Number }, computed)
}

type PerformPart = Extract<Part, { readonly kind: "perform" }>
type ChoicePart = Extract<Part, { readonly kind: "choice" }>

/** What is settled is not tried again: a decline is the result, and a person's answer must not bring another one. */
const settledMood = ({ mood, settle }: PerformPart | ChoicePart): Mood =>
  settle && mood === "declinesFirst" ? "declines" : mood

const payloadOf =
  (of: string, mood: Mood) =>
  ({ input }: { readonly input: any }) => ({ of, amount: (input as Given).amount, mood })

const performStep = (name: string, part: PerformPart, { acts, undo }: Operations) => {
  const payload = payloadOf(name, settledMood(part))
  const spec = {
    payload: (context: { readonly input: any }) =>
      part.optional && (context.input as Given).amount % 2 === 0 ? null : payload(context),
    ...{ optional: part.optional, settle: part.settle, retry },
    ...(part.compensate && { compensate: { operation: undo, payload } }),
  }
  return Plan.perform(name, acts[part.policy] as AnyOperation, spec as never)
}

const choiceStep = (name: string, part: ChoicePart, { acts }: Operations) => {
  const choice = Operation.oneOf({ act: acts[part.act], tell: acts[part.tell] })
  const payload = payloadOf(name, settledMood(part))
  const spec = {
    payload: (context: { readonly input: any }) => ({ case: part.tells ? "tell" : "act", payload: payload(context) }),
    ...{ settle: part.settle, retry },
  }
  return Plan.perform(name, choice as AnyOperation, spec as never)
}

const stepOf = (part: Part, name: string, operations: Operations, book: Book | undefined) => {
  switch (part.kind) {
    case "step":
      return plainStep(name, part.failsFirst)
    case "transaction":
      return Plan.step(name, { effects: [Effects.transaction], output: Schema.Void, retry }, async (context: any) => {
        await book?.({ run: context.input.run, step: name, query: context.query })
      })
    case "stepWithOperation": {
      const act = operations.acts[part.policy]
      return Plan.step(name, { effects: [act], output: Schema.String, retry }, (context) =>
        Effect.map(act.perform(payloadOf(name, part.mood)(context)), ({ receipt }) => receipt),
      )
    }
    case "choice":
      return choiceStep(name, part, operations)
    case "perform":
      return performStep(name, part, operations)
  }
}

const build = (amount: number, parts: ReadonlyArray<Part>, options: WorkflowsOptions): GeneratedWorkflow => {
  const operations = makeOperations(options.clock === "real" ? "1 second" : "20 seconds")
  const names = parts.map((part, index) => `${part.kind}${index}`)
  const workflow = Plan.make("generated", {
    version: 1,
    input: Schema.Struct({ amount: Schema.Number, run: Schema.String }),
    steps: parts.map((part, index) => stepOf(part, names[index]!, operations, options.book)),
    output: {
      schema: Schema.String,
      select: ({ results }) => JSON.stringify(names.map((name): unknown => results[name] ?? null)),
    },
  }) as unknown as AnyWorkflow
  const shown = { [FastCheck.toStringMethod]: () => JSON.stringify({ amount, parts }) }
  return { workflow, input: ({ namespace }) => ({ amount, run: namespace }), simulate, parts, ...shown }
}

/**
 * Workflows of one to `maxSteps` (4) steps: without effects, with an operation inside, performing one or one of two, or
 * writing in a transaction; of every policy; optional, settled, retried and compensated ones among them; with a provider
 * that obliges, is busy at first, declines at first, or declines.
 *
 * @category arbitraries
 * @since 0.1.0
 */
export const workflows = (options: WorkflowsOptions = {}): FastCheck.Arbitrary<GeneratedWorkflow> => {
  const { boolean, constantFrom, record, constant, oneof, array, integer, tuple } = FastCheck
  const mood = constantFrom(...moods)
  const policy = constantFrom(...(Object.keys(policies) as ReadonlyArray<Policy>))
  const flags = { settle: boolean(), mood }
  const part: FastCheck.Arbitrary<Part> = oneof(
    record({ kind: constant("step" as const), failsFirst: options.clock === "real" ? constant(false) : boolean() }),
    record({ kind: constant("stepWithOperation" as const), mood, policy }),
    record({ kind: constant("perform" as const), policy, optional: boolean(), compensate: boolean(), ...flags }),
    record({ kind: constant("choice" as const), act: policy, tell: policy, tells: boolean(), ...flags }),
    ...(options.book === undefined ? [] : [record({ kind: constant("transaction" as const) })]),
  )
  const parts = array(part, { minLength: 1, maxLength: options.maxSteps ?? 4 })
  return tuple(integer({ min: 0, max: 9 }), parts).map(([amount, made]) => build(amount, made, options))
}
