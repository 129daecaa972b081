/** Promises and abort signals at the border of fibers. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import { StepThrew } from "../../model/Errors.js"

/**
 * How long an interrupted promise may take to notice its abort signal before it is left behind, in milliseconds: long
 * enough for a closing socket, short enough for a worker that must stop.
 */
const graceMs = 500

/** An abort signal that is made only when somebody asks for it. */
export interface LazySignal {
  readonly get: () => AbortSignal
  readonly abort: () => void
}

/** `onAbort` runs first, once. */
export const lazySignal = (onAbort: () => void = () => {}): LazySignal => {
  let controller: AbortController | null = null
  let aborted = false
  const make = (): AbortController => {
    controller ??= new AbortController()
    if (aborted) controller.abort()
    return controller
  }
  return {
    get: () => make().signal,
    abort: () => {
      if (aborted) return
      aborted = true
      onAbort()
      controller?.abort()
    },
  }
}

/**
 * Waits for a promise. Interruption aborts its signal, then waits a short while for it to end, so that a cooperative
 * function never overlaps with its own next attempt; what it still gives after that is discarded.
 */
export const fromPromise = (
  promise: PromiseLike<unknown>,
  signal: LazySignal,
  step: string,
): Effect.Effect<unknown, StepThrew> =>
  Effect.async<unknown, StepThrew>((resume) => {
    // Taken over first: the `then` of another kind of promise may throw.
    const settled = Promise.resolve(promise).then(
      (value) => resume(Effect.succeed(value)),
      (thrown: unknown) => resume(Effect.fail(new StepThrew({ step, thrown }))),
    )
    return Effect.suspend(() => {
      signal.abort()
      // Interruptible, although finalizers are not: otherwise the limit would wait for the promise as well.
      return Effect.promise(() => Promise.resolve(settled)).pipe(
        Effect.interruptible,
        Effect.timeoutOption(graceMs),
        Effect.asVoid,
      )
    })
  })

const isGenerator = (value: unknown): value is Generator<any, unknown, any> =>
  Object.prototype.toString.call(value) === "[object Generator]"

const isPromiseLike = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function"

/** Option and Either are effects to Effect, but as a step's output they are values. */
const isComputation = (value: unknown): value is Effect.Effect<unknown, unknown, never> =>
  Effect.isEffect(value) && !Option.isOption(value) && !Either.isEither(value)

/**
 * A generator in the hands of Effect. What it throws is a defect, as in any `Effect.gen`, but one that can be looked at: Effect's own
 * look at a revoked proxy would end the fiber without an exit.
 */
class Steps implements IterableIterator<any, unknown> {
  constructor(
    private readonly generator: Generator<any, unknown, any>,
    private readonly step: string,
  ) {}

  next(value: unknown): IteratorResult<any, unknown> {
    try {
      return this.generator.next(value)
    } catch (thrown) {
      throw new StepThrew({ step: this.step, thrown })
    }
  }

  [Symbol.iterator](): this {
    return this
  }
}

interface Tools {
  readonly signal: LazySignal
  readonly provide: (computation: Effect.Effect<unknown, unknown>) => Effect.Effect<unknown, unknown>
}

/**
 * Whatever a step's function returns, as an effect: an Effect, a generator function's generator, a promise, or a value. What is there
 * at once is an `Exit`. Exceptions of plain functions and rejections of promises are failures: that is how such code fails. `provide`
 * gives computations what they may ask for; promises and values ask for nothing.
 */
export const fromReturned = (
  call: () => unknown,
  tools: Tools,
  step: string,
): Effect.Effect<unknown, unknown, never> => {
  try {
    const returned = call()
    // What it has returned is looked at in here, too: a revoked proxy throws at every look.
    if (isComputation(returned)) return Exit.isExit(returned) ? returned : tools.provide(returned)
    if (isGenerator(returned)) {
      const steps = new Steps(returned, step)
      return tools.provide(Effect.gen(() => steps as unknown as Generator<never, unknown, never>))
    }
    return isPromiseLike(returned) ? fromPromise(returned, tools.signal, step) : Exit.succeed(returned)
  } catch (thrown) {
    return Exit.fail(new StepThrew({ step, thrown }))
  }
}

/** The effect that a function of the user gives: whatever else it gives or throws could end the fiber that runs it. */
export const effectOf = <A, E, R>(ask: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    try {
      const given: unknown = ask()
      return Effect.isEffect(given)
        ? (given as Effect.Effect<A, E, R>)
        : Effect.die(new TypeError("expected a function that gives an Effect"))
    } catch (thrown) {
      return Exit.die(thrown)
    }
  })

/**
 * `Effect.try`, and `Effect.tryPromise`, for functions of the user. What they throw is the failure, whatever it is: Effect's own look at
 * it, and would throw in turn at what cannot be looked at.
 */
export const tried = <A>(ask: () => A): Effect.Effect<A, unknown> =>
  Effect.suspend(() => {
    try {
      return Exit.succeed(ask())
    } catch (thrown) {
      return Exit.fail(thrown)
    }
  })

export const triedPromise = <A>(ask: () => PromiseLike<A>): Effect.Effect<A, unknown> =>
  Effect.flatMap(tried(ask), (promise) =>
    Effect.async<A, unknown>((resume) => {
      Promise.resolve(promise).then(
        (value) => resume(Exit.succeed(value)),
        (thrown: unknown) => resume(Exit.fail(thrown)),
      )
    }),
  )
