/** Real processes at one file. */
import { SqliteDriver } from "@cairn/sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { dirname, join } from "node:path"
import { startChild } from "./internal/childProcess.js"
import { makeBareClient } from "./internal/bareClient.js"
import { claimOf } from "./internal/rows.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const openers = 16
const rounds = 5

describe("many processes at one file", () => {
  it.scopedLive(
    `${openers} that open an empty file at once all succeed, and create the tables once`,
    () =>
      Effect.gen(function* () {
        const directory = dirname(yield* temporaryFile)
        const children = yield* Effect.forEach(Array.from({ length: openers }), () => startChild("opens.ts"))
        const lines = () => Effect.promise(() => Promise.all(children.map((child) => child.line())))
        expect(yield* lines()).toEqual(children.map(() => "ready"))
        for (let round = 0; round < rounds; round++) {
          const filename = join(directory, `round-${round}.sqlite`)
          for (const child of children) child.tell(filename)
          const results = (yield* lines()).map((line) => JSON.parse(line) as object)
          for (const result of results) expect(result).toMatchObject({ _tag: "Right", right: { own: true } })
          expect(results.filter((result) => JSON.stringify(result).includes('"shared":true'))).toHaveLength(1)
          const client = yield* makeBareClient(filename)
          expect(yield* client.unsafe("select version from cairn_migration")).toEqual([{ version: 1 }])
          expect(yield* client.unsafe("select count(*) as n from cairn_run")).toEqual([{ n: openers + 1 }])
          expect(yield* client.unsafe("pragma integrity_check")).toEqual([{ integrity_check: "ok" }])
        }
        // Nothing holds the process once its input has ended: no timer, no handle of the store.
        for (const child of children) child.process.stdin!.end()
        expect(yield* Effect.promise(() => Promise.all(children.map((child) => child.ended)))).toEqual(
          children.map(() => 0),
        )
      }),
    120_000,
  )

  it.scopedLive(
    "that commit side by side see no busy file and lose nothing",
    () =>
      Effect.gen(function* () {
        const filename = yield* temporaryFile
        const driver = yield* SqliteDriver.make({ filename })
        const workers = ["w1", "w2", "w3", "w4"]
        const children = yield* Effect.forEach(workers, (worker) =>
          startChild("commits.ts", filename, worker, "20", "10"),
        )
        for (const child of children) child.process.stdout!.resume()
        expect(yield* Effect.promise(() => Promise.all(children.map((child) => child.ended)))).toEqual([0, 0, 0, 0])
        for (const worker of workers) {
          for (let index = 0; index < 20; index++) {
            const loaded = yield* driver.load("test", `${worker} ${index}`)
            expect(loaded).toMatchObject({ run: { seq: 10, leaseOwner: worker } })
            expect(loaded!.steps).toHaveLength(10)
          }
        }
      }),
    120_000,
  )
})

describe("a process that is killed", () => {
  // How many commits the parent has read of before it kills: the child is somewhere in one of the next.
  it.scopedLive(
    "in the middle of commits loses none that was acknowledged, and leaves no half of one",
    () =>
      Effect.gen(function* () {
        const filename = yield* temporaryFile
        const acknowledged = new Map<string, number>()
        for (const [round, lines] of [1, 17, 60, 151].entries()) {
          const child = yield* startChild("commits.ts", filename, `worker ${round}`, "5", "100000")
          for (let read = 0; read < lines; read++) {
            const [runId = "", seq] = (yield* Effect.promise(() => child.line())).split("\t")
            acknowledged.set(runId, Number(seq))
          }
          child.process.kill("SIGKILL")
          expect(yield* Effect.promise(() => child.ended)).toBe("SIGKILL")
          yield* expectWhole(filename, acknowledged)
        }
        // Runs of one worker take turns: more than one of each round has been acknowledged.
        expect(acknowledged.size).toBeGreaterThan(10)
      }),
    120_000,
  )
})

const expectWhole = (filename: string, acknowledged: ReadonlyMap<string, number>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const driver = yield* SqliteDriver.make({ filename })
      for (const [runId, seq] of acknowledged) {
        const loaded = (yield* driver.load("test", runId))!
        expect(loaded.run.seq).toBeGreaterThanOrEqual(seq)
        expect(loaded.steps.map((step) => step.seq)).toEqual(Array.from({ length: loaded.run.seq }, (_, i) => i + 1))
      }
      const client = yield* makeBareClient(filename)
      expect(yield* client.unsafe("pragma integrity_check")).toEqual([{ integrity_check: "ok" }])
      // The killed worker still holds its lease: nobody takes its runs before that has ended.
      yield* driver.beat("survivor", 60_000)
      expect(yield* driver.claim(claimOf("survivor"))).toEqual([])
    }),
  )
