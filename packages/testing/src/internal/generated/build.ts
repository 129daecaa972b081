/** Generated pieces as a workflow, made with the builder as users would make it. */
import {
  Effects,
  NotPerformed,
  OnUnknown,
  Operation,
  Workflow,
  type AnyWorkflow,
  type PlanOperation,
} from "@cairn/core"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type { Answer, ProviderRequest } from "../provider.js"
import { virtualStartMs } from "../../VirtualClock.js"
import { digest, failsAt, keyOf, moodAt, nextState, payloadOf, receiptOf, stepValue } from "./model.js"
import { labels, type Mood, type Named, type Policy } from "./pieces.js"
import { flat, numberOf, pathOf, readItems, scopeOf, type Around, type Seen } from "./seen.js"

/** What a transaction step does. */
export type BookOf = (of: {
  readonly run: string
  readonly step: string
  readonly query: (text: string, parameters?: ReadonlyArray<unknown>) => Promise<ReadonlyArray<unknown>>
}) => Promise<unknown>

class Refusal extends Schema.TaggedError<Refusal>()("Refusal", { code: Schema.String }) {}

const Act = Schema.Struct({
  ...{ of: Schema.String, amount: Schema.Number, seen: Schema.String },
  mood: Schema.Literal("obliging", "busyFirst", "declinesFirst", "declines"),
})

export type Payload = typeof Act.Type

const policies: Readonly<Record<Policy, PlanOperation["onUnknown"]>> = {
  retryWithKey: OnUnknown.retryWithKey({ keyWindow: "7 days" }),
  checkFirst: OnUnknown.checkFirst(),
  recordFirst: OnUnknown.recordFirst(),
  review: OnUnknown.review(),
}

/** What the steps of a generated workflow read. */
class Reader extends Context.Tag("@cairn/testing/Reader")<Reader, { readonly read: (of: string) => string }>() {}

export const reader: Layer.Layer<Reader> = Layer.succeed(Reader, { read: (of) => `read ${of}` })

const operationsOf = (timeout: "20 seconds" | "1 second") => {
  const spec = { payload: Act, success: Schema.String, failure: Refusal, timeout }
  const act = (policy: Policy) =>
    Operation.make(`provider.act.${policy}`, { ...spec, onUnknown: policies[policy] as never })
  const undo = Operation.make("provider.undo", {
    ...{ payload: Act, success: Schema.Void, timeout },
    onUnknown: policies.retryWithKey as never,
  })
  return {
    acts: {
      retryWithKey: act("retryWithKey"),
      checkFirst: act("checkFirst"),
      recordFirst: act("recordFirst"),
      review: act("review"),
    },
    undo,
  }
}

/** Keys end in their generation: a provider that declines remembers it for the key, and takes the next one. */
const isFirstKey = ({ key }: ProviderRequest): boolean => key.endsWith("#0")

export const simulate: Answer = (request) => {
  if (request.operation === "provider.undo") return undefined
  const { mood, of } = request.payload as Payload
  if (mood === "declines" || (mood === "declinesFirst" && isFirstKey(request))) {
    return Effect.fail(new Refusal({ code: "declined" }))
  }
  if (mood === "busyFirst" && isFirstKey(request)) return Effect.fail(new NotPerformed({ problem: "429" }))
  return receiptOf(of)
}

// ---- nodes -----------------------------------------------------------------------------------------------------

type Flow = any

interface Made {
  readonly operations: ReturnType<typeof operationsOf>
  readonly book: BookOf | undefined
  readonly clock: "virtual" | "real"
}

const retryOf = ({ clock }: Made) => ({ times: 2, delay: clock === "real" ? "20 millis" : "2 seconds" })

const workStep = (flow: Flow, node: Named, around: Around, made: Made): Flow => {
  const { name, piece } = node
  switch (piece.kind) {
    case "step":
      return flow.step(name, { effects: [], output: Schema.String }, async (seen: Seen) => {
        const items = await readItems(around.visible, seen.results)
        return stepValue(pathOf(node, seen), scopeOf(seen, around.scopes), flat(around.visible, seen.results, items))
      })
    case "read":
      return flow.step(name, { effects: [Effects.read(Reader)], output: Schema.String }, (seen: Seen) =>
        Effect.map(Reader, ({ read }) => read(pathOf(node, seen))),
      )
    case "transaction":
      return flow.step(
        name,
        { effects: [Effects.transaction], output: Schema.Void, retry: { times: 5, delay: "50 millis" } },
        async (seen: Seen & { readonly query: Parameters<BookOf>[0]["query"] }) => {
          await made.book?.({ run: seen.input.run, step: pathOf(node, seen), query: seen.query })
        },
      )
    case "boom": {
      const spec = {
        effects: [],
        output: Schema.String,
        ...(piece.retries && { retry: { ...retryOf(made), times: 1 } }),
      }
      return flow.step(name, spec, (seen: Seen) => {
        if (failsAt(piece.fails, numberOf(seen, around))) throw new Error(`boom at ${pathOf(node, seen)}`)
        return `no boom at ${pathOf(node, seen)}`
      })
    }
    default:
      return piece.kind === "act" ? actStep(flow, node, piece, around, made) : flow
  }
}

