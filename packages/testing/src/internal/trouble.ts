/** The kinds of trouble that may befall a worker at a boundary, and where each can. */
import type { Point } from "./schedule.js"

/**
 * What may happen at a boundary.
 *
 * - `kill`: the process dies there.
 * - `stall`: it stops there past its lease, another worker finishes the run, then it wakes and goes on.
 * - `loseLease`: it stops there past its lease and wakes as soon as another worker has taken the run over.
 * - `lostAck`: the store has committed, and its acknowledgement is lost.
 * - `lostAnswer`: the operation happened, and its answer is lost.
 * - `lostRequest`: the operation's request never arrived, and the handler only sees a broken connection.
 * - `cancel`: somebody asks just then that the run be canceled.
 *
 * @category models
 * @since 0.1.0
 */
export const troubles = ["kill", "stall", "loseLease", "lostAck", "lostAnswer", "lostRequest", "cancel"] as const

export type Trouble = (typeof troubles)[number]

/** In the words of the report. */
export const troubleWords: Readonly<Record<Trouble, string>> = {
  kill: "killed",
  stall: "stalled until another finished",
  loseLease: "stalled until taken over",
  lostAck: "acknowledgement lost",
  lostAnswer: "answer lost",
  lostRequest: "request lost",
  cancel: "canceled",
}

/** A store call whose acknowledgement may be lost. */
export type LossyCall = "claim" | "commit" | "beat" | "recordOutcome" | "createChild" | "expireWait"

/** The store call whose acknowledgement is lost, by the point that precedes or follows it. */
const acknowledged: Partial<Record<Point, LossyCall>> = {
  afterClaim: "claim",
  beforeIntent: "commit",
  beforeCommit: "commit",
  afterEffect: "recordOutcome",
  beforeFlush: "commit",
  beforeBeat: "beat",
}

/** The call whose acknowledgement is lost at a point of a step; null where there is none. `policy` as in `troublesAt`. */
export const lostAt = (point: Point, step: string, policy: string): LossyCall | null => {
  if (point === "beforeEffect") return policy === "child" ? "createChild" : null
  if (point === "storeCall") return step === "expireWait" ? "expireWait" : null
  return point === "afterEffect" && policy === "child" ? null : (acknowledged[point] ?? null)
}

/** Only `recordFirst` records an outcome by itself: of other policies there is nothing to be acknowledged. */
const possible: Readonly<Record<Trouble, (point: Point, policy: string, step: string) => boolean>> = {
  kill: () => true,
  stall: () => true,
  loseLease: () => true,
  lostAck: (point, policy, step) =>
    lostAt(point, step, policy) !== null && (point !== "afterEffect" || policy === "recordFirst"),
  lostAnswer: (point, policy) => point === "beforeEffect" && policy !== "child",
  lostRequest: (point, policy) => point === "beforeEffect" && policy !== "child",
  cancel: () => true,
}

/** `policy`: that of the step's operation, or what it has instead. */
export const troublesAt = (
  { point, step }: { readonly point: Point; readonly step: string },
  policy: string,
  among: ReadonlyArray<Trouble>,
): ReadonlyArray<Trouble> => among.filter((trouble) => possible[trouble](point, policy, step))
