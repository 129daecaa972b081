/** Real processes, killed while their run takes back what it did; for any SQL store, over its own database. */
import { Cairn, CheckpointStore, fromDriver, type CheckpointDriver, type FaultPoint } from "@cairn/core"
import { Effect, type Scope } from "effect"
import { readFile } from "node:fs/promises"
import { expect, it } from "vitest"
import type { Sent } from "./takingBackWorker.js"
import { logFile, startWorker, type Place } from "./workerProcess.js"

type Kind = "fails" | "canceled"

/** Cancels the run once its bookings are there. */
const cancelInTime = (driver: CheckpointDriver) =>
  driver
    .load("default", "r")
    .pipe(
      Effect.delay(10),
      Effect.repeat({ until: (found) => (found?.steps.length ?? 0) === 3 }),
      Effect.zipRight(Cairn.cancel({ runId: "r", reason: "another plan" })),
      Effect.provideService(CheckpointStore, fromDriver(driver)),
    )

const killed = (place: Place, log: string, kind: Kind, fault: string, isFirst: boolean) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ended } = yield* startWorker(place, log, kind, fault)
      if (kind === "canceled" && isFirst) yield* cancelInTime(place.driver)
      const { output, signal } = yield* ended
      expect(signal, `${fault}\n${output}`).toBe("SIGKILL")
    }),
  )

const finished = (place: Place, log: string, kind: Kind) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { ended } = yield* startWorker(place, log, kind, "")
      const { output } = yield* ended
      expect(output).toBe(kind === "fails" ? "RunFailed" : "RunCanceled")
      const { run, steps } = (yield* place.driver.load("default", "r"))!
      expect(run.status).toBe(kind === "fails" ? "failed" : "canceled")
      const backwards = ["car/compensate", "hotel/compensate", "flight/compensate"]
      expect(steps.map((step) => step.path)).toEqual(["flight", "hotel", "car", ...backwards])
      const text = yield* Effect.promise(() => readFile(log, "utf8"))
      const sent = text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Sent)
      const byKey = new Map<string, Array<string>>()
      for (const { key, payload } of sent) byKey.set(key, [...(byKey.get(key) ?? []), payload.what])
      // A key is one operation: what is sent again is the same payload.
      for (const payloads of byKey.values()) expect(new Set(payloads).size).toBe(1)
      const keysOf = (operation: string) =>
        [...new Set(sent.filter((one) => one.operation === operation).map(({ key }) => key))].map(
          (key) => byKey.get(key)![0],
        )
      expect(keysOf("book")).toEqual(["flight", "hotel", "car"])
      expect(keysOf("unbook")).toEqual(["car", "hotel", "flight"])
      return sent
    }),
  )

const points: ReadonlyArray<FaultPoint> = ["afterIntent", "afterEffect", "beforeCommit", "afterCommit"]

/** The answer was there, and nothing of it was durable: the operation is sent again under its key. */
const isLost = (point: FaultPoint): boolean => point === "afterEffect" || point === "beforeCommit"

/** Registers the tests; `open` gives a place without a run. */
export const takingBack = (open: Effect.Effect<Place, unknown, Scope.Scope>): void => {
  const title = { fails: "fails for good", canceled: "is canceled" }
  for (const kind of ["fails", "canceled"] as const) {
    const live = (body: (place: Place, log: string) => Effect.Effect<void, unknown, Scope.Scope>) => () =>
      Effect.runPromise(Effect.scoped(Effect.flatMap(Effect.all([open, logFile]), ([place, log]) => body(place, log))))

    it.each(points)(
      `a run that ${title[kind]} and is killed at %s of what takes back is resumed by the next worker`,
      (point) =>
        live((place, log) =>
          Effect.gen(function* () {
            yield* killed(place, log, kind, `${point}:hotel/compensate`, true)
            const sent = yield* finished(place, log, kind)
            expect(sent).toHaveLength(isLost(point) ? 7 : 6)
          }),
        )(),
    )

    it(
      `a run that ${title[kind]} and is killed again and again takes back everything, in reverse`,
      live((place, log) =>
        Effect.gen(function* () {
          const faults = ["afterEffect:car", "beforeCommit:hotel", "afterEffect:flight"]
          for (const [n, fault] of faults.entries()) yield* killed(place, log, kind, `${fault}/compensate`, n === 0)
          const sent = yield* finished(place, log, kind)
          expect(sent).toHaveLength(9)
        }),
      ),
    )
  }
}
