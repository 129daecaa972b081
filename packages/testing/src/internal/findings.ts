/** What is wrong with a run, as the judge and the watchers of store and handlers report it. */

/**
 * What was checked.
 *
 * - `effects`: a key had more effects than its policy promises, or an operation had more or fewer than in the run
 *   without trouble.
 * - `payload`: a key was sent with two payloads.
 * - `intent`: an operation was sent before its intent was durable, or under another key than the intent's.
 * - `early`: an operation of unknown outcome was sent again while its first send might still have been under way.
 * - `lease`: an operation was started by a worker that had lost the run.
 * - `commit`: a commit that the store has acknowledged is gone, doubled, or out of order; or a committed step's operation
 *   is still unknown.
 * - `barrier`: a step went on before what it may not run ahead of was durable.
 * - `result`: the run ended otherwise than without trouble; it was canceled, and ended otherwise than that; or it ended over an
 *   operation of unknown outcome.
 * - `parked`: the run waits for a person without need.
 * - `signal`: a signal was taken twice, or not kept although it was sent; or one that came too late or under another's id was.
 * - `review`: of several decisions not exactly one was heard, a late one was, or the run went by another one.
 * - `child`: a run that was started by another has not ended with it, or not as that one was told.
 * - `attempts`: a step was tried more often than it says.
 * - `window`: more items of a list were under way at once than it says.
 * - `resume`: a resume read turns or items that were over.
 * - `steering`: what steers was computed again although it was recorded.
 * - `answer`: of several people who answered for one operation not exactly one was heard, or a late one was.
 * - `invariant`: the user's own check.
 * - `stuck`: the run never ended.
 *
 * @category models
 * @since 0.1.0
 */
export const checks = [
  ...(["effects", "payload", "intent", "early", "lease", "commit", "barrier", "result"] as const),
  ...(["signal", "review", "child", "attempts", "window", "resume", "steering"] as const),
  ...(["parked", "answer", "invariant", "stuck"] as const),
] as const

export type Check = (typeof checks)[number]

export interface Finding {
  readonly check: Check
  readonly problem: string
}

/** Each problem once, in order of discovery. */
export class Findings {
  readonly all: Array<Finding> = []

  add(check: Check, problem: string): void {
    if (!this.all.some((known) => known.check === check && known.problem === problem)) this.all.push({ check, problem })
  }
}
