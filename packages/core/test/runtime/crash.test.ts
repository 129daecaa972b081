/** A worker dies or stalls at every point between two acts, and others go on: one record a step, one effect a key. */
import { afterEach, describe, expect, it, vi } from "@effect/vitest"
import { Clock, Effect, Exit, Layer, Schema } from "effect"
import { Cairn, Effects, Workflow, type AnyWorkflow, type FaultPoint } from "../../src/index.js"
import {
  makeBench,
  makeMortal,
  quiet,
  refuseUnhandled,
  startDoomed,
  startWorker,
  storeLayer,
  type Bench,
} from "./support/bench.js"
import { Charge, chargeAt, Mail, mailAt, Model, modelSays, Provider } from "./support/operations.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

interface Site {
  readonly point: FaultPoint
  readonly step: string
}

/** A read, an operation in its own form, an operation inside a step, and a step without effects. */
const makeWorld = (durability: "step" | "barrier" = "barrier") => {
  const charges = new Provider()
  const mails = new Provider()
  const called: Array<string> = []
  const workflow: AnyWorkflow = (Workflow.make("crashing", { version: 1, input: Schema.String, durability }) as any)
    .step("read", { effects: [Effects.read(Model)], output: Schema.Number }, ({ input }: any) => {
      called.push("read")
      return Effect.flatMap(Model, (model) => model.ask(input))
    })
    .perform("charge", Charge, {
      payload: ({ input, results }: any) => {
        called.push("charge")
        return { customer: input, cents: results.read }
      },
    })
    .step("mail", { effects: [Mail], output: Schema.Date }, function* ({ input, results }: any) {
      called.push("mail")
      yield* Mail.perform({ to: input, body: results.charge.id })
      return results.charge.at
    })
    .step("plain", { effects: [], output: Schema.String }, async ({ results }: any) => {
      called.push("plain")
      return `${results.mail.getTime()}`
    })
    .output(Schema.parseJson(), ({ results }: any) => [results.charge.id, results.plain, results.read])
    .compile()
  // A model gives another answer each time it is asked: what follows from it must follow from the committed one.
  let answers = 0
  const needs = Layer.mergeAll(
    chargeAt(charges),
    mailAt(mails),
    modelSays(() => 100 + answers++),
  )
  return { charges, mails, called, workflow, needs }
}

type World = ReturnType<typeof makeWorld>

const committed = (bench: Bench) =>
  Effect.map(bench.driver.load("default", "r"), (rows) => (rows?.steps ?? []).map(({ path }) => path))

/** A worker that dies at a site, if it comes by. */
const doomedAt = (bench: Bench, world: World, site: Site) =>
  Effect.gen(function* () {
    const death = { happened: false, committed: [] as ReadonlyArray<string>, calledBefore: 0 }
    const mortal = makeMortal(bench.store, (point, { step }) =>
      death.happened || point !== site.point || step !== site.step
        ? Effect.void
        : Effect.map(committed(bench), (paths) => {
            death.happened = true
            death.committed = paths
            death.calledBefore = world.called.length
            mortal.kill()
          }).pipe(Effect.orDie),
    )
    yield* startDoomed(mortal, { workflows: [world.workflow] }, world.needs)
    return death
  })

const start = (bench: Bench, world: World) =>
  Effect.provide(Cairn.start(world.workflow, "ada", { runId: "r" }), storeLayer(bench.store))

const check = (bench: Bench, world: World, result: unknown, crashes: number) =>
  Effect.gen(function* () {
    const { steps, run } = (yield* bench.driver.load("default", "r"))!
    expect(run.status).toBe("completed")
    expect(steps.map(({ path }) => path)).toEqual(["read", "charge", "mail", "plain"])
    const [id, at, cents] = result as [string, string, number]
    expect([id, at]).toEqual(["ch_1", "1"])
    expect(world.charges.keys()).toEqual(["default/r/charge#0"])
    expect(world.charges.payloads()).toEqual([JSON.stringify({ customer: "ada", cents })])
    expect(world.mails.keys()).toEqual(["default/r/mail#0"])
    expect(world.mails.payloads()).toEqual(['{"to":"ada","body":"ch_1"}'])
    for (const provider of [world.charges, world.mails]) {
      expect(provider.done.size).toBe(1)
      expect(provider.calls.length).toBeLessThanOrEqual(1 + crashes)
    }
    expect(steps.find(({ path }) => path === "charge")?.idempotencyKey).toBe("default/r/charge#0")
  })

