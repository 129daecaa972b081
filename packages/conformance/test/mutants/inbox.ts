/** One fault each in what reaches a run: signals (D22, D24), parking (D23), cancels (D25). */
import type { CheckpointDriver, CommitRows, RunRow } from "@cairn/core"
import { Effect } from "effect"
import { editCommit, keyOf, mutant, viewRun, type Mutant } from "./wrap.js"

const kept = "D22: a signal is kept"
const again = "D22: a signal that is sent again"
const wakes = "D22: a signal ends the wait"
const unseen = "D23: a run that would wait without"
const canceled = "D23: a cancel that was not seen"
const ordered = "D24: the signals of the asked names"
const consumed = "D24: a signal that a commit consumes"
const marks = "D25: a cancel marks"
const rests = "D25: a cancel ends every rest"

/** Adds to the inbox whatever a call leaves there: what the calls say of it, and what is read. */
const miscounted = (driver: CheckpointDriver, count: (inbox: number) => number): Partial<CheckpointDriver> => ({
  ...viewRun(driver, (row) => ({ ...row, inbox: count(row.inbox) })),
  loadSignals: (namespace, runId, names) =>
    Effect.map(driver.loadSignals(namespace, runId, names), (loaded) =>
      loaded === null ? null : { ...loaded, inbox: count(loaded.inbox) },
    ),
})

/** Shows a run otherwise once it was sent something or was to be canceled. */
const afterwards = (
  driver: CheckpointDriver,
  view: (row: RunRow, before: RunRow) => RunRow,
): Partial<CheckpointDriver> => {
  const told = new Map<string, RunRow>()
  const note = (namespace: string, runId: string) =>
    Effect.tap(driver.findRun(namespace, runId), (row) =>
      Effect.sync(() => void (row === null || told.set(keyOf(row), row))),
    )
  return {
    ...viewRun(driver, (row) => {
      const before = told.get(keyOf(row))
      return before === undefined || before.fence !== row.fence ? row : view(row, before)
    }),
    send: (signal) => Effect.zipRight(note(signal.namespace, signal.runId), driver.send(signal)),
    requestCancel: (namespace, runId, reason) =>
      Effect.zipRight(note(namespace, runId), driver.requestCancel(namespace, runId, reason)),
  }
}

/** Changes `seenInbox` of each commit, knowing the row that it meets. */
const seeing = (driver: CheckpointDriver, seen: (commit: CommitRows, row: RunRow) => number | null) =>
  editCommit(driver, (commit, row) => ({ ...commit, run: { ...commit.run, seenInbox: seen(commit, row) } }))

const sending: ReadonlyArray<Mutant> = [
  mutant("a signal is not counted", kept, (driver) => miscounted(driver, () => 0)),
  mutant("a signal is counted twice", kept, (driver) => miscounted(driver, (inbox) => inbox * 2)),
  mutant("a signal moves seq", kept, (driver) => afterwards(driver, (row) => ({ ...row, seq: row.seq + 1 }))),
  mutant("a signal to a running run makes it pending", kept, (driver) =>
    afterwards(driver, (row, before) => (before.status === "running" ? { ...row, status: "pending" } : row)),
  ),
  mutant("a second send of an id counts", again, (driver) => ({
    send: (signal) =>
      Effect.tap(driver.send(signal), (result) =>
        result._tag === "Known" ? driver.send({ ...signal, signalId: `${signal.signalId} again` }) : Effect.void,
      ),
  })),
  mutant("an id that was sent with another payload is known", again, (driver) => ({
    send: (signal) =>
      Effect.map(driver.send(signal), (result) => (result._tag === "Differs" ? { _tag: "Known" } : result)),
  })),
  mutant("an id is looked for in every run", again, (driver) => {
    const homes = new Map<string, string>()
    return {
      send: (signal) => {
        const runId = homes.get(signal.signalId) ?? signal.runId
        homes.set(signal.signalId, runId)
        return driver.send({ ...signal, runId })
      },
    }
  }),
  mutant("a run that is final takes signals", "D22: a run that is final", (driver) => ({
    send: (signal) =>
      Effect.map(driver.send(signal), (result) => (result._tag === "Ended" ? { _tag: "Sent", position: 1 } : result)),
  })),
  mutant("a signal wakes a run that is parked for a fault", wakes, (driver) => ({
    send: (signal) => Effect.zipRight(driver.unpark(signal.namespace, signal.runId), driver.send(signal)),
  })),
  mutant("a signal leaves the wake time", wakes, (driver) =>
    afterwards(driver, (row, before) => ({ ...row, wakeAt: row.wakeAt ?? before.wakeAt })),
  ),
  mutant("a waiting run is not woken by a signal", wakes, (driver) =>
    afterwards(driver, (row, before) => (before.status === "waiting" ? { ...row, status: "waiting" } : row)),
  ),
]

