/** Runtimes with one planted fault each, as their stores and handlers see them: the explorer must find every one. */
import { NotPerformed } from "@cairn/core"
import type { CheckpointStoreService, Commit, EffectRecord, Handler, MemberOperation } from "@cairn/core"
import { Effect, Either } from "effect"
import type { Tamper } from "../../src/internal/tampering.js"

type Change = (store: CheckpointStoreService) => Partial<CheckpointStoreService>

const overStore = (change: Change): Tamper => ({
  store: (store) => ({ ...store, ...change(store) }),
  handler: (handler) => handler,
})

const overHandlers = (change: (handler: Handler, member: MemberOperation) => Partial<Handler>): Tamper => ({
  store: (store) => store,
  handler: (handler, member) => ({ ...handler, ...change(handler, member) }),
})

const called = (handler: Handler, ...args: Parameters<Handler["run"]>) =>
  handler.run(...args) as Effect.Effect<unknown, unknown>

const connectionLost = (error: unknown): boolean => (error as Error | null)?.name === "ConnectionLost"

/** What an operation came to is committed one commit after its step. */
const settlesApart = overStore((store) => {
  let late: Commit["effects"] = []
  return {
    commit: (batch) =>
      store.commit(
        batch.map((commit) => {
          const effects = [...late, ...commit.effects.filter(({ state }) => state === "intended")]
          late = commit.effects.filter(({ state }) => state !== "intended")
          return { ...commit, effects }
        }),
      ),
  }
})

