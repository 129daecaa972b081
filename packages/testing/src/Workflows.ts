/** Generated workflows, for properties that hold of any of them. */
import { NotPerformed, OnUnknown, Operation, Plan, type AnyOperation, type AnyWorkflow } from "@cairn/core"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Schema from "effect/Schema"
import { virtualStartMs } from "./VirtualClock.js"
import type { Answer, ProviderRequest } from "./internal/provider.js"

/**
 * A generated workflow with its input and its provider's answers: give all three to `explore`.
 *
 * @category models
 * @since 0.1.0
 */
export interface GeneratedWorkflow {
  readonly workflow: AnyWorkflow
  readonly input: number
  readonly simulate: Answer
  /** What it was made of, for people who look at a counterexample. */
  readonly parts: ReadonlyArray<Part>
}

/** How the provider answers: at once, after it has refused or declined once, or never but with a decline. */
const moods = ["obliging", "busyFirst", "declinesFirst", "declines"] as const
type Mood = (typeof moods)[number]

/**
 * One generated step.
 *
 * @category models
 * @since 0.1.0
 */
export type Part =
  | { readonly kind: "step"; readonly failsFirst: boolean }
  | { readonly kind: "stepWithOperation"; readonly mood: Mood }
  | {
      readonly kind: "perform"
      readonly mood: Mood
      readonly optional: boolean
      readonly settle: boolean
      readonly compensate: boolean
    }

class Refusal extends Schema.TaggedError<Refusal>()("Refusal", { code: Schema.String }) {}

const Act = Schema.Struct({ of: Schema.String, amount: Schema.Number, mood: Schema.Literal(...moods) })
const withKey = OnUnknown.retryWithKey({ keyWindow: "7 days" })

const makeOperations = () => ({
  act: Operation.make("provider.act", {
    payload: Act,
    success: Schema.Struct({ receipt: Schema.String }),
    failure: Refusal,
    onUnknown: withKey,
    timeout: "20 seconds",
  }),
  undo: Operation.make("provider.undo", { payload: Act, success: Schema.Void, onUnknown: withKey }),
})

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
  const computed = ({ input, results }: { readonly input: number; readonly results: object }) =>
    input + Object.keys(results).length
  // What a process remembers must not show in a result: such a step fails at the very beginning of virtual time.
  return failsFirst
    ? Plan.step(name, { effects: [], output: Schema.Number, retry }, (context) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          now < virtualStartMs + 1_000 ? Effect.fail(new Error("not yet")) : Effect.succeed(computed(context)),
        ),
      )
    : Plan.step(name, { effects: [], output: Schema.Number }, computed)
}

const stepOf = (part: Part, name: string, operations: ReturnType<typeof makeOperations>) => {
  const payload = ({ input }: { readonly input: any }) => ({ of: name, amount: input as number, mood: moodOf(part) })
  switch (part.kind) {
    case "step":
      return plainStep(name, part.failsFirst)
    case "stepWithOperation":
      return Plan.step(name, { effects: [operations.act], output: Schema.String, retry }, (context) =>
        Effect.map(operations.act.perform(payload(context)), ({ receipt }) => receipt),
      )
    case "perform":
      return Plan.perform(
        name,
        operations.act as AnyOperation,
        {
          payload: (context: { readonly input: any }) =>
            part.optional && context.input % 2 === 0 ? null : payload(context),
          ...{ optional: part.optional, settle: part.settle, retry },
          ...(part.compensate && { compensate: { operation: operations.undo, payload } }),
        } as never,
      )
  }
}

const moodOf = (part: Part): Mood => (part.kind === "step" ? "obliging" : part.mood)

const build = (input: number, parts: ReadonlyArray<Part>): GeneratedWorkflow => {
  const operations = makeOperations()
  const names = parts.map((part, index) => `${part.kind}${index}`)
  const workflow = Plan.make("generated", {
    version: 1,
    input: Schema.Number,
    steps: parts.map((part, index) => stepOf(part, names[index]!, operations)),
    output: {
      schema: Schema.String,
      select: ({ results }) => JSON.stringify(names.map((name): unknown => results[name] ?? null)),
    },
  }) as unknown as AnyWorkflow
  const shown = { [FastCheck.toStringMethod]: () => JSON.stringify({ input, parts }) }
  return { workflow, input, simulate, parts, ...shown }
}

/**
 * Workflows of one to `maxSteps` steps: without effects, with an operation inside, or performing one; optional, settled,
 * retried and compensated ones among them; with a provider that obliges, is busy at first, declines at first, or declines.
 *
 * @category arbitraries
 * @since 0.1.0
 */
export const workflows = ({
  maxSteps = 4,
}: { readonly maxSteps?: number } = {}): FastCheck.Arbitrary<GeneratedWorkflow> => {
  const { boolean, constantFrom, record, constant, oneof, array, integer, tuple } = FastCheck
  const mood = constantFrom(...moods)
  const part: FastCheck.Arbitrary<Part> = oneof(
    record({ kind: constant("step" as const), failsFirst: boolean() }),
    record({ kind: constant("stepWithOperation" as const), mood }),
    record({ kind: constant("perform" as const), mood, optional: boolean(), settle: boolean(), compensate: boolean() }),
  )
  return tuple(integer({ min: 0, max: 9 }), array(part, { minLength: 1, maxLength: maxSteps })).map(([input, parts]) =>
    build(input, parts),
  )
}
