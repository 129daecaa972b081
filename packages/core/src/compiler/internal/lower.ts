/** A definition that has passed every check becomes plain data. */
import type { ControlNode, Definition, Node, WorkNode } from "../../dsl/Definition.js"
import type { AnyEffect } from "../../dsl/Effects.js"
import { durationMs } from "../../dsl/OnUnknown.js"
import type { AnyOperation, MemberOperation } from "../../dsl/Operation.js"
import { compensationNode, compensationPath } from "../../dsl/internal/compensation.js"
import { bodiesOf } from "../../dsl/internal/nested.js"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
import type { WindowDefinition } from "../../dsl/Window.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { escapeSegment } from "../../model/Ids.js"
import {
  planFormat,
  type Plan,
  type PlanControl,
  type PlanEffect,
  type PlanNode,
  type PlanOperation,
  type PlanStep,
  type PlanWindow,
} from "../../model/Plan.js"
import { once } from "./once.js"
import { hashOf } from "./planHash.js"

/** First delay of a retry, and where doubling ends, unless a step says otherwise. */
const defaultDelayMs = 1_000
const defaultMaxDelayMs = 300_000

/** Read back: schema libraries may leave undefined members or prototypes of their own, and a plan is plain data. */
const plain = <A>(value: A): A => JSON.parse(JSON.stringify(value)) as A

const schema = once((codec: Codec<unknown>): object => plain(codec.jsonSchema()))

const operation = once((member: MemberOperation): PlanOperation =>
  plain({
    name: member.name,
    case: member.case,
    timeoutMs: member.timeoutMs,
    onUnknown: member.onUnknown,
    payload: member.codecs.payload.jsonSchema(),
    success: member.codecs.success.jsonSchema(),
    failure: member.codecs.failure?.jsonSchema() ?? null,
  }),
)

const compensation = (from: WorkNode, path: string): PlanStep | null => {
  const node = from.kind === "perform" ? compensationNode(from) : null
  return node === null ? null : step(node, compensationPath(path))
}

// What most steps have in common stands in a plan once.
const noEffects: Pick<PlanStep, "effects" | "operations"> = {
  effects: Object.freeze([]),
  operations: Object.freeze([]),
}
const noRetry: PlanStep["retry"] = Object.freeze({
  times: 0,
  delayMs: defaultDelayMs,
  maxDelayMs: defaultMaxDelayMs,
})
const failAtOnce: PlanStep["onInvalid"] = Object.freeze({ retries: 0, then: "fail" })

const retryOf = ({ retry }: WorkNode["options"]): PlanStep["retry"] => {
  if (retry === undefined) return noRetry
  const delayMs = retry.delay === undefined ? defaultDelayMs : durationMs(retry.delay)
  // A first delay beyond the default ceiling means what it says.
  const maxDelayMs = retry.maxDelay === undefined ? Math.max(defaultMaxDelayMs, delayMs) : durationMs(retry.maxDelay)
  return { times: retry.times, delayMs, maxDelayMs }
}

const onInvalidOf = ({ onInvalid }: WorkNode["options"]): PlanStep["onInvalid"] =>
  onInvalid === undefined ? failAtOnce : { retries: onInvalid.retries, then: onInvalid.then }

const isExternal = (effect: AnyEffect): effect is AnyOperation => effect.kind === "external"

const effectsOf = (declared: ReadonlyArray<AnyEffect>): Pick<PlanStep, "effects" | "operations"> =>
  declared.length === 0
    ? noEffects
    : {
        effects: declared.map(({ kind, name }): PlanEffect => ({ kind, name: name as string })),
        operations: declared.filter(isExternal).flatMap(({ members }) => members.map(operation)),
      }

