/**
 * A lock for fibers that is handed from holder to waiter, in order of arrival, urgent ones first.
 *
 * Effect's semaphore lets whoever comes by take a permit that was just released: a fiber that commits in a loop would
 * take it again each time, before any waiter is even scheduled, and starve them all.
 */
import * as Effect from "effect/Effect"

interface Waiter {
  handed: boolean
  resume: () => void
}

export interface Gate {
  readonly hold: <A, E, R>(effect: Effect.Effect<A, E, R>, urgent?: boolean) => Effect.Effect<A, E, R>
}

export const makeGate = (): Gate => {
  let isHeld = false
  const urgentWaiters: Array<Waiter> = []
  const usualWaiters: Array<Waiter> = []

  const release = (): void => {
    const next = urgentWaiters.shift() ?? usualWaiters.shift()
    // Handed over, not set free: nobody can come in between.
    if (next === undefined) isHeld = false
    else {
      next.handed = true
      next.resume()
    }
  }

  const wait = (
    waiters: Array<Waiter>,
    restore: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>,
  ) => {
    const waiter: Waiter = { handed: false, resume: () => undefined }
    const called = Effect.async<void>((resume) => {
      waiter.resume = () => resume(Effect.void)
      waiters.push(waiter)
    })
    const giveUp = Effect.sync(() => {
      // Handed over and interrupted at the same moment: it must not be lost with the fiber.
      if (waiter.handed) return release()
      const position = waiters.indexOf(waiter)
      if (position >= 0) waiters.splice(position, 1)
    })
    return Effect.onInterrupt(restore(called), () => giveUp)
  }

  return {
    hold: (effect, urgent = false) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(
          Effect.suspend(() => {
            if (isHeld) return wait(urgent ? urgentWaiters : usualWaiters, restore)
            isHeld = true
            return Effect.void
          }),
          () => Effect.ensuring(restore(effect), Effect.sync(release)),
        ),
      ),
  }
}
