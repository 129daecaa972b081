/** What the running steps of a run emit, for clients in the process of its worker. Nothing of it is durable. */

/** An attempt has emitted its first chunk: whatever came of this path before is void. `attempt` above 1: a retry. */
interface Began {
  readonly _tag: "Began"
  readonly path: string
  readonly attempt: number
}

/** A chunk of the attempt; `index` counts them from 0. */
interface Chunk {
  readonly _tag: "Chunk"
  readonly path: string
  readonly attempt: number
  readonly index: number
  readonly chunk: unknown
}

/** So many of these are missing here: the beginning of a long output, or what a reader was too slow to take. */
interface Skipped {
  readonly _tag: "Skipped"
  readonly count: number
}

/** The attempt came to nothing, and so did what it emitted: it failed, its output was refused, or it was cut off. */
interface Discarded {
  readonly _tag: "Discarded"
  readonly path: string
  readonly attempt: number
}

/** The step is committed, with this attempt's output; `seq` is that of its commit, as in `events`. */
interface Committed {
  readonly _tag: "Committed"
  readonly path: string
  readonly attempt: number
  readonly seq: number
}

/**
 * Something that a running step has emitted, or that has become of it.
 *
 * *Shape.* Of each attempt that emits: `Began`, its `Chunk`s in order, then `Committed` or `Discarded`. Steps that run side by side
 * are told of between each other. A reader that is too slow, or comes to a step that has emitted more than is kept, is told of
 * the gap by `Skipped`; the next `index` of a path says what is missing of it.
 *
 * @category models
 * @since 0.1.0
 */
export type LiveEvent = Began | Chunk | Skipped | Discarded | Committed
