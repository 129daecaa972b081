/** The write-behind buffer by itself, over a store that keeps what it is told and fails as it is told (W1, W4 to W7). */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Exit, FastCheck, Fiber } from "effect"
import { LeaseLost, StoreError, WriteBehind, type Lease, type WriteBehindOptions } from "../../src/index.js"
import { quiet, refuseUnhandled } from "./support/bench.js"
import { elapsing, makeVirtualClock } from "./support/virtualClock.js"

refuseUnhandled()

interface Piece {
  readonly lease: Lease
  readonly base: number
  readonly seq: number
  readonly bytes: number
  readonly parts: ReadonlyArray<number>
}

const lease = (runId: string): Lease => ({ namespace: "n", runId, fence: 1, claimToken: "t" })
const piece = (runId: string, seq: number, bytes = 1): Piece => ({
  lease: lease(runId),
  base: seq - 1,
  seq,
  bytes,
  parts: [seq],
})

type Write = WriteBehindOptions<Piece>["write"]

/** Keeps the seq of each run, and refuses what does not follow, as every driver does (D4). */
class Ledger {
  readonly seqs = new Map<string, number>()
  readonly parts = new Map<string, Array<number>>()
  readonly batches: Array<ReadonlyArray<Piece>> = []

  readonly write: Write = (batch) =>
    Effect.sync(() => {
      this.batches.push(batch)
      return batch.map((one) => {
        const { runId } = one.lease
        const stands = this.seqs.get(runId) ?? 0
        // A repeated commit is the one that stands already.
        if (stands === one.seq) return Either.right(0)
        if (stands !== one.base) return Either.left(new LeaseLost(one.lease))
        this.seqs.set(runId, one.seq)
        this.parts.set(runId, [...(this.parts.get(runId) ?? []), ...one.parts])
        return Either.right(this.batches.length)
      })
    })
}

const make = (write: Write, options: Partial<WriteBehindOptions<Piece>> = {}) =>
  WriteBehind.make<Piece>({
    write,
    join: (pieces) => ({
      ...pieces.at(-1)!,
      base: pieces[0]!.base,
      parts: pieces.flatMap(({ parts }) => parts),
    }),
    sizeOf: ({ bytes }) => bytes,
    mayRetry: () => true,
    onRefused: () => {},
    reach: () => Effect.void,
    timeoutMs: 30_000,
    ...options,
  })

const test = (title: string, body: () => Effect.Effect<void, any>) =>
  it.live(title, () => body().pipe(Effect.withClock(makeVirtualClock()), Effect.provide(quiet)))

const storeError = (reason: StoreError["reason"]) =>
  new StoreError({ reason, operation: "commit", problem: "as the test says" })

const range = (count: number, from = 1): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, index) => from + index)

