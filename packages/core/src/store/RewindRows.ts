/** What is undone of a run, so that it goes on from an earlier commit (D42). */
import type { Lease, StepRecord } from "../model/Records.js"
import type { CommitResult } from "./CheckpointDriver.js"

/**
 * What is undone of a run, for its owner.
 *
 * *Shape.* `base` is the `seq` it builds on, `seq` the one it sets, which is that of `mark` too: the step that is added in the place
 * of what goes. `toSeq`: the first `seq` that goes. `cursor` is where the run stands then.
 *
 * @category rows
 * @since 0.1.0
 */
export interface RewindRow {
  readonly lease: Lease
  readonly base: number
  readonly seq: number
  readonly toSeq: number
  readonly cursor: string
  readonly mark: Omit<StepRecord, "committedAt">
}

/**
 * What became of it.
 *
 * *Shape.* `Committed` and `Refused` are those of a commit. `Performed`: nothing was changed, for something has happened outside
 * from there on, or may have.
 *
 * @category rows
 * @since 0.1.0
 */
export type RewindResult = CommitResult | { readonly _tag: "Performed" }
