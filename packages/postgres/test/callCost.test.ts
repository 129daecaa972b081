/** The view of paid calls, as people query it. */
import { Cairn, Effects, Usage, Workflow } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { Effect, Redacted, Schema } from "effect"
import { readFile } from "node:fs/promises"
import { describe, expect, it } from "vitest"
import { freshName, useDatabase } from "./internal/database.js"

const database = useDatabase()

const guide = new URL("../../../docs/guide/costs.md", import.meta.url)

const paying = Workflow.make("paying", { version: 1, input: Schema.Int })
  .step(
    "ask",
    { effects: [Effects.read("m")], output: Schema.Int, retry: { times: 1, delay: 1 } },
    ({ input }): Effect.Effect<number, Error> => {
      let asked = tries.get(input) ?? 0
      tries.set(input, ++asked)
      const answer = asked === 1 ? Effect.fail(new Error("overloaded")) : Effect.succeed(1)
      return Usage.call(
        { model: "m", usage: () => ({ microDollars: 200_000 }), failed: () => ({ inputTokens: input }) },
        Effect.zipRight(Usage.report({ model: "m", microDollars: 50_000 }), answer),
      )
    },
  )
  .compile()
const tries = new Map<number, number>()

describe("the view of paid calls", () => {
  it("answers the question of the guide, and what Cairn.cost says is in it", async () => {
    const cairn = await Cairn.open({
      store: PostgresStore.layer({ url: Redacted.make(database.url) }),
      workflows: [paying],
    })
    try {
      for (const run of [1, 2]) await (await cairn.start(paying, run, { runId: `r${run}` })).result()
      const question = /```sql\n([^`]+)```/.exec(await readFile(guide, "utf8"))![1]!
      const rows = await database.query(question)
      // Each run has failed once, for a price that nobody knows and one that was reported, and then kept its answer.
      expect(rows).toEqual(
        [
          { workflow: "paying", outcome: "kept", calls: "4", dollars: 0.5, unknown: "0" },
          { workflow: "paying", outcome: "failed", calls: "4", dollars: 0.1, unknown: "2" },
        ].map((row) => ({ ...row, dollars: expect.anything() })),
      )
      const sums = await cairn.cost({ by: "outcome" })
      expect(rows.map((row: any) => [row.outcome, Number(row.dollars) * 1e6, Number(row.unknown)])).toEqual(
        sums.map(({ key, microDollars, unknown }) => [key, microDollars, unknown]),
      )
      expect(sums.map(({ key, microDollars }) => [key, microDollars])).toEqual([
        ["kept", 500_000],
        ["failed", 100_000],
      ])
    } finally {
      await cairn.close()
    }
  })

  it("reads with the rights of who asks: a grant on the view alone opens nothing", async () => {
    const role = freshName("reader")
    await database.query(`create role ${role}`)
    try {
      await database.query(`grant usage on schema cairn to ${role}`)
      await database.query(`grant select on cairn.call_cost to ${role}`)
      const asked = database.query(`set role ${role}; select count(*) from cairn.call_cost`)
      await expect(asked).rejects.toMatchObject({ code: "42501" })
    } finally {
      await database.query("reset role")
      await database.query(`drop owned by ${role}`)
      await database.query(`drop role ${role}`)
    }
  })
})
