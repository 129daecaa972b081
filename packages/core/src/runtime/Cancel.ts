/** Asking that a run be canceled: a flag, which the run's owner consumes in a commit of its own (X5). */
import * as Effect from "effect/Effect"
import { RunNotFound } from "../model/Errors.js"
import { checkId, defaultNamespace } from "../model/Ids.js"
import { storableText } from "../model/internal/storableText.js"
import { CheckpointStore } from "../store/CheckpointStore.js"

/**
 * Which run is to be canceled, and why.
 *
 * *Shape.* `reason` is what people read; of several cancels the first one's stays.
 *
 * @category options
 * @since 0.1.0
 */
export interface CancelOptions {
  readonly runId: string
  readonly namespace?: string
  readonly reason?: string
}

/** A reason is for people: what no database holds as text is not worth an error. */
const readable = (reason: string | undefined): string | null => (reason === undefined ? null : storableText(reason))

export const cancel = (options: CancelOptions) =>
  Effect.gen(function* () {
    const store = yield* CheckpointStore
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", options.runId)
    const result = yield* store.requestCancel(namespace, runId, readable(options.reason))
    if (result === "Missing") return yield* new RunNotFound({ namespace, runId })
    return result !== "Ended"
  })