/** A retry after a decline sends under the key that was declined. */
const reusesTheGeneration = overHandlers((handler) => ({
  run: (payload, context) =>
    called(handler, payload, { ...context, idempotencyKey: context.idempotencyKey.replace(/#\d+$/, "#0") }),
}))

/** A broken connection is taken for "it did not happen". */
const takesUnknownForFailure = overHandlers((handler) => ({
  run: (payload, context) =>
    Effect.mapError(called(handler, payload, context), (error) =>
      connectionLost(error) ? new NotPerformed({ problem: "the connection broke" }) : error,
    ),
}))

/** `checkFirst`: nobody is asked. */
const neverAsks = overHandlers(() => ({ check: () => Effect.succeed({ happened: false }) }))

/** What is sent once more is computed anew, and comes out otherwise. */
const recomputesPayloads = overHandlers((handler) => {
  let made: unknown = null
  return {
    run: (payload, context) =>
      Effect.suspend(() => {
        const again = made === context.idempotencyKey
        made = context.idempotencyKey
        return called(handler, again ? { ...(payload as object), cents: 1 } : payload, context)
      }),
  }
})

/** `recordFirst`: what was recorded is not read. */
const ignoresRecords = overStore((store) => {
  const unread = <E extends { readonly state: string }>(effect: E): E => ({
    ...effect,
    state: "intended",
    outcome: null,
  })
  return {
    loadOpen: (...args) =>
      Effect.map(store.loadOpen(...args), (open) => ({ ...open, effects: open.effects.map(unread) })),
    findEffect: (key) => Effect.map(store.findEffect(key), (effect) => (effect === null ? null : unread(effect))),
  }
})

/** `recordFirst`: nothing is recorded. */
const neverRecords = overStore(() => ({ recordOutcome: () => Effect.succeed(true) }))

/** An outcome is recorded only by who owns the run. */
const demandsTheFence = overStore((store) => ({
  recordOutcome: (row) =>
    Effect.flatMap(Effect.orDie(store.findRun(row.namespace, row.runId)), ({ claimToken }) =>
      claimToken === row.claimToken ? store.recordOutcome(row) : Effect.succeed(false),
    ),
}))

/** What an earlier owner has sent is not looked for. */
const forgetsIntents = overStore((store) => ({
  loadOpen: (...args) => Effect.map(store.loadOpen(...args), (open) => ({ ...open, effects: [] })),
}))

/** A run that fails is taken over, and nothing is taken back. */
const skipsCompensation = overStore((store) => ({
  load: (...args) =>
    Effect.map(store.load(...args), (state) =>
      state.run.fence < 2 || state.run.failure === null
        ? state
        : { ...state, steps: state.steps.map((step) => ({ ...step, idempotencyKey: null })) },
    ),
}))

/** A compensation of unknown outcome counts as done. */
const assumesCompensation = overHandlers((handler, { name }) =>
  name !== "payments.refund"
    ? {}
    : {
        run: (payload, context) =>
          Effect.catchIf(called(handler, payload, context), connectionLost, () => Effect.succeed({ id: "assumed" })),
      },
)

/** A compensation is sent under the key of what it takes back. */
const sharesTheKey = (): Tamper => {
  let charged = ""
  return overHandlers((handler, { name }) => ({
    run: (payload, context) => {
      if (name === "payments.charge") charged = context.idempotencyKey
      const key = name === "payments.refund" ? charged : context.idempotencyKey
      return called(handler, payload, { ...context, idempotencyKey: key })
    },
  }))
}

/** A run that sleeps is never woken. */
const sleepsForEver = overStore((store) => ({
  commit: (batch) =>
    store.commit(
      batch.map((commit) =>
        commit.run.status === "sleeping"
          ? { ...commit, run: { ...commit.run, status: "waiting", wakeInMs: null } }
          : commit,
      ),
    ),
}))

/** Commits of one run as one, as a worker's buffer joins them. */
const together = (first: Commit | null, last: Commit): Commit =>
  first === null
    ? last
    : {
        ...{ ...last, base: first.base },
        steps: [...first.steps, ...last.steps],
        effects: [...first.effects, ...last.effects],
        attempts: [...first.attempts, ...last.attempts],
      }

/** A barrier is skipped: such commits count as durable while they wait for the next one. */
const runsAheadOf = (isSkipped: (commit: Commit) => boolean): Tamper =>
  overStore((store) => {
    let waiting: Commit | null = null
    return {
      // A worker here executes one run, and each flush holds one commit.
      commit: ([last]) =>
        Effect.suspend(() => {
          const commit = together(waiting, last!)
          waiting = isSkipped(last!) ? commit : null
          return waiting === null ? store.commit([commit]) : Effect.map(store.now, (now) => [Either.right(now)])
        }),
    }
  })

/** An operation is sent before its intent, and what stands before it, are durable. */
const skipsTheBarrierBefore = runsAheadOf(({ effects }) => effects.some(({ state }) => state === "intended"))

/** What follows an operation begins before its outcome is durable. */
const skipsTheBarrierAfter = runsAheadOf(
  ({ run, effects }) => !run.release && effects.some(({ state }) => state !== "intended"),
)

/** Of what is written together only the last commit is. */
const writesTheLastAlone = overStore((store) => ({
  commit: (batch) =>
    store.commit(batch.map((commit) => ({ ...commit, steps: commit.steps.filter(({ seq }) => seq === commit.seq) }))),
}))

/** What is written together is written in the reverse order. */
const writesInReverse = overStore((store) => ({
  commit: (batch) =>
    store.commit(
      batch.map((commit) => {
        const numbers = commit.steps.map(({ seq }) => seq).reverse()
        return { ...commit, steps: commit.steps.map((step, index) => ({ ...step, seq: numbers[index]! })) }
      }),
    ),
}))

/** A flush that was not answered counts as not written: it is written again, under the numbers that come next. */
const renumbersRetries = overStore((store) => {
  let ahead = 0
  const renumbered = (commit: Commit): Commit => ({
    ...{ ...commit, base: commit.base + ahead, seq: commit.seq + ahead },
    steps: commit.steps.map((step) => ({ ...step, seq: step.seq + ahead })),
  })
  return {
    commit: (batch) =>
      Effect.suspend(() => store.commit(batch.map(renumbered))).pipe(
        Effect.tapError(() => Effect.sync(() => (ahead += batch[0]!.seq - batch[0]!.base))),
      ),
  }
})

/** Of a run that is canceled, what may have happened is looked at otherwise. */
const onceCanceled = (change: (effects: ReadonlyArray<EffectRecord>) => ReadonlyArray<EffectRecord>): Tamper =>
  overStore((store) => ({
    loadOpen: (namespace, runId, paths) =>
      Effect.gen(function* () {
        const open = yield* store.loadOpen(namespace, runId, paths)
        const { cancelAt } = yield* Effect.orDie(store.findRun(namespace, runId))
        return cancelAt === null ? open : { ...open, effects: change(open.effects) }
      }),
  }))

/** A canceled run takes an operation of unknown outcome for one that was not performed. */
const cancelsOverTheUnknown = onceCanceled((effects) =>
  effects.map((effect) => (effect.state === "intended" ? { ...effect, state: "notPerformed" } : effect)),
)

/** A canceled run takes back what is committed, and forgets what may have happened. */
const takesBackTheKnownAlone = onceCanceled((effects) => effects.filter(({ state }) => state !== "intended"))

/** Nobody hears that a run is to be canceled. */
const ignoresCancels = overStore((store) => ({
  load: (...args) => Effect.map(store.load(...args), (state) => ({ ...state, run: { ...state.run, cancelAt: null } })),
  findRun: (...args) => Effect.map(store.findRun(...args), (run) => ({ ...run, cancelAt: null })),
}))

/** What a transaction step wrote is committed by itself, its checkpoint with the commit after. */
const booksApart = overStore((store) => {
  let late: Commit["steps"] = []
  const withLate = (commit: Commit): Commit => {
    const steps = [...late.map((step) => ({ ...step, seq: commit.seq })), ...commit.steps]
    late = []
    return { ...commit, steps }
  }
  return {
    commit: (batch) => store.commit(batch.map(withLate)),
    transact: (limits, body) =>
      store.transact!(limits, (access) =>
        Effect.map(body(access), (end) => {
          const commit = withLate(end.commit)
          if (commit.run.status === "completed") return { ...end, commit }
          late = commit.steps
          return { ...end, commit: { ...commit, steps: [] } }
        }),
      ),
  }
})

/** A COMMIT that was not answered counts as rolled back: what was written is written again. */
const assumesRollback = overStore((store) => {
  let lost = false
  const again = new Set<string>()
  return {
    transact: (limits, body) =>
      store.transact!(limits, (access) =>
        Effect.map(body(access), (end) => ({
          ...end,
          // What is there already is not written twice: the rows of the step are.
          commit: { ...end.commit, steps: end.commit.steps.filter(({ path }) => !again.has(path)) },
        })),
      ).pipe(Effect.tapError((error) => Effect.sync(() => (lost ||= (error as Error).name === "StoreError")))),
    // The step that was committed last is what it looks for.
    loadSteps: (query) =>
      Effect.map(store.loadSteps(query), (steps) => {
        if (!lost) return steps
        lost = false
        const [hidden, ...rest] = steps
        if (hidden !== undefined) again.add(hidden.path)
        return rest
      }),
  }
})

export const runtimeMutants = {
  settlesApart,
  reusesTheGeneration,
  takesUnknownForFailure,
  neverAsks,
  recomputesPayloads,
  ignoresRecords,
  neverRecords,
  demandsTheFence,
  forgetsIntents,
  skipsCompensation,
  assumesCompensation,
  sharesTheKey: sharesTheKey(),
  sleepsForEver,
  skipsTheBarrierBefore,
  skipsTheBarrierAfter,
  writesTheLastAlone,
  writesInReverse,
  renumbersRetries,
  cancelsOverTheUnknown,
  takesBackTheKnownAlone,
  ignoresCancels,
}

export const transactionMutants = { booksApart, assumesRollback }
