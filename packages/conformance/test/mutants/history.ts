/** One fault each in what a stretch of commits has left (D38). */
import type { CheckpointDriver, HistoryQuery, HistoryRows, WaitRecord } from "@cairn/core"
import { Effect } from "effect"
import { keyOf, mutant, type Mutant } from "./wrap.js"

const views = (
  driver: CheckpointDriver,
  view: (rows: HistoryRows, query: HistoryQuery) => HistoryRows,
): Partial<CheckpointDriver> => ({
  loadHistory: (query) => Effect.map(driver.loadHistory(query), (rows) => view(rows, query)),
})

const asks = (driver: CheckpointDriver, ask: (query: HistoryQuery) => HistoryQuery): Partial<CheckpointDriver> => ({
  loadHistory: (query) => driver.loadHistory(ask(query)),
})

const whole = "D38: a history has the steps"
const stretches = "D38: a stretch begins"
const pages = "D38: of each list the first"
const waits = "D38: a history tells of waits"
const replaced = "D38: an attempt that takes the place"
const beside = "D38: an attempt that is added beside"

/** What was opened comes back although a commit has closed it. */
const remembering = (driver: CheckpointDriver): Partial<CheckpointDriver> => {
  const known = new Map<string, Map<string, WaitRecord & { readonly seq: number }>>()
  const look = (of: { readonly namespace: string; readonly runId: string }) =>
    driver.loadHistory({ ...of, after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1_000 })
  return {
    commit: (batch) =>
      Effect.tap(driver.commit(batch), () =>
        Effect.forEach(batch, ({ lease: { namespace, runId } }) =>
          Effect.map(look({ namespace, runId }), (rows) => {
            const seen = known.get(keyOf({ namespace, runId })) ?? new Map()
            for (const wait of rows.waits) seen.set(wait.path, wait)
            known.set(keyOf({ namespace, runId }), seen)
          }),
        ),
      ),
    loadHistory: (query) =>
      Effect.map(driver.loadHistory(query), (rows) => ({
        ...rows,
        waits: [
          ...new Map([
            ...(known.get(keyOf(query)) ?? []),
            ...rows.waits.map((wait) => [wait.path, wait] as const),
          ]).values(),
        ],
      })),
  }
}

/** The first seq that a row has shown is the one that it keeps. */
const first = (driver: CheckpointDriver, list: "attempts" | "waits"): Partial<CheckpointDriver> => {
  const seqs = new Map<string, number>()
  const kept = (rows: HistoryRows, query: { readonly namespace: string; readonly runId: string }): HistoryRows => ({
    ...rows,
    [list]: rows[list].map((row) => {
      const key = JSON.stringify([keyOf(query), row.path])
      if (!seqs.has(key)) seqs.set(key, row.seq)
      return { ...row, seq: seqs.get(key)! }
    }),
  })
  return {
    commit: (batch) =>
      Effect.tap(driver.commit(batch), () =>
        Effect.forEach(batch, ({ lease: { namespace, runId } }) =>
          Effect.map(
            driver.loadHistory({ namespace, runId, after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1_000 }),
            (rows) => kept(rows, { namespace, runId }),
          ),
        ),
      ),
    ...views(driver, kept),
  }
}

