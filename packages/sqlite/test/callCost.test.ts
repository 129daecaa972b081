/** The view of paid calls, as people query it. */
import { Cairn, Effects, Usage, Workflow } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { Effect, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { openWithClient } from "./internal/openWithClient.js"
import { temporaryFile } from "./internal/temporaryFile.js"

const paying = Workflow.make("paying", { version: 1, input: Schema.Null })
  .loop(
    "agent",
    { state: Schema.Int, initial: () => 0, maxIterations: 3, onLimit: "stop" },
    (flow) =>
      flow.step("think", { effects: [Effects.read("m")], output: Schema.Int }, ({ turn }) =>
        Usage.call({ model: "m", usage: () => ({ microDollars: 100 + turn }) }, Effect.succeed(turn)),
      ),
    ({ state }) => ({ done: false, state: state + 1 }),
  )
  .compile()

describe("the view of paid calls", () => {
  it("has a row a call, with its step, day, outcome and cost", () =>
    Effect.gen(function* () {
      const filename = yield* temporaryFile
      const cairn = yield* Effect.promise(() =>
        Cairn.open({ store: SqliteStore.layer({ filename }), workflows: [paying] }),
      )
      yield* Effect.promise(async () => (await cairn.start(paying, null, { runId: "r" })).result())
      yield* Effect.promise(() => cairn.close())
      const { client } = yield* openWithClient({ filename })
      const rows = yield* client.unsafe(
        "select workflow, step, path, outcome, settled, day, micro_dollars, saved from cairn_call_cost order by path",
      )
      const day = expect.stringMatching(/^\d{4}-\d{2}-\d{2}$/)
      const same = { workflow: "paying", step: "agent[]/think", outcome: "kept", settled: "known", day, saved: 0 }
      expect(rows).toEqual(
        [0, 1, 2].map((turn) => ({ ...same, path: `agent[${turn}]/think`, micro_dollars: 100 + turn })),
      )
    }).pipe(Effect.scoped, Effect.runPromise))
})
