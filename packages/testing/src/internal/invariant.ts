/** The user's own check of a run that has ended. */
import type { CheckpointStoreService, RunRecord, RunStatus } from "@cairn/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { Findings } from "./findings.js"
import type { SimulatedProvider } from "./provider.js"
import type { Schedule } from "./schedule.js"

/**
 * Which run is explored: each has a namespace or a store of its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface ExploredRun {
  readonly namespace: string
  readonly runId: string
}

/**
 * A run that has ended, for a check of the user's own.
 *
 * *Shape.* `status`: how it ended; anything but a final one or `review` if it never did. `run`: its row. `provider`: what was sent.
 * `query`: one statement in the store's own database, where it has transactions; what it writes is rolled back. `count`:
 * how many effects a step had by the check's own count, for the report.
 *
 * @category models
 * @since 0.1.0
 */
export interface EndedRun extends ExploredRun {
  readonly status: RunStatus
  readonly run: RunRecord
  readonly schedule: Schedule
  readonly provider: SimulatedProvider
  readonly query: (text: string, parameters?: ReadonlyArray<unknown>) => Effect.Effect<ReadonlyArray<any>, Error>
  readonly count: (step: string, effects: number) => void
}

/**
 * Says what is wrong with a run that has ended: nothing, for an empty list.
 *
 * *Errors.* What it fails with or throws counts as wrong, too.
 *
 * @category models
 * @since 0.1.0
 */
export type Invariant = (
  run: EndedRun,
) => ReadonlyArray<string> | Promise<ReadonlyArray<string>> | Effect.Effect<ReadonlyArray<string>, unknown>

class Rows {
  constructor(readonly rows: ReadonlyArray<unknown>) {}
}

/** Long enough for any count, in milliseconds. */
const queryMs = 10_000

/** A transaction whose body fails leaves nothing behind, and asks for no lease. */
const queryOn =
  ({ transact, capabilities }: CheckpointStoreService): EndedRun["query"] =>
  (text, parameters = []) => {
    if (transact === undefined) {
      return Effect.fail(new Error(`the store '${capabilities.name}' has no transactions, and nothing to be queried`))
    }
    const asked = transact({ timeoutMs: queryMs }, ({ query }) =>
      Effect.flatMap(query(text, parameters), (rows) => Effect.fail(new Rows(rows))),
    )
    return Effect.catchAll(asked, (error) =>
      error instanceof Rows
        ? Effect.succeed(error.rows)
        : Effect.fail(error instanceof Error ? error : new Error(String(error), { cause: error })),
    ) as Effect.Effect<ReadonlyArray<any>, Error>
  }

const asEffect = (given: ReturnType<Invariant>): Effect.Effect<ReadonlyArray<string>, unknown> => {
  if (Effect.isEffect(given)) return given
  return given instanceof Promise
    ? Effect.tryPromise({ try: () => given, catch: (thrown) => thrown })
    : Effect.succeed(given)
}

/** Asks the check; gives the effects that it has counted, by step. */
export const ask = (
  invariant: Invariant,
  store: CheckpointStoreService,
  findings: Findings,
  run: Omit<EndedRun, "query" | "count">,
): Effect.Effect<ReadonlyMap<string, number>> =>
  Effect.suspend(() => {
    const counted = new Map<string, number>()
    const count: EndedRun["count"] = (step, effects) => void counted.set(step, effects)
    return Effect.suspend(() => asEffect(invariant({ ...run, query: queryOn(store), count }))).pipe(
      Effect.catchAllCause((cause) => {
        const error = Cause.squash(cause)
        return Effect.succeed([`the check failed: ${error instanceof Error ? error.message : String(error)}`])
      }),
      Effect.map((problems) => {
        for (const problem of problems) findings.add("invariant", problem)
        return counted
      }),
    )
  })
