/** CRN110: numbers and durations are in their range: no zero timeout that never fires, no endless retry. */
import { isDataVersion } from "../../../dsl/DataVersion.js"
import type { Definition, Node, ReviewNode, SleepNode, WorkNode } from "../../../dsl/Definition.js"
import { everyNode } from "../../../dsl/internal/nested.js"
import { durationMs } from "../../../dsl/OnUnknown.js"
import type { MemberOperation } from "../../../dsl/Operation.js"
import type { PolicyName } from "../../../model/OnUnknown.js"
import { optionOutOfRange, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { operationsOf } from "../operationsOf.js"
import { nameText, shown } from "../shown.js"

/** Longer than any process lives: a hundred years. Past it, sums with a clock would lose precision or overflow. */
const maxDurationMs = 100 * 365 * 86_400_000

/** Items of one list that may be under way at once: what one worker's memory holds with ease. */
const maxConcurrency = 10_000

type Problem = readonly [option: string, expected: string, got: unknown]

const wholeFrom = (option: string, least: number, value: unknown): ReadonlyArray<Problem> =>
  Number.isSafeInteger(value) && (value as number) >= least ? [] : [[option, `a whole number from ${least}`, value]]

const duration = (option: string, value: unknown, least: number): ReadonlyArray<Problem> => {
  if (value === undefined) return []
  const ms = durationMs(value as never)
  return ms >= least && ms <= maxDurationMs
    ? []
    : [[option, least === 0 ? "a finite duration that is not negative" : "a finite duration over zero", value]]
}

const durability = (value: unknown): ReadonlyArray<Problem> =>
  value === undefined || value === "step" || value === "barrier" ? [] : [["durability", `"step" or "barrier"`, value]]

export const ofWork = ({ options }: WorkNode): ReadonlyArray<Problem> => [
  ...duration("timeout", options.timeout, 1),
  ...(options.retry === undefined
    ? []
    : [
        ...wholeFrom("retry.times", 0, options.retry?.times),
        ...duration("retry.delay", options.retry?.delay, 0),
        ...duration("retry.maxDelay", options.retry?.maxDelay, 0),
        ...(options.retry?.when === undefined || typeof options.retry.when === "function"
          ? []
          : [["retry.when", "a function from the error to a boolean", options.retry.when] as const]),
      ]),
  ...(options.onInvalid === undefined
    ? []
    : [
        ...wholeFrom("onInvalid.retries", 0, options.onInvalid?.retries),
        ...(options.onInvalid?.then === "review" || options.onInvalid?.then === "fail"
          ? []
          : [["onInvalid.then", `"review" or "fail"`, options.onInvalid?.then] as const]),
        ...(options.onInvalid?.repair === undefined || typeof options.onInvalid.repair === "function"
          ? []
          : [
              [
                "onInvalid.repair",
                "a function from the rejected output to a mended one",
                options.onInvalid.repair,
              ] as const,
            ]),
      ]),
]

const oneOf = (option: string, words: ReadonlyArray<string>, value: unknown): ReadonlyArray<Problem> =>
  words.includes(value as string) ? [] : [[option, words.map((word) => `"${word}"`).join(" or "), value]]

const durationOrNull = (option: string, value: unknown): ReadonlyArray<Problem> =>
  value === null ? [] : required(option, value)

const required = (option: string, value: unknown): ReadonlyArray<Problem> => duration(option, value ?? Number.NaN, 1)

/** A time that is no date, or a delay that is none. One that a function gives is checked when it has been given. */
const ofSleep = ({ how, value }: SleepNode): ReadonlyArray<Problem> => {
  if (typeof value === "function") return []
  if (how === "for") return duration("the duration", value ?? Number.NaN, 0)
  return value instanceof Date && Number.isFinite(value.getTime()) ? [] : [["the time", "a valid Date", value]]
}

const ofEscalate = (escalate: unknown, deadlineMs: number): ReadonlyArray<Problem> => {
  if (!Array.isArray(escalate)) return [["escalate", "a list of { after, who }", escalate]]
  const afterMs = escalate.map((step: ReviewNode["escalate"][number] | null) => durationMs(step?.after as never))
  return escalate.flatMap((step: ReviewNode["escalate"][number] | null, i) => [
    ...required(`escalate[${i}].after`, step?.after),
    ...(i > 0 && afterMs[i]! <= afterMs[i - 1]!
      ? [[`escalate[${i}].after`, "longer than the one before", step?.after] as const]
      : []),
    ...(afterMs[i]! >= deadlineMs ? [[`escalate[${i}].after`, "shorter than the deadline", step?.after] as const] : []),
    ...(typeof step?.who === "string" && step.who !== "" ? [] : [[`escalate[${i}].who`, "a name", step?.who] as const]),
  ])
}

const ofReview = (node: ReviewNode): ReadonlyArray<Problem> => [
  ...required("deadline", node.deadline),
  ...oneOf("onReject", ["fail", "continue"], node.onReject),
  ...oneOf("onTimeout", ["fail", "reject"], node.onTimeout),
  ...(node.who === null || (typeof node.who === "string" && (node.who as string) !== "")
    ? []
    : [["who", "a name", node.who] as const]),
  ...ofEscalate(node.escalate, durationMs(node.deadline)),
  ...durationOrNull("validFor", node.validFor),
]

/** Nothing of what any other step reads has a version. */
const ofStale = (node: WorkNode): ReadonlyArray<Problem> => {
  const { onStale } = node.options
  if (onStale === undefined) return []
  const reads = node.kind === "step" && Array.isArray(node.effects) && node.effects.some(isDataVersion)
  return reads
    ? oneOf("onStale", ["rerun", "review", "fail", "accept"], onStale)
    : [["onStale", "left out of a step whose effects hold no DataVersion", onStale]]
}

const ofOptions = (node: Node): ReadonlyArray<Problem> => {
  switch (node.kind) {
    case "step":
    case "perform":
      return [...ofWork(node), ...ofStale(node)]
    case "loop":
      return [...wholeFrom("maxIterations", 1, node.maxIterations), ...oneOf("onLimit", ["fail", "stop"], node.onLimit)]
    case "forEach":
      return [
        ...(Number.isSafeInteger(node.concurrency) && node.concurrency >= 1 && node.concurrency <= maxConcurrency
          ? []
          : [["concurrency", `a whole number from 1 to ${maxConcurrency}`, node.concurrency] as const]),
        ...oneOf("onFailure", ["stop", "collect"], node.onFailure),
      ]
    case "sleep":
      return ofSleep(node)
    case "signal":
      return [...durationOrNull("timeout", node.timeout), ...oneOf("onTimeout", ["fail", "continue"], node.onTimeout)]
    case "review":
      return ofReview(node)
    default:
      return []
  }
}

const policies: ReadonlySet<unknown> = new Set<PolicyName>(["retryWithKey", "checkFirst", "recordFirst", "review"])

const ofPolicy = (policy: MemberOperation["onUnknown"] | undefined): ReadonlyArray<Problem> => {
  if (!policies.has(policy?.policy)) {
    return [["onUnknown", "a policy such as OnUnknown.retryWithKey({ keyWindow: .. })", policy]]
  }
  if (policy?.policy === "review" || policy === undefined) return []
  const { keyWindowMs, maxSends } = policy
  // A key that is honoured for ever is none that any provider promises.
  const unlimited = keyWindowMs === null && policy.policy !== "retryWithKey"
  return [
    ...(unlimited ? [] : duration("onUnknown.keyWindow", keyWindowMs ?? Number.NaN, 1)),
    ...wholeFrom("onUnknown.maxSends", 1, maxSends),
  ]
}

const ofMember = (member: MemberOperation): ReadonlyArray<Problem> => [
  ...duration("timeout", member.timeoutMs, 1),
  ...ofPolicy(member.onUnknown),
]

export const checkOptions = (definition: Definition): ReadonlyArray<Diagnostic> => {
  const say = (step: string | null, of: string, problems: ReadonlyArray<Problem>): ReadonlyArray<Diagnostic> =>
    problems.map(([option, expected, got]) => ({
      code: "CRN110",
      step,
      message: optionOutOfRange(of, option, expected, shown(got)),
    }))
  return [
    ...say(null, `workflow '${nameText(definition.name)}'`, [
      ...wholeFrom("version", 1, definition.version),
      ...durability(definition.durability),
    ]),
    ...everyNode(definition.nodes).flatMap((node) => [
      ...say(nameText(node.name), `step '${nameText(node.name)}'`, ofOptions(node)),
      ...operationsOf(node)
        .flatMap((operation) => operation.members)
        .flatMap((member) => say(nameText(node.name), `operation '${nameText(member.name)}'`, ofMember(member))),
    ]),
  ]
}
