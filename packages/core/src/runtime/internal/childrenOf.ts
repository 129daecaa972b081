/** The children of a run, as the store lists them. */
import * as Effect from "effect/Effect"
import type { StoreError } from "../../model/Errors.js"
import type { RunKey, RunsPage } from "../../store/CheckpointDriver.js"
import type { CheckpointStoreService, ListedRecord } from "../../store/CheckpointStore.js"
import { largestPage } from "./asked.js"

/** All children of a run that fit. */
export const childrenOf = (
  store: CheckpointStoreService,
  { namespace, runId }: Pick<RunKey, "namespace" | "runId">,
  statuses: RunsPage["statuses"],
): Effect.Effect<ReadonlyArray<ListedRecord>, StoreError> =>
  Effect.gen(function* () {
    const filters = { workflow: null, createdFrom: null, createdBefore: null, limit: largestPage }
    const children: Array<ListedRecord> = []
    let after: RunsPage["after"] = null
    for (;;) {
      const rows: ReadonlyArray<ListedRecord> = yield* store.listRuns({
        ...filters,
        namespace,
        parentRunId: runId,
        statuses,
        after,
      })
      children.push(...rows)
      if (rows.length < largestPage) return children
      const { createdAt, runId: last } = rows.at(-1)!
      after = { createdAt, runId: last }
    }
  })
