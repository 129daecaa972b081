/**
 * Wake-ups within one process: a start wakes the worker beside it, the end of a run wakes who waits for it. They only
 * save time; polling finds everything without them.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * Hears one topic. A signal that comes between two waits is kept, so that nobody sleeps through it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Listener {
  /** Ends at the next signal, at once if one came since the last wait, or after `ms`. */
  readonly wait: (ms: number) => Effect.Effect<void>
}

/**
 * Signals by topic.
 *
 * @category models
 * @since 0.1.0
 */
export interface LocalSignals {
  readonly send: (topic: string) => Effect.Effect<void>
  readonly listen: (topic: string) => Effect.Effect<Listener, never, Scope.Scope>
}

/** Topic of runs that became ready to be claimed. */
export const runnable = "runnable"

/** Topic of one run's end. */
export const ended = (namespace: string, runId: string): string => JSON.stringify([namespace, runId])

class Ear implements Listener {
  private heard = false
  private wake: (() => void) | null = null

  hear(): void {
    this.heard = true
    this.wake?.()
  }

  wait(ms: number): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      if (this.heard) resume(Effect.void)
      else this.wake = () => resume(Effect.void)
    }).pipe(
      Effect.timeoutOption(ms),
      Effect.ensuring(
        Effect.sync(() => {
          this.heard = false
          this.wake = null
        }),
      ),
      Effect.asVoid,
    )
  }
}

export const makeLocalSignals = (): LocalSignals => {
  const topics = new Map<string, Set<Ear>>()
  const remove = (topic: string, ear: Ear): void => {
    const ears = topics.get(topic)
    ears?.delete(ear)
    if (ears?.size === 0) topics.delete(topic)
  }
  return {
    send: (topic) =>
      Effect.sync(() => {
        for (const ear of topics.get(topic) ?? []) ear.hear()
      }),
    listen: (topic) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          const ear = new Ear()
          topics.set(topic, (topics.get(topic) ?? new Set()).add(ear))
          return ear
        }),
        (ear) => Effect.sync(() => remove(topic, ear)),
      ),
  }
}
