/** A store that can be watched and broken, workers that can be killed, and counted handlers: what runtime tests share. */
import { Effect, Exit, Layer, Logger, Scope } from "effect"
import { afterEach, beforeEach, expect } from "vitest"
import {
  CheckpointStore,
  Faults,
  fromDriver,
  MemoryDriver,
  Worker,
  type AnyWorkflow,
  type CheckpointDriver,
  type CheckpointStoreService,
  type CommitRows,
  type FaultPoint,
  type FaultSite,
  type WorkerOptions,
} from "../../../src/index.js"

/** Every row that was handed to the store, beside the store itself. */
export interface Bench {
  readonly driver: CheckpointDriver
  readonly store: CheckpointStoreService
  readonly commits: Array<CommitRows>
}

export const makeBench: Effect.Effect<Bench> = Effect.map(MemoryDriver.make(), (driver) => {
  const commits: Array<CommitRows> = []
  const watched: CheckpointDriver = {
    ...driver,
    commit: (batch) =>
      Effect.suspend(() => {
        commits.push(...batch)
        return driver.commit(batch)
      }),
  }
  return { driver: watched, store: fromDriver(watched), commits }
})

export const storeLayer = (store: CheckpointStoreService) => Layer.succeed(CheckpointStore, store)

type AnyEffectFn = (...args: ReadonlyArray<any>) => Effect.Effect<any, any>

/** The same store with something done before each call, by the method's name. */
export const intercepted = (
  store: CheckpointStoreService,
  before: (method: string, ...args: ReadonlyArray<any>) => Effect.Effect<void, any>,
): CheckpointStoreService => {
  const wrap = (method: string, value: unknown): unknown =>
    typeof value === "function"
      ? (...args: ReadonlyArray<any>) =>
          Effect.zipRight(
            before(method, ...args),
            Effect.suspend(() => (value as AnyEffectFn)(...args)),
          )
      : Effect.isEffect(value)
        ? Effect.zipRight(before(method), value)
        : value
  return Object.fromEntries(
    Object.entries(store).map(([key, value]) => [key, key === "signals" ? value : wrap(key, value)]),
  ) as never
}

export type Reach = (point: FaultPoint, site: FaultSite) => Effect.Effect<void>

/** A worker that stops at a place of the test's choice: no fiber of it goes on, and no store call leaves it. */
export interface Mortal {
  /** For good, or until `wake`. */
  readonly kill: () => void
  /** It goes on where it stopped, as a process does after SIGCONT. */
  readonly wake: () => void
  readonly store: CheckpointStoreService
  readonly faults: Layer.Layer<never>
}

export const makeMortal = (store: CheckpointStoreService, reach: Reach = () => Effect.void): Mortal => {
  const alive = Effect.unsafeMakeLatch(true)
  return {
    kill: () => Effect.runSync(alive.close),
    wake: () => Effect.runSync(alive.open),
    store: intercepted(store, () => alive.await),
    faults: Layer.succeed(Faults, { reach: (point, site) => Effect.zipRight(reach(point, site), alive.await) }),
  }
}

/** For workflows that need nothing. */
export const nothing = Layer.empty as Layer.Layer<any>

/** Starts a worker whose life is the scope's. */
export const startWorker = (
  store: CheckpointStoreService,
  options: WorkerOptions<ReadonlyArray<AnyWorkflow>>,
  needs: Layer.Layer<any> = nothing,
  faults: Layer.Layer<never> = Layer.empty,
) =>
  Effect.gen(function* () {
    const layer = Worker.layer(options).pipe(
      Layer.provide(needs),
      Layer.provide(faults),
      Layer.provide(storeLayer(store)),
    ) as Layer.Layer<Worker, any>
    const context = yield* Layer.build(layer)
    return yield* Effect.provide(Worker, context)
  })

/** Starts a worker that nobody closes: a killed process runs no finalizers. */
export const startDoomed = (
  mortal: Mortal,
  options: WorkerOptions<ReadonlyArray<AnyWorkflow>>,
  needs: Layer.Layer<any> = nothing,
) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const worker = yield* Scope.extend(startWorker(mortal.store, options, needs, mortal.faults), scope)
    return { worker, close: Scope.close(scope, Exit.void) }
  })

/** One worker for the time of an effect. */
export const withWorker =
  (bench: Bench, workflows: ReadonlyArray<AnyWorkflow>, needs: Layer.Layer<any> = nothing, options: object = {}) =>
  <A, E>(effect: Effect.Effect<A, E, CheckpointStore>): Effect.Effect<A, E> =>
    Effect.zipRight(startWorker(bench.store, { workflows, ...options }, needs), effect).pipe(
      Effect.scoped,
      Effect.provide(storeLayer(bench.store)),
    ) as Effect.Effect<A, E>

export const quiet = Logger.remove(Logger.defaultLogger)

/** No test may leave a rejection that nobody handles. */
export const refuseUnhandled = (): void => {
  const seen: Array<unknown> = []
  const listen = (reason: unknown): void => void seen.push(reason)
  beforeEach(() => {
    seen.length = 0
    process.on("unhandledRejection", listen)
  })
  afterEach(async () => {
    // Node reports a rejection after the microtasks of the turn in which it happened.
    await new Promise((resolve) => setImmediate(resolve))
    process.off("unhandledRejection", listen)
    expect(seen).toEqual([])
  })
}
