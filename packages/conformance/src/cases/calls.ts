/** D39 to D41: paid calls are counted once, and no budget is overdrawn. */
import assert from "node:assert/strict"
import type { CallEnd, CallsQuery, Counter, EndCallRow, Lease, NewCallRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import {
  abandoned,
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  create,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  moved,
  only,
  type Bench,
} from "../internal/bench.js"
import { attempt, step } from "../internal/rows.js"

const used = (microDollars: number | null, over: Partial<CallEnd> = {}): CallEnd => ({
  state: microDollars === null ? "unknown" : "known",
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  microDollars,
  ...over,
})

const callOf = (lease: Lease, over: Partial<NewCallRow> = {}): NewCallRow => ({
  namespace: lease.namespace,
  runId: lease.runId,
  callId: fresh("call"),
  scope: "",
  path: "think",
  step: "think",
  attempt: 1,
  fence: lease.fence,
  claimToken: lease.claimToken,
  model: "gpt-4o",
  atMost: null,
  counters: [],
  end: null,
  ...over,
})

const endOf = (
  { callId, claimToken, counters, namespace, runId }: NewCallRow,
  end: CallEnd,
  over: Partial<EndCallRow> = {},
): EndCallRow => ({
  namespace,
  runId,
  callId,
  claimToken,
  counters: counters.map(({ kind, name }) => ({ kind, name })),
  end,
  ...over,
})

const listed = (bench: Bench, { namespace, runId }: Pick<Lease, "namespace" | "runId">) =>
  bench.driver.listCalls({ namespace, runId, after: null, limit: 1_000 })

const spendOf = (bench: Bench, counter: Counter) =>
  Effect.map(bench.driver.findSpend(bench.namespace, [counter]), ([row]) => {
    assert.ok(row !== undefined, "a counter that was asked for is missing")
    const { calls, kind, name, reserved, spent, unknown } = row
    assert.deepEqual({ kind, name }, { kind: counter.kind, name: counter.name })
    return { spent, reserved, calls, unknown }
  })

const runCounter = (lease: Pick<Lease, "runId">): Counter => ({ kind: "run", name: lease.runId })
const workflowCounter: Counter = { kind: "workflow", name: "invoice" }
const dayCounter: Counter = { kind: "namespace", name: "" }

const unlimited = (...counters: ReadonlyArray<Counter>) => counters.map((counter) => ({ ...counter, limit: null }))

const begun = (bench: Bench, call: NewCallRow) =>
  Effect.map(bench.driver.beginCall(call), (result) => {
    assert.equal(result._tag, "Begun", `the beginning of a call was ${result._tag}`)
    return call
  })

const begins: Case = {
  law: "D39",
  title: "D39: a call that begins is there with all that it was given, is counted once, and reserves what it may cost",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const counters = unlimited(runCounter(lease), workflowCounter, dayCounter)
      const before = yield* everything(bench, lease)
      const from = yield* bench.driver.now
      const call = yield* begun(
        bench,
        callOf(lease, { atMost: 700, counters, path: "a[1]/x", step: "a[]/x", scope: "a[1]" }),
      )
      yield* begun(bench, call)
      const [row, ...others] = yield* listed(bench, lease)
      assert.deepEqual(others, [], "a call that was begun twice under its id is there twice")
      assert.ok(row !== undefined && row.startedAt >= from)
      const { counters: _, end: __, namespace: ___, ...given } = call
      const { startedAt, ...rest } = row
      assert.deepEqual(rest, {
        ...given,
        ...used(null),
        state: "begun",
        endedAt: null,
        workflow: "invoice",
        outcome: "open",
        settled: "begun",
        saved: 0,
      })
      for (const counter of counters)
        assert.deepEqual(yield* spendOf(bench, counter), { spent: 0, reserved: 700, calls: 1, unknown: 0 })
      assert.deepEqual(yield* everything(bench, lease), before, "the beginning of a call changed its run")
      assert.ok(startedAt <= (yield* bench.driver.now))
    }),
}

