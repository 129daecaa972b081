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

/** Never ends and keeps no timer, unlike `Effect.never`: what a killed process leaves behind. */
export const forever: Effect.Effect<never> = Effect.async<never>(() => {})

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
  before: (method: string) => Effect.Effect<void, any>,
): CheckpointStoreService => {
  const wrap = (method: string, value: unknown): unknown =>
    typeof value === "function"
      ? (...args: ReadonlyArray<any>) => Effect.zipRight(before(method), Effect.suspend(() => (value as AnyEffectFn)(...args)))
      : Effect.isEffect(value)
        ? Effect.zipRight(before(method), value)
        : value
  return Object.fromEntries(
    Object.entries(store).map(([key, value]) => [key, key === "signals" ? value : wrap(key, value)]),
  ) as never
}

export type Reach = (point: FaultPoint, site: FaultSite) => Effect.Effect<void>

/** A worker that dies at a place of the test's choice: from then on no fiber of it goes on and no store call leaves it. */
export interface Mortal {
  readonly kill: () => void
  readonly isDead: () => boolean
  readonly store: CheckpointStoreService
  readonly faults: Layer.Layer<never>
}

export const makeMortal = (store: CheckpointStoreService, reach: Reach = () => Effect.void): Mortal => {
  let dead = false
  const gate = Effect.suspend(() => (dead ? forever : Effect.void))
  return {
    kill: () => void (dead = true),
    isDead: () => dead,
    store: intercepted(store, () => gate),
    faults: Layer.succeed(Faults, { reach: (point, site) => Effect.zipRight(reach(point, site), gate) }),
  }
}

/** Starts a worker whose life is the scope's. */
export const startWorker = (
  store: CheckpointStoreService,
  options: WorkerOptions<ReadonlyArray<AnyWorkflow>>,
  needs: Layer.Layer<any> = Layer.empty,
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
  needs: Layer.Layer<any> = Layer.empty,
) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* Scope.extend(startWorker(mortal.store, options, needs, mortal.faults), scope)
    return { close: Scope.close(scope, Exit.void) }
  })

/** One worker for the time of an effect. */
export const withWorker =
  (bench: Bench, workflows: ReadonlyArray<AnyWorkflow>, needs: Layer.Layer<any> = Layer.empty, options: object = {}) =>
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