const actStep = (
  flow: Flow,
  node: Named,
  piece: Extract<Named["piece"], { kind: "act" }>,
  around: Around,
  made: Made,
): Flow => {
  const { acts, undo } = made.operations
  const operation = acts[piece.policy]
  const retry = retryOf(made)
  const payload = (seen: Seen): Payload => {
    const mood: Mood = moodAt(piece, numberOf(seen, around))
    return payloadOf(pathOf(node, seen), seen.input.amount, mood, flat(around.visible, seen.results))
  }
  if (piece.form === "inside") {
    const spec = { effects: [operation], output: Schema.String, retry }
    return flow.step(node.name, spec, (seen: Seen) => operation.perform(payload(seen)))
  }
  return flow.perform(node.name, operation, {
    ...{ payload, retry, settle: piece.form === "settled" },
    ...(piece.form === "compensated" && {
      compensate: {
        operation: undo,
        payload: (seen: Seen & { readonly result: string }) => ({
          ...{ of: pathOf(node, seen), amount: seen.input.amount, mood: "obliging" },
          seen: digest([seen.result, scopeOf(seen, around.scopes)]),
        }),
      },
    }),
  })
}

const seconds = (of: number): string => `${of} seconds`

const waitNode = (flow: Flow, { name, piece }: Named, { clock }: Made): Flow => {
  switch (piece.kind) {
    case "sleep":
      if (piece.how === "until") return flow.sleepUntil(name, new Date(soonMs(clock, piece.ms)))
      return flow.sleep(name, piece.how === "value" ? piece.ms : () => piece.ms)
    case "signal": {
      const timeout = clock === "real" && piece.say !== "yes" ? "300 millis" : seconds(25)
      const spec = { schema: Schema.String, ...(piece.timeout !== "none" && { timeout, onTimeout: piece.timeout }) }
      return flow.signal(name, spec)
    }
    case "review":
      return flow.review(name, {
        ...{ decision: Schema.Struct({ note: Schema.String }), show: ({ input }: Seen) => ({ amount: input.amount }) },
        deadline: clock === "real" && (piece.say === "nothing" || piece.say === "late") ? "300 millis" : seconds(40),
        ...{ onReject: piece.onReject, onTimeout: piece.onTimeout },
      })
    default:
      return flow
  }
}

/** Virtual time begins at the same moment each time; on a real clock nothing is waited for that has to be the same each time. */
const soonMs = (clock: "virtual" | "real", ms: number): number => (clock === "virtual" ? virtualStartMs + ms : ms)

const add = (flow: Flow, node: Named, around: Around, made: Made): Flow => {
  const { bodies, name, piece } = node
  const inside = (index: number, scope?: Around["scopes"][number]) => (inner: Flow) =>
    addAll(
      inner,
      bodies[index]!,
      { ...around, scopes: scope === undefined ? around.scopes : [...around.scopes, scope] },
      made,
    )
  switch (piece.kind) {
    case "branch":
      return flow.branch(name, () => labels[piece.taken], { left: inside(0), right: inside(1) })
    case "match":
      return flow.match(name, "tag", () => ({ tag: labels[piece.taken], taken: piece.taken }), {
        left: inside(0, "match"),
        right: inside(1, "match"),
      })
    case "exit": {
      const out = (inner: Flow): Flow =>
        piece.how === "end"
          ? inner.end(`${name}out`, (seen: Seen) => `ended at ${pathOf(node, seen)}`)
          : inner.fail(`${name}out`, () => "generated failure")
      return flow.branch(name, () => (piece.taken ? "out" : "on"), { out, on: (inner: Flow) => inner })
    }
    case "loop":
      return flow.loop(
        name,
        {
          state: Schema.Number,
          initial: ({ input }: Seen) => input.amount,
          maxIterations: piece.limit === "none" ? piece.turns + 1 : piece.turns,
          ...(piece.limit === "stop" && { onLimit: "stop" }),
        },
        inside(0, "loop"),
        (seen: Seen) => ({
          done: piece.limit === "none" && seen.turn === piece.turns - 1,
          state: nextState(seen.state!, flat(bodies[0]!, seen.results)),
        }),
      )
    case "forEach":
      return flow.forEach(
        name,
        {
          items: () => Array.from({ length: piece.items }, (_, number) => ({ number })),
          key: ({ number }: { readonly number: number }) => keyOf(number),
          concurrency: piece.concurrency,
          onFailure: piece.collect ? "collect" : "stop",
        },
        inside(0, "forEach"),
      )
    case "parallel":
      return flow.parallel(name, { left: inside(0), right: inside(1) })
    case "child": {
      const child = whole(`${name}-child`, bodies[0]!, made, (results) => digest(results))
      const input = (seen: Seen) => ({ ...seen.input, at: `${pathOf(node, seen)}>` })
      return flow.child(name, child, { input, settle: piece.settle })
    }
    case "sleep":
    case "signal":
    case "review":
      return waitNode(flow, node, made)
    default:
      return workStep(flow, node, around, made)
  }
}

const addAll = (flow: Flow, nodes: ReadonlyArray<Named>, around: Around, made: Made): Flow =>
  nodes.reduce(
    (grown, node, index) =>
      add(grown, node, { ...around, visible: [...around.visible, ...nodes.slice(0, index)] }, made),
    flow,
  )

const whole = (
  name: string,
  nodes: ReadonlyArray<Named>,
  made: Made,
  output: (results: unknown) => string,
): AnyWorkflow => {
  const options = {
    version: 1,
    input: Schema.Struct({ amount: Schema.Number, at: Schema.String, run: Schema.String }),
    failure: Schema.Literal("generated failure"),
  }
  const flow = addAll((Workflow.make as any)(name, options), nodes, { visible: [], scopes: [] }, made)
  return flow.output(Schema.String, ({ results }: Seen) => output(flat(nodes, results))).compile()
}

export const build = (
  nodes: ReadonlyArray<Named>,
  clock: "virtual" | "real",
  book: BookOf | undefined,
): AnyWorkflow => {
  const operations = operationsOf(clock === "real" ? "1 second" : "20 seconds")
  return whole("generated", nodes, { operations, book, clock }, (results) => JSON.stringify(results))
}