describe("what is accepted", () => {
  test("in one turn by many runs is one write, and each run stands in it once", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      const buffer = yield* make(ledger.write)
      const queues = range(100).map((n) => buffer.open(lease(`r${n}`), 0))
      yield* Effect.forEach(
        queues,
        (queue) => Effect.forEach(range(10), (seq) => buffer.accept(queue, piece(queue.lease.runId, seq))),
        { concurrency: "unbounded" },
      )
      expect(ledger.batches).toHaveLength(0)
      yield* Effect.forEach(queues, (queue) => buffer.durable(queue, 10))
      expect(ledger.batches.map((batch) => batch.length)).toEqual([100])
      expect(ledger.parts.get("r7")).toEqual(range(10))
      expect(buffer.isEmpty).toBe(true)
    }))

  test("while a write is under way waits for the next one, and what is being written does not change (W1)", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      const gate = Effect.unsafeMakeLatch(false)
      const buffer = yield* make((batch) => Effect.zipRight(gate.await, ledger.write(batch)))
      const queue = buffer.open(lease("r"), 0)
      yield* buffer.accept(queue, piece("r", 1))
      yield* Effect.sleep(10)
      for (const seq of [2, 3]) yield* buffer.accept(queue, piece("r", seq))
      yield* gate.open
      yield* buffer.durable(queue, 3)
      expect(ledger.batches.map(([one]) => one!.parts)).toEqual([[1], [2, 3]])
    }))

  test("and whose acknowledgement was lost is written again as it was, before anything that came later (W1)", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      let lose = 2
      const buffer = yield* make((batch) =>
        Effect.flatMap(ledger.write(batch), (results) =>
          lose-- > 0 ? Effect.fail(storeError("Unavailable")) : Effect.succeed(results),
        ),
      )
      const queue = buffer.open(lease("r"), 0)
      for (const seq of [1, 2]) yield* buffer.accept(queue, piece("r", seq))
      yield* Effect.sleep(10)
      yield* buffer.accept(queue, piece("r", 3))
      yield* buffer.durable(queue, 3)
      expect(ledger.batches.map(([one]) => one!.parts)).toEqual([[1, 2], [1, 2], [1, 2], [3]])
      expect(ledger.parts.get("r")).toEqual([1, 2, 3])
    }))

  test("waits for room, by number and by bytes; what is larger than the buffer goes alone (W4)", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      const buffer = yield* make((batch) => Effect.zipRight(Effect.sleep(5), ledger.write(batch)), {
        maxCommits: 10,
        maxBytes: 100,
      })
      const queues = range(20).map((n) => buffer.open(lease(`r${n}`), 0))
      yield* Effect.forEach(
        queues,
        (queue) =>
          Effect.forEach(range(10), (seq) => buffer.accept(queue, piece(queue.lease.runId, seq, seq === 5 ? 500 : 30))),
        { concurrency: "unbounded" },
      )
      yield* buffer.drained
      for (const batch of ledger.batches) {
        const parts = batch.flatMap(({ parts }) => parts)
        expect(parts.length).toBeLessThanOrEqual(10)
        if (parts.includes(5)) expect(parts).toHaveLength(1)
        else expect(parts.length * 30).toBeLessThanOrEqual(100)
      }
      for (const { lease } of queues) expect(ledger.parts.get(lease.runId)).toEqual(range(10))
    }))

  test("is written in transactions of a few megabytes, however much there is", () =>
    Effect.gen(function* () {
      const megabyte = 1024 * 1024
      const ledger = new Ledger()
      const buffer = yield* make(ledger.write)
      const queues = range(30).map((n) => buffer.open(lease(`r${n}`), 0))
      yield* Effect.forEach(queues, (queue) => buffer.accept(queue, piece(queue.lease.runId, 1, megabyte)))
      yield* buffer.drained
      expect(ledger.seqs.size).toBe(30)
      expect(ledger.batches.map((batch) => batch.length)).toEqual([4, 4, 4, 4, 4, 4, 4, 2])
    }))

  for (const [what, fail] of [
    ["an error that does not pass", () => Effect.fail(storeError("Constraint"))],
    ["an exception", () => Effect.die(new Error("cannot be encoded"))],
  ] as const) {
    test(`and cannot be written (${what}) ends its own run among 500, and no other (W5)`, () =>
      Effect.gen(function* () {
        const ledger = new Ledger()
        let writes = 0
        const buffer = yield* make((batch) => {
          writes++
          return batch.some(({ lease }) => lease.runId === "r250") ? fail() : ledger.write(batch)
        })
        const queues = range(500).map((n) => buffer.open(lease(`r${n}`), 0))
        yield* Effect.forEach(queues, (queue) => buffer.accept(queue, piece(queue.lease.runId, 1)))
        const ends = yield* Effect.forEach(queues, (queue) => Effect.exit(buffer.durable(queue, 1)))
        const failed = queues.filter((_, index) => Exit.isFailure(ends[index]!))
        expect(failed.map(({ lease }) => lease.runId)).toEqual(["r250"])
        expect(writes).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(500)) + 1)
        const again = yield* Effect.flip(buffer.accept(failed[0]!, piece("r250", 2)))
        expect(again).toMatchObject({ _tag: "StoreError" })
      }))
  }

  test("and is locked by somebody is tried beside the others, which do not wait for it (W5)", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      let locked = true
      const buffer = yield* make((batch) =>
        locked && batch.some(({ lease }) => lease.runId === "locked")
          ? Effect.fail(storeError("Busy"))
          : ledger.write(batch),
      )
      const queues = ["a", "locked", "b"].map((runId) => buffer.open(lease(runId), 0))
      yield* Effect.forEach(queues, (queue) => buffer.accept(queue, piece(queue.lease.runId, 1)))
      const [a, waiting, b] = queues as [(typeof queues)[0], (typeof queues)[0], (typeof queues)[0]]
      yield* Effect.all([buffer.durable(a, 1), buffer.durable(b, 1)])
      yield* buffer.accept(a, piece("a", 2))
      yield* buffer.accept(waiting, piece("locked", 2))
      yield* buffer.durable(a, 2)
      expect(ledger.seqs.get("locked")).toBeUndefined()
      locked = false
      yield* buffer.durable(waiting, 2)
      expect(ledger.parts.get("locked")).toEqual([1, 2])
    }))

  test("and is locked by somebody, alone in its flush, does not keep later ones waiting (W5)", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      let locked = true
      const buffer = yield* make((batch) =>
        locked && batch.some(({ lease }) => lease.runId === "locked")
          ? Effect.fail(storeError("Busy"))
          : ledger.write(batch),
      )
      const waiting = buffer.open(lease("locked"), 0)
      yield* buffer.accept(waiting, piece("locked", 1))
      yield* Effect.sleep(10)
      const a = buffer.open(lease("a"), 0)
      yield* buffer.accept(a, piece("a", 1))
      const first = yield* Effect.raceFirst(
        Effect.as(buffer.durable(a, 1), "durable"),
        Effect.as(Effect.sleep("20 seconds"), "kept waiting"),
      )
      expect(first).toBe("durable")
      locked = false
      yield* buffer.durable(waiting, 1)
    }))

  test("by a run that was refused is dropped with a typed error, and the worker is told once (X6)", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      ledger.seqs.set("r", 7)
      const told: Array<string> = []
      const buffer = yield* make(ledger.write, { onRefused: ({ runId }) => told.push(runId) })
      const queue = buffer.open(lease("r"), 0)
      yield* buffer.accept(queue, piece("r", 1))
      expect(yield* Effect.flip(buffer.durable(queue, 1))).toMatchObject({ _tag: "LeaseLost", runId: "r" })
      expect(yield* Effect.flip(buffer.accept(queue, piece("r", 2)))).toMatchObject({ _tag: "LeaseLost" })
      expect(told).toEqual(["r"])
      expect(buffer.isEmpty).toBe(true)
    }))
})