const owners: Case = {
  law: "D39",
  title: "D39: only the owner's call begins; what a call has cost that was made already is written whoever made it",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const counters = unlimited(runCounter(lease))
      const foreign: ReadonlyArray<Partial<NewCallRow>> = [
        { fence: lease.fence + 1 },
        { fence: lease.fence - 1 },
        { claimToken: fresh("token") },
        { runId: fresh("run") },
      ]
      for (const over of foreign) {
        const result = yield* bench.driver.beginCall(callOf(lease, { counters, atMost: 5, ...over }))
        assert.equal(result._tag, "Lost", `a call of ${JSON.stringify(over)} was ${result._tag}`)
      }
      yield* moved(bench, lease, 0, { status: "waiting" })
      const released = yield* bench.driver.beginCall(callOf(lease, { counters, atMost: 5 }))
      assert.equal(released._tag, "Lost", "the call of a run that nobody holds began")
      assert.deepEqual(yield* listed(bench, lease), [])
      assert.deepEqual(yield* spendOf(bench, runCounter(lease)), { spent: 0, reserved: 0, calls: 0, unknown: 0 })
      yield* begun(
        bench,
        callOf(lease, { counters, end: used(40, { inputTokens: 3, outputTokens: 4 }), claimToken: "t" }),
      )
      yield* begun(bench, callOf(lease, { counters, end: used(null) }))
      const rows = yield* listed(bench, lease)
      assert.deepEqual(rows.map(({ state }) => state).sort(), ["known", "unknown"])
      assert.ok(rows.every(({ endedAt, startedAt }) => endedAt === startedAt))
      assert.deepEqual(yield* spendOf(bench, runCounter(lease)), { spent: 40, reserved: 0, calls: 2, unknown: 1 })
    }),
}

const budgets: Case = {
  law: "D39",
  title: "D39: a call that has no room in one of its counters is refused, and changes nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const run = runCounter(lease)
      const limited = [
        { ...run, limit: 100 },
        { ...dayCounter, limit: 1_000 },
      ]
      yield* begun(bench, callOf(lease, { counters: limited, end: used(60) }))
      yield* begun(bench, callOf(lease, { counters: limited, atMost: 40 }))
      const refused = { _tag: "Refused", counter: run, limit: 100, spent: 60, reserved: 40, waiting: 40 }
      for (const atMost of [1, 0, null]) {
        const result = yield* bench.driver.beginCall(callOf(lease, { counters: limited, atMost }))
        assert.deepEqual(result, refused, "nothing was left, and a call was not refused as it should")
      }
      const roomier = limited.map((counter) => ({ ...counter, limit: counter.limit + 10 }))
      const tooMuch = yield* bench.driver.beginCall(callOf(lease, { counters: roomier, atMost: 11 }))
      assert.deepEqual(tooMuch, { ...refused, limit: 110 })
      assert.equal((yield* listed(bench, lease)).length, 2, "a refused call was written")
      assert.deepEqual(yield* spendOf(bench, run), { spent: 60, reserved: 40, calls: 2, unknown: 0 })
      assert.deepEqual(yield* spendOf(bench, dayCounter), { spent: 60, reserved: 40, calls: 2, unknown: 0 })
      yield* begun(bench, callOf(lease, { counters: roomier, atMost: 10 }))
      const other = yield* claimed(bench)
      const shared = [
        { ...runCounter(other.lease), limit: null },
        { ...dayCounter, limit: 110 },
      ]
      const day = yield* bench.driver.beginCall(callOf(other.lease, { counters: shared, atMost: 1 }))
      assert.deepEqual(day, { ...refused, counter: dayCounter, limit: 110, reserved: 50, waiting: 50 })
      assert.deepEqual(yield* spendOf(bench, runCounter(other.lease)), { spent: 0, reserved: 0, calls: 0, unknown: 0 })
    }),
}

