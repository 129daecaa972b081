/** A worker that gives runs back, beside itself: what it gives back it does not run, and what it runs it does not give back. */
import { afterEach, describe, expect, vi } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { StoreError, type AnyWorkflow, type CheckpointStoreService, type Commit } from "../../src/index.js"
import { followClock, make, row, start, test } from "./support/adding.js"
import { refuseUnhandled, startWorker, type Bench } from "./support/bench.js"

refuseUnhandled()
afterEach(() => {
  vi.restoreAllMocks()
})

const twoSteps: AnyWorkflow = make("two")
  .step("first", { effects: [], output: Schema.Null }, () => null)
  .step("second", { effects: [], output: Schema.Null }, () => Effect.as(Effect.sleep("1 second"), null))
  .compile()

const claimedBy = (bench: Bench, workerId: string, runId: string) =>
  bench.driver.claim({
    namespace: "default",
    workerId,
    claimToken: workerId,
    workflows: [{ name: twoSteps.name, version: 1 }],
    runIds: [runId],
    limit: 1,
  })

/** A run that two workers have claimed, and were never heard of again. */
const broughtDown = (bench: Bench, runId: string) =>
  Effect.gen(function* () {
    yield* start(bench, twoSteps, runId)
    for (const workerId of [`first-of-${runId}`, `second-of-${runId}`]) {
      yield* bench.driver.beat(workerId, 1_000)
      expect(yield* claimedBy(bench, workerId, runId)).toHaveLength(1)
      yield* Effect.sleep(1_001)
    }
  })

const isGivenBack = ({ run, steps }: Commit): boolean => run.release && steps.length === 0

/** Giving a run back takes longer than from one heartbeat to the next. */
const slowToGiveBack = (store: CheckpointStoreService): CheckpointStoreService => ({
  ...store,
  commit: (batch) =>
    Effect.zipRight(batch.some(isGivenBack) ? Effect.sleep("2 seconds") : Effect.void, store.commit(batch)),
})

describe("a run that waits on probation", () => {
  test("is not taken for orphaned while those that came with it are handed back", (bench) =>
    Effect.gen(function* () {
      yield* followClock
      const runIds = ["a", "b", "c"]
      for (const runId of runIds) yield* broughtDown(bench, runId)
      yield* startWorker(slowToGiveBack(bench.store), { workflows: [twoSteps], lease: "3 seconds" })
      yield* Effect.sleep("2 minutes")
      for (const runId of runIds) {
        const { run, steps } = (yield* bench.driver.load("default", runId))!
        expect(run.status).toBe("completed")
        expect(steps.map(({ path }) => path)).toEqual(["first", "second"])
      }
      // What is handed back is due at once; what is taken for orphaned would wait.
      expect(bench.commits.filter(({ run }) => run.status === "sleeping")).toEqual([])
    }))
})

describe("a claim whose answer was lost", () => {
  // Round trips of heartbeat and claim, pauses between claims, and leases, in milliseconds.
  for (const [roundTrip, poll, lease] of [
    [5, 40, 600],
    [45, 40, 600],
    [100, 40, 300],
    [900, 1_000, 30_000],
  ] as const) {
    test(`brings its run back, with round trips of ${roundTrip} ms, polls of ${poll} and leases of ${lease}`, (bench) =>
      Effect.gen(function* () {
        yield* followClock
        let isLost = false
        const slow = <A, E>(call: Effect.Effect<A, E>) => Effect.delay(call, roundTrip)
        const store: CheckpointStoreService = {
          ...bench.store,
          beat: (workerId, leaseMs) => slow(bench.store.beat(workerId, leaseMs)),
          claim: (request) =>
            Effect.flatMap(slow(bench.store.claim(request)), (runs) => {
              if (runs.length === 0 || isLost) return Effect.succeed(runs)
              isLost = true
              return Effect.fail(new StoreError({ reason: "Unavailable", operation: "claim", problem: "no answer" }))
            }),
        }
        const handle = yield* start(bench, twoSteps, "r")
        yield* startWorker(store, { workflows: [twoSteps], lease, pollInterval: poll, maxPollInterval: poll })
        yield* handle.result.pipe(Effect.timeout("1 minute"))
        expect(isLost).toBe(true)
      }))
  }
})

describe("a commit of a worker that has given its run back", () => {
  const commit = (bench: Bench, status: "completed" | "pending" | "running" | "sleeping", step: string | null) =>
    Effect.gen(function* () {
      const { claimToken, fence } = yield* row(bench, "r")
      const lease = { namespace: "default", runId: "r", fence, claimToken: claimToken ?? "worker" }
      const run = { status, cursor: null, wakeInMs: null, output: null, failure: null, parked: null, seenInbox: 0 }
      const steps = step === null ? [] : [{ path: step, seq: 1, result: "null", attempts: 1, durationMs: 0 }]
      const release = status !== "running"
      const whole = {
        lease,
        base: 0,
        seq: 1,
        run: { ...run, release },
        steps,
        effects: [],
        attempts: [],
        consumes: [],
        waits: [],
        closes: [],
        wakesParent: null,
      }
      const [result] = yield* bench.store.commit([whole as unknown as Commit])
      return result!._tag
    })

  for (const [what, given, then] of [
    ["of a step", "sleeping", "running"],
    ["of its end", "pending", "completed"],
  ] as const) {
    test(`is lost (${what}), although what stands has its seq and fence`, (bench) =>
      Effect.gen(function* () {
        yield* start(bench, twoSteps, "r")
        yield* bench.driver.beat("worker", 1_000)
        yield* claimedBy(bench, "worker", "r")
        expect(yield* commit(bench, given, null)).toBe("Right")
        expect(yield* commit(bench, then, "first")).toBe("Left")
        expect((yield* bench.driver.load("default", "r"))!.steps).toEqual([])
      }))
  }

  test("is known to stand if only its acknowledgement was lost", (bench) =>
    Effect.gen(function* () {
      yield* start(bench, twoSteps, "r")
      yield* bench.driver.beat("worker", 1_000)
      yield* claimedBy(bench, "worker", "r")
      expect(yield* commit(bench, "running", "first")).toBe("Right")
      expect(yield* commit(bench, "running", "first")).toBe("Right")
    }))
})
