/** Lists of runs and of open reviews, for people. */
import { describe, expect } from "@effect/vitest"
import { Effect, Exit, Schema } from "effect"
import { Cairn, fromDriver, Workflow, type AnyWorkflow, type ListOptions } from "../../src/index.js"
import { startWorker, storeLayer, type Bench } from "./support/bench.js"
import { row, test } from "./support/adding.js"

const flow = (name: string): any => (Workflow.make as any)(name, { version: 1, input: Schema.Null })
const done = (built: any): AnyWorkflow => {
  const workflow = built.compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const provided = <A, E>(bench: Bench, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>
const start = (bench: Bench, workflow: AnyWorkflow, runId: string) =>
  provided(bench, Cairn.start(workflow, null, { runId }))
const until = (bench: Bench, status: string, runId: string) =>
  Effect.repeat(Effect.zipRight(Effect.sleep(10), row(bench, runId)), { until: (found) => found.status === status })

const fine = done(flow("fine").step("a", { effects: [], output: Schema.Number }, () => 1))
const broken = done(
  flow("broken").step("a", { effects: [], output: Schema.Number }, () => Effect.fail(new Error("too bad"))),
)

describe("the list of runs", () => {
  const ids = (bench: Bench, options?: ListOptions) =>
    Effect.map(provided(bench, Cairn.list(options)), ({ runs }) => runs.map(({ runId }) => runId))

  const ended = (bench: Bench) =>
    Effect.gen(function* () {
      yield* startWorker(bench.store, { workflows: [fine, broken] })
      for (const [workflow, runId] of [
        [fine, "one"],
        [broken, "two"],
        [fine, "three"],
      ] as const) {
        yield* Effect.exit((yield* start(bench, workflow, runId)).result)
        yield* Effect.sleep(1_000)
      }
    })

  test("shows how each stands, and is filtered by what is asked for", (bench) =>
    Effect.gen(function* () {
      yield* ended(bench)
      const { runs } = yield* provided(bench, Cairn.list())
      expect(runs.map(({ runId, status }) => [runId, status])).toEqual([
        ["three", "completed"],
        ["two", "failed"],
        ["one", "completed"],
      ])
      expect(runs[1]).toMatchObject({ workflow: "broken", version: 1, step: "a", unreadable: null, pausedAt: null })
      expect(runs[1]!.failure).toMatchObject({ kind: "undeclared", problem: "too bad" })
      expect(runs[1]).not.toHaveProperty("input")
      expect(yield* ids(bench, { workflow: "fine" })).toEqual(["three", "one"])
      expect(yield* ids(bench, { status: "failed" })).toEqual(["two"])
      expect(yield* ids(bench, { status: ["failed", "completed"], limit: 2 })).toEqual(["three", "two"])
      expect(yield* ids(bench, { createdFrom: runs[1]!.createdAt })).toEqual(["three", "two"])
      expect(yield* ids(bench, { createdBefore: runs[1]!.createdAt })).toEqual(["one"])
      expect(yield* ids(bench, { parent: "one" })).toEqual([])
      expect(yield* ids(bench, { namespace: "other" })).toEqual([])
    }))

  test("shows a run once over its pages, and ends", (bench) =>
    Effect.gen(function* () {
      yield* ended(bench)
      const seen: Array<string> = []
      let cursor: string | null | undefined
      while (cursor !== null) {
        const page = yield* provided(bench, Cairn.list({ limit: 1, ...(cursor === undefined ? {} : { cursor }) }))
        seen.push(...page.runs.map(({ runId }) => runId))
        cursor = page.cursor
        yield* start(bench, fine, `new ${seen.length}`)
      }
      expect(seen).toEqual(["three", "two", "one"])
    }))

  test("is refused what it does not know, and never leaves a filter out (P123)", (bench) =>
    Effect.gen(function* () {
      const elsewhere = Buffer.from('["1","x"]').toString("base64url")
      const wrong: ReadonlyArray<readonly [object, string]> = [
        [{ tenant: "acme" }, ".tenant"],
        [{ statuses: ["failed"] }, ".statuses"],
        [{ status: "done" }, ".status"],
        [{ status: ["failed", "x"] }, ".status"],
        [{ workflow: 7 }, ".workflow"],
        [{ createdFrom: 7 }, ".createdFrom"],
        [{ createdBefore: new Date(Number.NaN) }, ".createdBefore"],
        [{ limit: 0 }, ".limit"],
        [{ limit: "1'; drop table" }, ".limit"],
        [{ cursor: "x" }, ".cursor"],
        [{ cursor: elsewhere }, ".cursor"],
        [{ cursor: "" }, ".cursor"],
      ]
      for (const [options, field] of wrong) {
        const error = yield* Effect.flip(provided(bench, Cairn.list(options)))
        expect(error).toMatchObject({ _tag: "InvalidValue", field })
      }
      expect(yield* Effect.flip(provided(bench, Cairn.reviews({ by: "ann" } as object)))).toMatchObject({
        _tag: "InvalidValue",
        field: ".by",
      })
    }))

  for (const failure of ["{", '{"kind":"v99"}']) {
    test(`shows a run whose failure cannot be read, and all others (P106): ${failure}`, (bench) =>
      Effect.gen(function* () {
        yield* ended(bench)
        const spoil = (each: any): any => (each?.runId === "two" ? { ...each, failure } : each)
        const spoilt: Bench["driver"] = {
          ...bench.driver,
          listRuns: (page) => Effect.map(bench.driver.listRuns(page), (rows) => rows.map(spoil)),
          findRun: (namespace, runId) => Effect.map(bench.driver.findRun(namespace, runId), spoil),
          findRuns: (keys) => Effect.map(bench.driver.findRuns(keys), (rows) => rows.map(spoil)),
        }
        const store = storeLayer(fromDriver(spoilt))
        const { runs } = yield* Effect.provide(Cairn.list(), store)
        expect(runs.map(({ runId, unreadable }) => [runId, unreadable?.reason])).toEqual([
          ["three", undefined],
          ["two", "Corrupt"],
          ["one", undefined],
        ])
        expect(runs[1]).toMatchObject({ status: "failed", failure: null })
        const error = yield* Effect.flip(
          Effect.flatMap(Cairn.attach(broken, { runId: "two" }), ({ result }) => result),
        ).pipe(Effect.provide(store))
        expect(error).toMatchObject({ _tag: "StoreError", reason: "Corrupt" })
        expect((error as Error).message).toMatch(/run 'two'.*column 'failure'/)
      }))
  }
})

describe("the list of open reviews", () => {
  const asking = (name: string, rest: object) =>
    done(
      flow(name).review("approve", {
        decision: Schema.Struct({ note: Schema.String }),
        show: () => ({ cents: 5n, name }),
        deadline: "2 days",
        onReject: "fail",
        onTimeout: "fail",
        ...rest,
      }),
    )
  const plain = asking("plain", {})
  const passed = asking("passed", {
    who: "ann",
    escalate: [
      { after: "1 hour", who: "bob" },
      { after: "5 hours", who: "cid" },
    ],
  })
  const reviews = (bench: Bench, options?: Parameters<typeof Cairn.reviews>[0]) =>
    provided(bench, Cairn.reviews(options))

  test("shows what is to be decided, and whose affair it is by now", (bench) =>
    Effect.gen(function* () {
      yield* startWorker(bench.store, { workflows: [plain, passed] })
      yield* start(bench, plain, "p")
      yield* until(bench, "review", "p")
      yield* start(bench, passed, "q")
      yield* until(bench, "review", "q")
      const first = yield* reviews(bench)
      expect(first.cursor).toBeNull()
      expect(first.reviews.map(({ runId, who, escalation }) => [runId, who, escalation])).toEqual([
        ["p", null, 0],
        ["q", "ann", 0],
      ])
      const [of] = first.reviews
      expect(of).toMatchObject({ workflow: "plain", version: 1, step: "approve", unreadable: false })
      expect(of!.shown).toEqual({ cents: "5", name: "plain" })
      expect(of!.deadline!.getTime() - of!.openedAt.getTime()).toBe(2 * 86_400_000)
      yield* Effect.sleep("2 hours")
      const at = (who: string) => Effect.map(reviews(bench, { who }), (page) => page.reviews.map(({ runId }) => runId))
      expect([yield* at("ann"), yield* at("bob"), yield* at("cid")]).toEqual([[], ["q"], []])
      yield* Effect.sleep("4 hours")
      expect((yield* reviews(bench, { who: "cid" })).reviews[0]).toMatchObject({ runId: "q", escalation: 2 })
      // What is listed is what is decided.
      const { reviewId, step } = of!
      const said = { by: "ann", approve: { note: "fine" } }
      yield* provided(bench, Cairn.review(plain, { runId: "p", step, reviewId }, said))
      expect((yield* reviews(bench)).reviews.map(({ runId }) => runId)).toEqual(["q"])
      yield* Effect.sleep("2 days")
      expect((yield* reviews(bench)).reviews).toEqual([])
      expect(Exit.isSuccess(yield* Effect.exit(reviews(bench, { limit: 1 })))).toBe(true)
    }))

  test("goes from page to page, also for one person", (bench) =>
    Effect.gen(function* () {
      yield* startWorker(bench.store, { workflows: [plain, passed] })
      for (let n = 0; n < 6; n++) {
        yield* start(bench, n % 2 === 0 ? plain : passed, `r${n}`)
        yield* until(bench, "review", `r${n}`)
      }
      const through = (options: object) =>
        Effect.gen(function* () {
          const seen: Array<string> = []
          let cursor: string | null | undefined
          while (cursor !== null) {
            const page = yield* reviews(bench, { limit: 2, ...options, ...(cursor === undefined ? {} : { cursor }) })
            seen.push(...page.reviews.map(({ runId }) => runId))
            cursor = page.cursor
          }
          return seen
        })
      expect(yield* through({})).toEqual(["r0", "r1", "r2", "r3", "r4", "r5"])
      expect(yield* through({ who: "ann" })).toEqual(["r1", "r3", "r5"])
    }))
})