const raced: Case = {
  law: "D39",
  title: "D39: of twenty calls that begin at once no more do than there is room for",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const owners = yield* Effect.forEach(Array.from({ length: 20 }), () => claimed(bench))
      const results = yield* Effect.forEach(
        owners.map(({ lease }, n) => [lease, n] as const),
        ([lease, n]) =>
          connection(bench, n).beginCall(
            callOf(lease, {
              atMost: 3,
              counters: [
                { ...dayCounter, limit: 10 },
                { ...workflowCounter, limit: 1_000 },
                { ...runCounter(lease), limit: 100 },
              ],
            }),
          ),
        { concurrency: "unbounded" },
      )
      const tags = results.map(({ _tag }) => _tag)
      assert.deepEqual(
        [tags.filter((tag) => tag === "Begun").length, tags.filter((tag) => tag === "Refused").length],
        [3, 17],
      )
      assert.deepEqual(yield* spendOf(bench, dayCounter), { spent: 0, reserved: 9, calls: 3, unknown: 0 })
    }),
}

const waits: Case = {
  law: "D39",
  title:
    "D39: a refusal tells how much of what is reserved is for calls that may still be under way, children's included",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const parent = yield* claimed(bench)
      const child = yield* claimed(bench, { parentRunId: parent.row.runId, parentPath: "child" })
      const crashed = yield* abandoned(bench, { parentRunId: child.row.runId, parentPath: "child" })
      const top = runCounter(parent.lease)
      const counters = unlimited(top)
      const kept = yield* begun(bench, callOf(child.lease, { counters, atMost: 20 }))
      yield* begun(bench, callOf(parent.lease, { counters, atMost: 1 }))
      yield* begun(bench, callOf(crashed.lease, { counters, atMost: 300 }))
      const ask = bench.driver.beginCall(callOf(parent.lease, { counters: [{ ...top, limit: 321 }], atMost: 5 }))
      const refused = { _tag: "Refused", counter: top, limit: 321, spent: 0, reserved: 321, waiting: 21 }
      assert.deepEqual(yield* ask, refused)
      assert.equal(yield* bench.driver.endCall(endOf(kept, used(2))), true)
      yield* moved(bench, parent.lease, 0, { status: "completed" })
      const next = yield* bench.driver.beginCall(callOf(child.lease, { counters: [{ ...top, limit: 303 }], atMost: 5 }))
      assert.deepEqual(next, { ...refused, limit: 303, spent: 2, reserved: 301, waiting: 0 })
    }),
}

const ends: Case = {
  law: "D40",
  title: "D40: the end of a call is written once, by whoever made it, also when the run is another worker's by then",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const counters = unlimited(runCounter(old.lease), dayCounter)
      const call = yield* begun(bench, callOf(old.lease, { counters, atMost: 50 }))
      const other = yield* begun(bench, callOf(old.lease, { counters, atMost: 7 }))
      const next = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [old.row.runId] }))
      const foreign = endOf(call, used(1), { claimToken: next.claimToken! })
      assert.equal(yield* bench.driver.endCall(foreign), false, "the end of a call that another one made was taken")
      const from = yield* bench.driver.now
      const end = used(31, { inputTokens: 12, outputTokens: 5, cachedInputTokens: 2 })
      const results = yield* Effect.forEach(
        Array.from({ length: 6 }, (_, n) => n),
        (n) => connection(bench, n).endCall(endOf(call, n === 0 ? end : { ...end, microDollars: 31 })),
        { concurrency: "unbounded" },
      )
      assert.equal(results.filter(Boolean).length, 1, "the end of a call was written more than once, or never")
      assert.equal(yield* bench.driver.endCall(endOf(call, used(999))), false)
      assert.equal(yield* bench.driver.endCall(endOf({ ...call, callId: fresh("call") }, used(999))), false)
      const rows = yield* listed(bench, old.lease)
      const row = rows.find(({ callId }) => callId === call.callId)!
      assert.deepEqual({ ...row, ...end, endedAt: null }, { ...row, endedAt: null })
      assert.ok(row.endedAt !== null && row.endedAt >= from)
      const stands = { spent: 31, reserved: 7, calls: 2, unknown: 0 }
      for (const counter of counters) assert.deepEqual(yield* spendOf(bench, counter), stands)
      assert.equal(yield* bench.driver.endCall(endOf(other, used(null, { inputTokens: 4, state: "known" }))), true)
      // It may have cost as much as it had reserved: nobody knows.
      for (const counter of counters) assert.deepEqual(yield* spendOf(bench, counter), { ...stands, unknown: 1 })
    }),
}

