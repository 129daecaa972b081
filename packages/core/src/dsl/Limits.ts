/** How many runs of a workflow are executed at once, and how fast new ones begin. */
import type * as Duration from "effect/Duration"

/**
 * Limits of a workflow's runs, over all workers of a namespace and all versions of the workflow.
 *
 * *Shape.* `concurrency`: runs that are executed at once: claimed by a worker whose lease lasts. One that waits, sleeps or is
 * parked holds no place. `perKey`: `key` gives each run its key when it is started, from its input; `perKey.concurrency` is the
 * same among the runs of one key. `rate`: at most `count` runs begin in any stretch of `per`; with `perKey` true, of each key.
 * A run that goes on after a wait does not begin anew. What a limit holds back stays `pending`, and keeps nothing else waiting.
 *
 * *Laws.* D35, D36. The numbers are those of the workers' code: a deploy changes them, also for runs that are there. The key
 * is that of the start; runs that were started without one share the empty key.
 *
 * @category options
 * @since 0.1.0
 */
export interface Limits<Input = any> {
  readonly concurrency?: number
  readonly perKey?: {
    readonly key: (context: { readonly input: Input }) => string
    readonly concurrency?: number
  }
  readonly rate?: { readonly count: number; readonly per: Duration.DurationInput; readonly perKey?: boolean }
}

/**
 * Which of the runs that are due are claimed first: higher ones, 0 unless given; a whole number, or one that follows from the
 * input. It is computed when the run is started.
 *
 * @category options
 * @since 0.1.0
 */
export type Priority<Input = any> = number | ((context: { readonly input: Input }) => number)
