/** D11, D13 and D14: what a load gives, how numbers come back, and what absent means. */
import assert from "node:assert/strict"
import { StoreError } from "@cairn/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  create,
  effectOf,
  everything,
  fresh,
  liveWorker,
  newRun,
  openOf,
  rowOf,
  signal,
  underWay,
} from "../internal/bench.js"
import { attempt, intent, step, stepsQuery } from "../internal/rows.js"

const bySeq: Case = {
  law: "D11",
  title: "D11: steps come in order of seq, whatever their paths, and in whatever order they were written",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { steps: [step("m", 1)] }))
      const steps = [step("b", 4), step("z", 2), step("a", 3)]
      yield* committed(bench, commitOf(lease, 1, { seq: 4, steps }))
      // Twelve in all: two digits, so that an order by text would show.
      for (let seq = 5; seq <= 12; seq++) {
        yield* committed(bench, commitOf(lease, seq - 1, { steps: [step(`${20 - seq}`, seq)] }))
      }
      const loaded = yield* bench.driver.load(row.namespace, row.runId)
      assert.deepEqual(
        loaded?.steps.map(({ path, seq }) => `${seq} ${path}`),
        ["1 m", "2 z", "3 a", "4 b", "5 15", "6 14", "7 13", "8 12", "9 11", "10 10", "11 9", "12 8"],
      )
    }),
}

const callersCopy: Case = {
  law: "D11",
  title: "D11: nobody changes what is stored by changing what they gave or got",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const before = yield* everything(bench, row)
      const write = commitOf(lease, 1, { effects: [intent(lease, "late")], attempts: [attempt("late")] })
      yield* committed(bench, write)
      const after = yield* everything(bench, row)
      assert.notDeepEqual(after, before)
      const scribble = (rows: ReadonlyArray<object>) => {
        for (const one of rows) Reflect.set(one, "path", "scribbled")
      }
      const loaded = yield* bench.driver.load(row.namespace, row.runId)
      const open = yield* bench.driver.loadOpen(row.namespace, row.runId, ["kept", "late"])
      const found = yield* bench.driver.findRun(row.namespace, row.runId)
      const effect = yield* bench.driver.findEffect({ ...lease, path: "late", generation: 0 })
      for (const rows of [write.steps, write.effects, write.attempts]) scribble(rows)
      assert.ok(loaded !== null && found !== null && effect !== null)
      for (const rows of [loaded.steps, open.effects, open.attempts, [effect]]) scribble(rows)
      const again = yield* bench.driver.createRun(newRun(bench, { runId: lease.runId }))
      for (const one of [loaded.run, found, again.run]) Reflect.set(one, "status", "failed")
      assert.deepEqual(yield* everything(bench, { namespace: lease.namespace, runId: lease.runId }), after)
      const made = yield* bench.driver.createRun(newRun(bench))
      const created = yield* rowOf(bench, made.run)
      Reflect.set(made.run, "status", "failed")
      assert.deepEqual(yield* rowOf(bench, created), created)
      const [taken] = yield* claim(bench, yield* liveWorker(bench))
      const held = yield* rowOf(bench, created)
      Reflect.set(taken ?? {}, "status", "failed")
      assert.deepEqual(yield* rowOf(bench, created), held)
    }),
}

const secondSees: Case = {
  law: "D11",
  title: "D11: what one connection committed another reads at once",
  needs: ["second"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const second = bench.connections[1]!
      for (let base = 1; base <= 10; base++) {
        const open = { effects: [intent(lease, `next-${base}`)], attempts: [attempt(`next-${base}`)] }
        yield* committed(bench, commitOf(lease, base, open))
        assert.deepEqual(yield* everything(bench, row, second), yield* everything(bench, row))
      }
      const made = yield* second.createRun(newRun(bench))
      assert.deepEqual(yield* rowOf(bench, made.run), { ...made.run })
    }),
}

const absent: Case = {
  law: "D14",
  title: "D14: what does not exist is null, and was not created by the question",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const { driver } = bench
      const runId = fresh("missing")
      const place = { namespace: row.namespace, runId: row.runId, path: "kept", generation: 0 }
      for (let turn = 0; turn < 2; turn++) {
        assert.equal(yield* driver.findRun(row.namespace, runId), null)
        assert.equal(yield* driver.findRun(fresh("conformance"), row.runId), null)
        assert.equal(yield* driver.load(row.namespace, runId), null)
        assert.equal(yield* driver.load(fresh("conformance"), row.runId), null)
        assert.deepEqual(yield* openOf(bench, { ...place, runId }, ["kept"]), { effects: [], attempts: [] })
        assert.equal(yield* driver.findEffect({ ...place, runId }), null)
        assert.equal(yield* driver.findEffect({ ...place, namespace: fresh("conformance") }), null)
        assert.equal(yield* driver.findEffect({ ...place, path: "first" }), null)
        assert.equal(yield* driver.findEffect({ ...place, generation: 1 }), null)
        assert.equal(yield* driver.unpark(row.namespace, runId), false)
        assert.equal(yield* driver.loadSignals(row.namespace, runId, ["s"]), null)
        assert.deepEqual(yield* driver.send(signal(bench, { runId })), { _tag: "Missing" })
        assert.equal(yield* driver.requestCancel(row.namespace, runId, null), "Missing")
        assert.equal(yield* driver.loadWaits(row.namespace, runId), null)
        assert.equal(yield* driver.expireWait({ ...lease, runId }, "kept-wait"), null)
      }
      assert.notEqual(yield* driver.findEffect(place), null)
      assert.equal((yield* driver.createRun(newRun(bench, { runId }))).created, true)
      yield* committed(bench, commitOf(lease, 1))
    }),
}

