/** Live output over a file: of transaction steps as of others, and of one store object alone. */
import { Cairn, Effects, Workflow, type LiveEvent } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { temporaryFile } from "./internal/temporaryFile.js"

const allOf = async (events: AsyncIterable<LiveEvent>) => {
  const seen: Array<LiveEvent> = []
  for await (const event of events) seen.push(event)
  return seen.map((event) => {
    if (event._tag === "Skipped") return `Skipped ${event.count}`
    const what = event._tag === "Chunk" ? String(event.chunk) : event._tag === "Committed" ? event.seq : event._tag
    return `${event.path} ${event.attempt} ${what}`
  })
}

describe("live output", () => {
  it.scopedLive(
    "of a transaction step is void where the transaction is rolled back, and told as committed with it",
    () =>
      Effect.gen(function* () {
        const filename = yield* temporaryFile
        let attempts = 0
        const workflow = Workflow.make("booking", { version: 1, input: Schema.Null })
          .step(
            "book",
            { effects: [Effects.transaction], output: Schema.String, retry: { times: 1, delay: 1 } },
            async ({ emit, query }) => {
              emit("booking")
              await query("create table if not exists ledger (name text) strict")
              if (++attempts === 1) throw new Error("no room")
              return "booked"
            },
          )
          .compile()
        const store = SqliteStore.layer({ filename })
        const cairn = yield* Effect.acquireRelease(
          Effect.promise(() => Cairn.open({ store, workflows: [workflow] })),
          (cairn) => Effect.promise(() => cairn.close()),
        )
        const elsewhere = yield* Effect.acquireRelease(
          Effect.promise(() => Cairn.open({ store: SqliteStore.layer({ filename }), workflows: [] as const })),
          (cairn) => Effect.promise(() => cairn.close()),
        )
        // It begins once both look on.
        const run = yield* Effect.promise(() => cairn.start(workflow, null, { runId: "r", delay: "300 millis" }))
        const [here, there] = yield* Effect.promise(() =>
          Promise.all([allOf(run.live()), allOf(elsewhere.live(workflow, { runId: "r" }))]),
        )
        expect(here).toEqual([
          ...["book 1 Began", "book 1 booking", "book 1 Discarded"],
          ...["book 2 Began", "book 2 booking", "book 2 2"],
        ])
        // Another store object hears nothing, and ends with the run all the same.
        expect(there).toEqual([])
      }),
  )
})
