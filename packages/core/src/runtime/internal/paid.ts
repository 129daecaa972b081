/**
 * Paid calls of one attempt.
 *
 * - X11: that a call begins is durable before it does, with what it may cost; what it has cost is written once, as soon as it is
 *   known, and whatever becomes of the attempt. A call that a crash cuts off stays begun: its cost is unknown, and reported so.
 * - X6: what a call has cost is written also when the run is somebody else's by then.
 * - A call without room in a budget is not made: the attempt ends, and the run waits before it.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { randomUUID } from "node:crypto"
import type { LedgerService } from "../../dsl/internal/ledger.js"
import type { PaidCall } from "../../dsl/Usage.js"
import { paidInTransaction } from "../../model/DiagnosticCode.js"
import { StepMisuse, type LeaseLost, type StoreError } from "../../model/Errors.js"
import { storableText } from "../../model/internal/storableText.js"
import { endOf, unknownEnd, type CallEnd, type Prices, type UsageAmounts } from "../../model/Usage.js"
import type { BeginCallResult, Counter, NewCallRow } from "../../store/CallRows.js"
import type { Attempt } from "./decide.js"
import { primary } from "./errorDetails.js"
import { lost, stopWith, type OperationState } from "./operationState.js"
import { prefixOf, scopeOf, templateOf } from "./paths.js"
import type { RunSession } from "./session.js"

const dayMs = 86_400_000

/** What is in flight settles in seconds: looked at again after so long, at first. */
const soonestMs = 250
const latestMs = 60_000

/** A call that was begun, and then not made. */
const notMade: CallEnd = { ...unknownEnd, state: "known", microDollars: 0 }

type Refused = Extract<BeginCallResult, { readonly _tag: "Refused" }>

type Counters = NewCallRow["counters"]

/** The runs above this one, each with its budget: what a child spends is spent by its parents, too. */
const runCounters = (session: RunSession): Effect.Effect<Counters, LeaseLost | StoreError> =>
  Effect.gen(function* () {
    const { budgets, store } = session.env
    const counters: Array<Counters[number]> = []
    let run: Pick<typeof session.run, "runId" | "parentRunId" | "workflow" | "version"> = session.run
    for (;;) {
      const limit = budgets.of(run)?.run ?? null
      counters.push({ kind: "run", name: run.runId, limit })
      const parent = run.parentRunId
      if (parent === null || counters.some(({ name }) => name === parent)) return counters
      const found = yield* session
        .persist(store.findRun(session.lease.namespace, parent))
        .pipe(Effect.catchTag("RunNotFound", () => Effect.succeed(null)))
      if (found === null) return counters
      run = found
    }
  })

/** What a call of this run is counted in. Read once: it never changes. */
const countersOf = (session: RunSession): Effect.Effect<Counters, LeaseLost | StoreError> =>
  Effect.suspend(() => {
    if (session.counters !== null) return Effect.succeed(session.counters)
    const { budgets } = session.env
    const { workflow } = session.run
    return Effect.map(runCounters(session), (runs) => {
      session.counters = [
        ...runs,
        { kind: "workflow", name: workflow, limit: budgets.of(session.run)?.day ?? null },
        { kind: "namespace", name: "", limit: budgets.day },
      ]
      return session.counters
    })
  })

const shown = (micros: number): string => `$${(micros / 1e6).toFixed(6).replace(/(\.\d{2}\d*?)0+$/, "$1")}`

const whose = ({ kind, name }: Counter, session: RunSession): string => {
  if (kind === "namespace") return `today's budget of namespace '${session.lease.namespace}'`
  if (kind === "workflow") return `today's budget of workflow '${name}'`
  return name === session.run.runId ? "the run's budget" : `the budget of run '${name}', which this one is a child of,`
}

const problemOf = (session: RunSession, { counter, limit, reserved, spent }: Refused, atMost: number | null) => {
  const need = atMost === null ? "" : `; the next paid call may cost up to ${shown(atMost)}`
  const held = reserved === 0 ? "" : ` and ${shown(reserved)} reserved for calls whose cost is not known`
  const then =
    counter.kind === "run"
      ? "raise it and resume the run"
      : "the run goes on when the day is over (UTC); to go on before, raise it and resume the run"
  return `${whose(counter, session)} of ${shown(limit)} has ${shown(spent)} spent${held}${need}: ${then}`
}

/** What a callback of the user tells of a call; nothing where it throws, or gives what cannot be read. */
const told = (prices: Prices, model: string, tell: () => UsageAmounts | null | undefined): CallEnd => {
  try {
    return endOf(prices, model, tell())
  } catch {
    return endOf(prices, model, null)
  }
}

/** The answer is worth more than its account: where that cannot be written, the call stays one of unknown cost. */
const untroubled =
  ({ path }: Attempt) =>
  <A>(effect: Effect.Effect<A, LeaseLost | StoreError>): Effect.Effect<void> =>
    Effect.catchAll(Effect.asVoid(effect), (error) =>
      Effect.logWarning(`what a paid call of step '${path}' has cost could not be recorded`, error),
    )

export class PaidCalls implements LedgerService {
  constructor(
    private readonly session: RunSession,
    private readonly attempt: Attempt,
    private readonly state: OperationState,
    private readonly where: "step" | "transaction" | "handler",
  ) {}

