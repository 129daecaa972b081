/**
 * The window among a run's records: each state is a record beside those of steps, in the very commit that has made it. Paths of
 * users begin with no colon, so that none of theirs stands there; the newest one is the window, and nothing else of them is read
 * again (X7). A fork, which takes over all that was committed before some step, finds the window of then.
 */
import type { StepRecord } from "../../model/Records.js"
import { instancePath, listScope } from "./paths.js"

/** What the states of a window stand under. */
const container = ":window"

/** Where a failure of the window alone stands, for people. */
export const windowStep = "(window)"

/** The scope of all states: the bracket at its end says that there may be many. */
export const windowScope = listScope(container)

/** As it is committed: its text, and how much that is. */
export interface WindowState {
  readonly record: StepRecord
  /** In UTF-8. */
  readonly bytes: number
}

export const bytesOfText = (text: string | null): number => (text === null ? 0 : Buffer.byteLength(text))

export const windowState = (record: StepRecord): WindowState => ({ record, bytes: bytesOfText(record.result) })

/** A state's own place, under which it is compacted. Of one commit there is no more than one. */
export const statePath = ({ seq }: Pick<StepRecord, "seq">): string => instancePath(container, seq)

/** The path of the step that compacts a state. */
export const compactionPath = (record: Pick<StepRecord, "seq">): string => `${statePath(record)}/compact`

export const isCompaction = (path: string): boolean => path.startsWith(windowScope)

const effect = "window"

/** The effect of a state: with the step that has made it what it is, for people; none where it is the first. */
const effectBy = (step: string | null): string => (step === null ? effect : `${effect}:${step}`)

/** The step that has made a state what it is; null where it is the first. */
export const madeBy = ({ record }: WindowState): string | null =>
  record.effect === effect ? null : record.effect.slice(effect.length + 1)

/** A record of a state, without what only its commit knows. */
export const stateRecord = (
  seq: number,
  text: string | null,
  by: string | null,
  rest: Partial<Pick<StepRecord, "path" | "attempts" | "durationMs">> = {},
): Omit<StepRecord, "committedAt" | "seq"> => ({
  path: statePath({ seq }),
  scope: windowScope,
  result: text,
  effect: effectBy(by),
  idempotencyKey: null,
  attempts: 1,
  durationMs: 0,
  ...rest,
})
