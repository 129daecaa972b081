/** Stores and handlers with one planted fault each: the explorer must find every one. */
import {
  CheckpointStore,
  fromDriver,
  MemoryDriver,
  type CheckpointDriver,
  type CheckpointStoreService,
  type CommitRows,
} from "@cairn/core"
import { Effect, Either, Layer } from "effect"

const overStore = (change: (store: CheckpointStoreService) => Partial<CheckpointStoreService>) => () =>
  Layer.effect(
    CheckpointStore,
    Effect.map(MemoryDriver.make(), (driver) => {
      const store = fromDriver(driver)
      return { ...store, ...change(store) }
    }),
  )

const overDriver = (change: (driver: CheckpointDriver) => Partial<CheckpointDriver>) => () =>
  Layer.effect(
    CheckpointStore,
    Effect.map(MemoryDriver.make(), (driver) => fromDriver({ ...driver, ...change(driver) })),
  )

const current = (driver: CheckpointDriver, commit: CommitRows) =>
  Effect.map(driver.findRun(commit.lease.namespace, commit.lease.runId), (run) => run!)

/** Whoever commits is taken for the owner. */
const withoutFence = overDriver((driver) => ({
  commit: (batch) =>
    Effect.flatMap(
      Effect.forEach(batch, (commit) =>
        Effect.map(current(driver, commit), (run) => {
          const ahead = run.seq - commit.base
          return {
            ...commit,
            base: run.seq,
            seq: commit.seq + ahead,
            steps: commit.steps.map((step) => ({ ...step, seq: step.seq + ahead })),
            lease: { ...commit.lease, fence: run.fence, claimToken: run.claimToken ?? "" },
          }
        }),
      ),
      driver.commit,
    ),
}))

/** Intents are acknowledged and never written. */
const withoutIntents = overDriver((driver) => ({
  commit: (batch) =>
    driver.commit(
      batch.map((commit) => ({ ...commit, effects: commit.effects.filter(({ state }) => state !== "intended") })),
    ),
}))

/** A commit is acknowledged, and the step in it is not written. */
const losesAStep = overDriver((driver) => ({
  commit: (batch) => driver.commit(batch.map((commit) => (commit.seq === 3 ? { ...commit, steps: [] } : commit))),
}))

/** A resume is told of no earlier intent: it sends at once what may still be under way. */
const hidesIntents = overStore((store) => {
  let hidden = false
  return {
    claim: (request) =>
      Effect.tap(store.claim(request), (runs) => Effect.sync(() => (hidden = runs.some(({ fence }) => fence > 1)))),
    loadOpen: (namespace, runId, paths) =>
      Effect.map(store.loadOpen(namespace, runId, paths), (open) => {
        if (!hidden) return open
        hidden = false
        return { ...open, effects: [] }
      }),
  }
})

/** Who asks how long ago a lease ended is told that nobody ever held one. */
const forgetsOwners = overDriver((driver) => ({
  claim: (request) => Effect.map(driver.claim(request), (rows) => rows.map((row) => ({ ...row, previousUntil: 0 }))),
}))

/** What is committed is not what was asked for. */
const altersResults = overDriver((driver) => ({
  commit: (batch) =>
    driver.commit(
      batch.map((commit) => ({ ...commit, steps: commit.steps.map((step) => ({ ...step, result: "0" })) })),
    ),
}))

/** A run that is taken over has lost its last step. */
const losesStepsOnTakeover = overDriver((driver) => ({
  load: (namespace, runId) =>
    Effect.map(driver.load(namespace, runId), (rows) =>
      rows === null || rows.run.fence < 2 || rows.run.status !== "running"
        ? rows
        : { ...rows, steps: rows.steps.slice(0, -1) },
    ),
}))

/** A lease never ends: nobody takes over. */
const endlessLease = overDriver((driver) => ({ beat: (workerId, leaseMs) => driver.beat(workerId, leaseMs * 10_000) }))

/** A commit counts as another's when its acknowledgement was lost. */
const refusesRetries = overStore((store) => {
  const seen = new Set<number>()
  return {
    commit: (batch) =>
      Effect.suspend(() => {
        const again = batch.some(({ seq }) => seen.has(seq))
        for (const { seq } of batch) seen.add(seq)
        return again ? Effect.succeed(batch.map(() => Either.right(0))) : store.commit(batch)
      }),
  }
})

/** Whoever answers is told that it was heard. */
const takesEveryAnswer = overStore((store) => ({ answer: (answer) => Effect.as(store.answer(answer), true) }))

/** An answer lets the run go on, and is not written down. */
const forgetsAnswers = overStore((store) => ({ answer: ({ namespace, runId }) => store.unpark(namespace, runId) }))

export const storeMutants = {
  withoutFence,
  withoutIntents,
  losesAStep,
  hidesIntents,
  forgetsOwners,
  altersResults,
  losesStepsOnTakeover,
  endlessLease,
  refusesRetries,
  takesEveryAnswer,
  forgetsAnswers,
}