/** Crashes at each site in turn, each on a worker of its own, then lets a last one finish. */
const crash = (sites: ReadonlyArray<Site>, durability: "step" | "barrier" = "barrier") =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    const world = makeWorld(durability)
    const deaths = []
    for (const site of sites) {
      const death = yield* doomedAt(bench, world, site)
      const handle = deaths.length === 0 ? yield* start(bench, world) : null
      if (handle !== null) expect(handle.created).toBe(true)
      const ended = Effect.map(bench.driver.findRun("default", "r"), (row) => row?.status === "completed")
      yield* Effect.repeat(Effect.zipRight(Effect.sleep(500), ended), { until: (over) => over || death.happened })
      deaths.push(death)
    }
    yield* startWorker(bench.store, { workflows: [world.workflow] }, world.needs)
    const result = yield* Effect.flatMap(start(bench, world), (handle) => handle.result)
    const crashes = deaths.filter(({ happened }) => happened).length
    yield* check(bench, world, result, crashes)
    for (const death of deaths.filter(({ happened }) => happened)) {
      // What was committed when a worker died is never done again.
      const after = new Set(world.called.slice(death.calledBefore))
      for (const path of death.committed) expect(after.has(path)).toBe(false)
    }
    return crashes
  }).pipe(Effect.scoped, Effect.provide(quiet), Effect.withClock(makeVirtualClock()))

const commitPoints: ReadonlyArray<FaultPoint> = ["afterGate", "beforeCommit", "afterCommit"]
const operationPoints: ReadonlyArray<FaultPoint> = [
  "beforeIntent",
  "afterIntent",
  "beforeEffect",
  "afterEffect",
  ...commitPoints,
]
const sites: ReadonlyArray<Site> = [
  { point: "afterClaim", step: "" },
  ...commitPoints.map((point) => ({ point, step: "read" })),
  ...operationPoints.map((point) => ({ point, step: "charge" })),
  ...operationPoints.map((point) => ({ point, step: "mail" })),
  ...commitPoints.map((point) => ({ point, step: "plain" })),
]

/** Around the first write of what was accepted. */
const flushes: ReadonlyArray<Site> = [
  { point: "beforeFlush", step: "" },
  { point: "afterFlush", step: "" },
]

describe("a worker that is killed", () => {
  it.live("passes exactly the sites that these tests kill it at", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const world = makeWorld()
      const passed: Array<Site> = []
      const mortal = makeMortal(bench.store, (point, { step }) =>
        Effect.sync(() => {
          // Flushes concern no step; they are killed at by themselves.
          if (step !== "" || point === "afterClaim") passed.push({ point, step })
        }),
      )
      yield* startWorker(mortal.store, { workflows: [world.workflow] }, world.needs, mortal.faults)
      const result = yield* Effect.flatMap(start(bench, world), (handle) => handle.result)
      yield* check(bench, world, result, 0)
      expect(passed).toEqual(sites)
    }).pipe(Effect.scoped, Effect.withClock(makeVirtualClock())),
  )

  for (const durability of ["step", "barrier"] as const) {
    for (const site of [...sites, ...flushes]) {
      it.live(`${site.point} of '${site.step}' is resumed by another, with every ${durability} waited for`, () =>
        Effect.map(crash([site], durability), (crashes) => expect(crashes).toBe(1)),
      )
    }
  }

  for (const flush of flushes) {
    it.live(`${flush.point} twice, and any other site between`, () =>
      Effect.gen(function* () {
        for (const site of sites) {
          // A site that was passed for good, and every flush after it, strikes nobody.
          const crashes = yield* crash([flush, site, flush])
          expect(crashes).toBeGreaterThanOrEqual(1)
        }
      }),
    )
  }

  for (const [index, first] of sites.entries()) {
    it.live(`${first.point} of '${first.step}', and the next one at any later point`, () =>
      Effect.gen(function* () {
        let crashes = 0
        const later = sites.slice(index)
        for (const second of later) crashes += yield* crash([first, second])
        // A site that was passed for good is not passed again; every later one kills twice.
        expect(crashes).toBeGreaterThanOrEqual(2 * later.length - 1)
      }),
    )
  }

  it.live("again and again at the same point is resumed as often", () =>
    Effect.gen(function* () {
      const site: Site = { point: "afterEffect", step: "charge" }
      expect(yield* crash([site, site, site])).toBe(3)
    }),
  )
})

