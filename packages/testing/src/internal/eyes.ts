/** What a trial looks at while its workers are at work: points, reads of the store, and what steers. */
import type { StepsQuery } from "@cairn/core"
import { barrierOf } from "./barrier.js"
import type { CommitLog } from "./commitLog.js"
import type { Findings } from "./findings.js"
import { instanceOf, templateOf } from "./paths.js"
import type { Steered } from "./steering.js"
import type { Eyes } from "./striker.js"
import { policyOf, type Subject } from "./subject.js"
import type { RunLogs } from "./watchedStore.js"

/** Whether turn `of` is the last one that has begun, of a loop that has not ended. */
const isLastTurn = ({ steps }: CommitLog, container: string, of: string): boolean =>
  !steps.has(container) && !steps.has(`${container}[${Number(of) + 1}]`)

/** Why a scope is not to be read; null where it is in order (X7). */
const refusedScope = (log: CommitLog, scope: string, query: StepsQuery): string | null => {
  const { part, steps } = log
  if (scope === "" || scope.endsWith("[]")) return null
  if (scope.endsWith("[")) {
    const list = scope.slice(0, -1)
    const kind = part.byPath.get(templateOf(list))?.kind
    if (kind === "loop" && (!query.newestFirst || query.limit !== 1)) return `all turns of '${list}' were read`
    // The reader of a finished list gives its items' failures.
    if (kind === "forEach" && query.withResults && !steps.has(list))
      return `ends of items of '${list}' were read with results`
    return null
  }
  const instance = instanceOf(scope)
  if (instance === null) return null
  const { container, of } = instance
  if (part.byPath.get(templateOf(container))?.kind === "loop") {
    return isLastTurn(log, container, of) ? null : `turn '${scope}' was read, which is over`
  }
  return steps.has(scope) && !steps.has(container) ? `item '${scope}' was read, which is over` : null
}

const resumes = (log: CommitLog, query: StepsQuery): string | null => {
  // What is taken back stands wherever it was done.
  if (log.fails) return null
  if (query.scopes === null) return "all that was performed was read"
  for (const scope of query.scopes) {
    const refused = refusedScope(log, scope, query)
    if (refused !== null) return refused
  }
  return null
}

/** The record that a function's value is kept by; null where none says that it is known. */
const recordOf = ({ path, what }: Steered): ReadonlyArray<string> => {
  switch (what) {
    case "initial":
      return [`${path}[0]`]
    case "items":
      return [`${path}[]`]
    case "next": {
      const { container, of } = instanceOf(path)!
      return [container, `${container}[${Number(of) + 1}]`]
    }
    default:
      return [path]
  }
}

const recomputes = (log: CommitLog, of: Steered): boolean => {
  if (recordOf(of).some((path) => log.steps.has(path))) return true
  // A review is held against what it would show now.
  return (of.what === "value" || of.what === "input") && log.waits.has(of.path)
}

export const eyesOf = (subject: Subject, logs: RunLogs, findings: Findings): Eyes => {
  /** Who has lost a run may not know it yet: what such a worker reads or computes is of no effect. */
  const owned = (worker: Parameters<Eyes["calls"]>[0], runId: string): CommitLog | null => {
    const log = logs.of(runId)
    return log !== null && worker.fences.get(runId) === log.fence ? log : null
  }
  return {
    reached: barrierOf(subject, logs, findings),
    policyOf: (step) => policyOf(subject, step),
    calls: (worker, name, [query]) => {
      if (name !== "loadSteps") return
      const log = owned(worker, (query as StepsQuery).runId)
      const problem = log === null ? null : resumes(log, query as StepsQuery)
      if (problem !== null) findings.add("resume", problem)
    },
    steered: (worker, of) => {
      const log = owned(worker, of.runId)
      if (log !== null && recomputes(log, of)) {
        findings.add("steering", `'${of.what}' of '${of.path}' was computed again, and its record is durable`)
      }
    },
  }
}
