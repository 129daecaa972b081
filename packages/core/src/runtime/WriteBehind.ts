/**
 * The write-behind buffer of one worker: commits are accepted at once and written together, whatever the number of runs.
 *
 * - W1: commits of one run are written in the order of their `seq`, none skipped. What is being written stays as it is
 *   until its outcome is known; after a lost acknowledgement the very same is written again.
 * - W2, W3: `durable` is the barrier. Who may observe a commit waits for it first.
 * - W4: commits and bytes that wait are bounded, and so is the time for which runs keep a flush from beginning; who brings
 *   more waits.
 * - W5: a refused commit, or one that the store cannot take, ends its own run alone: a flush that fails is bisected.
 * - W6: a store that is away is asked again while the lease holds; past that the runs end. Nothing is left unhandled.
 *
 * A flush begins when the fibers that can run have run: a lone commit waits for nobody, and many go together. Runs whose steps
 * end at once again and again would keep it waiting for ever, and a killed process would have lost all that they did.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Runtime from "effect/Runtime"
import type { LeaseLost, StoreError } from "../model/Errors.js"
import type { Lease } from "../model/Records.js"
import { StoreCalls } from "./internal/storeCalls.js"
import { RunQueue, type AcceptedCommit, type Refusal } from "./RunQueue.js"
import { countFlush } from "./WorkerMetrics.js"

/**
 * What the buffer has to know of a commit.
 *
 * @category models
 * @since 0.1.0
 */
export interface Bufferable {
  readonly lease: Lease
  /** The `seq` it builds on, and the one it sets. */
  readonly base: number
  readonly seq: number
}

/**
 * How a buffer writes, and how much it holds.
 *
 * *Shape.* `write`: one transaction for commits of different runs; results in the order of the batch, the store's clock
 * or the refusal. `join`: commits of one run, in order, as one. `sizeOf`: bytes, roughly. `mayRetry`: whether the leases
 * still hold. `onRefused`: told once of a run that the store no longer grants. `maxCommits` (10,000) and `maxBytes`
 * (64 Mi): what may wait. `maxFlush`: runs and commits in one flush (4,096). `timeoutMs`: how long one write may take.
 *
 * @category options
 * @since 0.1.0
 */
export interface WriteBehindOptions<C extends Bufferable> {
  readonly write: (
    batch: ReadonlyArray<C>,
  ) => Effect.Effect<ReadonlyArray<Either.Either<number, LeaseLost>>, StoreError>
  readonly join: (commits: ReadonlyArray<C>) => C
  readonly sizeOf: (commit: C) => number
  readonly mayRetry: () => boolean
  readonly onRefused: (lease: Lease) => void
  /** Before and after each flush: fault points of tests. */
  readonly reach: (point: "beforeFlush" | "afterFlush", lease: Lease) => Effect.Effect<void>
  readonly log?: CommitLog<C>
  readonly maxCommits?: number
  readonly maxBytes?: number
  readonly maxFlush?: number
  readonly timeoutMs: number
}

/**
 * Where accepted commits are written before they are durable in the store (law W8).
 *
 * *Shape.* `append`: ends when the commit would survive a killed process, with a mark of where it stands. `settled`:
 * nothing has to be kept of it any more.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommitLog<C> {
  readonly append: (commit: C) => Effect.Effect<unknown, StoreError>
  readonly settled: (mark: any) => void
}

type Written = ReadonlyArray<Either.Either<number, LeaseLost>>

/** A flush takes in no further run beyond this: a database's own log grows by what one transaction holds. */
const maxFlushBytes = 4 * 1024 * 1024

/**
 * So long may runs go on without a turn of the event loop while something waits to be written, in milliseconds: what a killed
 * process has lost of steps that only compute. Shorter, and runs that come to their ends in one turn would be cut in two flushes.
 */
const maxBusyMs = 50

/** The event loop has its turn: a flush that was scheduled before begins, and answers of the store come in. */
const turn: Effect.Effect<void> = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

/** Asked again after so long: quick at first, then once a second. */
const pauseMs = (tries: number): number => Math.min(1_000, 50 * 2 ** tries)

/**
 * The buffer.
 *
 * @category models
 * @since 0.1.0
 */
