/** Commits of one run as one: the run row of the last, and what belongs to all of them. */
import type { Commit } from "../../store/CheckpointStore.js"

/** Several commits of one run, in order, as the one commit that has the same result. */
export const joined = (commits: ReadonlyArray<Commit>): Commit => {
  const first = commits[0]!
  // What was opened and closed again was never there.
  const waits = new Map<string, Commit["waits"][number]>()
  const closes = new Set<string>()
  for (const commit of commits) {
    for (const path of commit.closes) {
      waits.delete(path)
      closes.add(path)
    }
    for (const wait of commit.waits) waits.set(wait.path, { seq: commit.seq, ...wait })
  }
  const { lease, run, seq } = commits[commits.length - 1]!
  return {
    lease,
    base: first.base,
    seq,
    run,
    steps: commits.flatMap(({ steps }) => steps),
    effects: commits.flatMap(({ effects }) => effects),
    // D38: what came of a commit is told of at that one, not at the last of all.
    attempts: commits.flatMap(({ attempts, seq }) => attempts.map((attempt) => ({ seq, ...attempt }))),
    consumes: commits.flatMap(({ consumes }) => consumes),
    waits: [...waits.values()],
    closes: [...closes],
    wakesParent: commits[commits.length - 1]!.wakesParent,
  }
}

/** What a row costs beside its texts, roughly, in bytes. */
const rowBytes = 200

const length = (text: string | null): number => (text === null ? 0 : text.length)

/** Bytes that a commit holds in memory, roughly: one for each UTF-16 unit, as its text takes in the database. */
export const bytesOf = ({ attempts, effects, run, steps, waits }: Commit): number => {
  let bytes = rowBytes + length(run.output)
  for (const step of steps) bytes += rowBytes + length(step.result)
  for (const effect of effects) bytes += rowBytes + length(effect.payload) + length(effect.outcome)
  for (const attempt of attempts) bytes += rowBytes + length(attempt.output)
  for (const wait of waits) bytes += rowBytes + length(wait.data)
  return bytes
}
