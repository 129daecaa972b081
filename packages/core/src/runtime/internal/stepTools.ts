/** What the function of one attempt acts with. Each is made when somebody asks for it: most steps ask for nothing. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as Runtime from "effect/Runtime"
import * as Scope from "effect/Scope"
import type { AnyDataVersion } from "../../dsl/DataVersion.js"
import { CurrentStep, type CurrentStepService } from "../../dsl/internal/currentStep.js"
import { Ledger } from "../../dsl/internal/ledger.js"
import type { AnyOperation } from "../../dsl/Operation.js"
import type { RejectedOutput } from "../../dsl/StepOptions.js"
import type { PaidCall, PaidPromise } from "../../dsl/Usage.js"
import type { TransactionAccess } from "../../store/CheckpointDriver.js"
import { lazySignal, triedPromise, type LazySignal } from "./asynchrony.js"
import { contextOf, Seen, type OnUnreadable, type StepContext } from "./context.js"
import { readIn } from "./dataReads.js"
import type { Attempt } from "./decide.js"
import { emitterOf } from "./emitting.js"
import { primary } from "./errorDetails.js"
import type { Members } from "./lookedAt.js"
import type { OperationState } from "./operationState.js"
import { PaidCalls } from "./paid.js"
import { performIn } from "./perform.js"
import { partsAt, readerOf } from "./places.js"
import type { RunSession } from "./session.js"

type Body = Effect.Effect<unknown, unknown>

/** What cannot be read of what is committed parks the run, whatever the function makes of it. */
export const parkUnread =
  (session: RunSession, state: OperationState): OnUnreadable =>
  (step, error) => {
    const problem = `${error.message}; run '${session.run.runId}' was committed by other code`
    state.stop ??= { _tag: "Park", park: { reason: "IncompatibleCheckpoint", step, problem } }
  }

/** The members of a step's context, those aside that only some steps have. */
const memberNames = ["emit", "input", "results", "signal", "rejected", "paid"]

export class StepTools implements CurrentStepService, Members {
  readonly names: ReadonlyArray<string> = memberNames
  /** What the function has begun in promise style; each ends with the attempt. */
  private fibers: Array<Fiber.RuntimeFiber<any, any>> | null = null
  private seen: Seen | null = null
  private lazySignal: LazySignal | null = null
  private calls: PaidCalls | null = null
  private emitter: ((chunk: unknown) => void) | null = null
  private emitting: ((chunk: unknown) => void) | null = null

  constructor(
    private readonly session: RunSession,
    private readonly attempt: Attempt,
    private readonly state: OperationState,
    private readonly access: TransactionAccess | null,
  ) {}

  get signal(): LazySignal {
    return (this.lazySignal ??= lazySignal(() => {
      this.state.closed = true
      for (const fiber of this.fibers ?? []) fiber.unsafeInterruptAsFork(FiberId.none)
    }))
  }

  private get ledger(): PaidCalls {
    const { access, attempt, session, state } = this
    return (this.calls ??= new PaidCalls(session, attempt, state, access === null ? "step" : "transaction"))
  }

  perform(operation: AnyOperation, payload: unknown): Body {
    return performIn(this.session, this.attempt, this.state)(operation, payload)
  }

  read(version: AnyDataVersion, key: unknown): Body {
    return readIn(this.session, this.attempt, this.state, this.access)(version, key)
  }

  emit(chunk: unknown): void {
    this.emitter ??= emitterOf(this.session, this.attempt, this.state)
    this.emitter(chunk)
  }

  /** The output that the schema has refused last. */
  private rejected(): RejectedOutput | null {
    const { frame, path } = this.attempt
    const last = frame.attempts.get(path)?.findLast(({ kind }) => kind === "rejected")
    if (last === undefined) return null
    const raw: unknown = last.output === null ? undefined : JSON.parse(last.output)
    return { raw, issues: last.error.message, attempt: last.attempt }
  }

  /** `Usage.call` in promise style. */
  private paid(): PaidPromise {
    return (call, make) => {
      const made = triedPromise(make)
      return this.promise(this.session.runtime, this.ledger.paid(call as PaidCall, made))
    }
  }

  get onUnreadable(): OnUnreadable {
    return parkUnread(this.session, this.state)
  }

  private get lookable(): Seen {
    return (this.seen ??= new Seen(partsAt(this.session.placeOf(this.attempt), this.onUnreadable)))
  }

  look(name: string): unknown {
    switch (name) {
      case "input":
        return this.lookable.input
      case "results":
        return this.lookable.results
      case "signal":
        return this.signal.get()
      case "rejected":
        return this.rejected()
      case "emit":
        return (this.emitting ??= (chunk: unknown) => this.emit(chunk))
      default:
        return this.paid()
    }
  }

  /** The argument of the function. */
  context(): StepContext {
    const place = this.session.placeOf(this.attempt)
    return contextOf(this, place.isBare ? null : place.extras(readerOf(this.onUnreadable)))
  }

  /** An act in promise style. */
  promised<Args extends ReadonlyArray<any>>(
    act: (...args: Args) => Effect.Effect<unknown, unknown>,
  ): Effect.Effect<(...args: Args) => Promise<unknown>> {
    return Effect.map(
      Effect.runtime<never>(),
      (runtime) =>
        (...args: Args) =>
          this.promise(runtime, act(...args)),
    )
  }

  private promise<A>(runtime: Runtime.Runtime<never>, effect: Effect.Effect<A, unknown>): Promise<A> {
    const fiber = Runtime.runFork(runtime)(effect)
    ;(this.fibers ??= []).push(fiber)
    const promise = new Promise<A>((settle, reject) => {
      fiber.addObserver((exit) => {
        if (Exit.isSuccess(exit)) settle(exit.value)
        else reject(primary(exit.cause).error)
      })
    })
    // Who awaits it is told. For who does not, the attempt is: a rejection that nobody handles would end the process.
    promise.catch(() => {})
    return promise
  }

  /** With all that was begun in promise style: a function that did not wait for it is waited for, so that no outcome is lost. */
  withPromises(run: () => Body): Body {
    return Effect.flatten(
      Effect.zipLeft(
        Effect.exit(Effect.suspend(run)),
        Effect.suspend(() => Fiber.awaitAll(this.fibers ?? [])),
      ),
    ).pipe(Effect.onInterrupt(() => Fiber.interruptAll(this.fibers ?? [])))
  }

  /** A computation with what it may ask for. One finalizer for all that it leaves: its signal, and what it has acquired. */
  provide(computation: Body): Body {
    return Effect.flatMap(Scope.make(), (scope) =>
      this.session.attempted(
        this.attempt,
        Effect.zipRight(FiberRef.set(FiberRef.currentContext, this.services(scope)), computation),
        (exit) => {
          if (Exit.isInterrupted(exit)) this.signal.abort()
          return Scope.close(scope, exit)
        },
      ),
    )
  }

  private services(scope: Scope.CloseableScope): Context.Context<never> {
    const { access } = this
    const services = new Map(this.session.env.context.unsafeMap)
    if (access !== null) for (const [key, service] of access.services.unsafeMap) services.set(key, service)
    services.set(CurrentStep.key, this)
    services.set(Ledger.key, this.ledger)
    services.set(Scope.Scope.key, scope)
    return Context.unsafeMake<never>(services)
  }
}