/** The first worker stalls at a site, the second takes over; `until` says when the first one wakes. */
const stall = (site: Site, until: (bench: Bench) => Effect.Effect<boolean, any>) =>
  Effect.gen(function* () {
    const clock = yield* Clock.clockWith(Effect.succeed)
    const startedAt = clock.unsafeCurrentTimeMillis()
    // The monotonic clock goes on while a process is stopped, as the store's does.
    vi.spyOn(performance, "now").mockImplementation(() => clock.unsafeCurrentTimeMillis() - startedAt)
    const bench = yield* makeBench
    const world = makeWorld()
    let stalled = false
    const mortal = makeMortal(bench.store, (point, { step }) =>
      Effect.sync(() => {
        if (stalled || point !== site.point || step !== site.step) return
        stalled = true
        mortal.kill()
      }),
    )
    const options = { workflows: [world.workflow] }
    const first = yield* startDoomed(mortal, options, world.needs)
    yield* Effect.addFinalizer(() => Effect.zipRight(Effect.sync(mortal.wake), first.close))
    const handle = yield* start(bench, world)
    yield* Effect.repeat(Effect.sleep(100), { until: () => stalled })
    yield* startWorker(bench.store, options, world.needs)
    yield* Effect.repeat(Effect.zipRight(Effect.sleep(500), until(bench)), { until: (now) => now })
    const callsBefore = world.charges.calls.length + world.mails.calls.length
    const seqBefore = (yield* bench.driver.findRun("default", "r"))!.seq
    mortal.wake()
    yield* Effect.repeat(Effect.zipRight(Effect.sleep(500), first.worker.running), { until: (ids) => ids.length === 0 })
    const result = yield* handle.result
    yield* check(bench, world, result, 1)
    return { bench, world, callsBefore, seqBefore }
  }).pipe(Effect.scoped, Effect.provide(quiet), Effect.withClock(makeVirtualClock()))

const over = (bench: Bench) => Effect.map(bench.driver.findRun("default", "r"), (row) => row?.status === "completed")
const takenOver = (bench: Bench) => Effect.map(bench.driver.findRun("default", "r"), (row) => row!.fence === 2)

const known = new Set<FaultPoint>(["afterEffect", "afterGate", "beforeCommit"])