const exact: Case = {
  law: "D40",
  title: "D40: sums are exact: ten tenths of a dollar are a dollar, and large amounts lose nothing",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const counters = unlimited(runCounter(lease))
      for (let n = 0; n < 10; n++) {
        const call = yield* begun(bench, callOf(lease, { counters }))
        yield* bench.driver.endCall(endOf(call, used(100_000)))
      }
      assert.equal((yield* spendOf(bench, runCounter(lease))).spent, 1_000_000)
      const large = 2 ** 52
      const call = yield* begun(bench, callOf(lease, { counters, atMost: large }))
      yield* bench.driver.endCall(endOf(call, used(large + 1)))
      assert.deepEqual(yield* spendOf(bench, runCounter(lease)), {
        spent: 1_000_000 + large + 1,
        reserved: 0,
        calls: 11,
        unknown: 0,
      })
    }),
}

const sumsOf = (bench: Bench, by: CallsQuery["by"], over: Partial<CallsQuery> = {}) =>
  bench.driver.sumCalls({
    namespace: bench.namespace,
    by,
    workflow: null,
    runId: null,
    from: null,
    before: null,
    limit: 100,
    ...over,
  })

const outcomes: Case = {
  law: "D41",
  title:
    "D41: each call says what became of its attempt, and what was kept what each interruption since would have cost",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      const made = (lease: Lease, path: string, attemptNo: number, cost: number | null) =>
        begun(bench, callOf(lease, { path, step: path, attempt: attemptNo, end: used(cost) }))
      yield* made(old.lease, "kept", 1, 5)
      yield* made(old.lease, "again", 1, 7)
      const cut = yield* begun(bench, callOf(old.lease, { path: "cut", step: "cut", atMost: 90 }))
      yield* committed(bench, commitOf(old.lease, 0, { steps: [step("kept", 1)] }))
      const row = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [old.row.runId] }))
      const lease = leaseOf(row)
      yield* made(lease, "again", 1, 11)
      yield* made(lease, "tried", 1, 13)
      yield* made(lease, "tried", 2, 17)
      yield* made(lease, "tried", 3, 19)
      const open = yield* begun(bench, callOf(lease, { path: "open", step: "open", atMost: 2 }))
      yield* committed(
        bench,
        commitOf(lease, 1, {
          steps: [step("again", 2), step("tried", 2, { attempts: 3 })],
          attempts: [
            attempt("tried", { attempt: 1, kind: "failed" }),
            attempt("tried", { attempt: 2, kind: "rejected" }),
          ],
        }),
      )
      const seen = (yield* listed(bench, lease)).map(
        ({ fence, attempt: n, microDollars, outcome, path, saved, settled }) =>
          [path, fence, n, microDollars, outcome, settled, saved].join(" "),
      )
      assert.deepEqual(
        new Set(seen),
        new Set([
          "kept 1 1 5 kept known 5",
          "again 1 1 7 lost known 0",
          "cut 1 1  lost unknown 0",
          "again 2 1 11 kept known 0",
          "tried 2 1 13 failed known 0",
          "tried 2 2 17 rejected known 0",
          "tried 2 3 19 kept known 0",
          "open 2 1  open begun 0",
        ]),
      )
      assert.deepEqual(
        (yield* sumsOf(bench, "outcome")).map(({ calls, key, microDollars, open: o, reserved, saved, unknown }) =>
          [key, calls, o, unknown, microDollars, reserved, saved].join(" "),
        ),
        ["kept 3 0 0 35 0 5", "rejected 1 0 0 17 0 0", "failed 1 0 0 13 0 0", "lost 2 0 1 7 90 0", "open 1 1 0 0 2 0"],
      )
      yield* bench.driver.endCall(endOf(cut, used(3)))
      yield* bench.driver.endCall(endOf(open, used(null)))
      assert.deepEqual(
        (yield* sumsOf(bench, "outcome"))
          .filter(({ key }) => key === "lost")
          .map(({ microDollars, reserved, unknown }) => [microDollars, reserved, unknown]),
        [[10, 0, 0]],
      )
    }),
}

