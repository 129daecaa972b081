/** D10: text is kept unit for unit, and is equal only to itself. */
import assert from "node:assert/strict"
import type { NewRunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as FastCheck from "effect/FastCheck"
import * as Runtime from "effect/Runtime"
import type { Case } from "../Case.js"
import {
  claim,
  claimed,
  commitOf,
  committed,
  connection,
  create,
  effectOf,
  everything,
  fresh,
  leaseOf,
  liveWorker,
  longLeaseMs,
  newRun,
  only,
  rowOf,
  type Bench,
} from "../internal/bench.js"
import { attempt, intent, standing, step, stepsQuery, wait } from "../internal/rows.js"
import { anyId, anyJson, idExamples, jsonExamples, lookalikes } from "../internal/texts.js"

/** A property over one arbitrary, shrunk when it fails; each example runs as an Effect of this case. */
const property = <A>(
  arbitrary: FastCheck.Arbitrary<A>,
  numRuns: number,
  examples: ReadonlyArray<A>,
  check: (value: A) => Effect.Effect<void, unknown>,
) =>
  Effect.flatMap(Effect.runtime(), (runtime) =>
    Effect.promise(() =>
      FastCheck.assert(
        FastCheck.asyncProperty(arbitrary, (value) => Runtime.runPromise(runtime, check(value))),
        { numRuns: numRuns + examples.length, examples: examples.map((value): [A] => [value]) },
      ),
    ),
  )

const anyIds: Case = {
  law: "D10",
  title: "D10: any id, path, key and name comes back unit for unit, and finds its rows again (property)",
  needs: [],
  run: (bench) =>
    property(FastCheck.array(anyId, { minLength: 9, maxLength: 9 }), 60, idExamples, (ids) =>
      Effect.gen(function* () {
        const [runId, name, planHash, inputHash, path, key, operation, cursor, token] = ids as [
          ...[string, string, string, string, string, string, string, string, string],
        ]
        // Other examples of this property may draw the same run id.
        const namespace = fresh("conformance")
        const parent = { parentRunId: operation, parentPath: path, flowKey: key }
        const given = { namespace, runId, workflow: name, planHash, inputHash, ...parent }
        const worker = yield* liveWorker(bench, `${fresh("worker")}${token}`.slice(0, 40))
        const made = yield* create(bench, given)
        assert.deepEqual({ ...made, ...given }, { ...made })
        const claimToken = `${token}${fresh("token")}`
        const row = only(yield* claim(bench, worker, { namespace, claimToken, workflows: [{ name, version: 1 }] }))
        assert.deepEqual([row.leaseOwner, row.claimToken], [worker, claimToken])
        const lease = leaseOf(row)
        const write = commitOf(lease, 0, {
          steps: [
            step(`${path}/done`, 1, { effect: `external:${operation}`, idempotencyKey: key }),
            step(`${path}/within`, 1, { scope: path }),
          ],
          waits: [wait(path, { name: key })],
          effects: [intent(lease, path, { operation, idempotencyKey: key, payloadHash: inputHash })],
          attempts: [attempt(path)],
          run: { cursor },
        })
        yield* committed(bench, write)
        const { run, steps, effects, attempts, waits } = yield* everything(bench, { namespace, runId })
        const { updatedAt, seq } = run
        assert.deepEqual(run, { ...row, cursor, seq, updatedAt })
        assert.deepEqual(steps, [{ ...write.steps[0]!, committedAt: updatedAt }])
        assert.deepEqual(effects, [{ ...write.effects[0]!, intentAt: updatedAt, settledAt: null }])
        assert.equal(attempts[0]?.path, path)
        const within = yield* bench.driver.loadSteps(stepsQuery(row, [path]))
        assert.deepEqual(
          within.map((one) => ({ ...one })),
          [{ ...write.steps[1]!, committedAt: updatedAt }],
        )
        assert.deepEqual(waits, [standing(write.waits[0]!, { openedAt: updatedAt })])
        const decision = { namespace, runId, path, name: key, decision: "1" }
        assert.equal((yield* bench.driver.decideWait(decision))._tag, "Decided")
        assert.equal((yield* bench.driver.expireWait(lease, path))?.state, "decided")
        const outcome = { ...lease, path, generation: 0, idempotencyKey: key, payloadHash: inputHash, outcome: null }
        assert.equal(yield* bench.driver.recordOutcome({ ...outcome, state: "notPerformed" }), true)
        assert.equal((yield* effectOf(bench, row, path)).state, "notPerformed")
      }),
    ),
}

/** Writes one text wherever a payload goes, and reads it back from everywhere. */
const roundTrip = (bench: Bench, text: string) =>
  Effect.gen(function* () {
    const { row, lease } = yield* claimed(bench, { input: text })
    assert.ok(row.input === text, "the input of a claimed run came back changed")
    yield* committed(
      bench,
      commitOf(lease, 0, {
        steps: [step("s", 1, { result: text })],
        effects: [
          intent(lease, "sent", { payload: text }),
          intent(lease, "settled", { state: "failed", outcome: text }),
        ],
        attempts: [attempt("a", { kind: "rejected", error: text, output: text })],
        waits: [wait("w", { data: text })],
        run: { output: text, failure: text, parked: text },
      }),
    )
    const place = { ...lease, path: "sent", generation: 0, idempotencyKey: "key-of-sent", payloadHash: "payload-hash" }
    yield* bench.driver.recordOutcome({ ...place, state: "succeeded", outcome: text })
    const { namespace, runId } = row
    yield* bench.driver.decideWait({ namespace, runId, path: "w", name: "name of w", decision: text })
    for (const driver of bench.connections) {
      const { run, steps, effects, attempts, waits } = yield* everything(bench, row, driver)
      const [sent, settled] = effects
      const read = { input: run.input, output: run.output, failure: run.failure, parked: run.parked }
      const all = { ...read, result: steps[0]?.result, payload: sent?.payload, recorded: sent?.outcome }
      const last = { ...all, outcome: settled?.outcome, error: attempts[0]?.error, raw: attempts[0]?.output }
      const shown = { data: waits[0]?.data, decision: waits[0]?.decision }
      // Compared one by one: a diff of two texts of megabytes helps nobody.
      for (const [column, value] of Object.entries({ ...last, ...shown }))
        assert.ok(value === text, `${column} came back changed`)
    }
  })

const anyPayload: Case = {
  law: "D10",
  title:
    "D10: any JSON text comes back unit for unit: spelling, key order, repeated keys, escapes, large numbers (property)",
  needs: [],
  run: (bench) => property(anyJson, 100, jsonExamples, (text) => roundTrip(bench, text)),
}

const largePayload: Case = {
  law: "D10",
  title: "D10: a payload of five megabytes comes back whole",
  needs: [],
  run: (bench) => roundTrip(bench, JSON.stringify('é\u0000\ud800😀"\\x'.repeat(250_000) + "end").padEnd(5_000_000)),
}

const runIdsApart: Case = {
  law: "D10",
  title: "D10: run ids that differ in case, spaces, normalisation or wildcards are different runs",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      for (const [n, runId] of lookalikes.entries()) {
        const { created } = yield* connection(bench, n).createRun(newRun(bench, { runId, input: String(n) }))
        assert.equal(created, true, `${JSON.stringify(runId)} was held for another run id`)
      }
      const worker = yield* liveWorker(bench)
      for (const [n, runId] of lookalikes.entries()) {
        const row = only(yield* claim(bench, worker, { runIds: [runId] }), `the claim of ${JSON.stringify(runId)}`)
        assert.deepEqual([row.runId, row.input], [runId, String(n)])
        yield* committed(bench, commitOf(leaseOf(row), 0, { run: { output: String(-n) } }))
      }
      for (const [n, runId] of lookalikes.entries()) {
        const { run, steps } = yield* everything(bench, { namespace: bench.namespace, runId })
        assert.deepEqual([run.runId, run.input, run.output, steps.length], [runId, String(n), String(-n), 1])
      }
    }),
}

