/** A worker that stops at a place of the explorer's choice: no fiber of it goes on, and no store call leaves it. */
import {
  CheckpointStore,
  Faults,
  StoreError,
  Worker,
  type AnyWorkflow,
  type CheckpointStoreService,
  type FaultPoint,
  type FaultSite,
  type RunRecord,
  type WorkerOptions,
} from "@cairn/core"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { steeredRef, type Steered } from "./steering.js"
import type { Tamper } from "./tampering.js"
import type { LossyCall } from "./trouble.js"

/** What the explorer does at a worker's boundaries. */
export interface Boundaries {
  readonly reached: (worker: MortalWorker, point: FaultPoint, site: FaultSite) => Effect.Effect<void>
  readonly claimed: (worker: MortalWorker) => void
  readonly calls: (worker: MortalWorker, name: string, args: ReadonlyArray<unknown>) => Effect.Effect<void>
  readonly steered: (worker: MortalWorker, of: Steered) => void
}

const ackLost = (operation: string): StoreError =>
  new StoreError({ reason: "Unavailable", operation, problem: "the connection broke before the answer came" })

/** The worker that a fiber belongs to. */
const fiberOf = FiberRef.unsafeMake<MortalWorker | null>(null)

/** Whether a fiber runs within a transaction of the database. */
export const inTransaction = FiberRef.unsafeMake(false)

export class MortalWorker {
  private readonly alive = Effect.unsafeMakeLatch(true)
  private scope: Scope.CloseableScope | null = null
  private starting: Fiber.RuntimeFiber<unknown, unknown> | null = null
  private service: Context.Tag.Service<typeof Worker> | null = null
  state: "alive" | "killed" | "stalled" = "alive"
  /** The next call of this name is answered into the void. */
  losesAckOf: LossyCall | null = null
  losesOperation: "lostAnswer" | "lostRequest" | null = null
  /** The highest fence under which the store has refused this worker, by run. */
  private readonly refused = new Map<string, number>()
  failure: unknown = null
  /** The fence under which it holds each run, as far as it knows. */
  readonly fences = new Map<string, number>()

  constructor(private readonly tamper: Tamper) {}

  private buried = false
  private leaseMs = 0

  private readonly outside: Effect.Effect<void> = Effect.suspend(() =>
    Effect.zipRight(
      this.alive.await,
      Effect.suspend(() => (this.buried ? Effect.interrupt : Effect.void)),
    ),
  )

  /**
   * Whoever dies within a transaction loses the connection, and the database rolls it back. Whoever stalls may hold what
   * all others wait for (a SQLite file): nobody takes over from it, and it wakes by itself.
   */
  private readonly within: Effect.Effect<void> = Effect.suspend(() => {
    if (this.state === "killed" || this.buried) return Effect.interrupt
    if (this.state === "alive") return Effect.void
    const overslept = Effect.map(Effect.sleep(2 * this.leaseMs), () => this.wake())
    return Effect.raceFirst(this.alive.await, overslept)
  })

  readonly awake: Effect.Effect<void> = Effect.flatMap(FiberRef.get(inTransaction), (held) =>
    held ? this.within : this.outside,
  )

  /** Whether the store has told this worker that a run is another's. */
  hasLost(runId: string, fence: number): boolean {
    return (this.refused.get(runId) ?? 0) >= fence
  }

  /**
   * For what begins without any pause between it and a check of the lease: where another fiber of the worker was struck in just
   * that moment, it began before a stall, and not after it.
   */
  readonly underWay: Effect.Effect<void> = Effect.suspend(() => (this.state === "stalled" ? Effect.void : this.awake))

  stop(state: "killed" | "stalled"): void {
    this.state = state
    this.alive.unsafeClose()
  }

  wake(): void {
    // One that woke by itself may have been killed since.
    if (this.state !== "stalled") return
    this.state = "alive"
    this.alive.unsafeOpen()
  }

