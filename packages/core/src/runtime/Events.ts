/** What a run has come to, as it becomes durable: for clients that show it while it goes on. */
import * as Duration from "effect/Duration"
import type { AnyWorkflow, failureOfWorkflow, outputOfWorkflow } from "../builder/Workflow.js"
import type { Node } from "../dsl/Definition.js"
import type { ParkReason, RunFailed } from "../model/Errors.js"
import type { WaitRecord } from "../model/Records.js"
import type { LiveEvent } from "./LiveOutput.js"

/**
 * From where events are read.
 *
 * *Shape.* `fromSeq`: those of later commits alone; 0, all that there are, unless given. A client that comes back names the last
 * `seq` of which it has handled every event, the one with `isLastOfSeq` included.
 *
 * @category options
 * @since 0.1.0
 */
export interface EventsOptions {
  readonly fromSeq?: number
}

/** What a completed step is in its workflow. */
export type StepKind = Node["kind"] | "turn" | "items" | "item" | "compensation"

/** Where an event stands: the commit that has left it, whether it is that commit's last one, and the store's clock at it. */
interface At {
  readonly seq: number
  readonly isLastOfSeq: boolean
  readonly at: Date
}

/**
 * A step was committed; of a `turn`, that it has begun, and with which state.
 *
 * `json` is the result as it is stored. What does not fit the schema of this code has no `result`, and `unreadable` says why.
 */
interface StepCompleted extends At {
  readonly _tag: "StepCompleted"
  readonly path: string
  readonly kind: StepKind
  readonly result: unknown
  readonly json: string | null
  readonly unreadable: string | null
  readonly attempts: number
  readonly durationMs: number
}

/** An attempt has ended without a commit of its step. `retryAt`: when the next one is due; null where there is none. */
interface AttemptEnded extends At {
  readonly _tag: "AttemptEnded"
  readonly path: string
  readonly attempt: number
  readonly kind: "failed" | "refused" | "rejected"
  readonly problem: string
  readonly retryAt: Date | null
}

/**
 * The run has gone back to before a step, because data that it had read has moved: what was committed from `toSeq` on is undone,
 * and events of it that came earlier are of no account.
 */
interface Rewound extends At {
  readonly _tag: "Rewound"
  readonly path: string
  readonly toSeq: number
  readonly problem: string
}

/** A person has had the failed run tried again, from this step on. */
interface Retried extends At {
  readonly _tag: "Retried"
  readonly path: string
}

/**
 * The run has begun to wait, and waits still. `name`: the signal's, or the child's run id. `until`: when it is over by itself.
 */
interface Waiting extends At {
  readonly _tag: "Waiting"
  readonly path: string
  readonly kind: WaitRecord["kind"]
  readonly name: string | null
  readonly until: Date | null
  readonly review: { readonly reviewId: string; readonly shown: unknown; readonly who: string | null } | null
}

/** The run waits for a person because something is wrong with it. */
interface Parked extends At {
  readonly _tag: "Parked"
  readonly path: string
  readonly reason: ParkReason
  readonly problem: string
}

interface Completed<W extends AnyWorkflow> extends At {
  readonly _tag: "Finished"
  readonly status: "completed"
  readonly output: outputOfWorkflow<W>
  readonly json: string | null
  readonly unreadable: string | null
}

/** `json` is the declared failure as it is stored, null for any other. */
interface Failed<W extends AnyWorkflow> extends At {
  readonly _tag: "Finished"
  readonly status: "failed"
  readonly step: string
  readonly problem: string
  readonly error: failureOfWorkflow<W> | RunFailed
  readonly json: string | null
}

interface Canceled extends At {
  readonly _tag: "Finished"
  readonly status: "canceled"
  readonly reason: string | null
}

/**
 * Something that a run has come to.
 *
 * *Shape.* In order of `seq`; within one: attempts, steps, waits (each by path), then how the run stands. Steps and attempts are
 * told of for as long as the run is kept. `Waiting`, `Parked` and `Finished` are how it stands: a client that comes later does not
 * hear of a wait that is over (the completed step tells how it ended), nor of a fault that was dealt with.
 *
 * @category models
 * @since 0.1.0
 */
export type RunEvent<W extends AnyWorkflow = AnyWorkflow> =
  StepCompleted | AttemptEnded | Retried | Rewound | Waiting | Parked | Completed<W> | Failed<W> | Canceled

// ---- Server-Sent Events ----------------------------------------------------------------------------------------

/** What of an event is no JSON by itself: its stored text stands for it. */
const decodedFields = ["result", "output", "error"] as const

/** An event as JSON, with values as they are stored. */
const eventJson = (event: RunEvent): string => {
  const { json, ...rest } = { json: null, ...event } as RunEvent & { readonly json: string | null }
  const plain = Object.fromEntries(Object.entries(rest).filter(([field]) => !decodedFields.includes(field as never)))
  const text = JSON.stringify(plain)
  const field = decodedFields.find((field) => field in rest)
  return json === null || field === undefined ? text : `${text.slice(0, -1)},"${field}":${json}}`
}

