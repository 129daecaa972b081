/** D18: each act by which a run at rest becomes claimable is heard of by who waits. */
import assert from "node:assert/strict"
import type { CommitRows, RunPatch, RunRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Case } from "../Case.js"
import {
  claimed,
  commitOf,
  committed,
  fresh,
  create,
  longLeaseMs,
  moved,
  newRun,
  only,
  request,
  signal,
  type Bench,
} from "../internal/bench.js"
import { hearerOf, listening } from "../internal/hearing.js"
import { wait } from "../internal/rows.js"
import { fireOf, newSchedule } from "./schedule.js"

/** A run at rest that another connection's act makes claimable. */
const wakes =
  (
    what: string,
    rest: Partial<RunPatch>,
    act: (bench: Bench, row: RunRow) => Effect.Effect<unknown, unknown>,
    opens: Partial<Pick<CommitRows, "waits">> = {},
  ) =>
  (bench: Bench) =>
    Effect.gen(function* () {
      const hearer = hearerOf(bench)
      const ear = yield* listening(bench)
      const { row, lease } = yield* claimed(bench)
      yield* committed(bench, commitOf(lease, 0, { steps: [], ...opens, run: { release: true, ...rest } }))
      const worker = fresh("worker")
      yield* hearer.beat(worker, longLeaseMs)
      yield* ear.hears(1, "the run's creation")
      const acting = yield* Effect.fork(act(bench, row))
      yield* ear.hears(1, what)
      const taken = only(yield* hearer.claim(request(bench, worker)), `the claim of who heard of ${what}`)
      assert.equal(taken.runId, row.runId)
      yield* Fiber.join(acting)
      yield* ear.hearsNoMore(what)
    })

/** An act by which one run becomes claimable; everything before it has been heard. */
const actsOn = (bench: Bench, what: string, runId: string, act: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function* () {
    const hearer = hearerOf(bench)
    const ear = yield* listening(bench)
    yield* ear.settles
    const worker = fresh("worker")
    yield* hearer.beat(worker, longLeaseMs)
    const acting = yield* Effect.fork(act)
    yield* ear.hears(1, what)
    const taken = only(yield* hearer.claim(request(bench, worker)), `the claim of who heard of ${what}`)
    assert.equal(taken.runId, runId)
    yield* Fiber.join(acting)
    yield* ear.hearsNoMore(what)
  })

const sends: Case = {
  law: "D18",
  title:
    "D18: a run that waits and is sent a signal is heard of on the other connection, and can be claimed there at once",
  needs: ["wakeUps"],
  run: wakes("a signal", { status: "waiting", wakeInMs: longLeaseMs }, (bench, { runId }) =>
    bench.driver.send(signal(bench, { runId })),
  ),
}

const cancels: Case = {
  law: "D18",
  title:
    "D18: a run that sleeps and is to be canceled is heard of on the other connection, and can be claimed there at once",
  needs: ["wakeUps"],
  run: wakes("a cancel", { status: "sleeping", wakeInMs: longLeaseMs }, (bench, { namespace, runId }) =>
    bench.driver.requestCancel(namespace, runId, null),
  ),
}

const decides: Case = {
  law: "D18",
  title: "D18: a run in review that is decided is heard of on the other connection, and can be claimed there at once",
  needs: ["wakeUps"],
  run: wakes(
    "a decision",
    { status: "review", wakeInMs: longLeaseMs },
    (bench, { namespace, runId }) =>
      bench.driver.decideWait({ namespace, runId, path: "approve", name: "name of approve", decision: "1" }),
    { waits: [wait("approve")] },
  ),
}

const resumes: Case = {
  law: "D18",
  title: "D18: a paused run that is resumed is heard of on the other connection, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const { namespace, runId } = yield* create(bench)
      yield* bench.driver.setPaused(namespace, runId, true)
      yield* actsOn(bench, "a resumed run", runId, bench.driver.setPaused(namespace, runId, false))
    }),
}

const reopens: Case = {
  law: "D18",
  title: "D18: a failed run that is reopened is heard of on the other connection, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const { lease, row } = yield* claimed(bench)
      yield* moved(bench, lease, 0, { status: "failed" })
      const { namespace, runId } = row
      const attempt = { attempt: 1, kind: "retried", error: "{}", output: null } as const
      const reopen = bench.driver.reopenRun({ namespace, runId, seq: 1, path: "p", attempt })
      yield* actsOn(bench, "a reopened run", runId, reopen)
    }),
}

const forks: Case = {
  law: "D18",
  title: "D18: a fork is heard of on the other connection, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      const { row } = yield* claimed(bench)
      const run = newRun(bench)
      yield* actsOn(
        bench,
        "a fork",
        run.runId,
        bench.driver.forkRun({ run, from: row.runId, beforeSeq: 1, effects: [] }),
      )
    }),
}

const fires: Case = {
  law: "D18",
  title: "D18: the run of a schedule is heard of on the other connection, and can be claimed there at once",
  needs: ["wakeUps"],
  run: (bench) =>
    Effect.gen(function* () {
      yield* claimed(bench)
      const schedule = newSchedule(bench)
      yield* bench.driver.putSchedule(schedule)
      const fire = fireOf(bench, schedule)
      yield* actsOn(bench, "a firing", fire.run.runId, bench.driver.fireSchedule(fire))
    }),
}

export const wakingActCases: ReadonlyArray<Case> = [sends, cancels, decides, resumes, reopens, forks, fires]
