/** Holds what a run came to against what its policies promise, and against the run without trouble. */
import type { EffectRecord, RunRecord } from "@cairn/core"
import { effectsByOperation, endOf, type Baseline, type End, type Evidence } from "./evidence.js"
import { guarantees } from "./guarantee.js"
import { judgeCanceled, mayEndUncanceled } from "./judgeCanceled.js"

/** An operation ends with its step: what is committed is known, and the provider has heard of it under that key. */
const judgeIntents = ({ state, provider, intents, findings }: Evidence): void => {
  const heardOf = new Set([...provider.keys.values()].map(({ operation }) => operation))
  const committed = new Set(state.steps.map(({ idempotencyKey }) => idempotencyKey))
  const ended = ["completed", "failed", "canceled"].includes(state.run.status)
  for (const { operation, idempotencyKey: key, path, state: known } of intents) {
    if (known === "intended" && committed.has(key))
      findings.add("commit", `step '${path}' is committed, and its operation is still unknown`)
    else if (known === "intended" && ended)
      findings.add("result", `the run is '${state.run.status}', and '${operation}' is still unknown`)
    // Handlers that never talk to the provider say nothing of it.
    if ((known === "succeeded" || known === "failed") && heardOf.has(operation) && !provider.knows(operation, key))
      findings.add("intent", `'${operation}' was answered, and was never sent under the key of its intent`)
  }
}

const judgeKeys = ({ subject, provider, intents, findings, schedule }: Evidence): void => {
  const recorded = new Set(intents.map(({ idempotencyKey }) => idempotencyKey))
  for (const { operation, key, payloads, effects } of provider.keys.values()) {
    const policy = subject.operations.get(operation)?.onUnknown.policy
    if (!recorded.has(key)) findings.add("intent", `'${operation}' was sent under a key that no intent records`)
    if (payloads.size > 1)
      findings.add("payload", `'${operation}' was sent under one key with ${payloads.size} payloads`)
    const most = policy === undefined ? 1 : guarantees[policy].mostEffects(schedule)
    if (effects > most)
      findings.add("effects", `'${operation}' had ${effects} effects under one key, at most ${most} are promised`)
  }
}

/** Whether an unknown outcome may wait for a person here. */
export const mayPark = (
  { subject, schedule }: Pick<Evidence, "subject" | "schedule">,
  { parked }: Pick<RunRecord, "parked">,
  intents: ReadonlyArray<EffectRecord>,
): boolean => {
  if (parked?.reason !== "OutcomeUnknown" || schedule.length === 0) return false
  const intent = intents.findLast(({ path }) => path === parked.step)
  const policy = intent === undefined ? undefined : subject.operations.get(intent.operation)?.onUnknown
  if (intent === undefined || policy === undefined) return false
  if (guarantees[policy.policy].parks) return true
  const { maxSends } = policy as { readonly maxSends?: number }
  return maxSends !== undefined && intent.sends >= maxSends
}

const judgeTotals = (evidence: Evidence, baseline: Baseline, ended: boolean): void => {
  const { subject, provider, findings, schedule } = evidence
  const totals = effectsByOperation(provider)
  for (const operation of new Set([...totals.keys(), ...baseline.effects.keys()])) {
    const now = totals.get(operation) ?? 0
    const expected = baseline.effects.get(operation) ?? 0
    const policy = subject.operations.get(operation)?.onUnknown.policy
    const slack = policy === undefined ? 0 : guarantees[policy].mostEffects(schedule) - 1
    if (now > expected + slack || (ended && now < expected)) {
      findings.add("effects", `'${operation}' had ${now} effects in all, ${expected} without trouble`)
    }
  }
}

/** *Laws.* What is checked stands with `Check`. */
export const judge = (evidence: Evidence): End => {
  const { state, log, findings, stuck, baseline } = evidence
  const end = endOf(state.run)
  log.check(state, evidence.subject.steps)
  judgeKeys(evidence)
  judgeIntents(evidence)
  if (stuck) {
    findings.add("stuck", `the run is still '${end.status}' long after it should have ended`)
    return end
  }
  if (baseline === null) return end
  if (evidence.canceledAt !== null && !mayEndUncanceled(evidence, end, baseline)) {
    judgeCanceled(evidence, end, baseline)
    return end
  }
  const same = end.text === baseline.end.text || (!evidence.sameResult && end.status === baseline.end.status)
  if (!same) {
    // Whoever waits for a person with need has been answered.
    if (end.status === "review") {
      findings.add("parked", `it waits for a person: ${state.run.parked?.reason ?? "unknown"}`)
    } else findings.add("result", `it ended with ${end.text}, without trouble with ${baseline.end.text}`)
  }
  judgeTotals(evidence, baseline, same)
  return end
}