const parking: ReadonlyArray<Mutant> = [
  mutant("a park ignores what has arrived", unseen, (driver) => seeing(driver, (_, { inbox }) => inbox)),
  mutant("a park goes on only if more has arrived than was seen (< for <>)", "D23: what counts is", (driver) =>
    seeing(driver, ({ run: { seenInbox } }, { inbox }) =>
      seenInbox === null || seenInbox > inbox ? inbox : seenInbox,
    ),
  ),
  mutant("a park that nobody looked before goes on", "D23: a run that has seen everything", (driver) =>
    seeing(driver, ({ run: { seenInbox } }) => seenInbox ?? -1),
  ),
  mutant("a signal keeps a run from sleeping", "D23: a signal that was not seen", (driver) =>
    editCommit(driver, (commit, { inbox }) => {
      const { seenInbox, status } = commit.run
      const isUnseen = status === "sleeping" && seenInbox !== null && seenInbox !== inbox
      return isUnseen ? { ...commit, run: { ...commit.run, status: "pending", wakeInMs: null } } : commit
    }),
  ),
  mutant("a run sleeps through a cancel", canceled, (driver) =>
    seeing(driver, ({ run: { seenInbox, status } }, { inbox }) => (status === "sleeping" ? inbox : seenInbox)),
  ),
  mutant("a run is parked for a fault over a cancel", canceled, (driver) =>
    seeing(driver, ({ run: { parked, seenInbox } }, { inbox }) => (parked === null ? seenInbox : inbox)),
  ),
  mutant("a run that goes on forgets what may be under way", canceled, (driver) =>
    viewRun(driver, (row) => ({ ...row, previousUntil: 0 })),
  ),
  mutant("the committer is not told that its run goes on", unseen, (driver) => ({
    commit: (batch) =>
      Effect.map(driver.commit(batch), (results) =>
        results.map((result, index) =>
          result._tag === "Committed" ? { ...result, status: batch[index]!.run.status } : result,
        ),
      ),
  })),
  mutant("the inbox is compared before the commit waits its turn", "D23: of a signal and a commit", (driver) => ({
    commit: (batch) =>
      Effect.gen(function* () {
        const rows = yield* Effect.forEach(batch, ({ lease }) => driver.findRun(lease.namespace, lease.runId))
        for (let turn = 0; turn < 4; turn++) yield* Effect.yieldNow()
        return yield* driver.commit(
          batch.map((commit, index) => ({
            ...commit,
            run: {
              ...commit.run,
              seenInbox: rows[index]?.inbox === commit.run.seenInbox ? null : commit.run.seenInbox,
            },
          })),
        )
      }),
  })),
]