const summed: Case = {
  law: "D41",
  title: "D41: calls are summed by model, workflow, step, run and day, with filters, the dearest first",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const one = yield* claimed(bench)
      const two = yield* claimed(bench, { workflow: "other" })
      const made = (lease: Lease, model: string, path: string, cost: number | null, tokens: number | null) =>
        begun(
          bench,
          callOf(lease, {
            model,
            path: `agent[${path}]/think`,
            step: "agent[]/think",
            scope: `agent[${path}]`,
            end: used(cost, { inputTokens: tokens, outputTokens: tokens, cachedInputTokens: 1 }),
          }),
        )
      yield* made(one.lease, "big", "1", 50, 10)
      yield* made(one.lease, "big", "2", 70, 20)
      yield* made(one.lease, "small", "3", 1, 30)
      yield* made(two.lease, "small", "1", null, null)
      yield* begun(bench, callOf(two.lease, { model: "small", path: "p", step: "p", end: used(200) }))
      const short = (rows: Effect.Effect.Success<ReturnType<typeof sumsOf>>) =>
        rows.map(({ calls, inputTokens, key, microDollars, outputTokens, unknown, workflow }) =>
          [key, workflow ?? "-", calls, unknown, inputTokens, outputTokens, microDollars].join(" "),
        )
      assert.deepEqual(short(yield* sumsOf(bench, "model")), ["small - 3 1 30 30 201", "big - 2 0 30 30 120"])
      assert.deepEqual(short(yield* sumsOf(bench, "workflow")), ["other - 2 1 0 0 200", "invoice - 3 0 60 60 121"])
      assert.deepEqual(short(yield* sumsOf(bench, "step")), [
        "p other 1 0 0 0 200",
        "agent[]/think invoice 3 0 60 60 121",
        "agent[]/think other 1 1 0 0 0",
      ])
      assert.deepEqual(short(yield* sumsOf(bench, "step", { limit: 1 })), ["p other 1 0 0 0 200"])
      assert.deepEqual(short(yield* sumsOf(bench, "run", { runId: one.lease.runId })), [
        `${one.lease.runId} invoice 3 0 60 60 121`,
      ])
      const now = yield* bench.driver.now
      const day = new Date(now).toISOString().slice(0, 10)
      assert.ok((yield* sumsOf(bench, "day")).every(({ key }) => key === day || now % 86_400_000 < 600_000))
      assert.deepEqual(yield* sumsOf(bench, "model", { before: now - 86_400_000 }), [])
      assert.deepEqual(short(yield* sumsOf(bench, "model", { workflow: "other", from: now - 600_000 })), [
        "small - 2 1 0 0 200",
      ])
      assert.deepEqual(yield* bench.driver.sumCalls({ ...queryOf(fresh("elsewhere")) }), [])
      assert.deepEqual(yield* sumsOf(bench, "model", { limit: 0 }), [])
    }),
}

const queryOf = (namespace: string): CallsQuery => ({
  namespace,
  by: "model",
  workflow: null,
  runId: null,
  from: null,
  before: null,
  limit: 10,
})

