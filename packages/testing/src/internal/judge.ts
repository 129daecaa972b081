/** Holds what a run came to against what its policies promise, and against the run without trouble. */
import type { EffectRecord, RunRecord } from "@cairn/core"
import { effectsByOperation, endOf, type Baseline, type End, type Evidence, type RunEvidence } from "./evidence.js"
import { templateOf } from "./paths.js"
import { guarantees } from "./guarantee.js"
import { judgeCanceled, judgeTakenBack, mayEndUncanceled } from "./judgeCanceled.js"

/** An operation ends with its step: what is committed is known, and the provider has heard of it under that key. */
const judgeIntents = ({ provider, findings }: Evidence, { intents, state, steps }: RunEvidence): void => {
  const heardOf = new Set([...provider.keys.values()].map(({ operation }) => operation))
  const committed = new Set(steps.map(({ idempotencyKey }) => idempotencyKey))
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

const judgeKeys = ({ subject, provider, runs, findings, schedule }: Evidence): void => {
  const recorded = new Set(runs.flatMap(({ intents }) => intents.map(({ idempotencyKey }) => idempotencyKey)))
  for (const { operation, key, payloads, effects } of provider.keys.values()) {
    const policy = subject.operations.get(operation)?.onUnknown.policy
    if (!recorded.has(key)) findings.add("intent", `'${operation}' was sent under a key that no intent records`)
    if (payloads.size > 1)
      findings.add("payload", `'${operation}' was sent under one key with ${payloads.size} payloads`)
    const most = policy === undefined ? 1 : guarantees[policy].mostEffects(schedule, subject.sideBySide)
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
    const most = policy === undefined ? 1 : guarantees[policy].mostEffects(schedule, subject.sideBySide)
    // Each of those that are under way at once may be done once more.
    const slack = subject.sideBySide ? expected * (most - 1) : most - 1
    if (now > expected + slack || (ended && now < expected)) {
      findings.add("effects", `'${operation}' had ${now} effects in all, ${expected} without trouble`)
    }
  }
}

const final: ReadonlySet<string> = new Set(["completed", "failed", "canceled"])

/** A run that was started by another: it ends with it, and what the other goes by is how it ended. */
const judgeChild = ({ findings, runs }: Evidence, { runId, state: { run } }: RunEvidence): void => {
  const parent = runs.find((other) => other.runId === run.parentRunId)
  if (parent === undefined || run.parentPath === null) return
  const { state, steps, log } = parent
  if (final.has(state.run.status) && !final.has(run.status)) {
    findings.add("child", `run '${runId}' is still '${run.status}', and '${parent.runId}' is '${state.run.status}'`)
  }
  const step = steps.find(({ path }) => path === run.parentPath)
  if (step === undefined) return
  const node = log.part.byPath.get(templateOf(step.path))
  const settles = node?.kind === "child" && node.settle
  const stored = JSON.parse(step.result ?? "null") as { readonly ok?: boolean; readonly value?: unknown } | null
  const isAsEnded = settles
    ? stored?.ok === (run.status === "completed") &&
      (stored.ok !== true || JSON.stringify(stored.value) === (run.output ?? undefined))
    : run.status === "completed" && step.result === run.output
  if (!isAsEnded) {
    const how = `${run.status} with ${run.output}`
    findings.add("child", `run '${runId}' is ${how}, and '${parent.runId}' goes on with ${step.result}`)
  }
}

/** *Laws.* What is checked stands with `Check`. */
export const judge = (evidence: Evidence): End => {
  const { state, findings, runs, stuck, baseline } = evidence
  const end = endOf(state.run)
  judgeKeys(evidence)
  for (const run of runs) {
    run.log.check(run.state, run.steps, run.waits)
    judgeIntents(evidence, run)
    judgeChild(evidence, run)
  }
  if (stuck) {
    const open = runs.filter((run) => !final.has(run.state.run.status))
    const shown = open.map((run) => `'${run.runId}' is still '${run.state.run.status}' at '${run.state.run.cursor}'`)
    findings.add(
      "stuck",
      runs.length === 1
        ? `the run is still '${end.status}' long after it should have ended`
        : `long after all should have ended ${shown.join(", ")}`,
    )
    return end
  }
  if (baseline === null) return end
  judgeTakenBack(evidence)
  if (evidence.canceledAt !== null && !mayEndUncanceled(evidence, end, baseline)) {
    judgeCanceled(evidence, end, baseline)
    return end
  }
  if (!evidence.sameEnd) return end
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
