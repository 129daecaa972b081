/** One fault each in what a parent hears of its children (D29). */
import { Effect } from "effect"
import { editCommit, mutant, type Mutant } from "./wrap.js"

const told = "D29: the end of a child is counted"
const together = "D29: of several children"

export const parentMutants: ReadonlyArray<Mutant> = [
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