const isLive = (event: RunEvent | LiveEvent): event is LiveEvent => !("isLastOfSeq" in event)

const frame = (event: RunEvent | LiveEvent): string => {
  if (isLive(event)) return `event: ${event._tag}\ndata: ${JSON.stringify(event)}\n\n`
  // A client that comes back names the last id that it has received: within a commit there is none to come back to.
  const id = event.isLastOfSeq ? `id: ${event.seq}\n` : ""
  const data = eventJson(event).split(/\r\n|\r|\n/)
  return `event: ${event._tag}\n${id}${data.map((line) => `data: ${line}\n`).join("")}\n`
}

/**
 * How events are sent.
 *
 * *Shape.* `keepAlive`: where no event has come for so long, a comment is sent, so that nothing on the way takes the connection for
 * dead; 15 seconds unless given, `Duration.infinity` for never.
 *
 * @category options
 * @since 0.1.0
 */
export interface ServerSentEventsOptions {
  readonly keepAlive?: Duration.DurationInput
}

/** A comment, which an `EventSource` passes over. */
const keepAliveFrame = ": keep-alive\n\n"

/** Proxies tend to give up a connection after a minute, some after 30 seconds. */
const usualKeepAlive: Duration.DurationInput = "15 seconds"

/** The longest that a timer of Node holds, in milliseconds: a longer one would fire at once. */
const longestTimerMs = 2_147_483_647

/** What a promise gives; null where it has given nothing within so many milliseconds. */
const within = async <A>(promise: Promise<A>, ms: number): Promise<A | null> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<null>((resolve) => {
    if (ms > longestTimerMs) return
    timer = setTimeout(() => resolve(null), ms)
    // It keeps a connection, and no process.
    timer.unref()
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

const end = { done: true, value: undefined } as const

/** Not a generator: its `return` would wait for the next event, which may come in days. */
const frames = (events: AsyncIterator<RunEvent | LiveEvent>, keepAliveMs: number): AsyncIterator<string> => {
  let asked: Promise<IteratorResult<RunEvent | LiveEvent>> | null = null
  const take = async (): Promise<IteratorResult<string>> => {
    asked ??= events.next()
    const next = await within(asked, keepAliveMs)
    if (next === null) return { done: false, value: keepAliveFrame }
    asked = null
    return next.done === true ? end : { done: false, value: frame(next.value) }
  }
  let last: Promise<unknown> = Promise.resolve()
  return {
    next: () => {
      const frame = last.then(take)
      last = frame.catch(() => undefined)
      return frame
    },
    return: async () => {
      await events.return?.()
      return end
    },
  }
}

/**
 * Events on their way to a browser.
 *
 * @category events
 * @since 0.1.0
 */
export const Events = {
  /**
   * Events as frames of Server-Sent Events: `event` is the `_tag`, `data` is JSON with values as they are stored, `id` is the `seq`
   * and stands on the last event of each.
   *
   * *Shape.* An `EventSource` comes back by itself with the id that it has received last; of a commit that it had received in part
   * all events come again. Live output (`handle.live()`) has no ids: who comes back is given what the running attempts have emitted
   * so far. Whoever closes the connection calls `return` on the iterator, as `for await` and Node's `pipeline` do.
   *
   * @example
   * ```ts
   * import { Cairn, Events, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema } from "effect"
   *
   * const double = Workflow.make("double", { version: 1, input: Schema.Number })
   *   .step("twice", { effects: [], output: Schema.Number }, ({ input }) => input * 2)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [double] })
   * const handle = await cairn.start(double, 21)
   * const frames: Array<string> = []
   * for await (const frame of Events.toServerSentEvents(handle.events())) frames.push(frame)
   * frames.map((frame) => frame.split("\n")[0])
   * // => ["event: StepCompleted", "event: Finished"]
   * await cairn.close()
   * ```
   */
  toServerSentEvents: <W extends AnyWorkflow>(
    events: AsyncIterable<RunEvent<W> | LiveEvent>,
    { keepAlive = usualKeepAlive }: ServerSentEventsOptions = {},
  ): AsyncIterable<string> => ({
    [Symbol.asyncIterator]: () =>
      frames(events[Symbol.asyncIterator]() as AsyncIterator<RunEvent | LiveEvent>, Duration.toMillis(keepAlive)),
  }),

  /** The `fromSeq` of a client that sends this `Last-Event-ID`; 0 where it sends none, or none of ours. */
  fromLastEventId: (header: string | ReadonlyArray<string> | null | undefined): number => {
    const id = typeof header === "string" ? header : (header?.[0] ?? "")
    const seq = Number(id)
    return /^\d{1,16}$/.test(id) && Number.isSafeInteger(seq) ? seq : 0
  },
} as const
