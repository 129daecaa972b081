import { fromDriver, MemoryDriver, type CheckpointDriver, type RunRow } from "@cairn/core"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { arrived } from "../../src/store/LocalSignals.js"
import { claimed, firstStep, newRun } from "./runs.js"

/** A driver whose rows hold this where a column should hold JSON. */
const withColumn = (driver: CheckpointDriver, column: Partial<RunRow>): CheckpointDriver => ({
  ...driver,
  findRun: (namespace, runId) =>
    Effect.map(driver.findRun(namespace, runId), (row) => (row === null ? null : { ...row, ...column })),
})

describe("fromDriver", () => {
  it.effect("gives failures, parks and attempts back as they were committed", () =>
    Effect.gen(function* () {
      const store = fromDriver(yield* MemoryDriver.make())
      const lease = yield* claimed(store)
      const first = firstStep(lease)
      const details = first.attempts[0]!.error
      const failure = { kind: "undeclared", step: "charge", problem: "no", details } as const
      const parked = { reason: "OutcomeUnknown", step: "charge", problem: "ask" } as const
      yield* store.commit([{ ...first, run: { ...first.run, failure, parked } }])
      const { run } = yield* store.load(newRun.namespace, newRun.runId)
      const { attempts } = yield* store.loadOpen(newRun.namespace, newRun.runId, ["charge"])
      expect(run.failure).toEqual(failure)
      expect(run.parked).toEqual(parked)
      expect(attempts[0]?.error).toEqual(details)
    }),
  )

  it.effect("says RunNotFound where the driver says null", () =>
    Effect.gen(function* () {
      const store = fromDriver(yield* MemoryDriver.make())
      expect(yield* Effect.flip(store.findRun("shop", "nobody"))).toMatchObject({
        _tag: "RunNotFound",
        runId: "nobody",
      })
      expect(yield* Effect.flip(store.load("shop", "nobody"))).toMatchObject({ _tag: "RunNotFound", runId: "nobody" })
    }),
  )

  it.effect("says LeaseLost where a commit is refused, and names the fence that was held", () =>
    Effect.gen(function* () {
      const store = fromDriver(yield* MemoryDriver.make())
      const lease = yield* claimed(store)
      const refused = [
        firstStep({ ...lease, fence: 7 }),
        firstStep({ ...lease, claimToken: "token-2" }),
        firstStep({ ...lease, runId: "nobody" }),
        { ...firstStep(lease), base: 4, seq: 5 },
      ]
      for (const commit of refused) {
        const [lost] = yield* store.commit([commit])
        const { fence, runId } = commit.lease
        expect(lost).toMatchObject({ _tag: "Left", left: { _tag: "LeaseLost", runId, fence } })
      }
    }),
  )

  it.effect("takes a commit whose acknowledgement was lost for committed, also after it released the run", () =>
    Effect.gen(function* () {
      const store = fromDriver(yield* MemoryDriver.make())
      const commit = firstStep(yield* claimed(store))
      const released = { ...commit, run: { ...commit.run, status: "completed" as const, release: true } }
      const first = yield* store.commit([released])
      expect(first).toMatchObject([{ _tag: "Right" }])
      expect(yield* store.commit([released])).toEqual(first)
      expect((yield* store.load(newRun.namespace, newRun.runId)).steps).toHaveLength(1)
    }),
  )

  it.effect(
    "wakes who waits for runs where a commit may not let its run wait (D23), and where a signal or a cancel came",
    () =>
      Effect.gen(function* () {
        const store = fromDriver(yield* MemoryDriver.make())
        const { namespace, runId } = newRun
        const commit = firstStep(yield* claimed(store))
        const waiting = { ...commit, run: { ...commit.run, status: "waiting" as const, release: true, seenInbox: 0 } }
        const ear = yield* store.signals.listen("runnable")
        const heard = ear.wait(0)
        const signal = { namespace, runId, signalId: "s", name: "n", payload: null, payloadHash: "h" }
        expect(yield* store.send(signal)).toEqual({ _tag: "Sent", position: 1 })
        expect(yield* heard).toBe(true)
        expect(yield* store.send(signal)).toEqual({ _tag: "Known" })
        expect(yield* heard).toBe(false)
        yield* store.commit([waiting])
        expect(yield* heard).toBe(true)
        expect((yield* store.findRun(namespace, runId)).status).toBe("pending")
        let toldOwner = 0
        const deaf = store.signals.on(arrived(namespace, runId), () => toldOwner++)
        expect(yield* store.requestCancel(namespace, runId, null)).toBe("Requested")
        expect(yield* store.requestCancel(namespace, runId, null)).toBe("Known")
        expect([toldOwner, yield* heard]).toEqual([1, true])
        deaf()
        expect((yield* store.loadSignals(namespace, runId, ["n"])).signals).toHaveLength(1)
        expect(yield* Effect.flip(store.loadSignals(namespace, "nobody", ["n"]))).toMatchObject({ _tag: "RunNotFound" })
      }).pipe(Effect.scoped),
  )

  it.effect("wakes who waits for runs, and a run's owner, where a decision came or a child has ended (D28, D29)", () =>
    Effect.gen(function* () {
      const store = fromDriver(yield* MemoryDriver.make())
      const { namespace, runId } = newRun
      const review = { path: "approve", kind: "review", name: "id", data: null, wake: null } as const
      const commit = firstStep(yield* claimed(store))
      yield* store.commit([{ ...commit, waits: [review] }])
      const ear = yield* store.signals.listen("runnable")
      const heard = ear.wait(0)
      let told: Array<string> = []
      for (const run of [runId, "parent"]) store.signals.on(arrived(namespace, run), () => told.push(run))
      const hears = Effect.gen(function* () {
        const all = [...told, ...((yield* heard) ? ["runnable"] : [])]
        told = []
        return all
      })
      const decision = { namespace, runId, path: "approve", name: "id", decision: "1" }
      expect((yield* store.decideWait({ ...decision, name: "another" }))._tag).toBe("Closed")
      expect(yield* hears).toEqual([])
      expect((yield* store.decideWait(decision))._tag).toBe("Decided")
      expect(yield* hears).toEqual([runId, "runnable"])
      expect((yield* store.decideWait(decision))._tag).toBe("AlreadyDecided")
      expect(yield* hears).toEqual([])
      expect((yield* store.expireWait(commit.lease, "approve"))?.state).toBe("decided")
      yield* store.createRun({ ...newRun, runId: "parent" })
      const end = { ...commit, base: 1, seq: 2, steps: [], wakesParent: "parent" }
      yield* store.commit([{ ...end, base: 0 }])
      expect(yield* hears).toEqual([])
      yield* store.commit([end])
      expect(yield* hears).toEqual(["parent", "runnable"])
      expect(yield* store.loadWaits(namespace, "parent")).toEqual({ inbox: 1, waits: [] })
      expect(yield* Effect.flip(store.loadWaits(namespace, "nobody"))).toMatchObject({ _tag: "RunNotFound" })
      const scopes = { namespace, runId, scopes: [""], newestFirst: false, after: null, limit: null, withResults: true }
      expect(yield* store.loadSteps(scopes)).toEqual((yield* store.load(namespace, runId)).steps)
    }).pipe(Effect.scoped),
  )

  const details = { name: "Error", message: "m" }
  const told = { step: "s", problem: "p" }
  const child = { ...told, kind: "child", runId: "c", workflow: "w", version: 1 }
  const unknown: Record<"failure" | "parked", ReadonlyArray<unknown>> = {
    failure: [
      ...[{ kind: "v99" }, { ...told, kind: "v99" }, null, [], "x", 1, {}, { kind: "canceled" }],
      ...[
        { ...told, kind: "undeclared" },
        { ...told, kind: "undeclared", details: { name: "Error" } },
      ],
      ...[{ ...told, kind: "declared", operation: null }, child, { ...child, cause: { kind: "v99" } }],
    ],
    parked: [null, {}, "x", { reason: "OutcomeUnknown" }, { reason: 1, ...told }],
  }
  const known: typeof unknown = {
    failure: [
      ...[
        { ...told, kind: "canceled" },
        { ...told, kind: "undeclared", details },
      ],
      ...[{ ...told, kind: "declared", operation: null, value: null }],
      ...[
        { ...child, cause: null },
        { ...child, cause: { ...told, kind: "canceled" } },
      ],
    ],
    // A reason of a later version is still one that people can read.
    parked: [
      { reason: "OutcomeUnknown", ...told },
      { reason: "v99", ...told },
    ],
  }

  for (const column of ["failure", "parked"] as const) {
    it.effect(`says Corrupt, with run and column, where '${column}' is of no shape that this version knows`, () =>
      Effect.gen(function* () {
        const driver = yield* MemoryDriver.make()
        yield* claimed(driver)
        for (const value of unknown[column]) {
          const store = fromDriver(withColumn(driver, { [column]: JSON.stringify(value) }))
          const error = yield* Effect.flip(store.findRun(newRun.namespace, newRun.runId))
          expect(error, JSON.stringify(value)).toMatchObject({ _tag: "StoreError", reason: "Corrupt" })
          expect(error.message).toContain(`'${newRun.runId}'`)
          expect(error.message).toContain(`'${column}'`)
        }
        for (const value of known[column]) {
          const store = fromDriver(withColumn(driver, { [column]: JSON.stringify(value) }))
          expect((yield* store.findRun(newRun.namespace, newRun.runId))[column]).toEqual(value)
        }
      }),
    )
  }

  it.effect("says Corrupt, with run and column, where a column holds no JSON", () =>
    Effect.gen(function* () {
      const driver = yield* MemoryDriver.make()
      yield* claimed(driver)
      for (const column of ["failure", "parked"] as const) {
        const store = fromDriver(withColumn(driver, { [column]: "{" }))
        const error = yield* Effect.flip(store.findRun(newRun.namespace, newRun.runId))
        expect(error).toMatchObject({ _tag: "StoreError", reason: "Corrupt", isRetryable: false })
        expect(error.message).toContain(`'${newRun.runId}'`)
        expect(error.message).toContain(`'${column}'`)
      }
    }),
  )
})
