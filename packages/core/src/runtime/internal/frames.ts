/**
 * What is known of a run, by the scopes in which it stands: the workflow itself, the turn that a loop has come to, the items
 * that are under way. Finished turns and items are not held (X7).
 */
import type { AttemptRecord, EffectRecord, StepRecord } from "../../model/Records.js"

/** One scope: the workflow itself, a turn or an item. */
export interface Frame {
  readonly scope: string
  readonly steps: Map<string, StepRecord>
  readonly effects: Map<string, Array<EffectRecord>>
  readonly attempts: Map<string, Array<AttemptRecord>>
  /** By what its nodes stand under: the place before which every node is done. */
  readonly done: Map<string, number>
  /** Nothing can have been left in the store of what is not here. */
  settled: boolean
  /** Paths whose intents and attempts were read. */
  readonly looked: Set<string>
}

export const emptyFrame = (scope: string, settled: boolean): Frame => ({
  scope,
  steps: new Map(),
  effects: new Map(),
  attempts: new Map(),
  done: new Map(),
  settled,
  looked: new Set(),
})

/** One item of a `forEach`. `key` is escaped; `value` is JSON as it is stored. */
export interface FanItem {
  readonly key: string
  readonly value: unknown
}

/** The items of a `forEach` that is under way. At most `concurrency` of them are in its window: nothing else is looked at. */
export class Fan {
  readonly window: Array<number> = []
  private readonly places: ReadonlyMap<string, number>
  private readonly finished: Uint8Array
  private next = 0
  done = 0
  failed = 0

  constructor(
    readonly items: ReadonlyArray<FanItem>,
    private readonly concurrency: number,
    ended: Iterable<{ readonly key: string; readonly failed: boolean }> = [],
  ) {
    this.places = new Map(items.map(({ key }, index) => [key, index]))
    this.finished = new Uint8Array(items.length)
    for (const { failed, key } of ended) this.mark(key, failed)
    this.fill()
  }

  /** The item of that key has come to its end. */
  end(key: string, failed: boolean): void {
    const index = this.mark(key, failed)
    const place = index === undefined ? -1 : this.window.indexOf(index)
    if (place >= 0) this.window.splice(place, 1)
    this.fill()
  }

  private mark(key: string, failed: boolean): number | undefined {
    const index = this.places.get(key)
    if (index === undefined || this.finished[index] === 1) return index
    this.finished[index] = 1
    this.done += 1
    if (failed) this.failed += 1
    return index
  }

  private fill(): void {
    while (this.window.length < this.concurrency && this.next < this.items.length) {
      if (this.finished[this.next] === 0) this.window.push(this.next)
      this.next += 1
    }
  }

  find(key: string): FanItem | undefined {
    const index = this.places.get(key)
    return index === undefined ? undefined : this.items[index]
  }
}