const nulls: Case = {
  law: "D14",
  title: "D14: null, the JSON text null and empty text are three different things",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const text of [null, "null", '""']) {
        const { row, lease } = yield* claimed(bench, { input: text })
        const cursor = text === '""' ? "" : text
        yield* committed(
          bench,
          commitOf(lease, 0, {
            steps: [step("s", 1, { result: text, idempotencyKey: cursor })],
            effects: [intent(lease, "e", { payload: text, state: "succeeded", outcome: text })],
            attempts: [attempt("a", { output: text, retryInMs: text === null ? null : 0 })],
            run: { output: text, failure: text, parked: text, cursor },
          }),
        )
        const { run, steps, effects, attempts } = yield* everything(bench, row)
        assert.deepEqual([run.input, run.output, run.failure, run.parked, run.cursor], [text, text, text, text, cursor])
        assert.deepEqual([steps[0]?.result, steps[0]?.idempotencyKey], [text, cursor])
        assert.deepEqual([effects[0]?.payload, effects[0]?.outcome, attempts[0]?.output], [text, text, text])
        assert.equal(attempts[0]?.retryAt, text === null ? null : attempts[0]?.endedAt)
      }
    }),
}

/** It must fail, and with the store's error; an empty answer would start the run again from nothing. */
const assertStoreError = (what: string, exit: Exit.Exit<unknown, unknown>): void => {
  assert.ok(Exit.isFailure(exit), `${what} gave an answer from data that cannot be read`)
  const error = Option.getOrUndefined(Cause.failureOption(exit.cause))
  const tag = error instanceof StoreError ? error._tag : (error as { readonly _tag?: unknown } | undefined)?._tag
  assert.equal(tag, "StoreError", `${what} failed with something other than a StoreError`)
}

const unreadable: Case = {
  law: "D14",
  title: "D14: what cannot be read is a StoreError, never absent",
  needs: ["unreadable"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* underWay(bench)
      const { driver } = bench
      yield* bench.store.makeUnreadable!
      assertStoreError("findRun", yield* Effect.exit(driver.findRun(row.namespace, row.runId)))
      assertStoreError("load", yield* Effect.exit(driver.load(row.namespace, row.runId)))
      assertStoreError("loadOpen", yield* Effect.exit(driver.loadOpen(row.namespace, row.runId, ["kept"])))
      const place = { namespace: row.namespace, runId: row.runId, path: "kept", generation: 0 }
      assertStoreError("loadSignals", yield* Effect.exit(driver.loadSignals(row.namespace, row.runId, ["s"])))
      assertStoreError("send", yield* Effect.exit(driver.send(signal(bench, { runId: row.runId }))))
      assertStoreError("loadSteps", yield* Effect.exit(driver.loadSteps(stepsQuery(row, ["s"]))))
      assertStoreError("loadWaits", yield* Effect.exit(driver.loadWaits(row.namespace, row.runId)))
      assertStoreError("expireWait", yield* Effect.exit(driver.expireWait(lease, "kept-wait")))
      const decision = { ...lease, path: "kept-wait", name: "name of kept-wait", decision: "1" }
      assertStoreError("decideWait", yield* Effect.exit(driver.decideWait(decision)))
      assertStoreError("findEffect", yield* Effect.exit(driver.findEffect(place)))
      assertStoreError("createRun", yield* Effect.exit(driver.createRun(newRun(bench, { runId: row.runId }))))
      assertStoreError("commit", yield* Effect.exit(driver.commit([commitOf(lease, 1)])))
    }),
}

const unsafeInteger: Case = {
  law: "D13",
  title: "D13: a stored number past 2^53 - 1 is a StoreError, never a rounded value",
  needs: ["unsafeInteger"],
  run: (bench) =>
    Effect.gen(function* () {
      const run = yield* create(bench)
      yield* bench.store.plantUnsafeInteger!(run.namespace, run.runId)
      assertStoreError("findRun", yield* Effect.exit(bench.driver.findRun(run.namespace, run.runId)))
      assertStoreError("load", yield* Effect.exit(bench.driver.load(run.namespace, run.runId)))
    }),
}

const integers: Case = {
  law: "D13",
  title: "D13: integers come back exact up to 2^53 - 1",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const max of [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1, 2 ** 31, 2 ** 32 + 1]) {
        const { row, lease } = yield* claimed(bench, { version: max })
        assert.equal(row.version, max)
        yield* committed(
          bench,
          commitOf(lease, 0, {
            seq: max,
            steps: [step("s", max, { attempts: max, durationMs: max })],
            effects: [intent(lease, "e", { generation: max, sends: max })],
            attempts: [attempt("a", { attempt: max, retryInMs: 2 ** 52 })],
            run: { status: "sleeping", wakeInMs: 2 ** 52 },
          }),
        )
        const { run, steps, effects, attempts } = yield* everything(bench, row)
        assert.deepEqual([run.version, run.seq, run.wakeAt], [max, max, run.updatedAt + 2 ** 52])
        assert.deepEqual([steps[0]?.seq, steps[0]?.attempts, steps[0]?.durationMs], [max, max, max])
        assert.deepEqual([effects[0]?.generation, effects[0]?.sends], [max, max])
        assert.deepEqual([attempts[0]?.attempt, attempts[0]?.retryAt], [max, (attempts[0]?.endedAt ?? 0) + 2 ** 52])
        assert.equal((yield* effectOf(bench, row, "e", max)).sends, max)
      }
    }),
}

export const loadCases: ReadonlyArray<Case> = [
  bySeq,
  callersCopy,
  secondSees,
  absent,
  nulls,
  unreadable,
  integers,
  unsafeInteger,
]