const step = (from: WorkNode, path: string): PlanStep => {
  const declared = from.kind === "perform" ? [from.operation] : from.effects
  const { options } = from
  const { effects, operations } = effectsOf(declared)
  const made: PlanStep = {
    kind: from.kind,
    name: from.name,
    path,
    effects,
    operations,
    optional: from.kind === "perform" && from.optional,
    settle: from.kind === "perform" && from.settle,
    compensate: compensation(from, path),
    output: schema(outputCodec(from)),
    timeoutMs: options.timeout === undefined ? null : durationMs(options.timeout),
    retry: retryOf(options),
    onInvalid: onInvalidOf(options),
  }
  const readsData = declared.some(({ kind }) => kind === "data")
  return readsData ? { ...made, onStale: options.onStale ?? "review" } : made
}

/** The bodies of a node by the names of their cases or arms. */
const named = (from: Node, path: string): Readonly<Record<string, ReadonlyArray<PlanNode>>> =>
  Object.fromEntries(bodiesOf(from).map(({ part, name, nodes }) => [name, nodesUnder(nodes, `${path}${part}/`)]))

/** The one body of a node, which is run for every turn or item. */
const repeated = (from: Node, path: string): ReadonlyArray<PlanNode> =>
  bodiesOf(from).flatMap(({ part, nodes }) => nodesUnder(nodes, `${path}${part}/`))

const msOrNull = (duration: Parameters<typeof durationMs>[0] | null): number | null =>
  duration === null ? null : durationMs(duration)

const control = (from: ControlNode, path: string): PlanControl => {
  const { name } = from
  switch (from.kind) {
    case "branch":
    case "match":
      return { kind: from.kind, name, path, cases: named(from, path) }
    case "parallel":
      return { kind: from.kind, name, path, arms: named(from, path) }
    case "loop": {
      const { kind, maxIterations, onLimit } = from
      const state = schema(codecOf(from.state))
      return { kind, name, path, state, maxIterations, onLimit, body: repeated(from, path) }
    }
    case "forEach": {
      const { kind, concurrency, onFailure } = from
      const item = from.item === null ? null : schema(codecOf(from.item))
      return { kind, name, path, item, concurrency, onFailure, body: repeated(from, path) }
    }
    case "signal": {
      const { kind, signal, onTimeout } = from
      const payload = schema(codecOf(from.schema))
      return { kind, name, path, signal, payload, timeoutMs: msOrNull(from.timeout), onTimeout }
    }
    case "review": {
      const { kind, onReject, onTimeout, who } = from
      return {
        ...{ kind, name, path, onReject, onTimeout, who },
        decision: schema(codecOf(from.decision)),
        deadlineMs: durationMs(from.deadline),
        escalate: from.escalate.map(({ after, who }) => ({ afterMs: durationMs(after), who })),
        validForMs: msOrNull(from.validFor),
      }
    }
    case "child": {
      const { kind, workflow, settle } = from
      return { kind, name, path, workflow: workflow.name, version: workflow.version, settle }
    }
    case "sleep":
      return { kind: from.kind, name, path }
    case "fail":
    case "end":
      return { kind: from.kind, name, path }
  }
}

const nodesUnder = (nodes: ReadonlyArray<Node>, prefix: string): ReadonlyArray<PlanNode> =>
  nodes.map((node) => {
    const path = `${prefix}${escapeSegment(node.name)}`
    return node.kind === "step" || node.kind === "perform" ? step(node, path) : control(node, path)
  })

const window = ({ compact, maxBytes, schema: stored }: WindowDefinition): PlanWindow => ({
  schema: schema(codecOf(stored)),
  maxBytes,
  // As that of a turn: the brackets hold which state it compacts.
  compact: typeof compact === "function" || compact === null ? null : step(compact, ":window[]/compact"),
})

export const lower = (definition: Definition): Plan => {
  const plan = {
    format: planFormat,
    workflow: definition.name,
    version: definition.version,
    input: schema(codecOf(definition.input)),
    output: definition.output === null ? null : schema(codecOf(definition.output.schema)),
    failure: definition.failure === null ? null : schema(codecOf(definition.failure)),
    ...(definition.window === undefined ? {} : { window: window(definition.window) }),
    nodes: nodesUnder(definition.nodes, ""),
  } as const
  return { ...plan, hash: hashOf(plan) }
}
