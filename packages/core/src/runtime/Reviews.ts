/** What a person says of something that a run shows them. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AnyWorkflow } from "../builder/Workflow.js"
import type { ReviewNode } from "../dsl/Definition.js"
import { isUnparsedText, isUnvalidated } from "../dsl/Output.js"
import { codecOf, usualMaxLength, type Gated } from "../model/Codec.js"
import { DecisionRefused, InvalidValue, RunConflict, RunNotFound } from "../model/Errors.js"
import { checkId, defaultNamespace } from "../model/Ids.js"
import { storableText } from "../model/internal/storableText.js"
import { tooLarge } from "../model/internal/tooLarge.js"
import type { WaitRecord } from "../model/Records.js"
import { CheckpointStore } from "../store/CheckpointStore.js"
import { templateOf } from "./internal/paths.js"
import { programOf } from "./internal/program.js"

/**
 * Which review is decided.
 *
 * *Shape.* `step`: the path of the review; it may be left out where the run waits for one alone. `reviewId`: the occurrence that
 * the person has seen, as it is listed; a decision for another one is refused.
 *
 * @category options
 * @since 0.1.0
 */
export interface ReviewOptions {
  readonly runId: string
  readonly namespace?: string
  readonly step?: string
  readonly reviewId?: string
}

/**
 * A decision.
 *
 * *Shape.* `by`: who decides, for the record. `approve` is what the review's `decision` schema takes: its typed value, or
 * `Output.unvalidated(json)` for the encoded one. `reject` is a reason for people, or null.
 *
 * @category models
 * @since 0.1.0
 */
export type ReviewDecision =
  { readonly by: string; readonly approve: unknown } | { readonly by: string; readonly reject: string | null }

const gated = (node: ReviewNode, step: string, given: unknown) => {
  const place = `decision on '${step}'`
  const codec = codecOf(node.decision)
  if (!isUnvalidated(given)) return codec.gate(given, { place })
  if (!isUnparsedText(given.raw)) return codec.gateUnvalidated(given.raw, { place })
  const problem = `it is no JSON (${given.raw.problem})`
  return Effect.fail(new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem }))
}

const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && [Object.prototype, null].includes(Object.getPrototypeOf(value))

/**
 * Where what was given and what the schema makes of it have other fields: one that the schema does not know would be left out, and
 * one that it fills in by itself was decided by nobody (field case P087).
 */
const otherFields = (given: unknown, kept: unknown, field = ""): InvalidValue["field"] | null => {
  if (Array.isArray(given) && Array.isArray(kept)) {
    for (const [index, item] of given.entries()) {
      const other = otherFields(item, kept[index], `${field}[${index}]`)
      if (other !== null) return other
    }
    return null
  }
  if (!isPlain(given) || !isPlain(kept)) return null
  const [left, right] = [given, kept].map((each) => Object.keys(each).filter((key) => each[key] !== undefined))
  const only = left!.find((key) => !right!.includes(key)) ?? right!.find((key) => !left!.includes(key))
  if (only !== undefined) return `${field}.${only}`
  for (const key of left!) {
    const other = otherFields(given[key], kept[key], `${field}.${key}`)
    if (other !== null) return other
  }
  return null
}

/** Standard Schemas say themselves how strict they are. */
const exactly = (node: ReviewNode, step: string, given: unknown, decision: Gated<unknown>) => {
  if (!Schema.isSchema(node.decision)) return Effect.succeed(decision)
  const isRaw = isUnvalidated(given)
  const kept: unknown = isRaw ? JSON.parse(decision.text ?? "null") : decision.value
  const field = otherFields(isRaw ? given.raw : given, kept)
  if (field === null) return Effect.succeed(decision)
  const problem =
    "a decision has the fields of its schema, neither more nor fewer: nothing is left out of it, or filled in"
  return Effect.fail(new InvalidValue({ place: `decision on '${step}'`, field, reason: "SchemaMismatch", problem }))
}