const namespacesApart: Case = {
  law: "D10",
  title: "D10: namespaces that differ in case, spaces, normalisation or wildcards never see each other's runs",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const base = bench.namespace
      // At the end and at the front: a wildcard matches from either side. An id of 255 units has no room for more.
      const short = lookalikes.filter((text) => text.length < 100)
      const namespaces = [...short.map((text) => `${base}${text}`), ...short.map((text) => `${text}${base}`)]
      const given = (namespace: string, n: number): Partial<NewRunRow> => ({ namespace, runId: "r", input: String(n) })
      for (const [n, namespace] of namespaces.entries()) {
        const { created } = yield* bench.driver.createRun(newRun(bench, given(namespace, n)))
        assert.equal(created, true, `${JSON.stringify(namespace)} was held for another namespace`)
      }
      const worker = yield* liveWorker(bench)
      for (const [n, namespace] of namespaces.entries()) {
        const row = only(yield* claim(bench, worker, { namespace }), `the claim in ${JSON.stringify(namespace)}`)
        assert.deepEqual([row.namespace, row.runId, row.input], [namespace, "r", String(n)])
        assert.equal((yield* rowOf(bench, { namespace, runId: "r" })).input, String(n))
      }
    }),
}

const noJoinedKeys: Case = {
  law: "D10",
  title: "D10: a namespace and a run id that read alike when joined are different runs, and so are run ids and paths",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const a = bench.namespace
      for (const mark of ["/", ":", "#", "\u0001", ",", "|", " ", "\u001f", "-", ""]) {
        const outer = { namespace: `${a}b${mark}c`, runId: "d" }
        const inner = { namespace: `${a}b`, runId: `c${mark}d` }
        if (outer.namespace === inner.namespace) continue
        const one = yield* claimed(bench, outer)
        const two = yield* claimed(bench, inner)
        yield* committed(bench, commitOf(one.lease, 0, { steps: [step("one", 1)], effects: [intent(one.lease, "p")] }))
        yield* committed(bench, commitOf(two.lease, 0, { steps: [step("two", 1)] }))
        assert.deepEqual(
          (yield* everything(bench, outer)).steps.map(({ path }) => path),
          ["one"],
        )
        const { steps, effects } = yield* everything(bench, inner)
        assert.deepEqual([steps.map(({ path }) => path), effects], [["two"], []])

        const run = yield* claimed(bench, { runId: `r${mark}x${a}` })
        const path = `p${mark}1`
        const first = intent(run.lease, "p", { generation: 11 })
        const second = intent(run.lease, path, { generation: 1, sends: 2 })
        yield* committed(bench, commitOf(run.lease, 0, { effects: [first, second] }))
        assert.equal((yield* effectOf(bench, run.row, "p", 11)).sends, 1)
        assert.equal((yield* effectOf(bench, run.row, path, 1)).sends, 2)
      }
    }),
}

