/**
 * Live output on its way from steps to readers, among the users of one store object.
 *
 * - Steps never wait: a reader that does not keep up loses the oldest, and is told how many.
 * - A step that emits nothing makes nothing here. What an attempt has emitted is held until it ends, for readers that come in the
 *   middle, and no longer; a run is held while one of its steps emits or somebody reads.
 * - X6: of two owners of a run in one process the one with the newer fence is heard.
 */
import * as Effect from "effect/Effect"
import type { RunKey } from "../../store/CheckpointStore.js"
import { ended, type LocalSignals } from "../../store/LocalSignals.js"
import type { LiveEvent } from "../LiveOutput.js"

/** What is kept of one attempt, and for one reader: of both the newest. Many small ones cost more than their characters. */
const maxCharacters = 1_048_576
const maxEvents = 65_536

/** The newest events, and how many before them were dropped. */
class Newest {
  private events: Array<LiveEvent> = []
  private lengths: Array<number> = []
  private first = 0
  private characters = 0
  private dropped = 0

  add(event: LiveEvent, length: number): void {
    this.events.push(event)
    this.lengths.push(length)
    this.characters += length
    while (this.characters > maxCharacters || this.events.length - this.first > maxEvents) {
      this.characters -= this.lengths[this.first]!
      this.first += 1
      this.dropped += 1
    }
    // Not at each: what is dropped one by one would be copied one by one.
    if (this.first > 1_024 && this.first * 2 > this.events.length) this.compact()
  }

  private compact(): void {
    this.events = this.events.slice(this.first)
    this.lengths = this.lengths.slice(this.first)
    this.first = 0
  }

  list(): ReadonlyArray<LiveEvent> {
    const kept = this.events.slice(this.first)
    return this.dropped === 0 ? kept : [{ _tag: "Skipped", count: this.dropped }, ...kept]
  }
}

/** One reader of a run. */
export class Reader {
  private queue = new Newest()
  private hasNews = true
  private wake: (() => void) | null = null

  constructor(private first: ReadonlyArray<LiveEvent>) {}

  hear(event: LiveEvent, length: number): void {
    this.queue.add(event, length)
    this.rouse()
  }

  rouse(): void {
    this.hasNews = true
    this.wake?.()
  }

  /** All that there is by now. */
  take(): ReadonlyArray<LiveEvent> {
    const taken = [...this.first, ...this.queue.list()]
    this.hasNews = false
    this.first = []
    if (taken.length > 0) this.queue = new Newest()
    return taken
  }

  /** Until something has happened since everything was taken. */
  readonly heard: Effect.Effect<void> = Effect.async<void>((resume) => {
    if (this.hasNews) return resume(Effect.void)
    this.wake = () => {
      this.wake = null
      resume(Effect.void)
    }
    return Effect.sync(() => (this.wake = null))
  })
}

/** A run that somebody reads, or that emits. */
export class LiveRun {
  readonly readers = new Set<Reader>()
  source: LiveSource | null = null

  constructor(private readonly onIdle: () => void) {}

  tell(event: LiveEvent, length = 0): void {
    for (const reader of this.readers) reader.hear(event, length)
  }

  rest(): void {
    if (this.source === null && this.readers.size === 0) this.onIdle()
  }

  read(): Reader {
    const reader = new Reader([...(this.source?.steps.values() ?? [])].flatMap((step) => step.soFar()))
    this.readers.add(reader)
    return reader
  }

  leave(reader: Reader): void {
    this.readers.delete(reader)
    this.rest()
  }
}

/** What one attempt has emitted. */
export class LiveStep {
  private readonly newest = new Newest()
  private readonly began: LiveEvent
  private count = 0
  isOver = false

  constructor(
    private readonly run: LiveRun,
    readonly path: string,
    readonly attempt: number,
  ) {
    this.began = { _tag: "Began", path, attempt }
    run.tell(this.began)
  }

  emit(chunk: unknown, length: number): void {
    if (this.isOver) return
    const event: LiveEvent = { _tag: "Chunk", path: this.path, attempt: this.attempt, index: this.count++, chunk }
    this.newest.add(event, length)
    this.run.tell(event, length)
  }

  soFar(): ReadonlyArray<LiveEvent> {
    return [this.began, ...this.newest.list()]
  }
}

/** What one owner of a run emits. */
export class LiveSource {
  readonly steps = new Map<string, LiveStep>()
  private isOver = false

  constructor(
    private readonly run: LiveRun,
    readonly fence: number,
  ) {
    const other = run.source
    if (other !== null && other.fence > fence) this.isOver = true
    else {
      other?.close()
      run.source = this
    }
  }

  has(path: string): boolean {
    return this.steps.has(path)
  }

  begin(path: string, attempt: number): LiveStep {
    this.discard(path)
    const step = new LiveStep(this.isOver ? new LiveRun(() => {}) : this.run, path, attempt)
    if (this.isOver) step.isOver = true
    else this.steps.set(path, step)
    return step
  }

  /** What the attempt has emitted is void. */
  discard(path: string): void {
    const step = this.end(path)
    if (step !== null) this.run.tell({ _tag: "Discarded", path, attempt: step.attempt })
  }

  /** W2: told once the commit is durable. */
  committed(path: string, seq: number): void {
    const step = this.end(path)
    if (step !== null) this.run.tell({ _tag: "Committed", path, attempt: step.attempt, seq })
  }

  private end(path: string): LiveStep | null {
    const step = this.steps.get(path)
    if (step === undefined) return null
    this.steps.delete(path)
    step.isOver = true
    return step
  }

  /** The owner has let go of the run: what has not come to its end does not. */
  close(): void {
    if (this.isOver) return
    for (const path of [...this.steps.keys()]) this.discard(path)
    this.isOver = true
    if (this.run.source === this) this.run.source = null
    for (const reader of this.run.readers) reader.rouse()
    this.run.rest()
  }
}

// ---- runs ------------------------------------------------------------------------------------------------------

/** Runs that somebody reads, or that emit, of each store object. */
const hubs = new WeakMap<LocalSignals, Map<string, LiveRun>>()

export const liveRun = (signals: LocalSignals, { namespace, runId }: RunKey): LiveRun => {
  const runs = hubs.get(signals) ?? new Map<string, LiveRun>()
  hubs.set(signals, runs)
  const key = ended(namespace, runId)
  const known = runs.get(key)
  if (known !== undefined) return known
  const made = new LiveRun(() => runs.delete(key))
  runs.set(key, made)
  return made
}

/** Runs that are held, for those who look after memory. */
export const liveRuns = (signals: LocalSignals): number => hubs.get(signals)?.size ?? 0