const taking: ReadonlyArray<Mutant> = [
  mutant("signals come in the order of their ids", ordered, (driver) => ({
    loadSignals: (namespace, runId, names) =>
      Effect.map(driver.loadSignals(namespace, runId, names), (loaded) =>
        loaded === null
          ? null
          : { ...loaded, signals: [...loaded.signals].sort((a, b) => (a.signalId < b.signalId ? -1 : 1)) },
      ),
  })),
  mutant("names of signals are compared without case", ordered, (driver) => ({
    loadSignals: (namespace, runId, names) =>
      driver.loadSignals(
        namespace,
        runId,
        names.flatMap((name) => [name.toLowerCase(), name.toUpperCase()]),
      ),
  })),
  mutant("a commit consumes nothing", consumed, (driver) =>
    editCommit(driver, (commit) => ({ ...commit, consumes: [] })),
  ),
  mutant("a commit consumes its first signal only", consumed, (driver) => ({
    commit: (batch) =>
      driver.commit(batch.map((commit, index) => (index === 0 ? commit : { ...commit, consumes: [] }))),
  })),
  mutant("a signal is consumed in every run", consumed, (driver) => {
    const taken = new Set<string>()
    return {
      commit: (batch) => {
        for (const { signalId } of batch.flatMap(({ consumes }) => consumes)) taken.add(signalId)
        return driver.commit(batch)
      },
      loadSignals: (namespace, runId, names) =>
        Effect.map(driver.loadSignals(namespace, runId, names), (loaded) =>
          loaded === null
            ? null
            : { ...loaded, signals: loaded.signals.filter(({ signalId }) => !taken.has(signalId)) },
        ),
    }
  }),
  mutant("a refused commit consumes its signals", "D24: a refused commit", (driver) => {
    const taken = new Set<string>()
    return {
      commit: (batch) => {
        for (const { signalId } of batch.flatMap(({ consumes }) => consumes)) taken.add(signalId)
        return driver.commit(batch)
      },
      loadSignals: (namespace, runId, names) =>
        Effect.map(driver.loadSignals(namespace, runId, names), (loaded) =>
          loaded === null
            ? null
            : { ...loaded, signals: loaded.signals.filter(({ signalId }) => !taken.has(signalId)) },
        ),
    }
  }),
]

const canceling: ReadonlyArray<Mutant> = [
  mutant("a cancel moves the fence", marks, (driver) =>
    viewRun(driver, (row) => (row.cancelAt === null ? row : { ...row, fence: row.fence + 1 })),
  ),
  mutant("a cancel moves seq", marks, (driver) =>
    viewRun(driver, (row) => (row.cancelAt === null ? row : { ...row, seq: row.seq + 1 })),
  ),
  mutant("a beat does not tell of what has arrived", marks, (driver) => ({
    beat: (workerId, leaseMs) =>
      Effect.map(driver.beat(workerId, leaseMs), (beat) => ({
        ...beat,
        leases: beat.leases.map((lease) => ({ ...lease, inbox: 0 })),
      })),
  })),
  mutant("a commit takes a cancel for done", marks, (driver) =>
    viewRun(driver, (row) => (row.seq > 0 ? { ...row, cancelAt: null, cancelReason: null } : row)),
  ),
  mutant("the last reason stays", "D25: of twenty cancels", (driver) => {
    const reasons = new Map<string, string | null>()
    return {
      ...viewRun(driver, (row) => ({ ...row, cancelReason: reasons.get(keyOf(row)) ?? row.cancelReason })),
      requestCancel: (namespace, runId, reason) => {
        reasons.set(keyOf({ namespace, runId }), reason)
        return driver.requestCancel(namespace, runId, reason)
      },
    }
  }),
  mutant("a sleeping run is not woken by a cancel", rests, (driver) =>
    afterwards(driver, (row, before) =>
      before.status === "sleeping" ? { ...row, status: "sleeping", wakeAt: before.wakeAt } : row,
    ),
  ),
  mutant("a parked run is not woken by a cancel", rests, (driver) =>
    afterwards(driver, (row, before) =>
      before.parked === null ? row : { ...row, status: before.status, parked: before.parked },
    ),
  ),
  mutant("a cancel forgets what may be under way", rests, (driver) =>
    afterwards(driver, (row, { previousUntil }) => ({ ...row, previousUntil })),
  ),
  mutant("a cancel puts a pending run at the end of the line", "D25: a cancel of a pending run", (driver) =>
    afterwards(driver, (row) => ({ ...row, updatedAt: row.updatedAt + 10 })),
  ),
  mutant("a run that has ended can be canceled", "D25: a run that is final", (driver) => ({
    requestCancel: (namespace, runId, reason) =>
      Effect.map(driver.requestCancel(namespace, runId, reason), (result) =>
        result === "Ended" ? "Requested" : result,
      ),
  })),
  mutant("a cancel keeps the recoveries of a run in review", "D25: a cancel of a run in review", (driver) =>
    afterwards(driver, (row, { recoveries }) => ({ ...row, recoveries })),
  ),
]

export const inboxMutants: ReadonlyArray<Mutant> = [...sending, ...parking, ...taking, ...canceling]