const pathsApart: Case = {
  law: "D10",
  title: "D10: paths that differ in case, spaces, normalisation or wildcards are different steps and intents",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const { row, lease } = yield* claimed(bench)
      const half = Math.floor(lookalikes.length / 2)
      const steps = lookalikes.slice(0, half).map((path, n) => step(path, n + 1))
      const effects = lookalikes.map((path, n) => intent(lease, path, { idempotencyKey: `key-${n}`, sends: n + 1 }))
      yield* committed(bench, commitOf(lease, 0, { seq: half, steps, effects }))
      const loaded = yield* everything(bench, row)
      assert.deepEqual(
        loaded.steps.map(({ path }) => path),
        lookalikes.slice(0, half),
      )
      assert.deepEqual(
        loaded.effects.map(({ path }) => path),
        [...lookalikes].sort(),
      )
      for (const [n, path] of lookalikes.entries()) {
        const { effects } = yield* bench.driver.loadOpen(row.namespace, row.runId, [path])
        assert.deepEqual(
          effects.map((effect) => [effect.path, effect.idempotencyKey]),
          [[path, `key-${n}`]],
          `the intents of ${JSON.stringify(path)}`,
        )
        assert.equal((yield* effectOf(bench, row, path)).idempotencyKey, `key-${n}`)
      }
    }),
}

const workersApart: Case = {
  law: "D10",
  title: "D10: worker ids that differ in case, spaces, normalisation or wildcards are different workers",
  needs: [],
  run: (bench) =>
    Effect.gen(function* () {
      const base = fresh("worker")
      const workers = lookalikes.filter((text) => text.length < 100).map((text) => `${base}${text}`)
      const rows: Array<{ readonly worker: string; readonly runId: string }> = []
      for (const worker of workers) {
        const { runId } = yield* create(bench)
        assert.deepEqual(yield* claim(bench, worker), [], `${JSON.stringify(worker)} was held for another worker`)
        yield* liveWorker(bench, worker)
        only(yield* claim(bench, worker))
        rows.push({ worker, runId })
      }
      for (const { worker, runId } of rows) {
        const { leases } = yield* bench.driver.beat(worker, longLeaseMs)
        assert.deepEqual(
          leases.map((lease) => lease.runId),
          [runId],
        )
        yield* bench.driver.releaseWorker(worker)
      }
      for (const { runId } of rows) {
        assert.equal((yield* rowOf(bench, { namespace: bench.namespace, runId })).status, "pending")
      }
    }),
}

export const textCases: ReadonlyArray<Case> = [
  anyIds,
  anyPayload,
  largePayload,
  runIdsApart,
  namespacesApart,
  noJoinedKeys,
  pathsApart,
  workersApart,
]
