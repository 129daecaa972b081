/** A definition that has passed every check becomes plain data. */
import type { Definition, Node } from "../../dsl/Definition.js"
import { durationMs } from "../../dsl/OnUnknown.js"
import type { AnyOperation, MemberOperation } from "../../dsl/Operation.js"
import { compensationNode, compensationPath } from "../../dsl/internal/compensation.js"
import { outputCodec } from "../../dsl/internal/outputCodec.js"
import { codecOf } from "../../model/Codec.js"
import { escapeSegment, fingerprint } from "../../model/Ids.js"
import { canonicalText } from "../../model/internal/json.js"
import { planFormat, type Plan, type PlanEffect, type PlanNode, type PlanOperation } from "../../model/Plan.js"

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

const compensation = (from: Node, path: string): PlanNode | null => {
  const node = from.kind === "perform" ? compensationNode(from) : null
  return node === null ? null : lowered(node, compensationPath(path))
}

const lowered = (from: Node, path: string): PlanNode => {
  const declared = from.kind === "perform" ? [from.operation] : from.effects
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
    onInvalid: onInvalid ?? { retries: 0, then: "fail" },
  }
}

/** The order of a schema's fields shows in its list of required ones, and means nothing. */
const sorted = (key: string, value: unknown): unknown =>
  key === "required" && Array.isArray(value) ? [...(value as ReadonlyArray<unknown>)].sort() : value

export const lower = (definition: Definition): Plan => {
  const plan = {
    format: planFormat,
    workflow: definition.name,
    version: definition.version,
    input: codecOf(definition.input).jsonSchema(),
    output: definition.output === null ? null : codecOf(definition.output.schema).jsonSchema(),
    failure: definition.failure === null ? null : codecOf(definition.failure).jsonSchema(),
    nodes: definition.nodes.map((node) => lowered(node, escapeSegment(node.name))),
  } as const
  const text = JSON.stringify(plan)
  // Read back: schema libraries may leave undefined members or prototypes of their own, and a plan is plain data.
  return {
    ...(JSON.parse(text) as typeof plan),
    hash: fingerprint(canonicalText(JSON.stringify(JSON.parse(text, sorted)))),
  }
}
