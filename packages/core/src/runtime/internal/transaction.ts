/**
 * Transaction steps: the function runs inside a transaction of the store's database, and its commit is written in it.
 *
 * - X2, X3: the gate stands inside the transaction, before the commit. A body that fails, an output that is refused and a
 *   commit of somebody who is no owner any more leave nothing behind.
 * - X8: the function has a third of the lease at most: for so long it holds what heartbeats may need as well.
 * - Whether a COMMIT that was not answered has happened is known before anything else is done: a commit of the same run
 *   waits for the first one, and the step's record says which of them it was.
 */
import * as Effect from "effect/Effect"
import { needsTransactions } from "../../model/DiagnosticCode.js"
import { LeaseLost, StepMisuse, type StoreError } from "../../model/Errors.js"
import type { TransactionAccess } from "../../store/CheckpointDriver.js"
import { runAttempt, type AttemptEnd } from "./attempt.js"
import { successParts } from "./attemptEnds.js"
import { dataScope, isDataScope } from "./dataNotes.js"
import type { Attempt } from "./decide.js"
import type { Failure, Turn } from "./leave.js"
import { loadWindow } from "./loading.js"
import { noOperation } from "./operationState.js"
import { prefixOf, scopeOf } from "./paths.js"
import type { RunSession } from "./session.js"
import { asEffect } from "./soon.js"
import { transactionTimeoutMs } from "./transactionLimits.js"
import { changed } from "./window.js"

/** What became of an attempt: durable, with its turn of the loop, or an end that left nothing in the database. */
export type TransactionTurn =
  | { readonly _tag: "Committed"; readonly turn: Turn }
  | { readonly _tag: "RolledBack"; readonly end: Exclude<AttemptEnd, { readonly _tag: "Passed" }> }

class RolledBack {
  readonly _tag = "RolledBack"
  constructor(readonly end: Exclude<AttemptEnd, { readonly _tag: "Passed" }>) {}
}

/** Tries after the function has run, before trouble of the store counts as the attempt's failure: it may be to blame. */
const maxTries = 8

const turnOf = (session: RunSession): Turn => (session.status === "completed" ? { _tag: "Final" } : null)

const committedTurn = (session: RunSession, attempt: Attempt, durationMs: number) =>
  Effect.gen(function* () {
    yield* session.reach("afterCommit", attempt.path, attempt.attempt)
    yield* asEffect(session.env.onProgress(durationMs))
    return { _tag: "Committed", turn: turnOf(session) } as const
  })

/**
 * Finds out what became of a COMMIT that was not answered. Another commit under the same fence waits for the lock that the
 * transaction holds, and takes its place if it is gone; then the records tell.
 */
const settle = (session: RunSession, path: string): Effect.Effect<boolean, Failure> =>
  Effect.gen(function* () {
    yield* session.commit({ run: session.running(path) }, "inTransaction")
    const { namespace, runId } = session.run
    const scope = scopeOf(prefixOf(path))
    const scopes = [scope, dataScope(scope)]
    const query = { namespace, runId, scopes, newestFirst: true, after: null, limit: null, withResults: true }
    const run = yield* session
      .persist(session.env.store.findRun(namespace, runId))
      .pipe(Effect.catchTag("RunNotFound", () => Effect.fail(session.leaseLost())))
    const steps = yield* session.persist(session.env.store.loadSteps(query))
    const record = steps.find((step) => step.path === path)
    if (record === undefined) return false
    session.note(record)
    for (const step of steps) if (isDataScope(step.scope)) session.note(step)
    if (session.window) yield* loadWindow(session)
    session.status = run.status
    return true
  }).pipe(Effect.uninterruptible)

/** Lets the function run, gates what it gives, and says what is to be committed. */
const bodyOf = (session: RunSession, attempt: Attempt, access: TransactionAccess) =>
  Effect.gen(function* () {
    const state = noOperation()
    const end = yield* asEffect(runAttempt(session, attempt, state, access))
    if (end._tag !== "Passed") return yield* Effect.fail(new RolledBack(end))
    const { changes } = state
    const window =
      changes === null
        ? null
        : yield* Effect.mapError(
            changed(session, attempt, changes, end.output.text),
            (refused) => new RolledBack(refused),
          )
    const parts = yield* asEffect(successParts(session, attempt, end, state, window))
    yield* session.reach("beforeCommit", attempt.path, attempt.attempt)
    // The guard refuses it in any case; a lease that has ended need not ask.
    if (session.env.leaseRemainingMs() <= 0) {
      return yield* Effect.fail(new RolledBack({ _tag: "Stopped", stop: { _tag: "Lost", error: session.leaseLost() } }))
    }
    const commit = session.next(parts)
    return { commit, value: { commit, durationMs: end.durationMs } }
  })

const failed = (error: unknown): TransactionTurn => ({
  _tag: "RolledBack",
  end: { _tag: "Failed", error, defect: false },
})

/**
 * Runs one attempt of a transaction step, and commits it if it passes.
 *
 * *Errors.* `LeaseLost`, and `StoreError` where the store failed for longer than the lease could bear. Nothing of the
 * attempt is there then, or all of it.
 */
export const runTransaction = (session: RunSession, attempt: Attempt): Effect.Effect<TransactionTurn, Failure> =>
  Effect.suspend(() => {
    const { env } = session
    const { node } = attempt
    const { transact } = env.store
    if (transact === undefined) {
      // A worker refuses such a workflow when it starts.
      const problem = needsTransactions(node.name, env.store.capabilities.name)
      const error = new StepMisuse({ step: node.name, code: "CRN106", problem })
      return Effect.succeed<TransactionTurn>({
        _tag: "RolledBack",
        end: { _tag: "Stopped", stop: { _tag: "Misuse", error } },
      })
    }
    if (env.leaseRemainingMs() <= 0) return Effect.fail(new LeaseLost(session.lease))
    const limits = { timeoutMs: transactionTimeoutMs(node, env.leaseMs) }
    let tries = 0
    /** Set once the body has ended well: from there on the COMMIT may be under way. */
    let ended = false

    let trouble: StoreError | null = null

    const fresh = transact(limits, (access) =>
      Effect.suspend(() => {
        tries += 1
        return bodyOf(session, attempt, access)
      }).pipe(Effect.tap(() => Effect.sync(() => (ended = true)))),
    ).pipe(
      Effect.flatMap(({ at, value }) =>
        Effect.zipRight(
          Effect.sync(() => session.transacted(value.commit, at)),
          committedTurn(session, attempt, value.durationMs),
        ),
      ),
      Effect.catchTags({
        RolledBack: ({ end }) => Effect.succeed<TransactionTurn>({ _tag: "RolledBack", end }),
        TransactionAborted: (error) => Effect.succeed(failed(error)),
        StoreError: (error) => {
          trouble = error
          return !ended && error.isRetryable && tries >= maxTries ? Effect.succeed(failed(error)) : Effect.fail(error)
        },
      }),
    )

    const once: Effect.Effect<TransactionTurn, Failure> = Effect.suspend(() =>
      // Nothing is tried again before it is known what became of the last try.
      ended
        ? Effect.flatMap(settle(session, attempt.path), (isThere): Effect.Effect<TransactionTurn, Failure> => {
            if (isThere) return committedTurn(session, attempt, 0)
            ended = false
            return tries >= maxTries ? Effect.succeed(failed(trouble)) : fresh
          })
        : fresh,
    )
    return session.inTurn(Effect.zipRight(session.barrier(), session.persist(once)))
  })
