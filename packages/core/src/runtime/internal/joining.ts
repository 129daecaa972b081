/** Commits of one run as one: the run row of the last, and what belongs to all of them. */
import type { Commit } from "../../store/CheckpointStore.js"

const none: ReadonlyArray<never> = []

/** What belongs to all of them, in order. */
const allOf = <A>(commits: ReadonlyArray<Commit>, of: (commit: Commit) => ReadonlyArray<A>): ReadonlyArray<A> => {
  let all: Array<A> | null = null
  for (const commit of commits) {
    const rows = of(commit)
    if (rows.length > 0) (all ??= []).push(...rows)
  }
  return all ?? none
}

/** What is open after all of them: what was opened and closed again was never there. */
const waitsOf = (commits: ReadonlyArray<Commit>): Pick<Commit, "waits" | "closes"> => {
  if (commits.every(({ closes, waits }) => closes.length + waits.length === 0)) return { waits: none, closes: none }
  const waits = new Map<string, Commit["waits"][number]>()
  const closes = new Set<string>()
  for (const commit of commits) {
    for (const path of commit.closes) {
      waits.delete(path)
      closes.add(path)
    }
    for (const wait of commit.waits) waits.set(wait.path, { seq: commit.seq, ...wait })
  }
  return { waits: [...waits.values()], closes: [...closes] }
}

/** Several commits of one run, in order, as the one commit that has the same result. */
export const joined = (commits: ReadonlyArray<Commit>): Commit => {
  const { lease, run, seq, wakesParent } = commits[commits.length - 1]!
  const { closes, waits } = waitsOf(commits)
  return {
    lease,
    base: commits[0]!.base,
    seq,
    run,
    steps: allOf(commits, ({ steps }) => steps),
    effects: allOf(commits, ({ effects }) => effects),
    // D38: what came of a commit is told of at that one, not at the last of all.
    attempts: allOf(commits, ({ attempts, seq }) => attempts.map((attempt) => ({ seq, ...attempt }))),
    consumes: allOf(commits, ({ consumes }) => consumes),
    waits,
    closes,
    wakesParent,
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
