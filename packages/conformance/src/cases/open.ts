/** D11: what is known of the paths that somebody asks for, and of no other. */
import assert from "node:assert/strict"
import type { AttemptRow, EffectRecord, OpenRows } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Case } from "../Case.js"
import { claimed, commitOf, committed, effectOf, everything, fresh, openOf, underWay } from "../internal/bench.js"
import { attempt, intent, step } from "../internal/rows.js"

const effectPlaces = (rows: ReadonlyArray<EffectRecord>) => rows.map((row) => `${row.path} ${row.generation}`)

const attemptPlaces = (rows: ReadonlyArray<AttemptRow>) => rows.map((row) => `${row.path} ${row.attempt}`)

const nothing: OpenRows = { effects: [], attempts: [] }

const onlyAsked: Case = {
  law: "D11",
  title: "D11: loadOpen gives the effects and attempts of exactly the paths asked for, committed or not",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const written = ["charge", "charge[1]", "charge/inner", "Charge", "c"]
      for (const [n, path] of written.entries()) {
        yield* committed(bench, {
          ...commitOf(lease, n, { steps: [] }),
          effects: [intent(lease, path), intent(lease, path, { generation: 1, idempotencyKey: `${path}-1` })],
          attempts: [attempt(path), attempt(path, { attempt: 2 })],
        })
      }
      yield* committed(bench, commitOf(lease, written.length, { steps: [step("charge", 6)] }))
      const asked: ReadonlyArray<ReadonlyArray<string>> = [
        ...written.map((path) => [path]),
        ["charge", "Charge"],
        ["charge[1]", "never", "c"],
        written,
        ["never"],
        ["charg_"],
        ["charge%"],
        [""],
        [],
      ]
      for (const paths of asked) {
        const { effects, attempts } = yield* openOf(bench, row, paths)
        const found = paths.filter((path) => written.includes(path)).sort()
        const what = `asked for ${JSON.stringify(paths)}`
        assert.deepEqual(
          effectPlaces(effects),
          found.flatMap((path) => [`${path} 0`, `${path} 1`]),
          what,
        )
        assert.deepEqual(
          attemptPlaces(attempts),
          found.flatMap((path) => [`${path} 1`, `${path} 2`]),
          what,
        )
      }
      assert.deepEqual(yield* openOf(bench, row, ["charge", "c", "charge"]), yield* openOf(bench, row, ["c", "charge"]))
      assert.equal((yield* effectOf(bench, row, "charge", 1)).idempotencyKey, "charge-1", "a done intent is gone")
    }),
}

const inOrder: Case = {
  law: "D11",
  title: "D11: within a path loadOpen gives the order of generation and attempt, in whatever order they were written",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      // Past 9, so that an order by text would show.
      const numbers = [10, 2, 11, 1, 9]
      const rows = (path: string, some: ReadonlyArray<number>) => ({
        effects: some.map((generation) => intent(lease, path, { generation, idempotencyKey: `key-${generation}` })),
        attempts: some.map((n) => attempt(path, { attempt: n })),
      })
      yield* committed(bench, { ...commitOf(lease, 0, { steps: [] }), ...rows("b", numbers.slice(0, 3)) })
      yield* committed(bench, { ...commitOf(lease, 1, { steps: [] }), ...rows("a", numbers) })
      yield* committed(bench, { ...commitOf(lease, 2, { steps: [] }), ...rows("b", numbers.slice(3)) })
      const expected = ["a", "b"].flatMap((path) => [1, 2, 9, 10, 11].map((n) => `${path} ${n}`))
      for (const paths of [
        ["a", "b"],
        ["b", "a"],
      ]) {
        const { effects, attempts } = yield* openOf(bench, row, paths)
        assert.deepEqual(effectPlaces(effects), expected)
        assert.deepEqual(attemptPlaces(attempts), expected)
      }
    }),
}

const byTheHundred: Case = {
  law: "D11",
  title: "D11: hundreds of paths are asked for in one call, and each gives what it has",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const paths = Array.from({ length: 333 }, (_, n) => `map[${n}]`)
      const odd = paths.filter((_, n) => n % 2 === 1)
      const write = { effects: odd.map((path) => intent(lease, path)), attempts: odd.map((path) => attempt(path)) }
      yield* committed(bench, { ...commitOf(lease, 0, { steps: [] }), ...write })
      const { effects, attempts } = yield* openOf(bench, row, paths)
      for (const rows of [effects, attempts]) {
        assert.deepEqual(
          rows.map(({ path }) => path),
          [...odd].sort(),
        )
      }
    }),
}

const ownRows: Case = {
  law: "D11",
  title: "D11: a load gives the rows of its own run only, be it a namesake or a neighbour",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const mine = yield* underWay(bench)
      const before = yield* everything(bench, mine.row)
      for (const over of [{ namespace: fresh("conformance"), runId: mine.row.runId }, {}]) {
        const { row, lease } = yield* underWay(bench, over)
        yield* committed(bench, commitOf(lease, 1, { steps: [step("kept", 2)], effects: [intent(lease, "more")] }))
        const { steps, effects, attempts } = yield* everything(bench, row)
        assert.deepEqual(
          steps.map(({ path }) => path),
          ["first", "kept"],
        )
        assert.deepEqual(effectPlaces(effects), ["kept 0", "more 0"])
        assert.deepEqual(attemptPlaces(attempts), ["kept 1"])
      }
      // What the others wrote at the same paths is not this run's.
      assert.deepEqual(yield* everything(bench, mine.row), before)
      assert.deepEqual(yield* openOf(bench, { ...mine.row, runId: fresh("missing") }), nothing)
      assert.deepEqual(yield* openOf(bench, { ...mine.row, namespace: fresh("conformance") }), nothing)
    }),
}

export const openCases: ReadonlyArray<Case> = [onlyAsked, inOrder, byTheHundred, ownRows]
