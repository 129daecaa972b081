/** Commits of one run as one: the run row of the last, and what belongs to all of them. */
import type { Commit } from "../../store/CheckpointStore.js"

/** Several commits of one run, in order, as the one commit that has the same result. */
export const joined = (commits: ReadonlyArray<Commit>): Commit => {
  const first = commits[0]!
  const { lease, run, seq } = commits[commits.length - 1]!
  return {
    lease,
    base: first.base,
    seq,
    run,
    steps: commits.flatMap(({ steps }) => steps),
    effects: commits.flatMap(({ effects }) => effects),
    attempts: commits.flatMap(({ attempts }) => attempts),
    consumes: commits.flatMap(({ consumes }) => consumes),
  }
}

/** What a row costs beside its texts, roughly, in bytes. */
const rowBytes = 200

const length = (text: string | null): number => (text === null ? 0 : text.length)

/** Bytes that a commit holds in memory, roughly: one for each UTF-16 unit, as its text takes in the database. */
export const bytesOf = ({ attempts, effects, run, steps }: Commit): number => {
  let bytes = rowBytes + length(run.output)
  for (const step of steps) bytes += rowBytes + length(step.result)
  for (const effect of effects) bytes += rowBytes + length(effect.payload) + length(effect.outcome)
  for (const attempt of attempts) bytes += rowBytes + length(attempt.output)
  return bytes
}
