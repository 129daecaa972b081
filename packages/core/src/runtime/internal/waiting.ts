/**
 * Clients that wait for runs, many at once, over one store: one look-up asks for all of them, so that asking how runs are
 * never takes more than one connection from those that work, nor more than a share of the store's time.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Runtime from "effect/Runtime"
import { RunNotFound, type StoreError } from "../../model/Errors.js"
import { finalStatuses, type RunCompletion, type RunOutcome } from "../../model/Records.js"
import type { CheckpointStoreService, RunKey } from "../../store/CheckpointStore.js"
import { ended } from "../../store/LocalSignals.js"
import { asStoreError } from "./errorDetails.js"
import { processMs } from "./processTime.js"

/** How often one waiting client asks a store that cannot call back, in milliseconds: quick at first, then once a second. */
const firstPollMs = 20
const lastPollMs = 1_000

/** Who follows a run that commits all the time asks this often at most, in milliseconds: what came meanwhile is one page. */
const followedMs = 20

/** Runs in one look-up. */
const maxLook = 512

/** Look-ups begin at most this often, in milliseconds, however many clients wait. */
const spacingMs = 5

/** Trouble that may pass is waited out for a while: so often, and so long each time, in milliseconds. */
const maxTroubles = 20
const troubleMs = 250

/** With this many who wait, each is asked for once in so many milliseconds at most: a thousand rows a second in all. */
const msEach = 1

type Seen = RunOutcome | RunCompletion

type End<A extends Seen = RunOutcome> = Effect.Effect<A, RunNotFound | StoreError>

type Told<A extends Seen = RunOutcome> = Exit.Exit<A, RunNotFound | StoreError>

interface Ear {
  /** Whether a run that stands like this is what it waits for. */
  readonly isMeant: (run: RunOutcome) => boolean
  /** Whether it is enough to hear how the run has completed. */
  readonly takesCompletion: boolean
  readonly hear: (end: Told<any>) => void
  readonly leave: () => void
}

/** One run that somebody waits for. */
interface Awaited extends RunKey {
  readonly ears: Set<Ear>
  pollMs: number
  /** When it is asked for again, by the clock of those who wait; 0 for at once. */
  dueAt: number
  /** When it was asked for last. */
  askedAt: number
  troubles: number
}

const isOver = ({ parked, status }: RunOutcome): boolean =>
  finalStatuses.has(status) || (status === "review" && parked !== null)

/** What somebody waits for, and how. */
type Wanted = Pick<Ear, "isMeant"> &
  Partial<Pick<Ear, "takesCompletion">> & { readonly follows?: boolean; readonly notBefore?: number }

/** Everybody who waits in this process for runs of one store. */
class Watch {
  private readonly awaited = new Map<string, Awaited>()
  private looking = false
  private scheduled = false
  private timer: { readonly at: number; readonly fiber: Fiber.RuntimeFiber<void> } | null = null

  constructor(
    private readonly store: CheckpointStoreService,
    private readonly runtime: Runtime.Runtime<never>,
    private readonly clock: Clock.Clock,
  ) {}

  /** Until the run stands as it is meant to. */
  wait<A extends Seen>(run: RunKey, wanted: Wanted): End<A> {
    return Effect.async<A, RunNotFound | StoreError>((resume) => {
      const leave = this.listen<A>(run, wanted, resume)
      return Effect.sync(leave)
    })
  }

  /**
   * Tells once how the run stands as it is meant to, unless the function that it gives is called before. Who follows it is told of
   * its commits as well. It is not asked for `notBefore` a time.
   */
  listen<A extends Seen>(
    { namespace, runId }: RunKey,
    { isMeant, follows = false, notBefore = 0, takesCompletion = false }: Wanted,
    hear: (end: Told<A>) => void,
  ): () => void {
    const key = ended(namespace, runId)
    const awaited = this.awaited.get(key) ?? {
      namespace,
      runId,
      ears: new Set(),
      pollMs: firstPollMs,
      dueAt: Number.POSITIVE_INFINITY,
      askedAt: 0,
      troubles: 0,
    }
    this.awaited.set(key, awaited)
    // Listening before looking: an end between the two is heard.
    const { signals } = this.store
    const deaf = [signals.on(key, (completion) => this.heard(awaited, completion))]
    if (follows) {
      deaf.push(signals.follow(awaited, () => this.hurry(awaited, awaited.askedAt + followedMs)))
    }
    const ear: Ear = {
      isMeant,
      takesCompletion,
      hear,
      leave: () => {
        for (const leave of deaf) leave()
        awaited.ears.delete(ear)
        if (awaited.ears.size === 0) this.awaited.delete(key)
        if (this.awaited.size === 0) this.rest()
      },
    }
    awaited.ears.add(ear)
    this.hurry(awaited, notBefore)
    return ear.leave
  }

  /** What is wanted of a run that is over. */
  over(isFresh: boolean): Wanted {
    const notBefore = isFresh ? processMs(this.clock) + firstPollMs : 0
    return { isMeant: isOver, takesCompletion: true, notBefore }
  }

  /** Its worker is in this process and says that it is over: who needs no more than how it has completed has that now. */
  private heard(awaited: Awaited, completion: RunCompletion | null): void {
    if (completion !== null) this.tell(awaited, Exit.succeed(completion), ({ takesCompletion }) => takesCompletion)
    if (awaited.ears.size > 0) this.hurry(awaited, 0)
  }

  /** Somebody new asks, or there was a signal: it is asked for at that time, if not before. */
  private hurry(awaited: Awaited, at: number): void {
    awaited.dueAt = Math.min(awaited.dueAt, at)
    awaited.pollMs = firstPollMs
    this.schedule()
  }

