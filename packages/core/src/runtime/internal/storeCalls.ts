/**
 * Calls of the store that are under way, each for so long at most. One watch over all, the oldest first: a timeout of its own
 * would be a fiber and a timer for each.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import { StoreError } from "../../model/Errors.js"
import { asStoreError } from "./errorDetails.js"
import { processMs } from "./processTime.js"

/** A call that has not answered yet. */
interface Call {
  readonly at: number
  readonly giveUp: () => void
}

export class StoreCalls {
  private readonly calls = new Set<Call>()
  private watcher: Fiber.RuntimeFiber<void> | null = null

  constructor(
    private readonly runtime: Runtime.Runtime<never>,
    private readonly clock: Clock.Clock,
    private readonly timeoutMs: number,
  ) {}

  /** Makes a call. One that does not end in time is left behind, and fails. */
  made<A>(call: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> {
    return Effect.async<A, StoreError>((resume) => {
      const fiber = Runtime.runFork(this.runtime)(call)
      const end = (exit: Exit.Exit<A, StoreError>): void => {
        if (this.calls.delete(underWay)) resume(exit)
      }
      const leave = (): void => fiber.unsafeInterruptAsFork(fiber.id())
      const underWay: Call = {
        at: processMs(this.clock),
        giveUp: () => {
          end(Exit.fail(new StoreError({ reason: "Unavailable", operation: "commit", problem: "it did not answer" })))
          leave()
        },
      }
      this.calls.add(underWay)
      fiber.addObserver(end)
      this.watch()
      return Effect.sync(() => {
        this.calls.delete(underWay)
        leave()
      })
    }).pipe(Effect.sandbox, Effect.mapError(asStoreError("commit")))
  }

  private watch(): void {
    const [oldest] = this.calls
    if (this.watcher !== null || oldest === undefined) return
    const ms = oldest.at + this.timeoutMs - processMs(this.clock)
    this.watcher = Runtime.runFork(this.runtime)(
      Effect.zipRight(
        Effect.sleep(Math.max(0, Math.ceil(ms))),
        Effect.sync(() => {
          this.watcher = null
          const since = processMs(this.clock) - this.timeoutMs
          for (const call of [...this.calls]) if (call.at <= since) call.giveUp()
          this.watch()
        }),
      ),
    )
  }

  /** No timer keeps the process. */
  close(): void {
    this.watcher?.unsafeInterruptAsFork(this.watcher.id())
  }
}
