/** Stores and runtimes with one planted fault of control flow each: the explorer must find every one. */
import {
  CheckpointStore,
  fromDriver,
  MemoryDriver,
  type CheckpointDriver,
  type CheckpointStoreService,
  type Commit,
} from "@cairn/core"
import { Effect, Layer } from "effect"
import type { Tamper } from "../../src/internal/tampering.js"

type Change = (store: CheckpointStoreService) => Partial<CheckpointStoreService>

const overStore = (change: Change): Tamper => ({
  store: (store) => ({ ...store, ...change(store) }),
  handler: (handler) => handler,
})

const overCommits = (change: (commit: Commit) => Commit): Tamper =>
  overStore((store) => ({ commit: (batch) => store.commit(batch.map(change)) }))

const overDriver = (change: (driver: CheckpointDriver) => Partial<CheckpointDriver>) => () =>
  Layer.effect(
    CheckpointStore,
    Effect.map(MemoryDriver.make(), (driver) => fromDriver({ ...driver, ...change(driver) })),
  )

const withoutSteps =
  (effects: ReadonlyArray<string>) =>
  (commit: Commit): Commit => ({
    ...commit,
    steps: commit.steps.filter(({ effect }) => !effects.includes(effect)),
  })

/** Whoever is woken by a signal is never heard of again. */
const losesWakeUps = overDriver((driver) => {
  const woken = new Set<string>()
  return {
    send: (signal) =>
      Effect.flatMap(driver.findRun(signal.namespace, signal.runId), (before) =>
        Effect.tap(driver.send(signal), () =>
          Effect.sync(() => {
            if (before?.status === "waiting") woken.add(signal.runId)
          }),
        ),
      ),
    claim: (request) => Effect.map(driver.claim(request), (rows) => rows.filter(({ runId }) => !woken.has(runId))),
  }
})

/** The last decision stands, whoever was told that they were heard. */
const overwritesDecisions = overDriver((driver) => {
  const last = new Map<string, string>()
  return {
    decideWait: (given) => {
      last.set(given.path, given.decision)
      return driver.decideWait(given)
    },
    loadWaits: (...args) =>
      Effect.map(driver.loadWaits(...args), (loaded) =>
        loaded === null
          ? null
          : {
              ...loaded,
              waits: loaded.waits.map((wait) =>
                wait.decision === null ? wait : { ...wait, decision: last.get(wait.path) ?? wait.decision },
              ),
            },
      ),
  }
})

/** Whoever decides is told that they were heard. */
const takesEveryDecision = overDriver((driver) => ({
  decideWait: (given) =>
    Effect.map(driver.decideWait(given), (result) =>
      result._tag === "AlreadyDecided" ? { _tag: "Decided", at: result.at } : result,
    ),
}))

/** What a run has waited for is closed, and what came of it is not written. */
const closesWithoutStep = overCommits((commit) =>
  commit.closes.length === 0 ? commit : withoutSteps(["signal", "review", "sleep"])(commit),
)

/** That an item has ended is not written. */
const losesItemEnds = overCommits(withoutSteps(["item"]))

/** That an item has ended is written one commit later: the next one has begun by then. */
const delaysItemEnds = overStore((store) => {
  let late: Commit["steps"] = []
  return {
    commit: (batch) =>
      store.commit(
        batch.map((commit) => {
          const ends = commit.steps.filter(({ effect }) => effect === "item")
          const steps = [...commit.steps.filter(({ effect }) => effect !== "item"), ...late]
          late = ends
          return { ...commit, steps }
        }),
      ),
  }
})

/** A resume takes a loop for one turn further than it has come. */
const skipsTurns = overStore((store) => ({
  loadSteps: (query) =>
    Effect.map(store.loadSteps(query), (steps) =>
      query.newestFirst && query.limit === 1
        ? steps.map((step) => ({
            ...step,
            path: step.path.replace(/\[(\d+)\]$/, (_, turn: string) => `[${Number(turn) + 1}]`),
          }))
        : steps,
    ),
}))

/** Nobody tells a run that what it has started is over. */
const leavesParentsAsleep = overCommits((commit) => ({ ...commit, wakesParent: null }))

/** A signal that was taken is not marked so. */
const keepsSignals = overCommits((commit) => ({ ...commit, consumes: [] }))

/** A run that is taken over chooses its way anew. */
const choosesAnew = overStore((store) => ({
  load: (...args) =>
    Effect.map(store.load(...args), (state) =>
      state.run.fence < 2 ? state : { ...state, steps: state.steps.filter(({ effect }) => effect !== "branch") },
    ),
}))

/** A run that is taken over reads every turn that it has ever taken. */
const readsHistory = overStore((store) => ({
  load: (namespace, runId) =>
    Effect.gen(function* () {
      const state = yield* store.load(namespace, runId)
      const order = { newestFirst: false, after: null, limit: null, withResults: true }
      if (state.run.fence > 1) yield* store.loadSteps({ namespace, runId, scopes: ["plan[0]", "plan[1]"], ...order })
      return state
    }),
}))

/** What was tried before counts for nothing. */
const forgetsAttempts = overStore((store) => ({
  loadOpen: (...args) => Effect.map(store.loadOpen(...args), (open) => ({ ...open, attempts: [] })),
}))

export const controlStores = { losesWakeUps, overwritesDecisions, takesEveryDecision }

export const controlRuntimes = {
  closesWithoutStep,
  losesItemEnds,
  delaysItemEnds,
  skipsTurns,
  leavesParentsAsleep,
  keepsSignals,
  choosesAnew,
  readsHistory,
  forgetsAttempts,
}