export class WriteBehind<C extends Bufferable> {
  private readonly dirty: Array<RunQueue<C>> = []
  private readonly rooms: Array<() => void> = []
  private readonly idlers: Array<() => void> = []
  private readonly calls: StoreCalls
  private commits = 0
  private bytes = 0
  /** The event loop has not had its turn since. */
  private scheduled = false
  private scheduledAt = 0
  private flushing = false
  /** Writes that the store did not take and that are tried again: as long as there are any, what costs money waits (W6). */
  private troubles = 0
  private readonly worried: Array<() => void> = []
  private readonly maxCommits: number
  private readonly maxBytes: number
  private readonly maxFlush: number

  private constructor(
    private readonly options: WriteBehindOptions<C>,
    private readonly runtime: Runtime.Runtime<never>,
    private readonly clock: Clock.Clock,
  ) {
    this.maxCommits = options.maxCommits ?? 10_000
    this.maxBytes = options.maxBytes ?? 64 * 1024 * 1024
    this.maxFlush = options.maxFlush ?? 4_096
    this.calls = new StoreCalls(runtime, clock, options.timeoutMs)
  }

  /** A buffer that flushes by itself, with the logger and the clock of whoever makes it. */
  static make<C extends Bufferable>(options: WriteBehindOptions<C>): Effect.Effect<WriteBehind<C>> {
    return Effect.zipWith(
      Effect.runtime<never>(),
      Effect.clock,
      (runtime, clock) => new WriteBehind(options, runtime, clock),
    )
  }

  /** Begins a run that stands at `seq` in the store. */
  open(lease: Lease, seq: number): RunQueue<C> {
    return new RunQueue(lease, seq)
  }

  /**
   * Takes a commit in, once there is room. It will be written; whether it was is what `durable` tells. `how`: `logged` if
   * its run goes on from it before it is durable, `plain` if that is waited for anyway.
   */
  accept(queue: RunQueue<C>, commit: C, how: "logged" | "plain" = "logged"): Effect.Effect<void, Refusal> {
    return Effect.suspend(() => {
      if (queue.refusal !== null) return Effect.fail(queue.refusal)
      const at = this.clock.unsafeCurrentTimeMillis()
      const entry: AcceptedCommit<C> = { commit, bytes: this.options.sizeOf(commit), at, mark: null }
      const hasRoom = this.hasRoom(entry.bytes)
      // Who waits until it is durable gives the event loop its turn anyway.
      if (!hasRoom || (how === "logged" && this.isOverdue(at))) {
        return Effect.zipRight(
          hasRoom ? turn : this.room,
          Effect.suspend(() => this.accept(queue, commit, how)),
        )
      }
      this.commits += 1
      this.bytes += entry.bytes
      const { log } = this.options
      if (log === undefined || how === "plain") return this.enter(queue, entry)
      return Effect.matchEffect(log.append(commit), {
        // A full disk, say: what cannot be kept here is waited for instead.
        onFailure: (error) =>
          Effect.logWarning("the local log cannot be written; commits are waited for instead", error).pipe(
            Effect.zipRight(Effect.suspend(() => this.enter(queue, entry))),
            Effect.zipRight(this.durable(queue, commit.seq)),
            Effect.asVoid,
          ),
        onSuccess: (mark) => {
          entry.mark = mark
          return this.enter(queue, entry)
        },
      })
    })
  }

  /**
   * Takes a commit in at once, if it can be: there is room, no flush is overdue, the run is not refused, and no log has to be
   * written first.
   */
  takes(queue: RunQueue<C>, commit: C): boolean {
    const bytes = this.options.sizeOf(commit)
    if (this.options.log !== undefined || queue.refusal !== null || !this.hasRoom(bytes)) return false
    const at = this.clock.unsafeCurrentTimeMillis()
    if (this.isOverdue(at)) return false
    this.commits += 1
    this.bytes += bytes
    this.push(queue, { commit, bytes, at, mark: null })
    return true
  }

