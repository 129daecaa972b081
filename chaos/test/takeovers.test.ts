/** Who owns a run, when owners die, stall and leave (field cases P001, P007, P009). */
import { Cairn, CheckpointStore, Workflow, type RunRecord } from "@cairn/core"
import { Effect, Schema } from "effect"
import { writeFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { databases, load, over, usePlaces, type Place } from "./internal/places.js"
import { startWorker } from "./internal/processes.js"
import { startInProcess } from "./internal/workers.js"
import { order, orderSteps, sentTo, stalling } from "./internal/workflows.js"

const places = usePlaces()

const ids = Array.from({ length: 100 }, (_, n) => `run-${n}`)

const claimAs = (workerId: string, limit: number) =>
  Effect.flatMap(CheckpointStore, (store) =>
    store.claim({
      namespace: "default",
      workerId,
      claimToken: `${workerId} ${Math.random()}`,
      workflows: [{ name: "order", version: 1 }],
      runIds: null,
      limit,
    }),
  )

const beatAs = (workerId: string, leaseMs: number) =>
  Effect.flatMap(CheckpointStore, (store) => store.beat(workerId, leaseMs))

/** A hundred runs of a worker that has died: it holds them, and its lease has ended. */
const orphan = (dead: string) =>
  Effect.gen(function* () {
    const { now } = yield* CheckpointStore
    yield* beatAs(dead, 600_000)
    expect(yield* claimAs(dead, ids.length)).toHaveLength(ids.length)
    const { until } = yield* beatAs(dead, 1)
    yield* Effect.repeat(now, { until: (at) => at > until })
  })

/** Claims until nothing is due any more, as a sweep for orphans does. */
const sweep = (workerId: string) =>
  Effect.gen(function* () {
    const taken: Array<RunRecord> = []
    for (;;) {
      const some = yield* claimAs(workerId, 7)
      if (some.length === 0) return taken
      taken.push(...some)
    }
  })

const startAll = Effect.forEach(ids, (runId, n) => Cairn.start(order, { order: n }, { runId }), { concurrency: 8 })

/** In a store of its own: another process, as the database sees it. */
const elsewhere = <A, E>(place: Place, effect: Effect.Effect<A, E, CheckpointStore>) =>
  Effect.provide(effect, place.store)

/** Its step lasts longer than any worker drains, until a test says otherwise. */
let sleepsMs = 60_000

const sleeper = Workflow.make("sleeper", { version: 1, input: Schema.Struct({ order: Schema.Int }) })
  .step("sleep", { effects: [], output: Schema.Int }, ({ input }) =>
    Effect.suspend(() => Effect.delay(Effect.succeed(input.order), sleepsMs)),
  )
  .output(Schema.Int, ({ results }) => results.sleep)
  .compile()

describe.each(databases)("on %s", (where) => {
  it("two sweeps over a hundred orphaned runs share them, each to one, round after round", async () => {
    const place = places.make(where)
    const rounds = 25
    const body = Effect.gen(function* () {
      yield* startAll
      for (let round = 0; round < rounds; round++) {
        yield* orphan(`dead ${round}`)
        const sweeper = (name: string) => elsewhere(place, Effect.zipRight(beatAs(name, 600_000), sweep(name)))
        const names = [`one ${round}`, `two ${round}`]
        const swept = yield* Effect.forEach(names, sweeper, { concurrency: 2 })
        const runs = swept.flat()
        expect(runs.map(({ runId }) => runId).sort()).toEqual([...ids].sort())
        // One claim by the dead worker and one by a sweep, each round.
        expect(new Set(runs.map(({ fence }) => fence))).toEqual(new Set([2 * round + 2]))
        expect(new Set(runs.map(({ recoveries }) => recoveries))).toEqual(new Set([round + 1]))
        const { releaseWorker } = yield* CheckpointStore
        yield* Effect.forEach(names, releaseWorker)
      }
    })
    await over(place, body)
  })

  it("two workers that start over a hundred orphaned runs perform each operation once", async () => {
    const place = places.make(where)
    const body = Effect.gen(function* () {
      const handles = yield* startAll
      yield* orphan("dead")
      yield* Effect.forEach(["one", "two"], (by) => startInProcess(place, { by, options: { lease: "10 seconds" } }), {
        concurrency: 2,
      })
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" })
      return yield* Effect.forEach(ids, (runId) => load(runId))
    })
    const states = await over(place, Effect.scoped(body))
    expect(states.map(({ run, steps }) => [run.fence, steps.length])).toEqual(ids.map(() => [2, orderSteps.length]))
    const keys = sentTo(place.log).map(({ key }) => key)
    expect([keys.length, new Set(keys).size]).toEqual([ids.length, ids.length])
  })

  it("a worker whose event loop stands still past its lease commits nothing more of the run", async () => {
    const place = places.make(where)
    const leaseMs = 1_000
    const stalled = startWorker({
      store: place.address,
      log: place.log,
      name: "stalled",
      leaseMs,
      stallUntil: `${place.log}.go`,
    })
    const body = Effect.gen(function* () {
      yield* Effect.promise(() => stalled.says("ready"))
      const handle = yield* Cairn.start(stalling, { order: 1 }, { runId: "run" })
      yield* Effect.promise(() => stalled.says("stalls"))
      yield* startInProcess(place, { by: "other", options: { lease: leaseMs } })
      expect(yield* handle.result).toBe("test")
      // It wakes when all is done, and finds out at its next heartbeat or commit.
      writeFileSync(`${place.log}.go`, "")
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => stalled.output()),
          "50 millis",
        ),
        { until: (output) => /taken over by another worker|LeaseLost/.test(output) },
      )
      const after = yield* load("run")
      stalled.process.kill("SIGKILL")
      return after
    })
    const { run, steps } = await over(place, Effect.scoped(body))
    expect([run.status, run.fence]).toEqual(["completed", 2])
    expect(steps.map(({ path, result }) => [path, result])).toEqual([
      ["stall", '"test"'],
      ["charge", '{"id":"charge of 1"}'],
      ["close", '"test"'],
    ])
    expect(sentTo(place.log).map(({ by }) => by)).toEqual(["other"])
  })

  it("a worker that stops claims nothing from then on, and what it leaves ends on another", async () => {
    const place = places.make(where)
    sleepsMs = 60_000
    let stopping = false
    let claimsAfter = 0
    const body = Effect.gen(function* () {
      const leaving = yield* startInProcess(place, {
        by: "leaving",
        options: { concurrency: 1, drain: "300 millis" },
        watch: (store) => ({
          ...store,
          claim: (request) =>
            Effect.tap(store.claim(request), (runs) => Effect.sync(() => stopping && (claimsAfter += runs.length))),
        }),
        workflows: [sleeper],
      })
      const held = yield* Cairn.start(sleeper, { order: 0 }, { runId: "held" })
      yield* Effect.repeat(held.poll, { until: ({ status }) => status === "running" })
      const queued = yield* Effect.forEach([1, 2, 3], (n) => Cairn.start(sleeper, { order: n }))
      stopping = true
      sleepsMs = 1
      const stop = yield* Effect.fork(leaving.stop)
      yield* startInProcess(place, { by: "next", workflows: [sleeper] })
      yield* Effect.forEach([held, ...queued], ({ result }) => result, { concurrency: "unbounded" })
      yield* stop.await
      return yield* load("held")
    })
    const { run } = await over(place, Effect.scoped(body))
    expect(claimsAfter).toBe(0)
    // Released, not recovered.
    expect([run.fence, run.recoveries]).toEqual([2, 0])
  })
})
