/** A reader of what a run emits, until the run has ended. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { RunOutcome } from "../../model/Records.js"
import type { CheckpointStoreService, RunKey } from "../../store/CheckpointStore.js"
import type { LiveEvent } from "../LiveOutput.js"
import { liveRun, type LiveRun, type Reader } from "./liveOutput.js"
import type { Fork, Source } from "./pulling.js"
import { untilFinal } from "./waiting.js"

/** Whose output is read, once it is known that there is such a run. */
export interface Read {
  readonly store: CheckpointStoreService
  readonly run: RunKey
}

/**
 * What a run emits from now on, and what its running attempts have emitted so far; until it has ended.
 *
 * Whether it has ended is asked by a fiber of its own, so that a reader who never comes back is forgotten with the run.
 */
export const liveSource =
  <E, R>(of: Effect.Effect<Read, E, R>) =>
  (fork: Fork<R>): Source<LiveEvent, unknown, R> => {
    let release = (): void => {}
    let isReleased = false
    let end: Exit.Exit<RunOutcome, unknown> | null = null
    const begun = Effect.flatMap(of, ({ run, store }) => {
      if (isReleased) return Effect.interrupt
      const live = liveRun(store.signals, run)
      const reader = live.read()
      const fiber = fork(untilFinal(store, run))
      fiber.addObserver((exit) => {
        end = exit
        // An owner of before the last has nothing more to say.
        if (Exit.isSuccess(exit) && live.source !== null && live.source.fence < exit.value.fence) live.source.close()
        reader.rouse()
      })
      release = () => {
        live.leave(reader)
        fiber.unsafeInterruptAsFork(fiber.id())
      }
      return Effect.succeed({ live, reader })
    })
    let reading: { readonly live: LiveRun; readonly reader: Reader } | null = null
    const pull = Effect.gen(function* () {
      const { live, reader } = (reading ??= yield* begun)
      for (;;) {
        const page = reader.take()
        if (page.length > 0) return page
        if (end !== null && Exit.isFailure(end)) return yield* Effect.failCause(end.cause)
        // Final in the store, and its owner here is about to say the last of it.
        if (end !== null && live.source === null) return null
        yield* reader.heard
      }
    })
    return {
      pull,
      release: () => {
        isReleased = true
        release()
      },
    }
  }
