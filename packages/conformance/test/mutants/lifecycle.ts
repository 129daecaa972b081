/** One fault each in pausing (D32), reopening (D33) and forking (D34). */
import type { CheckpointDriver, ForkRow, PerformedRow, RunRow } from "@cairn/core"
import { Effect } from "effect"
import { keyOf, mutant, viewRun, type Mutant } from "./wrap.js"

/** A run's row seems changed once a call on it has succeeded. */
const changed = (
  driver: CheckpointDriver,
  calls: (mark: (of: Pick<RunRow, "namespace" | "runId">) => void) => Partial<CheckpointDriver>,
  view: (row: RunRow) => RunRow,
): Partial<CheckpointDriver> => {
  const marked = new Set<string>()
  return {
    ...viewRun(driver, (row) => (marked.has(keyOf(row)) ? view(row) : row)),
    ...calls((of) => void marked.add(keyOf(of))),
  }
}

const paused = (driver: CheckpointDriver, view: (row: RunRow) => RunRow) =>
  changed(
    driver,
    (mark) => ({
      setPaused: (namespace, runId, isPaused) =>
        Effect.tap(driver.setPaused(namespace, runId, isPaused), (result) =>
          Effect.sync(() => result === "Done" && mark({ namespace, runId })),
        ),
    }),
    view,
  )

const marks = "D32: a pause marks"
const rests = "D32: a paused run is not claimed"
const mail = "D32: what arrives for a paused run"

const wished = "D32: a wish to cancel"

const pauses: ReadonlyArray<Mutant> = [
  mutant("a pause raises seq", marks, (driver) => paused(driver, (row) => ({ ...row, seq: row.seq + 1 }))),
  mutant("a pause is not counted in the inbox", marks, (driver) =>
    paused(driver, (row) => ({ ...row, inbox: row.inbox - 1 })),
  ),
  mutant("a second pause is a new one", marks, (driver) => ({
    setPaused: (namespace, runId, isPaused) =>
      isPaused
        ? Effect.zipRight(driver.setPaused(namespace, runId, false), driver.setPaused(namespace, runId, true))
        : driver.setPaused(namespace, runId, false),
  })),
  mutant("a commit ends a pause", marks, (driver) => ({
    commit: (batch) =>
      Effect.tap(driver.commit(batch), () =>
        Effect.forEach(batch, ({ lease }) => driver.setPaused(lease.namespace, lease.runId, false)),
      ),
  })),
  mutant("a pause of no run is done", marks, (driver) => ({
    setPaused: (namespace, runId, isPaused) =>
      Effect.map(driver.setPaused(namespace, runId, isPaused), (result) => (result === "Missing" ? "Done" : result)),
  })),
  mutant("a claim by run id takes a paused run", rests, (driver) => ({
    claim: (request) =>
      Effect.zipRight(
        Effect.forEach(request.runIds ?? [], (runId) => driver.setPaused(request.namespace, runId, false)),
        driver.claim(request),
      ),
  })),
  mutant("a resume wakes a run that sleeps", rests, (driver) => ({
    setPaused: (namespace, runId, isPaused) =>
      Effect.tap(driver.setPaused(namespace, runId, isPaused), () =>
        isPaused ? Effect.void : driver.unpark(namespace, runId),
      ),
  })),
  mutant("a signal ends a pause", mail, (driver) => ({
    send: (signal) => Effect.tap(driver.send(signal), () => driver.setPaused(signal.namespace, signal.runId, false)),
  })),
  mutant("a signal to a paused run is not kept", mail, (driver) => ({
    send: (signal) =>
      Effect.flatMap(driver.findRun(signal.namespace, signal.runId), (row) =>
        row !== null && row.pausedAt !== null
          ? Effect.succeed({ _tag: "Sent" as const, position: row.inbox + 1 })
          : driver.send(signal),
      ),
  })),
  mutant("a run that is final can be paused", "D32: a run that is final", (driver) => ({
    setPaused: (namespace, runId, isPaused) =>
      Effect.map(driver.setPaused(namespace, runId, isPaused), (result) => (result === "Ended" ? "Done" : result)),
  })),
  mutant("a cancel leaves a run paused", wished, (driver) =>
    changed(
      driver,
      (mark) => ({
        requestCancel: (namespace, runId, reason) =>
          Effect.tap(driver.requestCancel(namespace, runId, reason), () =>
            Effect.sync(() => mark({ namespace, runId })),
          ),
      }),
      (row) => ({ ...row, pausedAt: row.updatedAt }),
    ),
  ),
  mutant("a run that is to be canceled can be paused", wished, (driver) => ({
    setPaused: (namespace, runId, isPaused) =>
      Effect.flatMap(driver.findRun(namespace, runId), (row) =>
        Effect.map(driver.setPaused(namespace, runId, isPaused), (result) =>
          result === "Ended" && row?.cancelAt !== null ? "Done" : result,
        ),
      ),
  })),
  mutant("each pause is the first", "D32: of twenty pauses", (driver) => ({
    setPaused: (namespace, runId, isPaused) =>
      Effect.map(driver.setPaused(namespace, runId, isPaused), (result) => (result === "Known" ? "Done" : result)),
  })),
]

