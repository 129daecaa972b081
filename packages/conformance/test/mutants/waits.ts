/** One fault each in what runs wait for (D27). */
import type { CheckpointDriver, LoadedWaits, WaitRecord } from "@cairn/core"
import { Effect } from "effect"
import { editCommit, mutant, type Mutant } from "./wrap.js"

const opened = "D27: waits are given as"
const closed = "D27: a commit closes waits"
const inBatch = "D27: each commit of a batch"

const viewWaits = (
  driver: CheckpointDriver,
  view: (loaded: LoadedWaits) => LoadedWaits,
): Partial<CheckpointDriver> => ({
  loadWaits: (namespace, runId) =>
    Effect.map(driver.loadWaits(namespace, runId), (loaded) => (loaded === null ? null : view(loaded))),
})

export const waitMutants: ReadonlyArray<Mutant> = [
  mutant("waits come in the order in which they were opened", opened, (driver) => {
    const order: Array<string> = []
    return {
      commit: (batch) => {
        order.push(...batch.flatMap(({ waits }) => waits.map(({ path }) => path)))
        return driver.commit(batch)
      },
      ...viewWaits(driver, (loaded) => ({
        ...loaded,
        waits: [...loaded.waits].sort((a, b) => order.indexOf(a.path) - order.indexOf(b.path)),
      })),
    }
  }),
  mutant("what a run waits for is given without its inbox", opened, (driver) =>
    viewWaits(driver, (loaded) => ({ ...loaded, inbox: 0 })),
  ),
  mutant("parts of a millisecond of a wait are cut off", opened, (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      waits: commit.waits.map((wait) =>
        wait.wake !== null && "inMs" in wait.wake ? { ...wait, wake: { inMs: Math.floor(wait.wake.inMs) } } : wait,
      ),
    })),
  ),
  mutant("the time at which a wait is over is taken for a delay", opened, (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      waits: commit.waits.map((wait) =>
        wait.wake !== null && "at" in wait.wake ? { ...wait, wake: { inMs: wait.wake.at } } : wait,
      ),
    })),
  ),
  mutant("a commit closes nothing", closed, (driver) => editCommit(driver, (commit) => ({ ...commit, closes: [] }))),
  mutant("a commit closes what it has opened", closed, (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      waits: commit.waits.filter(({ path }) => !commit.closes.includes(path)),
    })),
  ),
  mutant("a wait that is opened again stays as it was", closed, (driver) => ({
    commit: (batch) =>
      Effect.flatMap(
        Effect.forEach(batch, (commit) =>
          Effect.map(driver.loadWaits(commit.lease.namespace, commit.lease.runId), (loaded) => {
            const stands = new Set(loaded?.waits.map(({ path }) => path))
            return {
              ...commit,
              closes: commit.closes.filter((path) => !commit.waits.some((wait) => wait.path === path)),
              waits: commit.waits.filter(({ path }) => !stands.has(path)),
            }
          }),
        ),
        driver.commit,
      ),
  })),
  mutant("of two openings at one path the first counts", closed, (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      waits: commit.waits.filter(({ path }, index) => commit.waits.findIndex((wait) => wait.path === path) === index),
    })),
  ),
  mutant("only the first commit of a batch opens waits", inBatch, (driver) => ({
    commit: (batch) => driver.commit(batch.map((commit, index) => (index === 0 ? commit : { ...commit, waits: [] }))),
  })),
  mutant("each commit of a batch closes what any of them closes", inBatch, (driver) => ({
    commit: (batch) => {
      const closes = batch.flatMap((commit) => commit.closes)
      return driver.commit(batch.map((commit) => ({ ...commit, closes })))
    },
  })),
  mutant("a refused commit opens its waits", "D27: a refused commit", (driver) => {
    const given: Array<WaitRecord> = []
    return {
      commit: (batch) => {
        for (const { data, kind, name, path } of batch.flatMap(({ waits }) => waits)) {
          const unknown = { wakeAt: null, openedAt: 0, state: "open", decision: null, decidedAt: null } as const
          given.push({ path, kind, name, data, ...unknown })
        }
        return driver.commit(batch)
      },
      ...viewWaits(driver, (loaded) => ({
        ...loaded,
        waits: [...loaded.waits, ...given.filter(({ path }) => !loaded.waits.some((wait) => wait.path === path))],
      })),
    }
  }),
  mutant(
    "the waits and the inbox are read one after the other",
    "D27: the waits are those of one instant",
    (driver) => ({
      loadWaits: (namespace, runId) =>
        Effect.gen(function* () {
          const first = yield* driver.loadWaits(namespace, runId)
          yield* Effect.yieldNow()
          const second = yield* driver.loadWaits(namespace, runId)
          if (first === null || second === null) return null
          const waits = new Map([...first.waits, ...second.waits].map((wait) => [wait.path, wait]))
          return { inbox: second.inbox, waits: [...waits.values()] }
        }),
    }),
  ),
]
