/** Many at one database: processes at a file, runs at a connection. */
import { Cairn, CheckpointStore } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { Effect, Layer, Redacted } from "effect"
import { describe, expect, it } from "vitest"
import { databases, load, over, usePlaces } from "./internal/places.js"
import { startWorker } from "./internal/processes.js"
import { startInProcess } from "./internal/workers.js"
import { order, orderSteps, sentTo } from "./internal/workflows.js"

const places = usePlaces()

describe.each(databases)("four processes on %s", (where) => {
  it("that start 200 runs each all end them, with each operation performed once and no error", async () => {
    const place = places.make(where)
    const names = ["p1", "p2", "p3", "p4"]
    const workers = names.map((name) =>
      startWorker({ store: place.address, log: place.log, name, starts: 200, leaseMs: 10_000 }),
    )
    for (const worker of workers) {
      const { results } = await worker.says("ended")
      expect(results).toEqual(Array.from({ length: 200 }, (_, n) => `closed charge of ${n}`))
      expect(await worker.ended).toBe(0)
      // Not a word of a busy file, nor of anything else.
      expect(worker.output()).toBe("")
    }
    const keys = sentTo(place.log).map(({ key }) => key)
    expect([keys.length, new Set(keys).size]).toEqual([800, 800])
    const ids = names.flatMap((name) => Array.from({ length: 200 }, (_, n) => `${name}-${n}`))
    const states = await over(
      place,
      Effect.forEach(ids, (runId) => load(runId)),
    )
    for (const { run, steps } of states) {
      expect([run.status, run.recoveries, steps.map(({ path }) => path)]).toEqual(["completed", 0, orderSteps])
    }
  }, 90_000)
})

describe("a pool of one connection", () => {
  it("carries twenty runs at once, their heartbeats and those who wait for them", async () => {
    const place = places.make("Postgres")
    const [url = "", schema = ""] = place.address.split("#")
    // Worker and clients share it: whoever held it and asked for another one would wait for ever.
    const made = PostgresStore.layer({ url: Redacted.make(url), schema, maxConnections: 1, listen: false })
    const body = Effect.gen(function* () {
      const store = Layer.succeed(CheckpointStore, yield* CheckpointStore)
      yield* startInProcess({ ...place, store }, { by: "", options: { concurrency: 20, lease: "5 seconds" } })
      const handles = yield* Effect.forEach(
        Array.from({ length: 20 }),
        (_, n) => Cairn.start(order, { order: n }, { runId: `run-${n}` }),
        { concurrency: "unbounded" },
      )
      const results = yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      expect(results).toEqual(handles.map((_, n) => `closed charge of ${n}`))
      return yield* Effect.forEach(handles, ({ runId }) => load(runId), { concurrency: "unbounded" })
    })
    const states = await Effect.runPromise(Effect.provide(Effect.scoped(body), made))
    expect(states.map(({ run }) => [run.fence, run.recoveries])).toEqual(states.map(() => [1, 0]))
    expect(sentTo(place.log)).toHaveLength(20)
  }, 20_000)
})
