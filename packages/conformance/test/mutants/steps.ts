/** One fault each in which steps are read, and in which order (D11). */
import type { CheckpointDriver, StepRecord, StepsQuery } from "@cairn/core"
import { Effect } from "effect"
import { editCommit, mutant, type Mutant } from "./wrap.js"

const own = "D11: a load gives the steps of the run's own"
const scoped = "D11: the steps of exactly"
const keyed = "D11: those that have an idempotency key"
const paged = "D11: pages of any size"
const bare = "D11: without results"

const viewSteps = (
  driver: CheckpointDriver,
  view: (steps: ReadonlyArray<StepRecord>, query: StepsQuery) => ReadonlyArray<StepRecord>,
): Partial<CheckpointDriver> => ({
  loadSteps: (query) => Effect.map(driver.loadSteps(query), (steps) => view(steps, query)),
})

/** Asks for every scope that was ever written and that `like` takes for one of those that are asked for. */
const matching = (
  driver: CheckpointDriver,
  like: (scope: string, asked: string) => boolean,
): Partial<CheckpointDriver> => {
  const written = new Set<string>()
  return {
    commit: (batch) => {
      for (const { scope } of batch.flatMap(({ steps }) => steps)) written.add(scope)
      return driver.commit(batch)
    },
    loadSteps: (query) =>
      driver.loadSteps({
        ...query,
        scopes: query.scopes && [...written].filter((scope) => query.scopes!.some((asked) => like(scope, asked))),
      }),
  }
}

export const stepsMutants: ReadonlyArray<Mutant> = [
  mutant("a load gives the steps of every scope", own, (driver) =>
    editCommit(driver, (commit) => ({ ...commit, steps: commit.steps.map((step) => ({ ...step, scope: "" })) })),
  ),
  mutant("a scope is taken for the beginning of others", scoped, (driver) =>
    matching(driver, (scope, asked) => scope.startsWith(asked)),
  ),
  mutant("scopes are compared without case", scoped, (driver) =>
    matching(driver, (scope, asked) => scope.toLowerCase() === asked.toLowerCase()),
  ),
  mutant("no scope at all is taken for the run's own", scoped, (driver) => ({
    loadSteps: (query) => driver.loadSteps({ ...query, scopes: query.scopes?.length === 0 ? [""] : query.scopes }),
  })),
  mutant("only so many scopes are looked for", scoped, (driver) => ({
    loadSteps: (query) => driver.loadSteps({ ...query, scopes: query.scopes?.slice(0, 32) ?? null }),
  })),
  mutant("steps of scopes come in order of their paths", scoped, (driver) =>
    viewSteps(driver, (steps) => [...steps].sort((a, b) => (a.path < b.path ? -1 : 1))),
  ),
  mutant("steps of one seq come in any order", scoped, (driver) =>
    viewSteps(driver, (steps) => [...steps].reverse().sort((a, b) => a.seq - b.seq)),
  ),
  mutant("what was performed in a turn or for an item is not found", keyed, (driver) =>
    viewSteps(driver, (steps, { scopes }) => (scopes === null ? steps.filter(({ scope }) => scope === "") : steps)),
  ),
  mutant("what was performed is told by its kind, not by its key", keyed, (driver) =>
    viewSteps(driver, (steps, { scopes }) =>
      scopes === null ? steps.filter(({ effect }) => effect !== "none") : steps,
    ),
  ),
  mutant("a page begins after the seq of the last one", paged, (driver) => ({
    loadSteps: (query) =>
      driver.loadSteps({
        ...query,
        after: query.after && { seq: query.after.seq, path: query.newestFirst ? "" : "\uffff" },
      }),
  })),
  mutant("a page begins with the last step of the one before", paged, (driver) => ({
    loadSteps: (query) =>
      driver.loadSteps({ ...query, after: query.after && { ...query.after, path: query.after.path.slice(0, -1) } }),
  })),
  mutant("the newest steps come last", paged, (driver) => ({
    loadSteps: (query) => driver.loadSteps({ ...query, newestFirst: false }),
  })),
  mutant("a page of the newest gives its oldest first", paged, (driver) =>
    viewSteps(driver, (steps, { newestFirst }) => (newestFirst ? [...steps].reverse() : steps)),
  ),
  mutant("a page has one step too many", paged, (driver) => ({
    loadSteps: (query) => driver.loadSteps({ ...query, limit: query.limit === null ? null : query.limit + 1 }),
  })),
  mutant("results are given to who does not want them", bare, (driver) => ({
    loadSteps: (query) => driver.loadSteps({ ...query, withResults: true }),
  })),
  mutant("without results the steps that have none are missing", bare, (driver) => ({
    loadSteps: (query) =>
      Effect.map(driver.loadSteps({ ...query, withResults: true }), (steps) =>
        query.withResults
          ? steps
          : steps.filter(({ result }) => result !== null).map((step) => ({ ...step, result: null })),
      ),
  })),
]
