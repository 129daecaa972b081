/** A driver whose commits go through the write-behind buffer. */
import { LeaseLost, StoreError, WriteBehind, type CheckpointDriver, type CommitLog, type CommitRows } from "@cairn/core"
import { Effect, Either } from "effect"
import { appendFileSync, readFileSync, writeFileSync } from "node:fs"

type Result = Effect.Effect.Success<ReturnType<CheckpointDriver["commit"]>>[number]

/** One line of JSON a commit; what is settled is taken out. `unsettled` reads the file. */
export const fileLog = (file: string): CommitLog<CommitRows> & { readonly unsettled: () => number } => {
  let next = 0
  const lines = (): Array<string> => readFileSync(file, "utf8").split("\n").filter(Boolean)
  writeFileSync(file, "")
  return {
    append: (commit) =>
      Effect.try({
        try: () => {
          appendFileSync(file, `${JSON.stringify({ mark: next, commit })}\n`)
          return next++
        },
        catch: (cause) => new StoreError({ reason: "Full", operation: "log", problem: String(cause), cause }),
      }),
    settled: (mark: number) =>
      writeFileSync(
        file,
        lines()
          .filter((line) => (JSON.parse(line) as { mark: number }).mark !== mark)
          .map((line) => `${line}\n`)
          .join(""),
      ),
    unsettled: () => lines().length,
  }
}

/** A batch as batches in which each run stands once (D5): the buffer sees to that with a queue a run, the kit has none. */
const withoutRepeats = (batch: ReadonlyArray<CommitRows>): ReadonlyArray<ReadonlyArray<CommitRows>> => {
  const rounds: Array<Map<string, CommitRows>> = []
  for (const commit of batch) {
    const key = JSON.stringify([commit.lease.namespace, commit.lease.runId])
    const free = rounds.find((round) => !round.has(key))
    if (free === undefined) rounds.push(new Map([[key, commit]]))
    else free.set(key, commit)
  }
  return rounds.map((round) => [...round.values()])
}

/**
 * The same driver behind a buffer: each commit of a batch is accepted by a queue of its own, then waited for.
 *
 * The results are the driver's own: the buffer tells only whether a commit stands, and what stands against it is kept
 * beside. A write that failed is not tried again: the kit looks at what one death leaves.
 */
export const buffered = (driver: CheckpointDriver, log?: CommitLog<CommitRows>): Effect.Effect<CheckpointDriver> =>
  Effect.gen(function* () {
    const results = new WeakMap<CommitRows, Result>()
    const write = (batch: ReadonlyArray<CommitRows>) =>
      Effect.map(driver.commit(batch), (given) => batch.forEach((commit, index) => results.set(commit, given[index]!)))
    const buffer = yield* WriteBehind.make<CommitRows>({
      ...(log === undefined ? {} : { log }),
      write: (batch) =>
        Effect.map(Effect.forEach(withoutRepeats(batch), write, { discard: true }), () =>
          batch.map((commit) => {
            const result = results.get(commit)!
            return result._tag === "Committed" ? Either.right(result.at) : Either.left(new LeaseLost(commit.lease))
          }),
        ),
      join: (commits) => {
        throw new Error(`a queue was given ${commits.length} commits`)
      },
      sizeOf: () => 1,
      mayRetry: () => false,
      onRefused: () => {},
      reach: () => Effect.void,
      timeoutMs: 60_000,
    })
    const one = (given: CommitRows): Effect.Effect<Result, StoreError> => {
      // One object a call: its result is found by it.
      const commit = { ...given }
      // Below its `seq` also where that does not follow from the base: otherwise it would pass for durable already.
      const queue = buffer.open(commit.lease, Math.min(commit.base, commit.seq - 1))
      return buffer.accept(queue, commit).pipe(
        Effect.zipRight(buffer.durable(queue, commit.seq)),
        Effect.catchTag("LeaseLost", () => Effect.void),
        Effect.map(() => results.get(commit)!),
      )
    }
    // All of a batch are accepted in one turn, so that they are written together.
    return { ...driver, commit: (batch) => Effect.forEach(batch, one, { concurrency: "unbounded" }) }
  })