  /** The barrier: ends when the commit of that `seq` is durable, with the store's clock. */
  durable(queue: RunQueue<C>, seq: number): Effect.Effect<number, Refusal> {
    return Effect.async<number, Refusal>((resume) => {
      if (seq <= queue.durableSeq) resume(Effect.succeed(queue.durableAt))
      else if (queue.refusal !== null) resume(Effect.fail(queue.refusal))
      else queue.ears.push({ seq, resume })
    })
  }

  /** Ends when the store takes what it is given. */
  readonly calm: Effect.Effect<void> = Effect.suspend(() =>
    this.troubles === 0
      ? Effect.void
      : Effect.async<void>((resume) => void this.worried.push(() => resume(Effect.void))),
  )

  /** Whether everything that was accepted has an outcome. */
  get isEmpty(): boolean {
    return this.commits === 0
  }

  /** Ends when nothing waits any more (W7). */
  readonly drained: Effect.Effect<void> = Effect.async<void>((resume) => {
    if (this.commits === 0 && !this.flushing) resume(Effect.void)
    else this.idlers.push(() => resume(Effect.void))
  })

  private hasRoom(bytes: number): boolean {
    // A commit that is larger than the whole buffer goes alone.
    return this.commits === 0 || (this.commits < this.maxCommits && this.bytes + bytes <= this.maxBytes)
  }

  /** W4: whether runs have kept the event loop busy for so long that what waits comes first. */
  private isOverdue(at: number): boolean {
    return this.scheduled && at - this.scheduledAt >= maxBusyMs
  }

  private readonly room: Effect.Effect<void> = Effect.async<void>((resume) => {
    this.rooms.push(() => resume(Effect.void))
  })

  private enter(queue: RunQueue<C>, entry: AcceptedCommit<C>): Effect.Effect<void, Refusal> {
    if (queue.refusal !== null) {
      this.forget([entry])
      return Effect.fail(queue.refusal)
    }
    this.push(queue, entry)
    return Effect.void
  }

  private push(queue: RunQueue<C>, entry: AcceptedCommit<C>): void {
    queue.waiting.push(entry)
    queue.acceptedSeq = entry.commit.seq
    this.list(queue)
  }

  private list(queue: RunQueue<C>): void {
    if (!queue.listed && queue.writing === null) {
      queue.listed = true
      this.dirty.push(queue)
    }
    this.schedule()
  }

  private forget(entries: ReadonlyArray<AcceptedCommit<C>>): void {
    if (entries.length === 0) return
    for (const { bytes } of entries) this.bytes -= bytes
    this.commits -= entries.length
    const { log } = this.options
    if (log !== undefined) for (const { mark } of entries) if (mark !== null) log.settled(mark)
    for (const wake of this.rooms.splice(0)) wake()
  }

  private schedule(): void {
    if (this.scheduled || this.commits === 0) return
    this.scheduled = true
    this.scheduledAt = this.clock.unsafeCurrentTimeMillis()
    // After what can run now has run: timers would add a millisecond, microtasks would flush each commit alone. While a flush is
    // under way, too: the store's answer needs its turn of the event loop as well.
    setImmediate(() => {
      this.scheduled = false
      if (this.flushing || this.dirty.length === 0) return
      this.flushing = true
      this.fork(this.flush())
    })
  }

  private fork(effect: Effect.Effect<void>): void {
    Runtime.runFork(this.runtime)(effect)
  }

  /** What is written next: as many runs as go into one flush, each with all that it has accepted. */
  private take(): ReadonlyArray<RunQueue<C>> {
    let commits = 0
    let bytes = 0
    let count = 0
    while (count < this.dirty.length && commits < this.maxFlush && bytes < maxFlushBytes) {
      const { waiting } = this.dirty[count++]!
      commits += waiting.length
      for (const entry of waiting) bytes += entry.bytes
    }
    const batch = this.dirty.splice(0, count)
    for (const queue of batch) {
      const parts = queue.waiting.splice(0)
      const [first] = parts
      queue.listed = false
      queue.writing = {
        commit: parts.length === 1 ? first!.commit : this.options.join(parts.map(({ commit }) => commit)),
        parts,
      }
    }
    return batch
  }

