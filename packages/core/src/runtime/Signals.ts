/** Sending signals to runs. They are kept if nobody waits yet, and each is taken once. */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import type { AnyWorkflow } from "../builder/Workflow.js"
import type { SignalNode } from "../dsl/Definition.js"
import { everyNode } from "../dsl/internal/nested.js"
import { codecOf } from "../model/Codec.js"
import { RunConflict, RunNotFound, SignalRefused } from "../model/Errors.js"
import { checkId, defaultNamespace, fingerprint } from "../model/Ids.js"
import { canonicalText } from "../model/internal/json.js"
import { CheckpointStore } from "../store/CheckpointStore.js"

/**
 * Which run a signal is for.
 *
 * *Shape.* `signalId`: sending twice under one id is sending once; without it a random one is made.
 *
 * @category options
 * @since 0.1.0
 */
export interface SignalOptions {
  readonly runId: string
  readonly namespace?: string
  readonly signalId?: string
}

const nodeOf = (workflow: AnyWorkflow, name: string): SignalNode | null => {
  for (const node of everyNode(workflow.definition.nodes))
    if (node.kind === "signal" && node.signal === name) return node
  return null
}

export const signal = (workflow: AnyWorkflow, to: SignalOptions, name: string, payload?: unknown) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const namespace = yield* checkId("namespace", to.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", to.runId)
    const signalId = yield* checkId("signal id", to.signalId ?? randomUUID())
    const refused = (reason: SignalRefused["reason"], problem: string) =>
      new SignalRefused({ namespace, runId, signal: name, reason, problem })
    const node = nodeOf(workflow, name)
    if (node === null) return yield* refused("Unknown", `workflow '${workflow.name}' waits for no signal of that name`)
    // Checked before it is stored: whoever sends it is told, not the run.
    const gated = yield* codecOf(node.schema).gate(payload, { place: `signal '${name}'` })
    const run = yield* store.findRun(namespace, runId)
    if (run.workflow !== workflow.name) {
      const problem = `it runs workflow '${run.workflow}', not '${workflow.name}'`
      return yield* new RunConflict({ namespace, runId, reason: "WorkflowDiffers", problem })
    }
    const payloadHash = fingerprint(canonicalText(gated.text))
    const sent = yield* store.send({ namespace, runId, signalId, name, payload: gated.text, payloadHash })
    switch (sent._tag) {
      case "Sent":
        return true
      case "Known":
        return false
      case "Differs":
        return yield* refused("IdTaken", `id '${signalId}' was sent before with another name or payload`)
      case "Ended":
        return yield* refused("Ended", `the run is ${sent.status}`)
      case "Missing":
        return yield* new RunNotFound({ namespace, runId })
    }
  })
