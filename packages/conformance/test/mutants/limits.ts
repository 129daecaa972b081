/** One fault each in what limits leave of a claim (D35, D36). */
import type { CheckpointDriver, ClaimLimits, ClaimRequest, RunRow } from "@cairn/core"
import { Clock, Effect } from "effect"
import { mutant, type Mutant } from "./wrap.js"

type Wanted = ClaimRequest["workflows"][number]

/** Changes the limits of each workflow; null takes them away. */
const editLimits = (
  driver: CheckpointDriver,
  edit: (limits: ClaimLimits, request: ClaimRequest) => ClaimLimits | null,
): Partial<CheckpointDriver> => ({
  claim: (request) =>
    driver.claim({
      ...request,
      workflows: request.workflows.map(({ limits, ...workflow }): Wanted => {
        const edited = limits === undefined ? null : edit(limits, request)
        return edited === null ? workflow : { ...workflow, limits: edited }
      }),
    }),
})

const limitsOf = (request: ClaimRequest): ClaimLimits | undefined => request.workflows[0]?.limits

const none: ClaimLimits = { running: null, perKey: null, rate: null }

const places: ReadonlyArray<Mutant> = [
  mutant("a claim knows no limit of a workflow", "D35: of a workflow", (driver) =>
    editLimits(driver, (limits) => ({ ...limits, running: null })),
  ),
  mutant("a limit is judged before others have taken", "D35: of a workflow", (driver) => {
    let held = 0
    return {
      claim: (request) =>
        Effect.gen(function* () {
          const room = (limitsOf(request)?.running ?? Infinity) - held
          yield* Effect.yieldNow()
          const rows = yield* driver.claim({
            ...request,
            workflows: request.workflows.map(({ name, version }) => ({ name, version })),
            limit: Math.min(request.limit, Math.max(0, room)),
          })
          held += rows.length
          return rows
        }),
    }
  }),
  mutant("a limit lets one too many through", "D35: of a workflow", (driver) =>
    editLimits(driver, (limits) => ({ ...limits, running: limits.running === null ? null : limits.running + 1 })),
  ),
  mutant("a claim knows no limit of a key", "D35: of one key", (driver) =>
    editLimits(driver, (limits) => ({ ...limits, perKey: null })),
  ),
  mutant("runs without a key know no limit of one", "D35: of one key", (driver) => {
    let count = 0
    return {
      createRun: (run) => driver.createRun({ ...run, flowKey: run.flowKey ?? `none-${count++}` }),
    }
  }),
  mutant("keys are compared without case", "D35: of one key", (driver) => ({
    createRun: (run) => driver.createRun({ ...run, flowKey: run.flowKey?.toLowerCase() ?? null }),
  })),
  mutant("a limit is applied to what was found", "D35: what a limit holds back", (driver) => {
    const created: Array<RunRow> = []
    return {
      createRun: (run) => Effect.tap(driver.createRun(run), (made) => Effect.sync(() => created.push(made.run))),
      claim: (request) =>
        driver.claim({
          ...request,
          runIds: [...created]
            .sort((a, b) => b.priority - a.priority)
            .slice(0, request.limit)
            .map(({ runId }) => runId),
        }),
    }
  }),
  mutant("a place is given back by an end alone", "D35: a run that sleeps", (driver) => {
    const held = new Set<string>()
    return {
      claim: (request) =>
        Effect.suspend(() =>
          held.size >= (limitsOf(request)?.running ?? Infinity)
            ? Effect.succeed([])
            : Effect.tap(driver.claim(request), (rows) =>
                Effect.sync(() => {
                  for (const { runId } of rows) held.add(runId)
                }),
              ),
        ),
      commit: (batch) =>
        Effect.tap(driver.commit(batch), () =>
          Effect.sync(() => {
            for (const { lease, run } of batch) if (run.status === "completed") held.delete(lease.runId)
          }),
        ),
    }
  }),
  mutant("each version has places of its own", "D35: all versions", (driver) => {
    const own = (name: string, version: number) => `${name} ${version}`
    return {
      createRun: (run) => driver.createRun({ ...run, workflow: own(run.workflow, run.version) }),
      claim: (request) =>
        driver.claim({
          ...request,
          workflows: request.workflows.map((one) => ({ ...one, name: own(one.name, one.version) })),
        }),
    }
  }),
  mutant("a claim by id knows no limit", "D35: all versions", (driver) =>
    editLimits(driver, (limits, { runIds }) => (runIds === null ? limits : null)),
  ),
]

/** A rate that the mutant keeps by itself: how many may begin, given when others did. */
const ownRate = (
  driver: CheckpointDriver,
  room: (rate: NonNullable<ClaimLimits["rate"]>, starts: ReadonlyArray<number>, now: number) => number,
): Partial<CheckpointDriver> => {
  const starts: Array<number> = []
  return {
    claim: (request) =>
      Effect.gen(function* () {
        const rate = limitsOf(request)?.rate
        if (!rate) return yield* driver.claim(request)
        const now = yield* Clock.currentTimeMillis
        const limit = Math.min(request.limit, room(rate, starts, now))
        const workflows = request.workflows.map((one) => ({ ...one, limits: none }))
        const rows = yield* driver.claim({ ...request, limit, workflows })
        starts.push(...rows.map(() => now))
        return rows
      }),
  }
}

const rates: ReadonlyArray<Mutant> = [
  mutant("a claim knows no rate", "D36: no more runs begin", (driver) =>
    editLimits(driver, (limits) => ({ ...limits, rate: null })),
  ),
  mutant("a run that goes on is held back by the rate", "D36: no more runs begin", (driver) =>
    ownRate(driver, ({ count }, starts) => Math.max(0, count - starts.length)),
  ),
  mutant("a rate of each key is one of all", "D36: a rate of each key", (driver) =>
    editLimits(driver, (limits) => ({ ...limits, rate: limits.rate && { ...limits.rate, perKey: false } })),
  ),
  mutant("a rate is counted by the clock's own stretches", "D36: the rate holds", (driver) =>
    ownRate(driver, ({ count, perMs }, starts, now) => {
      const stretch = (at: number) => Math.floor(at / perMs)
      return Math.max(0, count - starts.filter((at) => stretch(at) === stretch(now)).length)
    }),
  ),
  mutant("a rate is a bucket that fills while others begin", "D36: the rate holds", (driver) => {
    let [full, at] = [0, 0]
    return ownRate(driver, ({ count, perMs }, starts, now) => {
      full = at === 0 ? count : Math.min(count, full + ((now - at) * count) / perMs)
      at = now
      const spent = starts.filter((start) => start === now).length
      const room = Math.max(0, Math.floor(full) - spent)
      full -= room
      return room
    })
  }),
  mutant("what a quiet time left over is made up for", "D36: the rate holds", (driver) => {
    let first = 0
    return ownRate(driver, ({ count, perMs }, starts, now) => {
      first ||= now
      return Math.max(0, count * Math.floor(1 + (now - first) / perMs) - starts.length)
    })
  }),
]

export const limitMutants: ReadonlyArray<Mutant> = [...places, ...rates]
