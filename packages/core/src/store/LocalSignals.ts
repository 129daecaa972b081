/**
 * Wake-ups within one process: a start wakes the worker beside it, the end of a run wakes who waits for it. They only
 * save time; polling finds everything without them.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import type * as Scope from "effect/Scope"
import type { RunCompletion } from "../model/Records.js"
import type { RunKey } from "./CheckpointDriver.js"

/**
 * Hears one topic. A signal that comes between two waits is kept, so that nobody sleeps through it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Listener {
  /** Ends at the next signal, at once if one came since the last wait, or after `ms`. True if there was a signal. */
  readonly wait: (ms: number) => Effect.Effect<boolean>
}

/**
 * Signals by topic.
 *
 * @category models
 * @since 0.1.0
 */
export interface LocalSignals {
  /** `completion`: with the end of a run that has completed, so that nobody here has to read it. */
  readonly send: (topic: string, completion?: RunCompletion | null) => Effect.Effect<void>
  readonly listen: (topic: string) => Effect.Effect<Listener, never, Scope.Scope>
  /** Of runs that a worker of this process executes, by their topic: how far they have got, durable or not. */
  readonly underWay: Map<string, { readonly acceptedSeq: number }>
  /** Calls `hear` at each signal, without a fiber that waits; until the function that it gives is called. */
  readonly on: (topic: string, hear: (completion: RunCompletion | null) => void) => () => void
  /** The same at each commit of one run. */
  readonly follow: (run: RunKey, hear: () => void) => () => void
  /** A commit of a run is durable. It costs nothing where nobody follows any run. */
  readonly committed: (run: RunKey) => void
}

/** Topic of runs that became ready to be claimed. */
export const runnable = "runnable"

/** Topic of schedules that were put. */
export const scheduled = "scheduled"

/** Topic of one run's end. */
export const ended = (namespace: string, runId: string): string => JSON.stringify([namespace, runId])

/** Topic of what its owner has to know of a run at once: that it is to be canceled. */
export const arrived = (namespace: string, runId: string): string => JSON.stringify(["arrived", namespace, runId])

/** Topic of what another process has sent to a run that this worker holds (D44). */
export const reachedOf = (workerId: string): string => JSON.stringify(["reached", workerId])

interface Hearing {
  readonly hear: (completion: RunCompletion | null) => void
}

class Ear implements Listener, Hearing {
  private heard = false
  private wake: (() => void) | null = null

  hear(): void {
    this.heard = true
    this.wake?.()
  }

  wait(ms: number): Effect.Effect<boolean> {
    return Effect.flatMap(Effect.runtime<never>(), (runtime) =>
      Effect.async<boolean>((resume) => {
        let isOver = false
        const end = (isTold: boolean): void => {
          if (isOver) return
          isOver = true
          this.heard = false
          this.wake = null
          resume(Effect.succeed(isTold))
        }
        if (this.heard) return end(true)
        // Not a race of two fibers: this is done for each claim.
        const sleeper = Runtime.runFork(runtime)(Effect.sleep(ms))
        const rouse = (): void => sleeper.unsafeInterruptAsFork(sleeper.id())
        this.wake = () => {
          rouse()
          end(true)
        }
        // It may have ended already, where no time has to pass.
        sleeper.addObserver((exit) => {
          if (Exit.isSuccess(exit)) end(false)
        })
        return Effect.sync(() => {
          isOver = true
          rouse()
          this.heard = false
          this.wake = null
        })
      }),
    )
  }
}

type Topics = Map<string, Set<Hearing>>

const add = <A extends Hearing>(topics: Topics, topic: string, ear: A): A => {
  topics.set(topic, (topics.get(topic) ?? new Set()).add(ear))
  return ear
}

const remove = (topics: Topics, topic: string, ear: Hearing): void => {
  const ears = topics.get(topic)
  ears?.delete(ear)
  if (ears?.size === 0) topics.delete(topic)
}

const tell = (topics: Topics, topic: string, completion: RunCompletion | null = null): void => {
  const ears = topics.get(topic)
  // A copy: who hears may stop listening.
  if (ears !== undefined) for (const ear of [...ears]) ear.hear(completion)
}

const hearing = (topics: Topics, topic: string, hear: Hearing["hear"]): (() => void) => {
  const ear = add(topics, topic, { hear })
  return () => remove(topics, topic, ear)
}

export const makeLocalSignals = (): LocalSignals => {
  const topics: Topics = new Map()
  const followed: Topics = new Map()
  return {
    underWay: new Map(),
    send: (topic, completion) => Effect.sync(() => tell(topics, topic, completion)),
    listen: (topic) =>
      Effect.acquireRelease(
        Effect.sync(() => add(topics, topic, new Ear())),
        (ear) => Effect.sync(() => remove(topics, topic, ear)),
      ),
    on: (topic, hear) => hearing(topics, topic, hear),
    follow: ({ namespace, runId }, hear) => hearing(followed, ended(namespace, runId), hear),
    committed: ({ namespace, runId }) => {
      if (followed.size > 0) tell(followed, ended(namespace, runId))
    },
  }
}
