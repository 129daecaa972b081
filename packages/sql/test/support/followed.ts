/** Events over real processes that are killed, for a client that comes and goes; for any SQL store, over its own database. */
import { Cairn, CheckpointStore, fromDriver, type CheckpointStoreService, type RunEvent } from "@cairn/core"
import { Effect, Fiber, type Scope } from "effect"
import { expect, it } from "vitest"
import { followed } from "./followedWorker.js"
import { startWorker, type Place } from "./workerProcess.js"

/** The same numbers for the same seed: what fails can be run again. */
const numbers = (seed: number) => {
  let state = seed
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

const eventsFrom = (store: CheckpointStoreService, fromSeq: number) =>
  Effect.map(Effect.provideService(Cairn.events(followed, { runId: "r", fromSeq }), CheckpointStore, store), (events) =>
    events[Symbol.asyncIterator](),
  )

/** Handles whole seqs, and breaks off wherever it happens to be; what it has handled in part it handles anew. */
const comeAndGo = (store: CheckpointStoreService, seed: number) =>
  Effect.gen(function* () {
    const number = numbers(seed)
    const handled: Array<RunEvent> = []
    let fromSeq = 0
    for (let connections = 1; ; connections++) {
      const iterator = yield* eventsFrom(store, fromSeq)
      let part: Array<RunEvent> = []
      for (let left = 1 + number(8); left > 0; left--) {
        const next = yield* Effect.promise(() => iterator.next())
        if (next.done === true) return { handled, connections }
        part.push(next.value)
        if (!next.value.isLastOfSeq) continue
        handled.push(...part)
        part = []
        fromSeq = next.value.seq
      }
      yield* Effect.promise(() => iterator.return!())
    }
  })

const whole = (store: CheckpointStoreService) =>
  Effect.flatMap(eventsFrom(store, 0), (iterator) =>
    Effect.promise(async () => {
      const events: Array<RunEvent> = []
      for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) events.push(next.value)
      return events
    }),
  )

const faults = [
  "afterCommit:read",
  "beforeCommit:agent[1]/think",
  "afterEffect:agent[2]/tell",
  "afterCommit:agent[4]/tell",
  "afterIntent:each[c]/send",
  "beforeCommit:each[f]/send",
]

/** How a run stands for the moment is told while it lasts: it belongs to no history. */
const lasting = (events: ReadonlyArray<RunEvent>) =>
  events.filter(({ _tag }) => _tag !== "Waiting" && _tag !== "Parked")

/** Registers the test; `open` gives a place without a run. */
export const followedRuns = (open: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  it("clients that come and go see the history of a run once, in order, though its workers are killed", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const place = yield* open
          const store = fromDriver(place.driver)
          yield* Effect.provideService(Cairn.start(followed, null, { runId: "r" }), CheckpointStore, store)
          const clients = yield* Effect.fork(
            Effect.forEach([1, 2, 3], (seed) => comeAndGo(store, seed), { concurrency: 3 }),
          )
          for (const fault of faults) {
            const { ended } = yield* startWorker(place, fault)
            const { output, signal } = yield* ended
            expect(signal, `${fault}\n${output}`).toBe("SIGKILL")
          }
          const last = yield* startWorker(place, "")
          expect((yield* last.ended).output).toBe("5")
          const history = yield* whole(store)
          for (const { connections, handled } of yield* Fiber.join(clients)) {
            expect(lasting(handled)).toEqual(history)
            expect(connections).toBeGreaterThan(5)
          }
          const all = { after: 0, through: Number.MAX_SAFE_INTEGER, limit: 1_000 }
          const rows = yield* place.driver.loadHistory({ namespace: "default", runId: "r", ...all })
          expect(rows.attempts.length).toBeGreaterThan(4)
          expect(history).toHaveLength(rows.steps.length + rows.attempts.length + 1)
        }),
      ),
    ))
}
