/** How a run ended, read back with the schemas of its workflow. */
import * as Either from "effect/Either"
import type { Definition } from "../../dsl/Definition.js"
import { everyNode } from "../../dsl/internal/nested.js"
import { isOperation } from "../../dsl/Operation.js"
import { codecOf, type Codec } from "../../model/Codec.js"
import { RunCanceled, RunFailed, type InvalidValue } from "../../model/Errors.js"
import type { FailureRecord, RunOutcome } from "../../model/Records.js"

/** What a completed run has put out. */
export const outputOf = (
  { output }: Definition,
  run: Pick<RunOutcome, "output">,
): Either.Either<unknown, InvalidValue> =>
  output === null
    ? Either.right(undefined)
    : (codecOf(output.schema) as Codec<unknown>).decode(run.output, "stored output of the workflow")

/** The codec of a failure that the workflow, or an operation of it, declares. */
export const failureCodec = (
  definition: Definition,
  failure: Extract<FailureRecord, { kind: "declared" }>,
): Codec<unknown> | null => {
  if (failure.operation === null) return definition.failure === null ? null : codecOf(definition.failure)
  for (const node of everyNode(definition.nodes)) {
    const declared =
      node.kind === "perform" ? [node.operation] : node.kind === "step" ? node.effects.filter(isOperation) : []
    const operation = declared.find(({ name }) => name === failure.operation)
    if (operation !== undefined) return operation.codecs.failure
  }
  return null
}

/** What is known of a run that did not complete. `step`: where it stood, where the failure does not say. */
export interface FailedRun {
  readonly runId: string
  readonly failure: FailureRecord | null
  readonly cancelReason: string | null
  readonly step: string
}

const undeclared = ({ runId }: FailedRun, step: string, problem: string): RunFailed =>
  new RunFailed({
    runId,
    step,
    problem,
    details: { name: "Error", message: problem, tag: null, stack: null, cause: null },
  })

/** The definition of the child whose failure became its parent's. */
const childOf = (definition: Definition, workflow: string, version: number): Definition | null => {
  for (const node of everyNode(definition.nodes)) {
    if (node.kind === "child" && node.workflow.name === workflow && node.workflow.version === version) {
      return node.workflow.definition
    }
  }
  return null
}

/** The failure as a client receives it: a declared one, `RunCanceled`, or `RunFailed`. */
export const failureOf = (definition: Definition, run: FailedRun): unknown => {
  const { failure } = run
  if (failure === null) return undeclared(run, run.step, "it ended without saying why")
  switch (failure.kind) {
    case "canceled":
      return new RunCanceled({ runId: run.runId, reason: run.cancelReason })
    case "undeclared": {
      const { details, problem, step } = failure
      return new RunFailed({ runId: run.runId, step, problem, details })
    }
    case "child": {
      const child = childOf(definition, failure.workflow, failure.version)
      const { cause, problem, runId, step } = failure
      const end =
        child === null || cause === null
          ? null
          : failureOf(child, { runId, failure: cause, cancelReason: null, step: "" })
      return end === null || end instanceof RunFailed || end instanceof RunCanceled
        ? undeclared(run, step, problem)
        : end
    }
    case "declared": {
      const decoded = failureCodec(definition, failure)?.decode(failure.value, `failure of step '${failure.step}'`)
      // Written by code that declared another failure: its text is still the best that can be said.
      return decoded !== undefined && Either.isRight(decoded)
        ? decoded.right
        : undeclared(run, failure.step, failure.problem)
    }
    default:
      // Checked where a run is read; of an item or a child it stands in a step's result, which a later version may have written.
      return undeclared(run, run.step, "it ended in a way that this version does not know")
  }
}
