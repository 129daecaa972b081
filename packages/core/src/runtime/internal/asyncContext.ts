/**
 * In whose async context a worker runs (field case P137): in that of whoever has started it. A fiber goes on wherever somebody wakes
 * it, and who starts a run, sends a signal or ends another run does that in a context of its own, which is no affair of a step.
 *
 * Every fiber of a worker, and all that they fork, waits for its turns at one scheduler: that is where the context is entered, and
 * not for each function that a user has given.
 */
import type { RuntimeFiber } from "effect/Fiber"
import * as FiberRef from "effect/FiberRef"
import * as Layer from "effect/Layer"
import type * as Scheduler from "effect/Scheduler"
import { AsyncResource } from "node:async_hooks"

type Fiber = RuntimeFiber<unknown, unknown>

class InContext implements Scheduler.Scheduler {
  /** In the context of whoever makes it. */
  private readonly context = new AsyncResource("cairn.worker")

  constructor(private readonly outer: Scheduler.Scheduler) {}

  shouldYield(fiber: Fiber): number | false {
    return this.outer.shouldYield(fiber)
  }

  /** The turn is asked for in the context, not run in it: what a step does to its context (`enterWith`) ends with the turn. */
  scheduleTask(task: Scheduler.Task, priority: number, fiber?: Fiber): void {
    this.context.runInAsyncScope(this.outer.scheduleTask, this.outer, task, priority, fiber)
  }
}

/** Whatever runs in the layer runs in the async context in which its building begins. */
export const inContextOfBuilder = <A, E, R>(layer: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.locallyWith(layer, FiberRef.currentScheduler, (outer) =>
    outer instanceof InContext ? outer : new InContext(outer),
  )
