/** One fault each in what a person decides, and in the end of the time for it (D28). */
import type { CheckpointDriver, DecideResult, DecisionRow, RunRow, WaitRecord } from "@cairn/core"
import { Effect } from "effect"
import { editCommit, keyOf, mutant, shifted, viewRun, type Mutant } from "./wrap.js"

const once = "D28: a decision is written once"
const elsewhere = "D28: a decision is taken by no other"
const wakes = "D28: a decision ends the wait"
const inTime = "D28: a decision is taken until"
const ended = "D28: a run that is final"
const expired = "D28: a wait that its run's owner"
const races = "D28: in 500 races"

const waitAt = (
  driver: CheckpointDriver,
  { namespace, path, runId }: Pick<DecisionRow, "namespace" | "runId" | "path">,
) => Effect.map(driver.loadWaits(namespace, runId), (loaded) => loaded?.waits.find((wait) => wait.path === path))

/** What a decision that was refused is told all the same, if the wait at its place is one of these. */
const tookAnyway = (
  driver: CheckpointDriver,
  is: (wait: WaitRecord, given: DecisionRow) => boolean,
): Partial<CheckpointDriver> => ({
  decideWait: (given) =>
    Effect.gen(function* () {
      const wait = yield* waitAt(driver, given)
      const result = yield* driver.decideWait(given)
      const taken: DecideResult = { _tag: "Decided", at: 0 }
      return result._tag !== "Decided" && wait !== undefined && is(wait, given) ? taken : result
    }),
})

/** Shows a run otherwise once something was decided of it. */
const onceDecided = (
  driver: CheckpointDriver,
  view: (row: RunRow, before: RunRow) => RunRow,
): Partial<CheckpointDriver> => {
  const decided = new Map<string, RunRow>()
  return {
    ...viewRun(driver, (row) => {
      const before = decided.get(keyOf(row))
      return before === undefined || before.fence !== row.fence ? row : view(row, before)
    }),
    decideWait: (given) =>
      Effect.gen(function* () {
        const before = yield* driver.findRun(given.namespace, given.runId)
        const result = yield* driver.decideWait(given)
        if (before !== null && result._tag === "Decided") decided.set(keyOf(given), before)
        return result
      }),
  }
}

