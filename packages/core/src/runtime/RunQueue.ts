/** What one run has in its worker's buffer: commits that wait, those that are being written, and who waits for them. */
import * as Effect from "effect/Effect"
import type { LeaseLost, StoreError } from "../model/Errors.js"
import type { Lease } from "../model/Records.js"

/**
 * How an accepted commit ended that was not written: its run has another owner, or the store cannot take it.
 *
 * @category models
 * @since 0.1.0
 */
export type Refusal = LeaseLost | StoreError

/**
 * A commit that was taken in.
 *
 * *Shape.* `bytes`: roughly. `at`: when, in milliseconds since the epoch. `mark`: where it stands in the local log.
 *
 * @category models
 * @since 0.1.0
 */
export interface AcceptedCommit<C> {
  readonly commit: C
  readonly bytes: number
  readonly at: number
  mark: unknown
}

/**
 * One run's part of the buffer.
 *
 * *Shape.* `durableSeq` and `acceptedSeq`: the last commit that the store has, and the last that was taken in; the same when
 * nothing waits.
 *
 * @category models
 * @since 0.1.0
 */
export class RunQueue<C> {
  readonly waiting: Array<AcceptedCommit<C>> = []
  /** What is being written, with its parts; the same until its outcome is known (W1). */
  writing: { readonly commit: C; readonly parts: ReadonlyArray<AcceptedCommit<C>> } | null = null
  refusal: Refusal | null = null
  durableSeq: number
  acceptedSeq: number
  /** The store's clock at the last commit that is durable. */
  durableAt = 0
  listed = false
  readonly ears: Array<{ readonly seq: number; readonly resume: (end: Effect.Effect<number, Refusal>) => void }> = []

  constructor(
    readonly lease: Lease,
    seq: number,
  ) {
    this.durableSeq = seq
    this.acceptedSeq = seq
  }

  /** Tells those whose commit has an outcome. */
  tell(): void {
    const { refusal, durableSeq, durableAt } = this
    if (this.ears.length === 0) return
    for (const ear of this.ears.splice(0)) {
      if (ear.seq <= durableSeq) ear.resume(Effect.succeed(durableAt))
      else if (refusal !== null) ear.resume(Effect.fail(refusal))
      else this.ears.push(ear)
    }
  }
}
