/** What paid calls have cost: sums, the calls of a run, and what budgets have left. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { checkId, defaultNamespace } from "../model/Ids.js"
import type { CallRow, CallsQuery, CallSumRow, SpendRow } from "../store/CallRows.js"
import { CheckpointStore } from "../store/CheckpointStore.js"
import { cursorOf, known, pageSize, readCursor, timeOf, wrong } from "./internal/asked.js"
import type { RunOptions } from "./Lifecycle.js"

/**
 * Which calls are summed, and by what.
 *
 * *Shape.* `by`: `model`, `workflow`, `step` (without numbers and keys: `agent[]/think`), `run`, `day` (UTC) or `outcome`: what
 * became of the attempts that made them. `from` is the first time that fits, `before` the first that does not, by when calls began.
 * `limit`: how many sums, the dearest first; 20 unless given, at most 100.
 *
 * @category options
 * @since 0.1.0
 */
export interface CostOptions {
  readonly by: CallsQuery["by"]
  readonly namespace?: string
  readonly workflow?: string
  readonly runId?: string
  readonly from?: Date
  readonly before?: Date
  readonly limit?: number
}

/**
 * A sum over paid calls.
 *
 * *Shape.* `key`: the model, workflow, step, run, day (`2026-11-30`) or outcome; `workflow`: that of a step or run, null for the
 * others. `microDollars`: of the calls whose cost is known; `unknown`: how many others there are, no longer under way, and `open`
 * how many are; `reserved`: the most that all of these may cost, as far as they say. `saved`: what the calls that were kept would
 * have cost again, had each interruption of their runs (a crash, a stop) begun them anew. A sum of 2^53 - 1 is that much or more.
 *
 * By `outcome`: `kept` was of use; `rejected` and `failed` attempts were paid for nothing, and so were those that were `lost` to a
 * crash, a stop or a cancel; `open` is under way.
 *
 * @category models
 * @since 0.1.0
 */
export type CostSum = CallSumRow

/**
 * Whose calls are listed. `limit`: 20 unless given, at most 100.
 *
 * @category options
 * @since 0.1.0
 */
export interface CallsOptions extends RunOptions {
  readonly cursor?: string
  readonly limit?: number
}

/**
 * A paid call.
 *
 * *Shape.* `cost`: `known`, with `microDollars` where the model has a price; `unknown` where it was cut off or its provider did not
 * say; `open` while it is under way. `outcome`: what became of its attempt (see `CostSum`). `step` is the path.
 *
 * @category models
 * @since 0.1.0
 */
export interface PaidCallSummary {
  readonly step: string
  readonly attempt: number
  readonly model: string
  readonly cost: "known" | "unknown" | "open"
  readonly microDollars: number | null
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly cachedInputTokens: number | null
  readonly outcome: CallRow["outcome"]
  readonly startedAt: Date
  readonly endedAt: Date | null
}

/**
 * What a run has spent with all of its children, in micro-dollars. `reserved`: for calls whose cost is not known, the most they may
 * have cost, as far as they said. `calls` of which `unknown` have ended without a known cost. 2^53 - 1 is that much or more.
 *
 * @category models
 * @since 0.1.0
 */
export type RunSpend = Omit<SpendRow, "kind" | "name">

const kinds: ReadonlyArray<CallsQuery["by"]> = ["model", "workflow", "step", "run", "day", "outcome"]

const textOf = (place: string, field: string, given: unknown) =>
  given === undefined || typeof given === "string"
    ? Either.right(given ?? null)
    : Either.left(wrong(place, field, "expected text"))

export const cost = (options: CostOptions) =>
  Effect.gen(function* () {
    const place = "options of Cairn.cost"
    yield* known(place, options, "by namespace workflow runId from before limit".split(" "))
    if (!kinds.includes(options.by)) return yield* wrong(place, ".by", `expected one of ${kinds.join(", ")}`)
    const query: CallsQuery = {
      namespace: yield* checkId("namespace", options.namespace ?? defaultNamespace),
      by: options.by,
      workflow: yield* textOf(place, ".workflow", options.workflow),
      runId: yield* textOf(place, ".runId", options.runId),
      from: yield* timeOf(place, ".from", options.from),
      before: yield* timeOf(place, ".before", options.before),
      limit: yield* pageSize(place, options.limit),
    }
    const store = yield* CheckpointStore
    const sums: ReadonlyArray<CostSum> = yield* store.sumCalls(query)
    return sums
  })

const summaryOf = (row: CallRow): PaidCallSummary => ({
  step: row.path,
  attempt: row.attempt,
  model: row.model,
  cost: row.settled === "begun" ? "open" : row.settled,
  microDollars: row.microDollars,
  inputTokens: row.inputTokens,
  outputTokens: row.outputTokens,
  cachedInputTokens: row.cachedInputTokens,
  outcome: row.outcome,
  startedAt: new Date(row.startedAt),
  endedAt: row.endedAt === null ? null : new Date(row.endedAt),
})

export const calls = (options: CallsOptions) =>
  Effect.gen(function* () {
    const place = "options of Cairn.calls"
    yield* known(place, options, ["namespace", "runId", "cursor", "limit"])
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", options.runId)
    const limit = yield* pageSize(place, options.limit)
    const from = yield* readCursor<[number, string]>(place, options.cursor, ["number", "string"])
    const after = from === null ? null : { startedAt: from[0], callId: from[1] }
    const store = yield* CheckpointStore
    const rows = yield* store.listCalls({ namespace, runId, after, limit })
    const last = rows.at(-1)
    const cursor = last === undefined || rows.length < limit ? null : cursorOf([last.startedAt, last.callId])
    return { calls: rows.map(summaryOf), cursor }
  })

export const spend = (options: RunOptions) =>
  Effect.gen(function* () {
    yield* known("options of Cairn.spend", options, ["namespace", "runId"])
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const runId = yield* checkId("run id", options.runId)
    const store = yield* CheckpointStore
    const [row] = yield* store.findSpend(namespace, [{ kind: "run", name: runId }])
    const { calls, reserved, spent, unknown } = row!
    const sum: RunSpend = { spent, reserved, calls, unknown }
    return sum
  })
