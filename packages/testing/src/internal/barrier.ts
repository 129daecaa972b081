/** What must be durable by the time a run comes to a point of a step (W2, X1, X2), whatever its worker has accepted. */
import type { PlanNode } from "@cairn/core"
import { isStep } from "./paths.js"
import type { Findings } from "./findings.js"
import type { Boundary } from "./schedule.js"
import type { Subject } from "./subject.js"
import type { RunLogs } from "./watchedStore.js"

const touchesOutside = (node: PlanNode): boolean =>
  isStep(node) && (node.operations.length > 0 || node.effects.some(({ kind }) => kind === "transaction"))

/** Points at which an operation is under way. */
const sending: ReadonlySet<Boundary["point"]> = new Set(["afterIntent", "beforeEffect", "afterEffect", "afterRecord"])

/** How many of the steps before one must be durable at a point of it. */
const durableBefore = ({ durability, plan }: Subject, index: number, point: Boundary["point"]): number => {
  const node = plan.nodes[index]!
  const inTransaction = isStep(node) && node.effects.some(({ kind }) => kind === "transaction")
  if (durability === "step" || inTransaction || sending.has(point)) return index
  return plan.nodes.slice(0, index).findLastIndex(touchesOutside) + 1
}

/**
 * Holds each point that is reached against what the store has acknowledged: of a plan of steps alone a point's name says where
 * the run stands. Elsewhere it is each operation that is held against it, by the path of its intent (`handlers`).
 */
export const barrierOf =
  (subject: Subject, logs: RunLogs, findings: Findings) =>
  ({ point, runId, step }: Pick<Boundary, "point" | "step"> & { readonly runId: string }): void => {
    const log = logs.of(runId)
    if (log === null) return
    const index =
      log.part.isFlat && log.part.plan === subject.plan ? subject.plan.nodes.findIndex(({ name }) => name === step) : -1
    if (index === -1) {
      const takesBack = step.endsWith("/compensate") && log.part.nodes.some(({ name }) => name === step)
      if (takesBack && !log.fails) findings.add("barrier", `'${step}' began before it was durable why`)
      return
    }
    for (const { name, path } of subject.plan.nodes.slice(0, durableBefore(subject, index, point))) {
      if (!log.steps.has(path)) findings.add("barrier", `step '${step}' went on before '${name}' was durable`)
    }
  }