describe("runs that leave the event loop no turn", () => {
  /** The event loop has so many turns before the store answers. */
  const answering =
    (turns: number, write: Write): Write =>
    (batch) =>
      Effect.flatMap(write(batch), (results) =>
        Effect.as(
          Effect.repeatN(
            Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void))),
            turns,
          ),
          results,
        ),
      )

  /** Steps of `stepMs` each that end at once. Gives how many were accepted and not written at most, of all runs. */
  const computed = (runs: number, steps: number, stepMs: number, write: (ledger: Ledger) => Write) =>
    Effect.gen(function* () {
      const elapse = yield* elapsing
      const ledger = new Ledger()
      const buffer = yield* make(write(ledger))
      const queues = range(runs).map((n) => buffer.open(lease(`r${n}`), 0))
      const isWritten = () => [...ledger.seqs.values()].reduce((sum, seq) => sum + seq, 0)
      let accepted = 0
      let most = 0
      yield* Effect.forEach(
        queues,
        (queue) =>
          Effect.forEach(range(steps), (seq) =>
            Effect.gen(function* () {
              elapse(stepMs)
              const commit = piece(queue.lease.runId, seq)
              if (!buffer.takes(queue, commit)) yield* buffer.accept(queue, commit)
              most = Math.max(most, ++accepted - isWritten())
              yield* Effect.yieldNow()
            }),
          ),
        { concurrency: "unbounded" },
      )
      yield* buffer.drained
      expect(isWritten()).toBe(runs * steps)
      return { most, writes: ledger.batches.length }
    })

  test("give it one every 50 ms, in which what waits is written (W4)", () =>
    Effect.gen(function* () {
      const { most, writes } = yield* computed(1, 1_000, 5, ({ write }) => write)
      expect(most).toBe(10)
      expect(writes).toBe(100)
    }))

  test("are many, and have accepted no more between them than they have computed in that time (W4)", () =>
    Effect.gen(function* () {
      const { most } = yield* computed(20, 50, 5, ({ write }) => write)
      // Each brings the step that it had begun.
      expect(most).toBeLessThanOrEqual(10 + 20)
    }))

  test("are not held up by a store that takes its time: the next flush begins when it has answered (W4)", () =>
    Effect.gen(function* () {
      // Three turns for the answer, one for the flush, and what was accepted since.
      const { most } = yield* computed(1, 1_000, 5, ({ write }) => answering(3, write))
      expect(most).toBeLessThanOrEqual(5 * 10)
    }))

  test("for less than that are written together (W4)", () =>
    Effect.gen(function* () {
      expect(yield* computed(4, 3, 4, ({ write }) => write)).toEqual({ most: 12, writes: 1 })
    }))
})

