/** What a resume that cannot go on leaves behind: everything that was there (field cases P058, P059). */
import { Cairn, CheckpointStore, fromDriver, Worker, Workflow, type AnyWorkflow } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Schema } from "effect"
import { openWithClient } from "./internal/openWithClient.js"
import { driverOver } from "../src/SqliteDriver.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const make = () => Workflow.make("noted", { version: 1, input: Schema.String })

/** Commits its first step, and is cut off in its second. */
const first = make()
  .step("one", { effects: [], output: Schema.String }, ({ input }) => input.repeat(3))
  .step("two", { effects: [], output: Schema.String }, () => Effect.never)
  .compile()

const worker = (workflow: AnyWorkflow) =>
  Worker.layer({ workflows: [workflow], lease: 150, pollInterval: 10, drain: 0 }).pipe(
    Layer.provide(Logger.remove(Logger.defaultLogger)),
  ) as Layer.Layer<Worker, never, CheckpointStore>

const records = (filename: string) =>
  Effect.scoped(
    Effect.flatMap(openWithClient({ filename }), ({ client }) =>
      Effect.all(
        ["step", "effect"].map((table) =>
          client.unsafe(
            `select * from cairn_${table} order by ${table === "step" ? "run_number" : "namespace, run_id"}, path`,
          ),
        ),
      ),
    ),
  )

describe("a resume", () => {
  it.scopedLive.each([
    ["whose plan has lost a committed step", make().compile(), "review"],
    [
      "whose next step throws at once",
      make()
        .step("one", { effects: [], output: Schema.String }, () => "another")
        .step("two", { effects: [], output: Schema.String }, () => {
          throw new Error("broken by the deploy")
        })
        .compile(),
      "failed",
    ],
  ] as const)("%s leaves every record of the run as it was", ([, broken, status]) =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const store = () => Layer.fresh(SqliteStore.layer({ filename }))
      const start = Effect.gen(function* () {
        const { poll } = yield* Cairn.start(first, "a", { runId: "r" })
        yield* Effect.repeat(Effect.delay(poll, 5), { until: ({ cursor }) => cursor === "one" })
      })
      yield* Effect.provide(start, Layer.provideMerge(worker(first), store()))
      const before = yield* records(filename)
      expect(before[0]).toMatchObject([{ path: "one", result: '"aaa"' }])
      const resumed = Effect.gen(function* () {
        const { findRun } = yield* CheckpointStore
        return yield* Effect.repeat(Effect.delay(findRun("default", "r"), 5), { until: (run) => run.status === status })
      })
      const run = yield* Effect.provide(resumed, Layer.provideMerge(worker(broken as AnyWorkflow), store()))
      expect(run.input).toBe('"a"')
      expect(yield* records(filename)).toEqual(before)
    }),
  )
})

describe("a disk that is full", () => {
  it.scopedLive("costs a run nothing but time: it goes on by itself when there is space again", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const workflow = make()
        .step("small", { effects: [], output: Schema.String }, () => "small")
        .step("large", { effects: [], output: Schema.String }, () => "x".repeat(200_000))
        .output(Schema.Int, ({ results }) => results.large.length)
        .compile()
      const { client, database } = yield* openWithClient({ filename })
      const driver = driverOver(database, filename)
      const full: Array<string> = []
      const watched = Layer.succeed(
        CheckpointStore,
        fromDriver({
          ...driver,
          commit: (batch) =>
            Effect.tapError(driver.commit(batch), ({ reason }) =>
              Effect.zipRight(
                Effect.sync(() => full.push(reason)),
                // Somebody makes room.
                Effect.ignore(client.unsafe("pragma max_page_count = 1073741823")),
              ),
            ),
        }),
      )
      yield* client.unsafe("pragma max_page_count = 40")
      const run = Effect.gen(function* () {
        const { result } = yield* Cairn.start(workflow, "a", { runId: "r" })
        return yield* result
      })
      expect(yield* Effect.provide(run, Layer.provideMerge(worker(workflow), watched))).toBe(200_000)
      expect(full).toEqual(["Full"])
      const { steps } = (yield* driver.load("default", "r"))!
      expect(steps.map(({ path, seq }) => [path, seq > 0])).toEqual([
        ["small", true],
        ["large", true],
      ])
      expect(yield* client.unsafe("pragma integrity_check")).toEqual([{ integrity_check: "ok" }])
    }),
  )
})
