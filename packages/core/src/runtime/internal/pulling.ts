/** An async iterable over pages that are read when somebody asks for them: between two questions nothing runs. */
import * as Cause from "effect/Cause"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"

/** Gives the next page, which has something in it, or null at the end. */
export type Pull<A, E, R = never> = Effect.Effect<ReadonlyArray<A> | null, E, R>

/** Begins an effect. Whoever provides it may interrupt what was begun: then the one who asks is told. */
export type Fork<R = never> = <A>(effect: Effect.Effect<A, unknown, R>) => Fiber.RuntimeFiber<A, unknown>

/** What is thrown for a failure: it itself, not a wrapper of it, so that callers tell errors apart by their tags. */
type Thrown = (cause: Cause.Cause<unknown>) => unknown

/** Where pages come from, and how it is let go of. */
export interface Source<A, E, R = never> {
  readonly pull: Pull<A, E, R>
  readonly release: () => void
}

const end = { done: true, value: undefined } as const

class Pulling<A, R> implements AsyncIterator<A> {
  private page: ReadonlyArray<A> = []
  private taken = 0
  private isOver = false
  private underWay: Fiber.RuntimeFiber<ReadonlyArray<A> | null, unknown> | null = null
  private last: Promise<unknown> = Promise.resolve()

  constructor(
    private readonly source: Source<A, unknown, R>,
    private readonly fork: Fork<R>,
    private readonly thrown: Thrown,
  ) {}

  next(): Promise<IteratorResult<A>> {
    // Whoever asks before the last answer is there waits for it: one page at a time is held.
    const answer = this.last.then(() => this.take())
    this.last = answer.catch(() => undefined)
    return answer
  }

  /** Also while an answer is awaited: it is then that there is no more. */
  return(): Promise<IteratorResult<A>> {
    this.isOver = true
    this.page = []
    this.source.release()
    this.underWay?.unsafeInterruptAsFork(this.underWay.id())
    return this.last.then(() => end)
  }

  private async take(): Promise<IteratorResult<A>> {
    if (this.taken >= this.page.length && !this.isOver) await this.turn()
    return this.isOver ? end : { done: false, value: this.page[this.taken++]! }
  }

  private async turn(): Promise<void> {
    const fiber = this.fork(this.source.pull)
    this.underWay = fiber
    const exit = await new Promise<Exit.Exit<ReadonlyArray<A> | null, unknown>>((resolve) => fiber.addObserver(resolve))
    this.underWay = null
    if (this.isOver) return
    this.isOver = Exit.isFailure(exit) || exit.value === null
    if (this.isOver) this.source.release()
    if (Exit.isFailure(exit)) throw this.thrown(exit.cause)
    this.page = exit.value ?? []
    this.taken = 0
  }
}

/** Each iteration begins anew, and lets go of its source when it is over. */
export const releasing = <A, R = never>(
  begin: (fork: Fork<R>) => Source<A, unknown, R>,
  fork: Fork<R>,
  thrown: Thrown = Cause.squash,
): AsyncIterable<A> => ({
  [Symbol.asyncIterator]: () => new Pulling(begin(fork), fork, thrown),
})

/** The same of a source that holds nothing between two pages. */
export const iterable = <A, R = never>(
  begin: () => Pull<A, unknown, R>,
  fork: Fork<R>,
  thrown?: Thrown,
): AsyncIterable<A> => releasing(() => ({ pull: begin(), release: () => {} }), fork, thrown)
