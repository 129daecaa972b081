/** What the explorer explores: every boundary, with every trouble that can befall it there, the same each time. */
import { Cairn, faultPoints, Workflow } from "@cairn/core"
import { Effect, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { policies, paying } from "../scripts/subjects.js"
import { expectNoBreach, exploreAsync, TestWorker, VirtualClock } from "../src/index.js"
import { declining, invoice, model, undone } from "./support/workflows.js"

describe("explore", () => {
  it("strikes at every point that the workflow reaches, and at each with every trouble", async () => {
    const report = await expectNoBreach(invoice, { input: "ada", services: model, depth: 1 })
    const reached = new Set(report.rows.map(({ point }) => point))
    expect([...faultPoints].filter((point) => !reached.has(point))).toEqual(["afterRecord"])
    expect(report.schedules).toBe(report.possible)
    expect(report.byDepth).toEqual([1, report.possible - 1])
    expect(report.notReached).toBe(0)
    // 25 boundaries, 2 heartbeats among them or not: three troubles each, and what can be lost.
    expect(report.possible).toBeGreaterThan(80)
  })

  it("gives the same report for the same seed, and another sample for another one", async () => {
    const run = async (seed: number) => {
      const { timing, ...report } = await exploreAsync(invoice, {
        input: "ada",
        services: model,
        maxSchedules: 110,
        seed,
      })
      expect(timing.elapsedMs).toBeGreaterThan(0)
      return report
    }
    const [first, again, other] = [await run(7), await run(7), await run(8)]
    expect(again).toEqual(first)
    expect(other.rows).not.toEqual(first.rows)
  })

  it("strikes a recovery, too: a run that takes back goes on taking back", async () => {
    const report = await expectNoBreach(undone, { input: null, handlers: declining, maxSchedules: 340 })
    expect(report.byDepth[2]).toBeGreaterThan(50)
    expect(report.rows.find(({ point }) => point === "afterEffect")?.mostEffects).toBe(1)
  })

  it("lets no real time pass", async () => {
    const before = performance.now()
    await exploreAsync(invoice, { input: "ada", services: model, maxSchedules: 20 })
    // Twenty runs of two minutes each, by their own clock.
    expect(performance.now() - before).toBeLessThan(20_000)
  })

  for (const policy of ["retryWithKey", "checkFirst", "recordFirst", "review"] as const) {
    it(`holds ${policy} to its promise`, async () => {
      expect(policies[policy].policy).toBe(policy)
      const report = await expectNoBreach(paying(policy), { input: 7 as never, maxSchedules: 180 })
      const rows = report.rows.filter((row) => row.policy === policy)
      expect(rows.length).toBeGreaterThanOrEqual(7)
      // Keys are sent again; a check or a person comes before any other second send.
      const most = Math.max(...rows.map(({ mostRequests }) => mostRequests))
      if (policy === "checkFirst" || policy === "review") expect(most).toBe(1)
      else expect(most).toBeGreaterThan(1)
      expect(report.parked > 0).toBe(policy === "review")
    })
  }
})

describe("TestWorker", () => {
  it("lets a retry in thirty days come in no time", async () => {
    let tries = 0
    const patient = Workflow.make("patient", { version: 1, input: Schema.Null })
      .step("try", { effects: [], output: Schema.Number, retry: { times: 1, delay: "30 days" } }, () =>
        ++tries === 1 ? Effect.fail(new Error("next month")) : Effect.succeed(tries),
      )
      .output(Schema.Number, ({ results }) => results.try)
      .compile()
    const program = Effect.gen(function* () {
      const startedAt = yield* Effect.clockWith((clock) => clock.currentTimeMillis)
      const handle = yield* Cairn.start(patient, null)
      const result = yield* TestWorker.result(handle)
      return [result, (yield* Effect.clockWith((clock) => clock.currentTimeMillis)) - startedAt] as const
    }).pipe(Effect.provide(TestWorker.layer({ workflows: [patient] })), VirtualClock.run)
    const before = Date.now()
    const [result, elapsedMs] = await Effect.runPromise(program)
    expect(result).toBe(2)
    expect(elapsedMs).toBeGreaterThanOrEqual(30 * 86_400_000)
    expect(Date.now() - before).toBeLessThan(5_000)
  })
})

describe("VirtualClock", () => {
  it("moves the monotonic clock as well, and gives it back", async () => {
    const before = performance.now()
    const passed = await Effect.runPromise(
      VirtualClock.run(
        Effect.gen(function* () {
          const startedAt = performance.now()
          yield* Effect.sleep("1 hour")
          return performance.now() - startedAt
        }),
      ),
    )
    expect(passed).toBe(3_600_000)
    expect(performance.now() - before).toBeLessThan(60_000)
  })
})
