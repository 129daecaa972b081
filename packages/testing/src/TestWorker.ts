/** A worker over a store in memory, for tests of one's own workflows. */
import {
  Worker,
  MemoryStore,
  type AnyWorkflow,
  type CheckpointStore,
  type CompileError,
  type InvalidId,
} from "@cairn/core"
import type { ResultError, RunHandle, StoreError, WorkerOptions } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"

/**
 * Options of a test's worker: those of every worker, and what its workflows need.
 *
 * @category options
 * @since 0.1.0
 */
export interface TestWorkerOptions<Ws extends ReadonlyArray<AnyWorkflow>> extends WorkerOptions<Ws> {
  /** Handlers and services: `Layer.mergeAll(ChargeCard.toLayer(..), ..)`. */
  readonly handlers?: Layer.Layer<any>
  /** A store in memory unless given. */
  readonly store?: Layer.Layer<CheckpointStore, StoreError>
}

/** Nobody takes over from a single worker, so that it beats and looks around rarely: months pass in few jumps. */
const rarely = { lease: "1 day", pollInterval: "1 hour", drain: 0 } as const

/**
 * A worker for tests, in virtual time.
 *
 * @example
 * ```ts
 * import { Cairn, Workflow } from "@cairn/core"
 * import { TestWorker, VirtualClock } from "@cairn/testing"
 * import { Effect, Schema } from "effect"
 *
 * let tries = 0
 * const patient = Workflow.make("patient", { version: 1, input: Schema.Null })
 *   .step("try", { effects: [], output: Schema.Number, retry: { times: 1, delay: "30 days" } }, () =>
 *     ++tries === 1 ? Effect.fail(new Error("come back next month")) : Effect.succeed(tries))
 *   .output(Schema.Number, ({ results }) => results.try)
 *   .compile()
 *
 * const program = Effect.gen(function* () {
 *   const handle = yield* Cairn.start(patient, null)
 *   return yield* TestWorker.result(handle)
 * }).pipe(Effect.provide(TestWorker.layer({ workflows: [patient] })), VirtualClock.run)
 *
 * await Effect.runPromise(program)
 * // => 2
 * ```
 *
 * @category layers
 * @since 0.1.0
 */
export const TestWorker = {
  /** Worker and store. It beats once in hours and looks for due runs once an hour, by whatever clock the test runs. */
  layer: <const Ws extends ReadonlyArray<AnyWorkflow>>(
    options: TestWorkerOptions<Ws>,
  ): Layer.Layer<Worker | CheckpointStore, CompileError | InvalidId | StoreError> => {
    const { handlers, store, ...worker } = options
    return Worker.layer({ ...rarely, ...worker } as WorkerOptions<ReadonlyArray<AnyWorkflow>>).pipe(
      Layer.provide((handlers ?? Layer.empty) as Layer.Layer<never>),
      Layer.provideMerge(store ?? MemoryStore.layer),
    ) as Layer.Layer<Worker | CheckpointStore, CompileError | InvalidId | StoreError>
  },
  /** Waits for a run's end like `handle.result`, but looks ever more rarely: a month costs some hundred looks. */
  result: <W extends AnyWorkflow>(
    handle: RunHandle<W>,
  ): Effect.Effect<Effect.Effect.Success<RunHandle<W>["result"]>, ResultError<W>> =>
    Effect.gen(function* () {
      for (let pollMs = 10; ; pollMs = Math.min(3_600_000, pollMs * 2)) {
        const { result } = yield* handle.poll
        if (Option.isSome(result)) return yield* result.value
        yield* Effect.sleep(pollMs)
      }
    }),
} as const
