/** What must be durable by the time a run comes to a point of a step (W2, X1, X2), whatever its worker has accepted. */
import type { PlanNode } from "@cairn/core"
import type { Findings } from "./findings.js"
import type { Boundary } from "./schedule.js"
import type { Subject } from "./subject.js"
import type { CommitLog } from "./watchedStore.js"

const touchesOutside = ({ operations, effects }: PlanNode): boolean =>
  operations.length > 0 || effects.some(({ kind }) => kind === "transaction")

/** Points at which an operation is under way. */
const sending: ReadonlySet<Boundary["point"]> = new Set(["afterIntent", "beforeEffect", "afterEffect", "afterRecord"])

/** How many of the steps before one must be durable at a point of it. */
const durableBefore = ({ steps, durability }: Subject, index: number, point: Boundary["point"]): number => {
  const inTransaction = steps[index]!.effects.some(({ kind }) => kind === "transaction")
  if (durability === "step" || inTransaction || sending.has(point)) return index
  return steps.slice(0, index).findLastIndex(touchesOutside) + 1
}

/** Holds each point that is reached against what the store has acknowledged. */
export const barrierOf =
  (subject: Subject, log: CommitLog, findings: Findings) =>
  ({ point, step }: Pick<Boundary, "point" | "step">): void => {
    const index = subject.steps.findIndex(({ name }) => name === step)
    if (index === -1) {
      const takesBack = subject.nodes.some(({ name }) => name === step)
      if (takesBack && !log.fails) findings.add("barrier", `'${step}' began before it was durable why`)
      return
    }
    for (const { name, path } of subject.steps.slice(0, durableBefore(subject, index, point))) {
      if (!log.steps.has(path)) findings.add("barrier", `step '${step}' went on before '${name}' was durable`)
    }
  }
