/** The store, watched: what it has acknowledged is what must still be there at the end. */
import type { CheckpointStoreService, Commit, RunRecord } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { CommitLog, type OpenedWait } from "./commitLog.js"
import type { Findings } from "./findings.js"
import type { Subject } from "./subject.js"

/** What comes into being while a run is explored, as it becomes durable. */
export interface Happenings {
  readonly started: (run: RunRecord) => void
  readonly waits: (runId: string, wait: OpenedWait) => void
}

/** The logs of a run and of all that it has started. */
export class RunLogs {
  readonly byRun = new Map<string, CommitLog>()
  happenings: Happenings | null = null

  constructor(
    private readonly subject: Subject,
    readonly findings: Findings,
  ) {}

  /** The log of a run; null for one that is none of the explored ones. */
  of(runId: string): CommitLog | null {
    return this.byRun.get(runId) ?? null
  }

  started(run: RunRecord): void {
    const part = this.subject.parts.get(run.workflow)
    if (part === undefined || this.byRun.has(run.runId)) return
    this.byRun.set(run.runId, new CommitLog(part, this.findings, (wait) => this.happenings?.waits(run.runId, wait)))
    this.happenings?.started(run)
  }

  /** The run that a key belongs to, with its log. */
  ofKey(key: string): readonly [string, CommitLog] | null {
    return [...this.byRun].find(([, log]) => log.keys.has(key)) ?? null
  }

  /** How many keys have an intent, in all runs. */
  get keys(): number {
    return [...this.byRun.values()].reduce((sum, log) => sum + log.keys.size, 0)
  }
}

/** The same store; what it accepts is logged. */
export const watched = (store: CheckpointStoreService, logs: RunLogs): CheckpointStoreService => {
  const { transact } = store
  const accept = (commit: Commit, inTransaction: boolean) => logs.of(commit.lease.runId)?.accept(commit, inTransaction)
  return {
    ...store,
    // Whoever creates it may be interrupted before it hears of that.
    createRun: (run) =>
      Effect.uninterruptible(Effect.tap(store.createRun(run), (made) => Effect.sync(() => logs.started(made.run)))),
    createChild: (child, parent) =>
      Effect.uninterruptible(
        Effect.tap(store.createChild(child, parent), (made) => Effect.sync(() => logs.started(made.run))),
      ),
    load: (...args) => Effect.tap(store.load(...args), (state) => Effect.sync(() => logs.of(args[1])?.read(state))),
    loadOpen: (...args) =>
      Effect.tap(store.loadOpen(...args), ({ effects }) =>
        Effect.sync(() => {
          for (const { path } of effects) logs.of(args[1])?.paths.add(path)
        }),
      ),
    claim: (request) =>
      Effect.tap(store.claim(request), (runs) =>
        Effect.sync(() => {
          for (const { fence, runId } of runs) {
            const log = logs.of(runId)
            if (log !== null) log.fence = Math.max(log.fence, fence)
          }
        }),
      ),
    commit: (batch) =>
      Effect.tap(store.commit(batch), (results) =>
        Effect.sync(() => {
          batch.forEach((commit, index) => {
            if (Either.isRight(results[index]!)) accept(commit, false)
          })
        }),
      ),
    ...(transact && {
      transact: <A, E>(...[limits, body]: Parameters<typeof transact<A, E>>) =>
        Effect.map(
          transact(limits, (access) =>
            Effect.map(body(access), (end) => {
              logs.of(end.commit.lease.runId)?.begins(end.commit)
              return { commit: end.commit, value: end }
            }),
          ),
          ({ at, value: { commit, value } }) => {
            accept(commit, true)
            return { at, value }
          },
        ),
    }),
  }
}
