/** What a worker keeps on its host: its directory, and the log in it. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { StoreError } from "../../model/Errors.js"
import type { CheckpointStoreService, Commit } from "../../store/CheckpointStore.js"
import type { CommitLog } from "../WriteBehind.js"
import { openIncarnation } from "./incarnation.js"
import { LocalLog } from "./localLog.js"
import { replayOrphans } from "./replay.js"
import type { Settings } from "./settings.js"

export interface Local {
  readonly log: CommitLog<Commit> | null
  /** Whether the store has all that was accepted: then the directory is removed when the worker ends. */
  isSettled: () => boolean
}

/** Brings in what others have left, then makes this worker's own directory. In this order: nothing is claimed before (W8). */
export const openLocal = (
  store: CheckpointStoreService,
  { namespace }: Settings,
  { directory, log }: NonNullable<Settings["local"]>,
  workerId: string,
): Effect.Effect<Local, StoreError, Scope.Scope> =>
  Effect.gen(function* () {
    const storeId = yield* store.storeId
    yield* replayOrphans(store, directory, storeId)
    const local: { log: CommitLog<Commit> | null; isSettled: () => boolean } = { log: null, isSettled: () => true }
    const own = yield* openIncarnation(directory, { namespace, storeId, workerId }, () => local.isSettled())
    if (log === "off") return local
    const file = yield* Effect.acquireRelease(
      Effect.sync(() => new LocalLog(own, log)),
      (opened) => Effect.sync(() => opened.close()),
    )
    local.log = {
      append: (commit) => file.append(JSON.stringify(commit)),
      settled: (mark) => file.settled(mark),
    }
    return local
  })