  private rest(): void {
    if (this.timer !== null) this.timer.fiber.unsafeInterruptAsFork(this.timer.fiber.id())
    this.timer = null
  }

  private schedule(): void {
    if (this.looking || this.scheduled) return
    this.scheduled = true
    setImmediate(() => {
      this.scheduled = false
      this.begin()
    })
  }

  /** Looks for all that are due; or, where none is, sleeps until the first of them is. */
  private begin(): void {
    if (this.looking || this.awaited.size === 0) return
    const now = processMs(this.clock)
    const due: Array<Awaited> = []
    let next = Number.POSITIVE_INFINITY
    for (const awaited of this.awaited.values()) {
      if (awaited.dueAt <= now && due.length < maxLook) due.push(awaited)
      else next = Math.min(next, awaited.dueAt)
    }
    if (due.length === 0) return this.sleepUntil(Math.max(next, now + spacingMs), now)
    this.looking = true
    // A signal that comes while it is looked for says when it is looked for again: the look may have been too early.
    for (const awaited of due) {
      awaited.dueAt = Number.POSITIVE_INFINITY
      awaited.askedAt = now
    }
    Runtime.runFork(this.runtime)(this.look(due))
  }

  private sleepUntil(at: number, now: number): void {
    if (this.timer !== null && this.timer.at <= at) return
    this.rest()
    const fiber = Runtime.runFork(this.runtime)(
      Effect.zipRight(
        Effect.sleep(Math.ceil(at - now)),
        Effect.sync(() => {
          this.timer = null
          this.begin()
        }),
      ),
    )
    this.timer = { at, fiber }
  }

  private look(due: ReadonlyArray<Awaited>): Effect.Effect<void> {
    return this.store.findRuns(due).pipe(
      // Also of a defect everybody is told: nobody waits for ever.
      Effect.sandbox,
      Effect.mapError(asStoreError("read runs")),
      Effect.match({
        onFailure: (error) => due.forEach((awaited) => this.trouble(awaited, error)),
        onSuccess: (found) => due.forEach((awaited, index) => this.found(awaited, found[index]!)),
      }),
      Effect.ensuring(
        Effect.sync(() => {
          this.looking = false
          this.schedule()
        }),
      ),
    )
  }

  private found(awaited: Awaited, found: Either.Either<RunOutcome | null, StoreError>): void {
    awaited.troubles = 0
    if (Either.isLeft(found)) return this.tell(awaited, Exit.fail(found.left))
    if (found.right === null) return this.tell(awaited, Exit.fail(new RunNotFound(awaited)))
    const run = found.right
    this.tell(awaited, Exit.succeed(run), (ear) => ear.isMeant(run))
    if (awaited.ears.size === 0) return
    // Of what is executed in this process the end is heard.
    const isHere = this.store.signals.underWay.has(ended(awaited.namespace, awaited.runId))
    this.postpone(awaited, isHere ? lastPollMs : Math.max(awaited.pollMs, this.awaited.size * msEach))
    awaited.pollMs = Math.min(lastPollMs, awaited.pollMs * 2)
  }

  private trouble(awaited: Awaited, error: StoreError): void {
    if (!error.isRetryable || ++awaited.troubles > maxTroubles) this.tell(awaited, Exit.fail(error))
    else this.postpone(awaited, troubleMs)
  }

  private postpone(awaited: Awaited, ms: number): void {
    awaited.dueAt = Math.min(awaited.dueAt, processMs(this.clock) + ms)
  }

  private tell(awaited: Awaited, end: Told<any>, isTold: (ear: Ear) => boolean = () => true): void {
    for (const ear of [...awaited.ears]) {
      if (!isTold(ear)) continue
      ear.leave()
      ear.hear(end)
    }
  }
}

const watches = new WeakMap<CheckpointStoreService, Watch>()

const watchOf = (store: CheckpointStoreService, runtime: Runtime.Runtime<never>): Watch => {
  const known = watches.get(store)
  if (known !== undefined) return known
  const watch = new Watch(store, runtime, Runtime.runSync(runtime)(Effect.clock))
  watches.set(store, watch)
  return watch
}

const watching = <A extends Seen>(store: CheckpointStoreService, use: (watch: Watch) => End<A>): End<A> =>
  Effect.flatMap(Effect.runtime<never>(), (runtime) => use(watchOf(store, runtime)))

/**
 * Waits until a run is over: final, or parked for a person. What may pass is waited out for a while. `isFresh`: it was started a
 * moment ago, so that it is heard of before it is asked for.
 */
export const untilOver = (store: CheckpointStoreService, run: RunKey, isFresh: boolean): End<Seen> =>
  watching(store, (watch) => watch.wait<Seen>(run, watch.over(isFresh)))

/** The same for who is no fiber: a thousand who wait cost little. Tells once, unless the function that it gives is called before. */
export const hearOver = (
  store: CheckpointStoreService,
  runtime: Runtime.Runtime<never>,
  run: RunKey,
  isFresh: boolean,
  hear: (end: Told<Seen>) => void,
): (() => void) => {
  const watch = watchOf(store, runtime)
  return watch.listen<Seen>(run, watch.over(isFresh), hear)
}

/** Waits until a run is final, however long it waits for a person before. */
export const untilFinal = (store: CheckpointStoreService, run: RunKey): End =>
  watching(store, (watch) => watch.wait(run, { isMeant: ({ status }) => finalStatuses.has(status) }))

/** Waits until a run has come further than that seq, or is final. `askedAt`: when whoever follows it has asked last. */
export const untilBeyond = (store: CheckpointStoreService, run: RunKey, seq: number, askedAt: number): End =>
  watching(store, (watch) =>
    watch.wait(run, {
      isMeant: (found) => found.seq > seq || finalStatuses.has(found.status),
      follows: true,
      notBefore: askedAt + followedMs,
    }),
  )