export const decisionMutants: ReadonlyArray<Mutant> = [
  mutant("a second decision is told that it was written", once, (driver) =>
    tookAnyway(driver, ({ state }) => state === "decided"),
  ),
  mutant("a second decision takes the place of the first", once, (driver) => {
    const last = new Map<string, string>()
    return {
      decideWait: (given) => {
        last.set(keyOf(given), given.decision)
        return driver.decideWait(given)
      },
      loadWaits: (namespace, runId) =>
        Effect.map(driver.loadWaits(namespace, runId), (loaded) =>
          loaded === null
            ? null
            : {
                ...loaded,
                waits: loaded.waits.map((wait) => ({
                  ...wait,
                  decision: wait.decision === null ? null : (last.get(keyOf({ namespace, runId })) ?? null),
                })),
              },
        ),
    }
  }),
  mutant("a decision is not counted", once, (driver) => onceDecided(driver, (row, { inbox }) => ({ ...row, inbox }))),
  mutant("a decision moves seq", once, (driver) => onceDecided(driver, (row) => ({ ...row, seq: row.seq + 1 }))),
  mutant("a decision needs no name", elsewhere, (driver) => ({
    decideWait: (given) =>
      Effect.flatMap(waitAt(driver, given), (wait) => driver.decideWait({ ...given, name: wait?.name ?? given.name })),
  })),
  mutant("what is no review takes a decision", elsewhere, (driver) =>
    tookAnyway(driver, (wait, { name }) => wait.kind !== "review" && wait.name === name),
  ),
  mutant("a decision of a run that is not there is closed", elsewhere, (driver) => ({
    decideWait: (given) =>
      Effect.map(driver.decideWait(given), (result) => (result._tag === "Missing" ? { _tag: "Closed" } : result)),
  })),
  mutant("a run in review is not woken by a decision", wakes, (driver) =>
    onceDecided(driver, (row, before) =>
      before.status === "review" ? { ...row, status: "review", wakeAt: before.wakeAt } : row,
    ),
  ),
  mutant("a decision leaves the wake time", wakes, (driver) =>
    onceDecided(driver, (row, { wakeAt }) => ({ ...row, wakeAt })),
  ),
  mutant("a decision wakes a run that is parked for a fault", wakes, (driver) => ({
    decideWait: (given) => Effect.zipRight(driver.unpark(given.namespace, given.runId), driver.decideWait(given)),
  })),
  mutant("a run rests over a decision that it has not seen", "D28: a run that would wait", (driver) =>
    editCommit(driver, (commit, { inbox }) => ({ ...commit, run: { ...commit.run, seenInbox: inbox } })),
  ),
  mutant("a decision is taken at the end of its wait (<= for <)", inTime, (driver) => ({
    decideWait: (given) => shifted(driver.decideWait(given), -1),
  })),
  mutant("a decision is refused one millisecond early", inTime, (driver) => ({
    decideWait: (given) => shifted(driver.decideWait(given), 1),
  })),
  mutant(
    "a decision is taken for as long as nobody has closed the wait",
    "D28: a decision that comes after",
    (driver) => ({
      decideWait: (given) => shifted(driver.decideWait(given), -3_600_000),
    }),
  ),
  mutant("a run that has ended takes a decision", ended, (driver) =>
    tookAnyway(driver, (wait, { name }) => wait.state === "open" && wait.name === name),
  ),
  mutant("a run that has ended has lost its decision", ended, (driver) => ({
    decideWait: (given) =>
      Effect.flatMap(driver.findRun(given.namespace, given.runId), (row) =>
        row?.status === "completed" ? Effect.succeed({ _tag: "Closed" as const }) : driver.decideWait(given),
      ),
  })),
  mutant("a wait that was closed takes a decision", expired, (driver) =>
    tookAnyway(driver, ({ state }) => state === "expired"),
  ),
  mutant("a wait that is decided is closed all the same", expired, (driver) => ({
    expireWait: (lease, path) =>
      Effect.map(driver.expireWait(lease, path), (wait) => (wait === null ? null : { ...wait, state: "expired" })),
  })),
  mutant("every wait of the run is closed", expired, (driver) => ({
    expireWait: (lease, path) =>
      Effect.gen(function* () {
        const loaded = yield* driver.loadWaits(lease.namespace, lease.runId)
        for (const wait of loaded?.waits ?? []) yield* driver.expireWait(lease, wait.path)
        return yield* driver.expireWait(lease, path)
      }),
  })),
  mutant("anybody closes a wait", "D28: nobody but the run's owner", (driver) => ({
    expireWait: (lease, path) =>
      Effect.flatMap(driver.findRun(lease.namespace, lease.runId), (row) =>
        driver.expireWait({ ...lease, fence: row?.fence ?? 0, claimToken: row?.claimToken ?? "" }, path),
      ),
  })),
  mutant("a decision looks first, and is written later", races, (driver) => ({
    decideWait: (given) =>
      Effect.gen(function* () {
        const before = yield* waitAt(driver, given)
        yield* Effect.yieldNow()
        const result = yield* driver.decideWait(given)
        const taken: DecideResult = { _tag: "Decided", at: 0 }
        return before?.state === "open" ? taken : result
      }),
  })),
  mutant("a wait is looked at first, and closed later", races, (driver) => ({
    expireWait: (lease, path) =>
      Effect.gen(function* () {
        const before = yield* waitAt(driver, { ...lease, path })
        yield* Effect.yieldNow()
        const wait = yield* driver.expireWait(lease, path)
        return before?.state === "open" && wait !== null ? { ...before, state: "expired" } : wait
      }),
  })),
]
