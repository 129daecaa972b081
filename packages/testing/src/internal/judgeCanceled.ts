/** Holds a run that was asked to be canceled against what that promises (X5). */
import { guarantees } from "./guarantee.js"
import { effectsByOperation, stepEffects, type Baseline, type End, type Evidence } from "./evidence.js"
import { isStep, templateOf } from "./paths.js"

/** Operations that a run may begin before it hears of a cancel: none within a process, one while a database is asked. */
const mostBegun = ({ sameClock }: Evidence): number => (sameClock ? 0 : 1)

/**
 * A wish that comes too late changes nothing: the run fails already, or ends before it hears of it, on its way through
 * steps that touch nothing outside. Then it must end as it would have ended without it.
 */
export const mayEndUncanceled = (evidence: Evidence, end: End, baseline: Baseline): boolean => {
  const { state, logs, canceledAt } = evidence
  if (end.status === "canceled") return false
  if (baseline.end.status === "failed" && state.run.failure !== null) return true
  return logs.keys - canceledAt! <= mostBegun(evidence)
}

/** Of a run that failed or was canceled, what happened and can be taken back is taken back, once; what did not happen is not. */
export const judgeTakenBack = ({ subject, provider, runs, findings, schedule }: Evidence): void => {
  const heardOf = new Set([...provider.keys.values()].map(({ operation }) => operation))
  for (const run of runs) {
    if (run.state.run.status !== "failed" && run.state.run.status !== "canceled") continue
    const effects = new Map(stepEffects(provider, [run]).map((step) => [step.path, step.effects]))
    for (const path of new Set(run.intents.map((intent) => intent.path))) {
      const node = run.log.part.byPath.get(templateOf(path))
      if (node === undefined || !isStep(node) || node.compensate === null) continue
      if (!node.operations.some((operation) => heardOf.has(operation.name))) continue
      const happened = (effects.get(path) ?? 0) > 0
      const undone = effects.get(`${path}/compensate`) ?? 0
      const most = Math.max(
        ...node.compensate.operations.map(({ onUnknown }) =>
          guarantees[onUnknown.policy].mostEffects(schedule, subject.sideBySide),
        ),
      )
      if (happened ? undone < 1 || undone > most : undone > 0) {
        const what = happened ? "happened" : "did not happen"
        findings.add("effects", `step '${path}' ${what} and was taken back ${undone} times`)
      }
    }
  }
}

/** No operation has happened more often than in a whole run, what takes back aside. */
const judgeTotals = ({ subject, provider, findings, schedule }: Evidence, baseline: Baseline): void => {
  const takesBack = new Set(
    [...subject.parts.values()].flatMap(({ nodes }) =>
      nodes.filter(isStep).flatMap(({ compensate }) => compensate?.operations.map(({ name }) => name) ?? []),
    ),
  )
  for (const [operation, now] of effectsByOperation(provider)) {
    const policy = subject.operations.get(operation)?.onUnknown.policy
    if (policy === undefined || takesBack.has(operation)) continue
    const expected = baseline.effects.get(operation) ?? 0
    const times = guarantees[policy].mostEffects(schedule, subject.sideBySide)
    const most = subject.sideBySide ? expected * times : expected + times - 1
    if (now > most)
      findings.add("effects", `'${operation}' had ${now} effects in a canceled run, at most ${most} in a whole one`)
  }
}

export const judgeCanceled = (evidence: Evidence, end: End, baseline: Baseline): void => {
  const { findings, state } = evidence
  if (end.status === "review") {
    findings.add("parked", `it was canceled and waits for a person: ${state.run.parked?.reason ?? "unknown"}`)
  } else if (end.status !== "canceled") {
    findings.add("result", `it was canceled and ended with ${end.text}`)
  }
  if (evidence.sameEnd) judgeTotals(evidence, baseline)
}
