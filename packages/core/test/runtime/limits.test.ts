/** Limits and priorities as a worker keeps them (D35, D36). */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Either, Schema } from "effect"
import { Cairn, Workflow, type AnyWorkflow } from "../../src/index.js"
import { makeBench, quiet, refuseUnhandled, storeLayer, withWorker } from "./support/bench.js"
import { makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

const Job = Schema.Struct({ key: Schema.String, n: Schema.Number })

interface Seen {
  readonly n: number
  readonly at: number
  readonly under: number
}

/** A workflow whose step takes a while by the virtual clock, and notes how many were under way when it began. */
const slow = (options: object, ms = 500) => {
  const seen: Array<Seen> = []
  const under = new Map<string, number>()
  const workflow = Workflow.make("slow", { version: 1, input: Job, ...(options as {}) })
    .step("work", { effects: [], output: Schema.Void }, ({ input }) =>
      Effect.gen(function* () {
        const count = (under.get(input.key) ?? 0) + 1
        under.set(input.key, count)
        seen.push({ n: input.n, at: yield* Clock.currentTimeMillis, under: count })
        yield* Effect.sleep(ms)
        under.set(input.key, count - 1)
      }),
    )
    .compile()
  return { seen, workflow }
}

const jobs = (count: number, keys = 1) => Array.from({ length: count }, (_, n) => ({ key: `key ${n % keys}`, n }))

/** All jobs started before the worker is there, then executed to their ends. */
const execute = (workflow: AnyWorkflow, inputs: ReadonlyArray<unknown>, options: object = {}) =>
  Effect.gen(function* () {
    const bench = yield* makeBench
    const claims: Array<number> = []
    const store = {
      ...bench.store,
      claim: (request: Parameters<typeof bench.store.claim>[0]) =>
        Effect.tap(bench.store.claim(request), () => Effect.map(Clock.currentTimeMillis, (now) => claims.push(now))),
    }
    yield* Effect.gen(function* () {
      const handles = yield* Effect.forEach(inputs, (input, n) => Cairn.start(workflow, input, { runId: `r${n}` }))
      yield* Effect.forEach(handles, ({ result }) => result, { concurrency: "unbounded" }).pipe(
        withWorker({ ...bench, store }, [workflow], undefined, options),
      )
    }).pipe(Effect.provide(storeLayer(store)))
    return { bench, claims }
  }).pipe(Effect.withClock(makeVirtualClock()), Effect.provide(quiet))

describe("a limited workflow", () => {
  it.live("executes as many runs at once as it says, and goes on as soon as one has ended", () =>
    Effect.gen(function* () {
      const { seen, workflow } = slow({ limits: { concurrency: 3 } })
      yield* execute(workflow, jobs(9), { pollInterval: "1 minute", lease: "10 minutes" })
      expect(Math.max(...seen.map(({ under }) => under))).toBe(3)
      // Three times three, one after the other: nothing waited for a poll.
      expect(seen.at(-1)!.at - seen[0]!.at).toBeLessThan(3_000)
    }),
  )

  it.live("executes one run of each key at a time, other keys beside it", () =>
    Effect.gen(function* () {
      const limits = { perKey: { key: ({ input }: { input: { key: string } }) => input.key, concurrency: 1 } }
      const { seen, workflow } = slow({ limits })
      yield* execute(workflow, jobs(12, 4))
      expect(seen.map(({ under }) => under)).toEqual(Array.from({ length: 12 }, () => 1))
      expect(new Set(seen.slice(0, 4).map(({ n }) => n % 4)).size).toBe(4)
      expect(new Set(seen.slice(0, 4).map(({ at }) => at)).size).toBe(1)
    }),
  )

  it.live("begins no more runs than its rate says in any stretch, soon after they may, and asks seldom meanwhile", () =>
    Effect.gen(function* () {
      const { seen, workflow } = slow({ limits: { rate: { count: 3, per: "1 hour" } } }, 10)
      const { claims } = yield* execute(workflow, jobs(10), { pollInterval: "1 minute", maxPollInterval: "30 minutes" })
      const times = seen.map(({ at }) => at)
      for (let n = 3; n < times.length; n++) {
        expect(times[n]! - times[n - 3]!).toBeGreaterThanOrEqual(3_600_000)
        expect(times[n]! - times[n - 3]!).toBeLessThan(3_601_000)
      }
      // Three hours: some looks each, not one a second.
      expect(claims.length).toBeLessThan(120)
    }),
  )

  it.live("gives its place up while it sleeps, and needs one again", () =>
    Effect.gen(function* () {
      let under = 0
      let most = 0
      const work = Effect.gen(function* () {
        most = Math.max(most, ++under)
        yield* Effect.sleep(100)
        under -= 1
      })
      const workflow = Workflow.make("resting", { version: 1, input: Job, limits: { concurrency: 1 } })
        .step("before", { effects: [], output: Schema.Void }, () => work)
        .sleep("rest", "1 hour")
        .step("after", { effects: [], output: Schema.Void }, () => work)
        .compile()
      const ends: Array<number> = []
      const { bench } = yield* execute(workflow, jobs(5))
      for (let n = 0; n < 5; n++) ends.push((yield* bench.driver.findRun("default", `r${n}`))!.updatedAt)
      expect(most).toBe(1)
      // They slept beside each other: one after the other would take five hours.
      expect(Math.max(...ends) - Math.min(...ends)).toBeLessThan(600_000)
    }),
  )
})

describe("a priority", () => {
  it.live("puts runs before others that are longer due, from the input or as a number", () =>
    Effect.gen(function* () {
      const order = (options: object) =>
        Effect.gen(function* () {
          const { seen, workflow } = slow(options, 1)
          yield* execute(workflow, jobs(6), { concurrency: 1 })
          return seen.map(({ n }) => n)
        })
      expect(yield* order({ priority: ({ input }: { input: { n: number } }) => input.n % 3 })).toEqual([
        2, 5, 1, 4, 0, 3,
      ])
      expect(yield* order({ priority: 4 })).toEqual([0, 1, 2, 3, 4, 5])
    }),
  )
})

describe("at its start", () => {
  const start = (options: object, input: unknown = { key: "k", n: 1 }) =>
    Effect.gen(function* () {
      const bench = yield* makeBench
      const workflow: AnyWorkflow = slow(options).workflow
      const started = yield* Effect.either(
        Effect.provide(Cairn.start(workflow, input, { runId: "r" }), storeLayer(bench.store)),
      )
      return { started, row: yield* bench.driver.findRun("default", "r") }
    })

  it.effect("a run gets its key and its priority, from the input as the schema gives it", () =>
    Effect.gen(function* () {
      const key = ({ input }: { input: { key: string } }) => `of ${input.key}`
      const { row } = yield* start({ limits: { perKey: { key } }, priority: -7 })
      expect([row!.flowKey, row!.priority]).toEqual(["of k", -7])
      const plain = yield* start({})
      expect([plain.row!.flowKey, plain.row!.priority]).toEqual([null, 0])
    }),
  )

  it.effect.each([
    ["a key that is no text", { limits: { perKey: { key: (): number => 3 } } }, "InvalidId"],
    ["an empty key", { limits: { perKey: { key: (): string => "" } } }, "InvalidId"],
    ["a key that is too long", { limits: { perKey: { key: (): string => "k".repeat(256) } } }, "InvalidId"],
    [
      "a key whose function throws",
      {
        limits: {
          perKey: {
            key: () => {
              throw new Error("no key")
            },
          },
        },
      },
      "InvalidValue",
    ],
    ["a priority that is no whole number", { priority: () => 0.5 }, "InvalidValue"],
  ] as const)("%s is refused, and nothing is created", ([, options, tag]) =>
    Effect.gen(function* () {
      const { row, started } = yield* start(options)
      expect(Either.isLeft(started) && (started.left as { readonly _tag: string })._tag).toBe(tag)
      expect(row).toBeNull()
    }),
  )

  it.live("a child gets the key and the priority of its own workflow, or its parent's priority", () =>
    Effect.gen(function* () {
      const child = (options: object) =>
        Workflow.make("child", { version: 1, input: Schema.String, ...(options as {}) })
          .step("work", { effects: [], output: Schema.Void }, () => undefined)
          .compile()
      const rowOf = (options: object) =>
        Effect.gen(function* () {
          const parent = Workflow.make("parent", { version: 1, input: Job, priority: 5 })
            .child("sub", child(options), { input: ({ input }) => input.key })
            .compile()
          const { bench } = yield* execute(parent, jobs(1))
          const row = (yield* bench.driver.findRun("default", "r0/sub"))!
          return [row.flowKey, row.priority]
        })
      const key = ({ input }: { input: string }) => input
      expect(yield* rowOf({ limits: { perKey: { key } }, priority: 9 })).toEqual(["key 0", 9])
      expect(yield* rowOf({})).toEqual([null, 5])
    }),
  )
})