const pages: Case = {
  law: "D41",
  title: "D41: the calls of a run are listed in order, each once over all pages, and of no other run",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease } = yield* claimed(bench)
      const other = yield* claimed(bench)
      yield* begun(bench, callOf(other.lease))
      for (let n = 0; n < 7; n++) yield* begun(bench, callOf(lease, { end: used(n) }))
      const { namespace, runId } = lease
      const all: Array<string> = []
      let after: { readonly startedAt: number; readonly callId: string } | null = null
      for (let pages = 0; pages < 10; pages++) {
        const page: ReadonlyArray<{ readonly startedAt: number; readonly callId: string }> =
          yield* bench.driver.listCalls({ namespace, runId, after, limit: 3 })
        assert.ok(page.length <= 3)
        if (page.length === 0) break
        all.push(...page.map(({ callId }) => callId))
        const { callId, startedAt } = page.at(-1)!
        after = { callId, startedAt }
      }
      const whole = yield* listed(bench, lease)
      assert.deepEqual(
        all,
        whole.map(({ callId }) => callId),
      )
      assert.equal(new Set(all).size, 7)
      assert.deepEqual(yield* bench.driver.listCalls({ namespace, runId: fresh("run"), after: null, limit: 3 }), [])
      const run = yield* create(bench)
      assert.deepEqual(yield* listed(bench, run), [])
    }),
}

const interrupted: Case = {
  law: "D15",
  title: "D15: each takeover, and each release of a running run, counts as an interruption; nothing sets them back",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const old = yield* abandoned(bench)
      assert.equal(old.row.interruptions, 0)
      const worker = yield* liveWorker(bench)
      const row = only(yield* claim(bench, worker, { runIds: [old.row.runId] }))
      assert.equal(row.interruptions, 1, "a takeover did not count")
      yield* committed(bench, commitOf(leaseOf(row), 0))
      yield* bench.driver.releaseWorker(worker)
      const next = only(yield* claim(bench, yield* liveWorker(bench), { runIds: [row.runId] }))
      assert.equal(next.interruptions, 2, "the release of a running run did not count")
      yield* moved(bench, leaseOf(next), 1, { status: "sleeping", wakeInMs: 0 })
      const { worker: last, row: woken } = yield* Effect.gen(function* () {
        yield* bench.waitUntil((yield* bench.driver.now) + 2)
        const worker = yield* liveWorker(bench)
        return { worker, row: only(yield* claim(bench, worker, { runIds: [row.runId] })) }
      })
      assert.equal(woken.interruptions, 2, "a run that slept was interrupted")
      yield* moved(bench, leaseOf(woken), 2, { status: "waiting" })
      yield* bench.driver.releaseWorker(last)
      assert.equal((yield* bench.driver.findRun(woken.namespace, woken.runId))?.interruptions, 2)
    }),
}

const cutOff: Case = {
  law: "D40",
  title: "D40: a death between two statements leaves a call and its counters as they were, or as they are to be",
  needs: ["failAfter"],
  run: (bench) =>
    Effect.gen(function* () {
      for (let statements = 1; statements <= 6; statements++) {
        const { lease } = yield* claimed(bench)
        const counters = unlimited(runCounter(lease))
        const call = callOf(lease, { counters, atMost: 9 })
        yield* bench.store.failAfter!(statements)
        yield* Effect.either(bench.driver.beginCall(call))
        const begunCalls = yield* listed(bench, lease)
        const reserved = { spent: 0, reserved: 9 * begunCalls.length, calls: begunCalls.length, unknown: 0 }
        assert.deepEqual(yield* spendOf(bench, runCounter(lease)), reserved, `begun, cut after ${statements}`)
        yield* begun(bench, call)
        yield* bench.store.failAfter!(statements)
        yield* Effect.either(bench.driver.endCall(endOf(call, used(4))))
        const [row] = yield* listed(bench, lease)
        const isEnded = row?.state === "known"
        const counted = { spent: isEnded ? 4 : 0, reserved: isEnded ? 0 : 9, calls: 1, unknown: 0 }
        assert.deepEqual(yield* spendOf(bench, runCounter(lease)), counted, `ended, cut after ${statements}`)
        assert.equal(yield* bench.driver.endCall(endOf(call, used(4))), !isEnded)
        assert.equal((yield* spendOf(bench, runCounter(lease))).spent, 4, "a call was counted twice, or never")
      }
    }),
}

export const callCases: ReadonlyArray<Case> = [
  cutOff,
  interrupted,
  begins,
  owners,
  budgets,
  raced,
  waits,
  ends,
  exact,
  outcomes,
  summed,
  pages,
]