describe("a store that is away", () => {
  for (const seconds of [10, 60]) {
    test(`for ${seconds} seconds is waited for while the lease holds, and everything is written then (W6)`, () =>
      Effect.gen(function* () {
        const ledger = new Ledger()
        let away = true
        const buffer = yield* make((batch) => (away ? Effect.fail(storeError("Unavailable")) : ledger.write(batch)))
        const queues = range(50).map((n) => buffer.open(lease(`r${n}`), 0))
        yield* Effect.forEach(queues, (queue) => buffer.accept(queue, piece(queue.lease.runId, 1)))
        const calm = yield* Effect.fork(Effect.zipRight(Effect.sleep(1_000), buffer.calm))
        yield* Effect.sleep(`${seconds} seconds`)
        // W6: what costs money waits meanwhile.
        expect(yield* Fiber.poll(calm)).toMatchObject({ _tag: "None" })
        away = false
        yield* Effect.forEach(queues, (queue) => buffer.durable(queue, 1))
        yield* Fiber.join(calm)
        expect(ledger.seqs.size).toBe(50)
      }))
  }

  test("for longer than the lease ends the runs with its error, and leaves nothing unhandled (W6)", () =>
    Effect.gen(function* () {
      let holds = true
      const buffer = yield* make(() => Effect.fail(storeError("Unavailable")), { mayRetry: () => holds })
      const queues = range(20).map((n) => buffer.open(lease(`r${n}`), 0))
      yield* Effect.forEach(queues, (queue) => buffer.accept(queue, piece(queue.lease.runId, 1)))
      yield* Effect.sleep("5 seconds")
      holds = false
      for (const queue of queues) {
        expect(yield* Effect.flip(buffer.durable(queue, 1))).toMatchObject({
          _tag: "StoreError",
          reason: "Unavailable",
        })
      }
      yield* buffer.calm
      yield* buffer.drained
    }))

  test("and never answers one write is asked again after its time", () =>
    Effect.gen(function* () {
      const ledger = new Ledger()
      let first = true
      const buffer = yield* make((batch) => {
        if (!first) return ledger.write(batch)
        first = false
        return Effect.never
      })
      const queue = buffer.open(lease("r"), 0)
      yield* buffer.accept(queue, piece("r", 1))
      yield* buffer.durable(queue, 1)
      expect(ledger.seqs.get("r")).toBe(1)
    }))
})

describe("any mixture of runs, latencies, lost acknowledgements and refusals", () => {
  it("leaves in the store a prefix of what each run was told is accepted, in order, and all of it in the end", async () => {
    const writeEnds = FastCheck.array(FastCheck.constantFrom("fine", "slow", "lost", "away", "busy"), { maxLength: 30 })
    const property = FastCheck.asyncProperty(writeEnds, FastCheck.integer({ min: 1, max: 12 }), async (ends, runs) => {
      const ledger = new Ledger()
      const left = [...ends]
      const write: Write = (batch) =>
        Effect.suspend(() => {
          const end = left.shift() ?? "fine"
          if (end === "away") return Effect.fail(storeError("Unavailable"))
          if (end === "busy") return Effect.fail(storeError("Busy"))
          const written = ledger.write(batch)
          if (end === "slow") return Effect.zipRight(Effect.sleep(40), written)
          return end === "lost" ? Effect.zipRight(written, Effect.fail(storeError("Unavailable"))) : written
        })
      const program = Effect.gen(function* () {
        const buffer = yield* make(write, { maxCommits: 16 })
        const queues = range(runs).map((n) => buffer.open(lease(`r${n}`), 0))
        yield* Effect.forEach(
          queues,
          (queue, index) =>
            Effect.forEach(range(10), (seq) =>
              Effect.gen(function* () {
                yield* buffer.accept(queue, piece(queue.lease.runId, seq))
                if ((seq + index) % 3 === 0) yield* Effect.sleep(index)
                if ((seq + index) % 4 === 0) yield* buffer.durable(queue, seq)
              }),
            ),
          { concurrency: "unbounded" },
        )
        yield* buffer.drained
      })
      await Effect.runPromise(program.pipe(Effect.withClock(makeVirtualClock()), Effect.provide(quiet)))
      for (const n of range(runs)) expect(ledger.parts.get(`r${n}`)).toEqual(range(10))
    })
    await FastCheck.assert(property, { numRuns: 100, seed: 20261130 })
  })
})