  paid<A, E, R>(call: PaidCall, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    const { attempt, session } = this
    const { prices } = session.env
    return Effect.uninterruptibleMask((restore) =>
      Effect.gen(this, function* () {
        const row = yield* restore(this.begin(call))
        yield* restore(session.reach("beforeCall", attempt.path, attempt.attempt)).pipe(
          Effect.onInterrupt(() => this.end(row, notMade)),
        )
        const exit = yield* Effect.exit(restore(effect))
        yield* session.reach("afterCall", attempt.path, attempt.attempt)
        const end = told(prices, call.model, () =>
          Exit.isSuccess(exit) ? call.usage(exit.value) : call.failed?.(primary(exit.cause).error),
        )
        yield* this.end(row, end)
        yield* restore(session.reach("afterUsage", attempt.path, attempt.attempt))
        return yield* exit
      }),
    )
  }

  spent(model: string, amounts: UsageAmounts): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const row = yield* this.row(model, null, endOf(this.session.env.prices, model, amounts))
      yield* this.session.persist(this.session.env.store.beginCall(row))
    }).pipe(untroubled(this.attempt), Effect.uninterruptible)
  }

  private row(
    model: string,
    atMost: number | null,
    end: CallEnd | null,
  ): Effect.Effect<NewCallRow, LeaseLost | StoreError> {
    const { attempt, session, where } = this
    const { claimToken, fence, namespace, runId } = session.lease
    const { path } = attempt
    if (where === "transaction") {
      const { name } = attempt.node
      const error = new StepMisuse({ step: name, code: "CRN108", problem: paidInTransaction(name) })
      return stopWith(this.state, { _tag: "Misuse", error })
    }
    return Effect.map(countersOf(session), (counters) => ({
      namespace,
      runId,
      // In the order in which they begin, also within a millisecond.
      callId: `${String(session.callCount++).padStart(6, "0")}-${randomUUID()}`,
      scope: scopeOf(prefixOf(path)),
      path,
      step: templateOf(path),
      attempt: attempt.attempt,
      fence,
      claimToken,
      model: storableText(model),
      atMost,
      // An operation that has begun is brought to its end, whatever that costs; and what was paid already is written, room or not.
      counters:
        where === "handler" || end !== null ? counters.map((counter) => ({ ...counter, limit: null })) : counters,
      end,
    }))
  }

  /** What the call costs at most; null where that is not known. */
  private atMost({ atMost, model }: PaidCall): number | null {
    if (atMost === undefined) return null
    const { prices } = this.session.env
    return endOf(prices, model, atMost).microDollars
  }

  private begin(call: PaidCall): Effect.Effect<NewCallRow> {
    return Effect.gen(this, function* () {
      const { env } = this.session
      const row = yield* this.row(call.model, this.atMost(call), null)
      const result = yield* (
        this.session
          .persist(env.store.beginCall(row))
          // It may be there all the same; nothing was called.
          .pipe(Effect.onInterrupt(() => this.end(row, notMade)))
      )
      if (result._tag === "Begun") {
        if (env.leaseRemainingMs() > 0) return row
        yield* this.end(row, notMade)
        return yield* Effect.fail(this.session.leaseLost())
      }
      return yield* result._tag === "Lost" ? Effect.fail(this.session.leaseLost()) : this.refused(row, result)
    }).pipe(Effect.catchAll((error) => this.notBegun(error)))
  }

  /** An account that cannot be read is there for the next attempt as well: given back, the run would ask for it again and again. */
  private notBegun(error: LeaseLost | StoreError): Effect.Effect<never> {
    if (error._tag !== "StoreError" || error.reason !== "Corrupt") return lost(this.state)(error)
    const park = { reason: "CommitRefused", step: this.attempt.path, problem: error.message } as const
    return stopWith(this.state, { _tag: "Park", park })
  }

  /** Calls in flight may leave room as they end; what nobody is left to tell does not. */
  private refused({ atMost }: NewCallRow, result: Refused): Effect.Effect<never, LeaseLost | StoreError> {
    const { attempt, session, state } = this
    return Effect.gen(function* () {
      const { counter, limit, reserved, spent, waiting } = result
      const roomThen = limit - spent - (reserved - waiting)
      if (waiting > 0 && roomThen > 0 && (atMost ?? 0) <= roomThen) {
        const times = session.outOfRoom.get(attempt.path) ?? 0
        session.outOfRoom.set(attempt.path, times + 1)
        return yield* stopWith(state, {
          _tag: "Later",
          delayMs: Math.min(latestMs, soonestMs * 2 ** Math.min(times, 10)),
        })
      }
      const park = {
        reason: "BudgetExceeded",
        step: attempt.path,
        problem: problemOf(session, result, atMost),
      } as const
      if (counter.kind === "run") return yield* stopWith(state, { _tag: "Park", park })
      const now = yield* session.persist(session.env.store.now)
      return yield* stopWith(state, { _tag: "Park", park, wakeInMs: dayMs - (now % dayMs) })
    })
  }

  /** It was paid for: no interruption comes between, and it is written whoever owns the run by then. */
  private end({ callId, claimToken, counters, namespace, runId }: NewCallRow, end: CallEnd): Effect.Effect<void> {
    const { store } = this.session.env
    return this.session
      .persist(store.endCall({ namespace, runId, callId, claimToken, counters, end }))
      .pipe(untroubled(this.attempt), Effect.uninterruptible)
  }
}
