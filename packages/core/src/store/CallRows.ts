/** Rows of paid calls: what is begun and ended (D39, D40), and how it is summed (D41). */
import type { CallEnd, CallRecord } from "../model/Usage.js"

/**
 * What spending is counted in: a run with all of its children, a workflow on one day, a namespace on one day.
 *
 * *Shape.* `name`: the run's id, the workflow's name, or empty for the namespace. Days are those of the store's clock, UTC.
 *
 * @category rows
 * @since 0.1.0
 */
export interface Counter {
  readonly kind: "run" | "workflow" | "namespace"
  readonly name: string
}

/**
 * A counter as it stands: micro-dollars that are known to be spent, and that are reserved for calls whose cost is not known yet
 * or never will be; calls, and those among them that ended without a known cost. One that stands at 2^53 - 1 is that much or more.
 *
 * @category rows
 * @since 0.1.0
 */
export interface SpendRow extends Counter {
  readonly spent: number
  readonly reserved: number
  readonly calls: number
  readonly unknown: number
}

/**
 * A call that is about to be made; with `end` one that was made already.
 *
 * *Shape.* `counters`: each once. `limit`: in micro-dollars, null for none. `day` of a counter is that of the call's beginning.
 *
 * @category rows
 * @since 0.1.0
 */
export interface NewCallRow extends Omit<CallRecord, "state" | "startedAt" | "endedAt" | keyof CallEnd> {
  readonly namespace: string
  readonly runId: string
  readonly counters: ReadonlyArray<Counter & { readonly limit: number | null }>
  readonly end: CallEnd | null
}

/**
 * What became of the beginning of a call.
 *
 * *Shape.* `Begun`: by this call of the driver or an earlier one under that id. `Refused`: the counter that has no room; `waiting`
 * is that part of what is reserved whose calls may still be under way. `Lost`: the run is somebody else's.
 *
 * @category rows
 * @since 0.1.0
 */
export type BeginCallResult =
  | { readonly _tag: "Begun" }
  | {
      readonly _tag: "Refused"
      readonly counter: Counter
      readonly limit: number
      readonly spent: number
      readonly reserved: number
      readonly waiting: number
    }
  | { readonly _tag: "Lost" }

/**
 * What a call has used. `counters` are those of its beginning.
 *
 * @category rows
 * @since 0.1.0
 */
export interface EndCallRow {
  readonly namespace: string
  readonly runId: string
  readonly callId: string
  readonly claimToken: string
  readonly counters: ReadonlyArray<Counter>
  readonly end: CallEnd
}

/**
 * A call with what became of its attempt.
 *
 * *Shape.* `outcome`: `kept` where the step is committed with that very attempt; `rejected` and `failed` attempts; `lost` where
 * a crash, a stop or a cancel cut the attempt off before it came to anything; `open` while it may still be under way. `settled`:
 * like `state`, but `unknown` too for a call that is begun and that nobody is left to end. `saved`: what it would have cost again,
 * in micro-dollars, had each interruption of its run since made it begin anew; 0 where nothing was kept or its cost is unknown, and
 * never more than 2^53 - 1.
 *
 * @category rows
 * @since 0.1.0
 */
export interface CallRow extends CallRecord {
  readonly runId: string
  readonly workflow: string
  readonly outcome: "kept" | "rejected" | "failed" | "lost" | "open"
  readonly settled: CallRecord["state"]
  readonly saved: number
}

/**
 * A page of one run's calls, in order of `startedAt`, then of `callId`. `after`: the last one of the page before.
 *
 * @category rows
 * @since 0.1.0
 */
export interface CallsPage {
  readonly namespace: string
  readonly runId: string
  readonly after: { readonly startedAt: number; readonly callId: string } | null
  readonly limit: number
}

/**
 * What calls are summed by, and which. A filter that is null lets everything through; `from` is the first time that fits, `before`
 * the first that does not, by when calls began. A sum by step is one by workflow and step.
 *
 * @category rows
 * @since 0.1.0
 */
export interface CallsQuery {
  readonly namespace: string
  readonly by: "model" | "workflow" | "step" | "run" | "day" | "outcome"
  readonly workflow: string | null
  readonly runId: string | null
  readonly from: number | null
  readonly before: number | null
  readonly limit: number
}

/**
 * A sum over calls.
 *
 * *Shape.* `key`: the model, workflow, step, run, day (`2026-11-30`, UTC) or outcome. `workflow`: of a step or run, null for the
 * others. `open`: calls under way. `unknown`: calls whose cost is not known and no longer under way; `reserved`: micro-dollars
 * reserved for both. `microDollars`: of all others. Sums of tokens are of what is known. One of 2^53 - 1 is that much or more.
 *
 * @category rows
 * @since 0.1.0
 */
export interface CallSumRow {
  readonly key: string
  readonly workflow: string | null
  readonly calls: number
  readonly open: number
  readonly unknown: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedInputTokens: number
  readonly microDollars: number
  readonly reserved: number
  readonly saved: number
}

/**
 * What is added to each counter of a call.
 *
 * @category rows
 * @since 0.1.0
 */
export type Counted = Omit<SpendRow, keyof Counter>

const dayMs = 86_400_000

const mostCounted = Number.MAX_SAFE_INTEGER

/**
 * How calls are counted, whatever the store (D39, D40): what is unknown may have cost all that was reserved.
 *
 * @category rows
 * @since 0.1.0
 */
export const counting = {
  dayMs,
  /** The largest sum. A counter that has come so far stays there: it is that much or more, and whatever is less is exact. */
  most: mostCounted,
  /** What a counter comes to. */
  sum: (counted: number, more: number): number =>
    counted >= mostCounted ? mostCounted : Math.min(mostCounted, counted + more),
  /** The day of a counter by when the call began, from 1970 on; 0 for a run, which is counted over all of its days. */
  dayOf: ({ kind }: Counter, startedAt: number): number => (kind === "run" ? 0 : Math.floor(startedAt / dayMs)),
  /** What a call adds when it begins. */
  begun: ({ atMost, end }: Pick<NewCallRow, "atMost" | "end">): Counted => ({
    spent: end?.microDollars ?? 0,
    reserved: end === null || end.microDollars === null ? (atMost ?? 0) : 0,
    calls: 1,
    unknown: end !== null && end.microDollars === null ? 1 : 0,
  }),
  /** What it adds when it ends, having reserved so much. */
  ended: ({ microDollars }: CallEnd, atMost: number | null): Counted => ({
    spent: microDollars ?? 0,
    reserved: microDollars === null ? 0 : -(atMost ?? 0),
    calls: 0,
    unknown: microDollars === null ? 1 : 0,
  }),
  /** Whether a counter that stands so has room for that: something has to be left. */
  hasRoom: (limit: number, before: Pick<Counted, "spent" | "reserved">, more: Counted): boolean => {
    const used = before.spent + before.reserved
    return used < limit && used + more.spent + more.reserved <= limit
  },
} as const