/** The decision as it is stored: checked by the review's schema before anybody can act on it. */
const decisionText = (node: ReviewNode, step: string, said: ReviewDecision): Effect.Effect<string, InvalidValue> =>
  Effect.gen(function* () {
    const place = `decision on '${step}'`
    const wrong = (field: string, problem: string) =>
      new InvalidValue({ place, field, reason: "SchemaMismatch", problem })
    // Callers without types may give anything, and what is none must not pass for a decision (field case P087).
    if (typeof said !== "object" || said === null) return yield* wrong("", "expected { by, approve } or { by, reject }")
    const unknown = Object.keys(said).find((key) => !["by", "approve", "reject"].includes(key))
    if (unknown !== undefined) return yield* wrong(`.${unknown}`, "expected { by, approve } or { by, reject }")
    if (typeof said.by !== "string" || said.by.trim() === "") return yield* wrong(".by", "say who decides")
    const by = storableText(said.by)
    if (by.length > usualMaxLength) return yield* tooLarge(place, by.length, usualMaxLength, ".by")
    if ("approve" in said && "reject" in said) return yield* wrong("", "it approves and rejects at once")
    if ("approve" in said) {
      const { text } = yield* Effect.flatMap(gated(node, step, said.approve), (decision) =>
        exactly(node, step, said.approve, decision),
      )
      return `{"outcome":"approved","by":${JSON.stringify(by)}${text === null ? "" : `,"decision":${text}`}}`
    }
    const reason: unknown = (said as { readonly reject?: unknown }).reject
    if (reason !== null && typeof reason !== "string") return yield* wrong(".reject", "expected a reason, or null")
    const length = reason?.length ?? 0
    if (length > usualMaxLength) return yield* tooLarge(place, length, usualMaxLength, ".reject")
    return JSON.stringify({ outcome: "rejected", by, reason: reason === null ? null : storableText(reason) })
  })

const isMeant = (wait: WaitRecord, { reviewId, step }: ReviewOptions): boolean =>
  wait.kind === "review" &&
  (step === undefined || wait.path === step) &&
  (reviewId === undefined || wait.name === reviewId)

export const review = (workflow: AnyWorkflow, of: ReviewOptions, said: ReviewDecision) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const plan = yield* workflow.plan
    const namespace = yield* checkId("namespace", of.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", of.runId)
    const run = yield* store.findRun(namespace, runId)
    if (run.workflow !== plan.workflow || run.version !== plan.version) {
      const problem = `it runs '${run.workflow}' version ${run.version}, not '${plan.workflow}' version ${plan.version}`
      return yield* new RunConflict({ namespace, runId, reason: "WorkflowDiffers", problem })
    }
    const refused = (reason: DecisionRefused["reason"], problem: string) =>
      new DecisionRefused({ namespace, runId, reason, problem })
    const { waits } = yield* store.loadWaits(namespace, runId)
    const meant = waits.filter((wait) => isMeant(wait, of))
    const [wait] = meant
    if (wait === undefined) return yield* refused("NotWaiting", `it is ${run.status} and waits for no such decision`)
    if (meant.length > 1) {
      return yield* refused(
        "Ambiguous",
        `it waits for several: name one of ${meant.map(({ path }) => path).join(", ")}`,
      )
    }
    const node = programOf(workflow.definition, plan).pairs.get(templateOf(wait.path))?.node
    if (node?.kind !== "review") return yield* refused("NotWaiting", `'${wait.path}' is no review in this code`)
    const decision = yield* decisionText(node, wait.path, said)
    const result = yield* store.decideWait({ namespace, runId, path: wait.path, name: wait.name ?? "", decision })
    switch (result._tag) {
      case "Decided":
        return undefined
      case "AlreadyDecided": {
        const { by } = JSON.parse(result.decision) as { readonly by: string }
        return yield* refused("AlreadyDecided", `${by} has decided on '${wait.path}' already`)
      }
      case "Closed":
        return yield* refused("Closed", `'${wait.path}' is closed: somebody has decided, or the deadline has passed`)
      case "Missing":
        return yield* new RunNotFound({ namespace, runId })
    }
  })