const pending = "D33: a failed run that is reopened"
const wishes = "D33: wishes to cancel"
const refused = "D33: a run that has not failed"

const reopened = (driver: CheckpointDriver, view: (row: RunRow, before: RunRow) => RunRow) => {
  let before: RunRow | null = null
  return changed(
    driver,
    (mark) => ({
      reopenRun: (reopen) =>
        Effect.flatMap(driver.findRun(reopen.namespace, reopen.runId), (row) => {
          before ??= row
          return Effect.tap(driver.reopenRun(reopen), (done) => Effect.sync(() => done && mark(reopen)))
        }),
    }),
    (row) => view(row, before!),
  )
}

const reopenings: ReadonlyArray<Mutant> = [
  mutant("a reopened run keeps its failure", pending, (driver) =>
    reopened(driver, (row, before) => ({ ...row, failure: before.failure })),
  ),
  mutant("a reopened run has another seq", pending, (driver) =>
    reopened(driver, (row) => ({ ...row, seq: row.seq + 1 })),
  ),
  mutant("no attempt stands for a retry", pending, (driver) => ({
    reopenRun: (reopen) => driver.reopenRun({ ...reopen, path: `${reopen.path} elsewhere` }),
  })),
  mutant("a retry takes the place of an attempt", pending, (driver) => ({
    reopenRun: (reopen) => driver.reopenRun({ ...reopen, attempt: { ...reopen.attempt, attempt: 1 } }),
  })),
  mutant("a reopened run is still to be canceled", wishes, (driver) =>
    reopened(driver, (row, before) => ({ ...row, cancelAt: before.cancelAt })),
  ),
  mutant("a reopened run is still paused", wishes, (driver) => ({
    reopenRun: (reopen) =>
      Effect.tap(driver.reopenRun(reopen), (done) =>
        done ? driver.setPaused(reopen.namespace, reopen.runId, true) : Effect.void,
      ),
  })),
  mutant("a reopened run keeps its recoveries", wishes, (driver) =>
    reopened(driver, (row, before) => ({ ...row, recoveries: before.recoveries })),
  ),
  mutant("a run is reopened whatever its seq", refused, (driver) => ({
    reopenRun: (reopen) =>
      Effect.flatMap(driver.findRun(reopen.namespace, reopen.runId), (row) =>
        driver.reopenRun({ ...reopen, seq: row?.seq ?? 0 }),
      ),
  })),
  mutant("a parked run is reopened", refused, (driver) => ({
    reopenRun: (reopen) =>
      Effect.flatMap(driver.reopenRun(reopen), (done) =>
        done ? Effect.succeed(true) : driver.unpark(reopen.namespace, reopen.runId),
      ),
  })),
  mutant("everybody is told to have reopened the run", "D33: of twenty who reopen", (driver) => ({
    reopenRun: (reopen) => Effect.as(driver.reopenRun(reopen), true),
  })),
]

const copies = "D34: a fork has the steps"
const reuses = "D34: a fork is given the results"
const once = "D34: of twenty forks"
const performed = "D34: what a run has done outside"

const forks = (driver: CheckpointDriver, change: (fork: ForkRow) => ForkRow): Partial<CheckpointDriver> => ({
  forkRun: (fork) => driver.forkRun(change(fork)),
})

const views = (
  driver: CheckpointDriver,
  view: (rows: ReadonlyArray<PerformedRow>) => ReadonlyArray<PerformedRow>,
): Partial<CheckpointDriver> => ({
  loadPerformed: (namespace, runId) =>
    Effect.map(driver.loadPerformed(namespace, runId), (rows) => (rows === null ? null : view(rows))),
})

