/** A run that kills whoever runs it is parked; the runs beside it are not (law X12). */
import { Cairn, CheckpointStore } from "@cairn/core"
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { databases, over, usePlaces } from "./internal/places.js"
import { startWorker } from "./internal/processes.js"
import { order, sentTo } from "./internal/workflows.js"

const places = usePlaces()

const runs = 100
const poison = "run-50"
const maxRecoveries = 3
const mostDeaths = maxRecoveries + 1

const cases = [...databases.map((where) => [where, false] as const), ["SQLite", true] as const]

describe.each(cases)("on %s (with a log on the host: %s)", (where, withLog) => {
  it("of a hundred runs the one that kills its worker is parked, alone, and the others complete", async () => {
    const place = places.make(where)
    const ids = Array.from({ length: runs }, (_, n) => `run-${n}`)
    const states = await over(
      place,
      Effect.gen(function* () {
        for (const [n, runId] of ids.entries()) yield* Cairn.start(order, { order: n }, { runId })
        const { findRun, load } = yield* CheckpointStore
        const local = withLog ? { local: { directory: `${place.log}.local` } } : {}
        const orders = { store: place.address, log: place.log, name: "worker", leaseMs: 600, maxRecoveries, ...local }
        // A supervisor that starts again what dies.
        let deaths = 0
        let worker = startWorker({ ...orders, killAt: { step: "price", runId: poison } })
        const supervise = (how: unknown): void => {
          if (how !== "SIGKILL" || ++deaths > mostDeaths) return
          worker = startWorker({ ...orders, killAt: { step: "price", runId: poison } })
          void worker.ended.then(supervise)
        }
        void worker.ended.then(supervise)
        const isOver = Effect.map(
          Effect.forEach(ids, (runId) => findRun("default", runId)),
          (rows) => rows.every(({ status }) => status === "completed" || status === "review"),
        )
        yield* Effect.repeat(Effect.delay(isOver, "100 millis"), { until: (over) => over || deaths > mostDeaths })
        worker.process.kill("SIGTERM")
        // Each death is a recovery of the poison run at most; its neighbours cost it no further ones.
        expect(deaths).toBeGreaterThanOrEqual(2)
        expect(deaths).toBeLessThanOrEqual(mostDeaths)
        return yield* Effect.forEach(ids, (runId) => load("default", runId))
      }),
    )
    const others = states.filter(({ run }) => run.status !== "completed")
    expect(others.map(({ run }) => [run.runId, run.parked?.reason])).toEqual([[poison, "TooManyRecoveries"]])
    expect(others[0]!.steps).toEqual([])
    const keys = sentTo(place.log).map(({ key }) => key)
    expect(new Set(keys).size).toBe(runs - 1)
  }, 90_000)
})
