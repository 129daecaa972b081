/** CRN110: numbers and durations are in their range: no zero timeout that never fires, no endless retry. */
import type { Definition, Node } from "../../../dsl/Definition.js"
import { durationMs } from "../../../dsl/OnUnknown.js"
import type { MemberOperation } from "../../../dsl/Operation.js"
import type { PolicyName } from "../../../model/OnUnknown.js"
import { optionOutOfRange, type Diagnostic } from "../../../model/DiagnosticCode.js"
import { operationsOf } from "../operationsOf.js"
import { nameText, shown } from "../shown.js"

/** Longer than any process lives: a hundred years. Past it, sums with a clock would lose precision or overflow. */
const maxDurationMs = 100 * 365 * 86_400_000

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

const ofOptions = ({ options }: Node): ReadonlyArray<Problem> => [
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
      ]),
]

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
    ...definition.nodes.flatMap((node) => [
      ...say(nameText(node.name), `step '${nameText(node.name)}'`, ofOptions(node)),
      ...operationsOf(node)
        .flatMap((operation) => operation.members)
        .flatMap((member) => say(nameText(node.name), `operation '${nameText(member.name)}'`, ofMember(member))),
    ]),
  ]
}
