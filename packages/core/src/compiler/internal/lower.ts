/** A definition that has passed every check becomes plain data. */
import type { ControlNode, Definition, Node, WorkNode } from "../../dsl/Definition.js"
import { durationMs } from "../../dsl/OnUnknown.js"
import type { AnyOperation, MemberOperation } from "../../dsl/Operation.js"
import { compensationNode, compensationPath } from "../../dsl/internal/compensation.js"
import { bodiesOf } from "../../dsl/internal/nested.js"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
import type { WindowDefinition } from "../../dsl/Window.js"
import { codecOf } from "../../model/Codec.js"
import { escapeSegment, fingerprint } from "../../model/Ids.js"
import { canonicalText } from "../../model/internal/json.js"
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

/** First delay of a retry, and where doubling ends, unless a step says otherwise. */
const defaultDelayMs = 1_000
const defaultMaxDelayMs = 300_000

const operation = (member: MemberOperation): PlanOperation => ({
  name: member.name,
  case: member.case,
  timeoutMs: member.timeoutMs,
  onUnknown: member.onUnknown,
  payload: member.codecs.payload.jsonSchema(),
  success: member.codecs.success.jsonSchema(),
  failure: member.codecs.failure?.jsonSchema() ?? null,
})

const compensation = (from: WorkNode, path: string): PlanStep | null => {
  const node = from.kind === "perform" ? compensationNode(from) : null
  return node === null ? null : step(node, compensationPath(path))
}

const step = (from: WorkNode, path: string): PlanStep => {
  const declared = from.kind === "perform" ? [from.operation] : from.effects
  const readsData = declared.some(({ kind }) => kind === "data")
  const { retry, timeout, onInvalid } = from.options
  const delayMs = retry?.delay === undefined ? defaultDelayMs : durationMs(retry.delay)
  return {
    kind: from.kind,
    name: from.name,
    path,
    effects: declared.map(({ kind, name }): PlanEffect => ({ kind, name: name as string })),
    operations: declared
      .filter((effect): effect is AnyOperation => effect.kind === "external")
      .flatMap((effect) => effect.members.map(operation)),
    optional: from.kind === "perform" && from.optional,
    settle: from.kind === "perform" && from.settle,
    compensate: compensation(from, path),
    output: outputCodec(from).jsonSchema(),
    timeoutMs: timeout === undefined ? null : durationMs(timeout),
    retry: {
      times: retry?.times ?? 0,
      delayMs,
      // A first delay beyond the default ceiling means what it says.
      maxDelayMs: retry?.maxDelay === undefined ? Math.max(defaultMaxDelayMs, delayMs) : durationMs(retry.maxDelay),
    },
    onInvalid: { retries: onInvalid?.retries ?? 0, then: onInvalid?.then ?? "fail" },
    ...(readsData ? { onStale: from.options.onStale ?? "review" } : {}),
  }
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
      const state = codecOf(from.state).jsonSchema()
      return { kind, name, path, state, maxIterations, onLimit, body: repeated(from, path) }
    }
    case "forEach": {
      const { kind, concurrency, onFailure } = from
      const item = from.item === null ? null : codecOf(from.item).jsonSchema()
      return { kind, name, path, item, concurrency, onFailure, body: repeated(from, path) }
    }
    case "signal": {
      const { kind, signal, onTimeout } = from
      const payload = codecOf(from.schema).jsonSchema()
      return { kind, name, path, signal, payload, timeoutMs: msOrNull(from.timeout), onTimeout }
    }
    case "review": {
      const { kind, onReject, onTimeout, who } = from
      return {
        ...{ kind, name, path, onReject, onTimeout, who },
        decision: codecOf(from.decision).jsonSchema(),
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

/** The order of a schema's fields shows in its list of required ones, and means nothing. */
const sorted = (key: string, value: unknown): unknown =>
  key === "required" && Array.isArray(value) ? [...(value as ReadonlyArray<unknown>)].sort() : value

const window = ({ compact, maxBytes, schema }: WindowDefinition): PlanWindow => ({
  schema: codecOf(schema).jsonSchema(),
  maxBytes,
  // As that of a turn: the brackets hold which state it compacts.
  compact: typeof compact === "function" || compact === null ? null : step(compact, ":window[]/compact"),
})

export const lower = (definition: Definition): Plan => {
  const plan = {
    format: planFormat,
    workflow: definition.name,
    version: definition.version,
    input: codecOf(definition.input).jsonSchema(),
    output: definition.output === null ? null : codecOf(definition.output.schema).jsonSchema(),
    failure: definition.failure === null ? null : codecOf(definition.failure).jsonSchema(),
    ...(definition.window === undefined ? {} : { window: window(definition.window) }),
    nodes: nodesUnder(definition.nodes, ""),
  } as const
  const text = JSON.stringify(plan)
  // Read back: schema libraries may leave undefined members or prototypes of their own, and a plan is plain data.
  return {
    ...(JSON.parse(text) as typeof plan),
    hash: fingerprint(canonicalText(JSON.stringify(JSON.parse(text, sorted)))),
  }
}
