/** One fault each in how children are created (D1), and in what a parent hears of them (D29). */
import type { CheckpointDriver, Lease, RunRow } from "@cairn/core"
import { Effect } from "effect"
import { editCommit, mutant, type Mutant } from "./wrap.js"

const told = "D29: the end of a child is counted"
const together = "D29: of several children"

const owner = "D1: a child of a run that is held"
const others = "D1: no child is created of a run"
const takeover = "D1: whoever takes a parent over"

/** Creates a child where a look before says so. */
const ifHeld = (
  driver: CheckpointDriver,
  isHeld: (row: RunRow, lease: Lease) => boolean,
): Pick<CheckpointDriver, "createChild"> => ({
  createChild: (child, parent) =>
    Effect.gen(function* () {
      const row = yield* driver.findRun(parent.namespace, parent.runId)
      const there = yield* driver.findRun(child.namespace, child.runId)
      return there !== null || (row !== null && isHeld(row, parent)) ? yield* driver.createRun(child) : null
    }),
})

export const parentMutants: ReadonlyArray<Mutant> = [
  mutant("a child is created whoever holds its parent", others, (driver) => ({
    createChild: (child) => driver.createRun(child),
  })),
  mutant("the owner of a child's parent shows its fence alone", others, (driver) =>
    ifHeld(driver, ({ fence, leaseOwner }, lease) => leaseOwner !== null && fence === lease.fence),
  ),
  mutant("the owner of a child's parent shows its token alone", others, (driver) =>
    ifHeld(driver, ({ claimToken }, lease) => claimToken === lease.claimToken),
  ),
  mutant("a child that is there is not given to who lost its parent", others, (driver) => ({
    createChild: (child, parent) =>
      Effect.flatMap(driver.createChild({ ...child, runId: `${child.runId} asked` }, parent), (made) =>
        made === null ? Effect.succeed(null) : driver.createChild(child, parent),
      ),
  })),
  mutant("a child is not created by an owner whose lease has ended", owner, (driver) => ({
    createChild: (child, parent) =>
      Effect.gen(function* () {
        const row = yield* driver.findRun(parent.namespace, parent.runId)
        const hasEnded = row?.leaseOwner == null || (yield* driver.leaseHasEnded(row.leaseOwner))
        return hasEnded ? null : yield* driver.createChild(child, parent)
      }),
  })),
  mutant("a child overwrites what it was created with", owner, (driver) => ({
    createChild: (child, parent) =>
      Effect.map(driver.createChild(child, parent), (made) =>
        made === null ? null : { ...made, run: { ...made.run, input: child.input } },
      ),
  })),
  mutant("a child's parent is looked at first, and the child created later", takeover, (driver) => ({
    createChild: (child, parent) =>
      Effect.gen(function* () {
        const row = yield* driver.findRun(parent.namespace, parent.runId)
        const isHeld = row?.fence === parent.fence && row.claimToken === parent.claimToken && row.leaseOwner !== null
        const there = yield* driver.findRun(child.namespace, child.runId)
        // Long enough for anybody.
        for (let n = 0; n < 20; n++) yield* Effect.yieldNow()
        return isHeld || there !== null ? yield* driver.createRun(child) : null
      }),
  })),
  mutant("a parent is told of nothing", told, (driver) =>
    editCommit(driver, (commit) => ({ ...commit, wakesParent: null })),
  ),
  mutant("a parent that is parked for a fault is woken", told, (driver) => ({
    commit: (batch) =>
      Effect.zipRight(
        Effect.forEach(batch, ({ lease, wakesParent }) => driver.unpark(lease.namespace, wakesParent ?? "")),
        driver.commit(batch),
      ),
  })),
  mutant("the parent is told in every namespace", told, (driver) => {
    const namespaces = new Set<string>()
    return {
      createRun: (run) => {
        namespaces.add(run.namespace)
        return driver.createRun(run)
      },
      commit: (batch) =>
        Effect.tap(driver.commit(batch), () =>
          Effect.forEach(
            batch.flatMap(({ lease, wakesParent }) =>
              [...namespaces].flatMap((namespace) =>
                wakesParent === null || namespace === lease.namespace ? [] : [{ namespace, runId: wakesParent }],
              ),
            ),
            (parent) => driver.send({ ...parent, signalId: "end", name: "end", payload: null, payloadHash: "" }),
          ),
        ),
    }
  }),
  mutant("of several children that end together one is counted", together, (driver) => ({
    commit: (batch) =>
      driver.commit(
        batch.map((commit, index) =>
          batch.findIndex(({ wakesParent }) => wakesParent === commit.wakesParent) === index
            ? commit
            : { ...commit, wakesParent: null },
        ),
      ),
  })),
  mutant("a child that ends beside its parent does not wake it", together, (driver) => ({
    commit: (batch) => {
      const written = new Set(batch.map(({ lease }) => lease.runId))
      return driver.commit(
        batch.map((commit) => ({
          ...commit,
          wakesParent: written.has(commit.wakesParent ?? "") ? null : commit.wakesParent,
        })),
      )
    },
  })),
  mutant("a child whose parent is gone cannot end", "D29: a parent that is gone", (driver) => ({
    commit: (batch) =>
      Effect.gen(function* () {
        const known: Array<boolean> = []
        for (const { lease, wakesParent } of batch) {
          known.push(wakesParent === null || (yield* driver.findRun(lease.namespace, wakesParent)) !== null)
        }
        return yield* driver.commit(
          batch.map((commit, index) => (known[index] ? commit : { ...commit, base: -1, seq: 0 })),
        )
      }),
  })),
  mutant("a refused commit tells the parent", "D29: a refused commit", (driver) => ({
    commit: (batch) =>
      Effect.tap(driver.commit(batch), (results) =>
        Effect.forEach(results, (result, index) => {
          const { lease, wakesParent } = batch[index]!
          return result._tag === "Refused" && wakesParent !== null
            ? driver.send({
                ...{ namespace: lease.namespace, runId: wakesParent },
                ...{ signalId: "end", name: "end", payload: null, payloadHash: "" },
              })
            : Effect.void
        }),
      ),
  })),
  mutant("a parent compares its inbox before its commit waits its turn", "D29: of a child's end", (driver) => ({
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
  mutant("a parent is told before its child has ended", "D29: batches over the same parents", (driver) => ({
    commit: (batch) =>
      Effect.zipRight(
        Effect.forEach(batch, ({ lease, wakesParent }) =>
          wakesParent === null
            ? Effect.void
            : driver.send({
                ...{ namespace: lease.namespace, runId: wakesParent },
                ...{ signalId: lease.runId, name: "end", payload: null, payloadHash: "" },
              }),
        ),
        driver.commit(batch),
      ),
  })),
]