/** What a fork is given, changed as it is read. */
const forkedSteps = (driver: CheckpointDriver, hides: (scope: string) => boolean): Partial<CheckpointDriver> => {
  const made = new Set<string>()
  return {
    forkRun: (fork) =>
      Effect.tap(driver.forkRun(fork), () =>
        Effect.sync(() => made.add(keyOf({ namespace: fork.run.namespace, runId: fork.run.runId }))),
      ),
    loadSteps: (query) =>
      Effect.map(driver.loadSteps(query), (steps) =>
        made.has(keyOf(query)) ? steps.filter(({ scope }) => !hides(scope)) : steps,
      ),
  }
}

const forkings: ReadonlyArray<Mutant> = [
  mutant("a fork has the step of the point as well", copies, (driver) =>
    forks(driver, (fork) => ({ ...fork, beforeSeq: fork.beforeSeq + 1 })),
  ),
  mutant("a fork has the steps of the workflow itself alone", copies, (driver) =>
    forkedSteps(driver, (scope) => scope !== ""),
  ),
  mutant("a fork has the results of its source's operations", copies, (driver) =>
    forks(driver, (fork) => ({ ...fork, effects: [...fork.effects, "pay"] })),
  ),
  mutant("a fork has the plan that it is given", copies, (driver) => ({
    forkRun: (fork) =>
      Effect.map(driver.forkRun(fork), (result) =>
        result === null ? null : { ...result, run: { ...result.run, planHash: fork.run.planHash } },
      ),
  })),
  mutant("a fork of what was before everything is at seq 0", copies, (driver) => ({
    forkRun: (fork) =>
      Effect.map(driver.forkRun(fork), (result) =>
        result === null || fork.beforeSeq > 1 ? result : { ...result, run: { ...result.run, seq: 0 } },
      ),
  })),
  mutant("a fork is its source", copies, (driver) => ({
    forkRun: (fork) =>
      Effect.map(driver.findRun(fork.run.namespace, fork.from), (run) =>
        run === null ? null : { created: true, run },
      ),
  })),
  mutant("a fork is given no results", reuses, (driver) => forks(driver, (fork) => ({ ...fork, effects: [] }))),
  mutant("a result stands in the generation of its source", reuses, (driver) => {
    const made = new Set<string>()
    return {
      forkRun: (fork) =>
        Effect.tap(driver.forkRun(fork), () =>
          Effect.sync(() => made.add(keyOf({ namespace: fork.run.namespace, runId: fork.run.runId }))),
        ),
      loadOpen: (namespace, runId, paths) =>
        Effect.map(driver.loadOpen(namespace, runId, paths), (open) =>
          made.has(keyOf({ namespace, runId }))
            ? { ...open, effects: open.effects.map((effect) => ({ ...effect, generation: 1 })) }
            : open,
        ),
    }
  }),
  mutant("each fork under one id is created", once, (driver) => ({
    forkRun: (fork) =>
      Effect.map(driver.forkRun(fork), (result) => (result === null ? null : { ...result, created: true })),
  })),
  mutant("a fork of no run begins from nothing", once, (driver) => ({
    forkRun: (fork) =>
      Effect.flatMap(driver.forkRun(fork), (result) =>
        result === null ? driver.createRun(fork.run) : Effect.succeed(result),
      ),
  })),
  mutant("a fork begins at once whatever it is told", "D34: a fork that is to begin later", (driver) =>
    forks(driver, (fork) => ({ ...fork, run: { ...fork.run, wakeAt: null } })),
  ),
  mutant("transactions are not told of", performed, (driver) =>
    views(driver, (rows) => rows.filter(({ kind }) => kind !== "transaction")),
  ),
  mutant("an operation of unknown outcome is not told of", performed, (driver) =>
    views(driver, (rows) => rows.filter(({ isKnown }) => isKnown)),
  ),
  mutant("an operation is told of without the seq of its step", performed, (driver) =>
    views(driver, (rows) => rows.map((row) => (row.kind === "operation" ? { ...row, seq: null } : row))),
  ),
  mutant("a run that does not exist has done nothing", performed, (driver) => ({
    loadPerformed: (namespace, runId) => Effect.map(driver.loadPerformed(namespace, runId), (rows) => rows ?? []),
  })),
]

export const lifecycleMutants: ReadonlyArray<Mutant> = [...pauses, ...reopenings, ...forkings]
