/** Workers of this process, each with a store of its own, as a process would have it. */
import {
  CheckpointStore,
  Worker,
  type CompileError,
  type InvalidId,
  type StoreError,
  type WorkerOptions,
} from "@cairn/core"
import { Effect, Exit, Layer, Logger, LogLevel, Scope } from "effect"
import type { Place } from "./places.js"
import { chargesTo, clockOff, order, stalling } from "./workflows.js"

export interface InProcess {
  readonly by: string
  readonly clockMs?: number
  readonly options?: Partial<Omit<WorkerOptions<any>, "workflows">>
  readonly workflows?: ReadonlyArray<any>
  readonly faults?: Layer.Layer<never>
  /** Stands between worker and store. */
  readonly watch?: (store: CheckpointStore["Type"]) => CheckpointStore["Type"]
}

/** Starts a worker for as long as the scope lives, or until `stop`. */
export const startInProcess = (place: Place, { by, clockMs = 0, faults, options, watch, workflows }: InProcess) =>
  Effect.gen(function* () {
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope) => Scope.close(scope, Exit.void))
    const watched = Layer.effect(
      CheckpointStore,
      Effect.map(CheckpointStore, (service) => watch?.(service) ?? service),
    ).pipe(Layer.provide(place.store))
    const layer = Worker.layer({
      workflows: workflows ?? [order, stalling],
      lease: "1 second",
      pollInterval: "50 millis",
      ...options,
    }).pipe(
      Layer.provide(chargesTo(place.log, by)),
      Layer.provide(faults ?? Layer.empty),
      Layer.provide(watched),
      Layer.provide(Logger.minimumLogLevel(LogLevel.Error)),
      // The workflows of a test need no more than that.
    ) as Layer.Layer<Worker, CompileError | InvalidId | StoreError>
    yield* Layer.buildWithScope(layer, scope).pipe(Effect.withClock(clockOff(clockMs)))
    return { stop: Scope.close(scope, Exit.void) }
  })