export const historyMutants: ReadonlyArray<Mutant> = [
  mutant("a history has the steps of the workflow itself alone", whole, (driver) =>
    views(driver, (rows) => ({ ...rows, steps: rows.steps.filter(({ scope }) => scope === "") })),
  ),
  mutant("a history has the steps of turns and items alone", whole, (driver) =>
    views(driver, (rows) => ({ ...rows, steps: rows.steps.filter(({ scope }) => scope !== "") })),
  ),
  mutant("a history has no results", whole, (driver) =>
    views(driver, (rows) => ({ ...rows, steps: rows.steps.map((step) => ({ ...step, result: null })) })),
  ),
  mutant("a history has no attempts", whole, (driver) => views(driver, (rows) => ({ ...rows, attempts: [] }))),
  mutant("a history has no waits", whole, (driver) => views(driver, (rows) => ({ ...rows, waits: [] }))),
  mutant("attempts bear the seq that their commit builds on", whole, (driver) =>
    views(driver, (rows) => ({ ...rows, attempts: rows.attempts.map((row) => ({ ...row, seq: row.seq - 1 })) })),
  ),
  mutant("waits bear the seq that their commit builds on", whole, (driver) =>
    views(driver, (rows) => ({ ...rows, waits: rows.waits.map((row) => ({ ...row, seq: row.seq - 1 })) })),
  ),
  mutant("what came of several commits is told of at the last", whole, (driver) => ({
    commit: (batch) =>
      driver.commit(batch.map((one) => ({ ...one, attempts: one.attempts.map((row) => ({ ...row, seq: one.seq })) }))),
  })),
  mutant("what several commits waited for is told of at the last", whole, (driver) => ({
    commit: (batch) =>
      driver.commit(batch.map((one) => ({ ...one, waits: one.waits.map((row) => ({ ...row, seq: one.seq })) }))),
  })),
  mutant("a stretch has what it begins after", stretches, (driver) =>
    asks(driver, (query) => ({ ...query, after: query.after - 1 })),
  ),
  mutant("a stretch lacks its last seq", stretches, (driver) =>
    asks(driver, (query) => ({ ...query, through: query.through - 1 })),
  ),
  mutant("a stretch goes on to the end of the run", stretches, (driver) =>
    asks(driver, (query) => ({ ...query, through: Number.MAX_SAFE_INTEGER })),
  ),
  mutant("a stretch has the attempts of all runs of that id", stretches, (driver) => {
    const namespaces = new Set<string>()
    return {
      createRun: (run) => Effect.tap(driver.createRun(run), () => Effect.sync(() => namespaces.add(run.namespace))),
      loadHistory: (query) =>
        Effect.map(
          Effect.forEach([...namespaces], (namespace) => driver.loadHistory({ ...query, namespace })),
          (all) => ({
            steps: all.find(({ steps }) => steps.length > 1)?.steps ?? [],
            attempts: all.flatMap(({ attempts }) => attempts),
            waits: all.find(({ waits }) => waits.length > 1)?.waits ?? [],
          }),
        ),
    }
  }),
  mutant("the last steps come first", pages, (driver) =>
    views(driver, (rows) => ({ ...rows, steps: [...rows.steps].reverse() })),
  ),
  mutant("steps of a history come in order of their paths", pages, (driver) =>
    views(driver, (rows) => ({ ...rows, steps: [...rows.steps].sort((a, b) => (a.path < b.path ? -1 : 1)) })),
  ),
  mutant("a page of history has one more of each", pages, (driver) =>
    asks(driver, (query) => ({ ...query, limit: query.limit + 1 })),
  ),
  mutant("attempts know no limit", pages, (driver) => ({
    loadHistory: (query) =>
      Effect.zipWith(driver.loadHistory(query), driver.loadHistory({ ...query, limit: 1_000 }), (rows, all) => ({
        ...rows,
        attempts: all.attempts,
      })),
  })),
  mutant("a wait that is over is told of", waits, remembering),
  mutant("a wait that is opened anew keeps its seq", waits, (driver) => first(driver, "waits")),
  mutant("a wait that is decided is not told of", waits, (driver) =>
    views(driver, (rows) => ({ ...rows, waits: rows.waits.filter(({ state }) => state === "open") })),
  ),
  mutant("an attempt that takes another's place keeps its seq", replaced, (driver) => first(driver, "attempts")),
  mutant("an attempt beside commits has the seq that stands", beside, (driver) =>
    views(driver, (rows) => ({
      ...rows,
      attempts: rows.attempts.map((row) => (row.kind === "failed" ? row : { ...row, seq: row.seq - 1 })),
    })),
  ),
  mutant("a retry shows before the run has gone on", beside, (driver) => ({
    loadHistory: (query) =>
      Effect.zipWith(
        driver.loadHistory(query),
        driver.loadHistory({ ...query, through: query.through + 1 }),
        (rows, more) => ({ ...rows, attempts: more.attempts }),
      ),
  })),
]