describe("a worker that loses its lease", () => {
  for (const site of sites) {
    it.live(`${site.point} of '${site.step}' and wakes when all is done: it performs nothing and commits nothing`, () =>
      Effect.gen(function* () {
        const { world, callsBefore, seqBefore, bench } = yield* stall(site, over)
        expect(world.charges.calls.length + world.mails.calls.length).toBe(callsBefore)
        expect((yield* bench.driver.findRun("default", "r"))!.seq).toBe(seqBefore)
      }),
    )
  }

  for (const step of ["charge", "mail"]) {
    for (const point of operationPoints) {
      it.live(`${point} of '${step}' and wakes in time: what it knows is read by the new owner, not sent again`, () =>
        Effect.gen(function* () {
          const { world } = yield* stall({ point, step }, takenOver)
          const provider = step === "charge" ? world.charges : world.mails
          expect(provider.calls).toHaveLength(1)
          const byFirst = known.has(point) || point === "afterCommit"
          expect(provider.calls[0]!.fence === 1).toBe(byFirst)
        }),
      )
    }
  }

  for (const point of ["beforeIntent", "afterIntent"] as const) {
    it.live(`and says what it knows while the new owner is at ${point}: it is read as long as it can match`, () =>
      Effect.gen(function* () {
        const bench = yield* makeBench
        const world = makeWorld()
        const stallingAt = (site: Site) => {
          const at = { stalled: false }
          const mortal = makeMortal(bench.store, (reached, { step }) =>
            Effect.sync(() => {
              if (at.stalled || reached !== site.point || step !== site.step) return
              at.stalled = true
              mortal.kill()
            }),
          )
          return { at, mortal }
        }
        const options = { workflows: [world.workflow] }
        const first = stallingAt({ point: "afterEffect", step: "charge" })
        const second = stallingAt({ point, step: "charge" })
        const doomed = yield* startDoomed(first.mortal, options, world.needs)
        const handle = yield* start(bench, world)
        yield* Effect.repeat(Effect.sleep(100), { until: () => first.at.stalled })
        const successor = yield* startDoomed(second.mortal, options, world.needs)
        yield* Effect.repeat(Effect.sleep(100), { until: () => second.at.stalled })
        first.mortal.wake()
        const idle = Effect.repeat(Effect.zipRight(Effect.sleep(100), doomed.worker.running), {
          until: (ids) => ids.length === 0,
        })
        yield* idle
        second.mortal.wake()
        const result = yield* handle.result
        yield* check(bench, world, result, 1)
        // Past the new intent the old owner's outcome can't match any more; before it, it is read.
        expect(world.charges.calls).toHaveLength(point === "beforeIntent" ? 1 : 2)
        yield* doomed.close
        yield* successor.close
      }).pipe(Effect.scoped, Effect.provide(quiet), Effect.withClock(makeVirtualClock())),
    )
  }

  it.live("interrupts what it was doing within one heartbeat: fiber and signal", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.clockWith(Effect.succeed)
      const startedAt = clock.unsafeCurrentTimeMillis()
      vi.spyOn(performance, "now").mockImplementation(() => clock.unsafeCurrentTimeMillis() - startedAt)
      const bench = yield* makeBench
      const ended: Array<string> = []
      let begun = 0
      const workflow: AnyWorkflow = (Workflow.make("long", { version: 1, input: Schema.Null }) as any)
        .step("fiber", { effects: [], output: Schema.Null }, ({ signal }: any) => {
          if (++begun > 1) return null
          signal.addEventListener("abort", () => ended.push("signal"))
          return Effect.onInterrupt(Effect.never, () => Effect.sync(() => ended.push("fiber")))
        })
        .compile()
      const beats = { blocked: false }
      const mortal = makeMortal(bench.store, (point) =>
        point === "beforeBeat" && beats.blocked ? Effect.sleep("100 seconds") : Effect.void,
      )
      const first = yield* startDoomed(mortal, { workflows: [workflow] })
      yield* Effect.addFinalizer(() => first.close)
      const handle = yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))
      yield* Effect.repeat(Effect.sleep(100), { until: () => begun === 1 })
      beats.blocked = true
      yield* startWorker(bench.store, { workflows: [workflow] })
      yield* handle.result
      expect(ended).toEqual([])
      beats.blocked = false
      // The beat under way, and one more.
      yield* Effect.sleep("110 seconds")
      expect(ended.toSorted()).toEqual(["fiber", "signal"])
      expect(yield* first.worker.running).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(quiet), Effect.withClock(makeVirtualClock())),
  )
})

describe("a step that is longer than the lease", () => {
  it.live("runs once, with a second worker waiting", () =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      let calls = 0
      const workflow: AnyWorkflow = (Workflow.make("long", { version: 1, input: Schema.Null }) as any)
        .step("s", { effects: [], output: Schema.Number }, () =>
          Effect.delay(
            Effect.sync(() => ++calls),
            "5 minutes",
          ),
        )
        .output(Schema.Number, ({ results }: any) => results.s)
        .compile()
      const options = { workflows: [workflow], lease: "30 seconds" } as const
      yield* startWorker(bench.store, options)
      yield* startWorker(bench.store, options)
      const handle = yield* Effect.provide(Cairn.start(workflow, null, { runId: "r" }), storeLayer(bench.store))
      expect(yield* Effect.exit(handle.result)).toEqual(Exit.succeed(1))
      expect((yield* bench.driver.findRun("default", "r"))!.fence).toBe(1)
    }).pipe(Effect.scoped, Effect.withClock(makeVirtualClock())),
  )
})