  private flush(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const startedAt = performance.now()
      const batch = this.take()
      const first = batch[0]!
      const now = this.clock.unsafeCurrentTimeMillis()
      const oldest = Math.max(...batch.map(({ writing }) => now - writing!.parts[0]!.at))
      return this.options.reach("beforeFlush", first.lease).pipe(
        Effect.zipRight(this.write(batch, 0)),
        Effect.zipRight(this.options.reach("afterFlush", first.lease)),
        Effect.zipRight(
          Effect.sync(() =>
            countFlush({
              runs: batch.length,
              depth: this.commits,
              oldestMs: oldest,
              durationMs: performance.now() - startedAt,
            }),
          ),
        ),
      )
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          this.flushing = false
          this.schedule()
          this.rest()
        }),
      ),
    )
  }

  private rest(): void {
    if (this.commits === 0 && !this.flushing) for (const wake of this.idlers.splice(0)) wake()
  }

  /** Writes once. What a call that is left behind may still write is written under the same guard. */
  private once(batch: ReadonlyArray<RunQueue<C>>): Effect.Effect<Written, StoreError> {
    return this.calls.made(Effect.suspend(() => this.options.write(batch.map((queue) => queue.writing!.commit))))
  }

  /** Nothing more is written: no timer keeps the process. */
  close(): void {
    this.calls.close()
  }

  /**
   * Writes what stands in `writing` of each; what fails is tried again, split, or ends its run (W5, W6). `isAside`: beside the flushes
   * of the others.
   */
  private write(batch: ReadonlyArray<RunQueue<C>>, tries: number, isAside = false): Effect.Effect<void> {
    return Effect.matchEffect(this.once(batch), {
      onSuccess: (results) =>
        Effect.sync(() => {
          this.untroubled(tries)
          batch.forEach((queue, index) => this.settle(queue, results[index]!))
        }),
      onFailure: (error) => {
        // There may be space again by the time the lease ends: what is known is not thrown away before.
        const passes = error.isRetryable || error.reason === "Full"
        const again = passes && this.options.mayRetry()
        // Locked by somebody, too large for what is left, or unacceptable: that may be one run's trouble, and the others do not wait.
        const isOnesOwn = error.reason === "Busy" || error.reason === "Full"
        if (batch.length > 1 && (again ? isOnesOwn && tries > 0 : !passes)) {
          this.untroubled(tries)
          return this.split(batch)
        }
        if (again) {
          if (tries === 0) this.troubles += 1
          const stepsAside = batch.length === 1 && isOnesOwn && !isAside
          const later = Effect.zipRight(
            Effect.sleep(pauseMs(tries)),
            Effect.suspend(() => this.write(batch, tries + 1, isAside || stepsAside)),
          )
          return stepsAside ? this.aside(later) : later
        }
        return Effect.sync(() => {
          this.untroubled(tries)
          for (const queue of batch) this.settle(queue, Either.left(error))
        })
      },
    })
  }

  /** The others do not wait for it: until it has an outcome its runs stand in none of their flushes. */
  private aside(write: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.sync(() =>
      this.fork(
        Effect.ensuring(
          write,
          Effect.sync(() => this.rest()),
        ),
      ),
    )
  }

  /** A write has come to its end after so many tries. */
  private untroubled(tries: number): void {
    if (tries === 0) return
    this.troubles -= 1
    if (this.troubles === 0) for (const wake of this.worried.splice(0)) wake()
  }

  private split(batch: ReadonlyArray<RunQueue<C>>): Effect.Effect<void> {
    const half = batch.length >> 1
    return Effect.forEach(
      [batch.slice(0, half), batch.slice(half)],
      (part) => (part.length > 1 ? this.write(part, 0) : this.aside(this.write(part, 0, true))),
      { discard: true },
    )
  }

  private settle(queue: RunQueue<C>, result: Either.Either<number, Refusal>): void {
    const { commit, parts } = queue.writing!
    queue.writing = null
    if (Either.isRight(result)) {
      queue.durableSeq = commit.seq
      queue.durableAt = result.right
      this.forget(parts)
      if (queue.waiting.length > 0) this.list(queue)
    } else {
      queue.refusal = result.left
      this.forget(parts)
      this.forget(queue.waiting.splice(0))
      if (result.left._tag === "LeaseLost") this.options.onRefused(queue.lease)
    }
    queue.tell()
  }
}