  /** A store as this worker reaches it. */
  private through(store: CheckpointStoreService, boundaries: Boundaries): CheckpointStoreService {
    const call = <A, E>(
      name: string,
      effect: () => Effect.Effect<A, E>,
      args: ReadonlyArray<unknown> = [],
    ): Effect.Effect<A, E | StoreError> =>
      Effect.gen(this, function* () {
        yield* this.awake
        yield* boundaries.calls(this, name, args)
        yield* this.awake
        const value = yield* effect()
        if (name === "claim" && (value as ReadonlyArray<unknown>).length > 0) {
          for (const { fence, runId } of value as ReadonlyArray<RunRecord>) this.fences.set(runId, fence)
          boundaries.claimed(this)
        }
        yield* this.awake
        if (this.losesAckOf !== (name === "transact" ? "commit" : name)) return value
        this.losesAckOf = null
        return yield* ackLost(name)
      })
    const wrapped = Object.entries(store).map(([name, value]): [string, unknown] => {
      if (typeof value === "function") {
        return [name, (...args: ReadonlyArray<unknown>) => call(name, () => (value as any)(...args), args)]
      }
      return [name, Effect.isEffect(value) ? call(name, () => value as Effect.Effect<unknown>) : value]
    })
    const all = Object.fromEntries(wrapped) as unknown as CheckpointStoreService
    const { transact } = all
    return {
      ...all,
      ...(transact && {
        transact: <A, E>(...[limits, body]: Parameters<typeof transact<A, E>>) =>
          transact(limits, (access) => Effect.locally(body(access), inTransaction, true)).pipe(
            // Dead within the transaction: what becomes of the step is for nobody to see.
            Effect.exit,
            Effect.zipLeft(this.outside),
            Effect.flatten,
          ),
      }),
      commit: (batch) =>
        Effect.tap(all.commit(batch), (results) =>
          Effect.sync(() => {
            batch.forEach(({ lease }, index) => {
              if (Either.isRight(results[index]!)) return
              this.refused.set(lease.runId, Math.max(this.refused.get(lease.runId) ?? 0, lease.fence))
            })
          }),
        ),
    }
  }

  /** Starts it, without waiting: it may be struck before it has begun. */
  start(
    store: CheckpointStoreService,
    options: WorkerOptions<ReadonlyArray<AnyWorkflow>>,
    needs: Context.Context<any>,
    boundaries: Boundaries,
  ): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const scope = yield* Scope.make()
      this.scope = scope
      this.leaseMs = Duration.toMillis(options.lease ?? 0)
      const faults = Layer.succeed(Faults, {
        // Who is dead, or asleep, reaches nothing: what was struck may have been another fiber of its worker.
        reach: (point, site) =>
          this.awake.pipe(
            Effect.zipRight(Effect.suspend(() => boundaries.reached(this, point, site))),
            Effect.zipRight(this.awake),
          ),
      })
      const layer = Worker.layer(options).pipe(
        Layer.provide(Layer.succeedContext(needs)),
        Layer.provide(faults),
        Layer.provide(Layer.succeed(CheckpointStore, this.tamper.store(this.through(store, boundaries)))),
      ) as Layer.Layer<Worker, unknown>
      this.starting = yield* Layer.build(layer).pipe(
        Effect.map((context) => (this.service = Context.get(context, Worker))),
        Scope.extend(scope),
        // A worker that could not start is replaced, as a supervisor would.
        Effect.catchAllCause((cause) =>
          Effect.sync(() => {
            this.failure = cause
            this.state = "killed"
          }),
        ),
        Effect.forkDaemon,
        // Every fiber that the worker starts inherits it.
        Effect.locally(fiberOf, this),
        Effect.locally(steeredRef, (of: Steered) => boundaries.steered(this, of)),
      )
    })
  }

  readonly running: Effect.Effect<ReadonlyArray<string>> = Effect.suspend(() =>
    this.service === null ? Effect.succeed([]) : this.service.running,
  )

  /**
   * Ends it for good. One that lives stops as workers do. One that is dead runs no finalizers that matter: its fibers,
   * which the runtime would keep for ever, are interrupted, and no call of theirs reaches the store.
   */
  readonly end: Effect.Effect<void> = Effect.suspend(() => {
    if (this.state === "alive" && this.scope !== null) {
      return Effect.zipRight(
        this.starting === null ? Effect.void : Effect.asVoid(Fiber.await(this.starting)),
        Scope.close(this.scope, Exit.void),
      )
    }
    this.buried = true
    this.alive.unsafeOpen()
    for (const fiber of Fiber.unsafeRoots()) {
      if (fiber.getFiberRef(fiberOf) === this) fiber.unsafeInterruptAsFork(FiberId.none)
    }
    return Effect.void
  })
}
