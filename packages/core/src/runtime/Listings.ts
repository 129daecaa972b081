/** Lists for people: runs, and the reviews that wait for somebody. A list is a page; its cursor leads to the next. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { StoreError } from "../model/Errors.js"
import { checkId, defaultNamespace } from "../model/Ids.js"
import type { FailureRecord, ParkRecord, RunStatus } from "../model/Records.js"
import type { ReviewRow } from "../store/CheckpointDriver.js"
import { CheckpointStore, type ListedRecord } from "../store/CheckpointStore.js"
import { cursorOf, known, largestPage, pageSize, readCursor, timeOf, wrong } from "./internal/asked.js"
import type { ReviewData } from "./internal/reviews.js"

/**
 * Which runs are listed. What is left out lets everything through; an option that does not exist is refused.
 *
 * *Shape.* `parent`: children of that run. `createdFrom` is the first time that fits, `createdBefore` the first that does not.
 * `cursor`: that of the page before. `limit`: 20 unless given, at most 100.
 *
 * @category options
 * @since 0.1.0
 */
export interface ListOptions {
  readonly namespace?: string
  readonly workflow?: string
  readonly status?: RunStatus | ReadonlyArray<RunStatus>
  readonly parent?: string
  readonly createdFrom?: Date
  readonly createdBefore?: Date
  readonly cursor?: string
  readonly limit?: number
}

/**
 * A run in a list.
 *
 * *Shape.* `step`: the path that was committed or tried last. `pausedAt`: since when it is paused, null if it is not. `wakeAt`: when
 * it goes on by itself, null where it does not. `parent`: the run, and the path in it, that this one is a child of. `interruptions`:
 * how often a crash, or a stop in the middle, took it from its worker. `failure`, `parked`: why it failed, or waits for a person. `unreadable`: set where that could not be read; the rest is as it stands.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunSummary {
  readonly namespace: string
  readonly runId: string
  readonly workflow: string
  readonly version: number
  readonly status: RunStatus
  readonly step: string | null
  readonly failure: FailureRecord | null
  readonly parked: ParkRecord | null
  readonly unreadable: StoreError | null
  readonly priority: number
  readonly interruptions: number
  readonly parent: { readonly runId: string; readonly step: string } | null
  /** The run that it is a fork of. */
  readonly forkedFrom: string | null
  readonly pausedAt: Date | null
  readonly cancelAt: Date | null
  readonly wakeAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

const statuses: ReadonlyArray<RunStatus> = [
  ...(["pending", "running", "sleeping", "waiting", "review"] as const),
  ...(["completed", "failed", "canceled"] as const),
]

const dateOf = (at: number | null): Date | null => (at === null ? null : new Date(at))

const summaryOf = (run: ListedRecord): RunSummary => {
  const why = Either.getOrElse(run.why, () => ({ failure: null, parked: null }))
  return {
    namespace: run.namespace,
    runId: run.runId,
    workflow: run.workflow,
    version: run.version,
    status: run.status,
    step: run.cursor,
    failure: why.failure,
    parked: why.parked,
    unreadable: Either.isLeft(run.why) ? run.why.left : null,
    priority: run.priority,
    interruptions: run.interruptions,
    parent: run.parentRunId === null ? null : { runId: run.parentRunId, step: run.parentPath ?? "" },
    forkedFrom: run.forkedFrom,
    pausedAt: dateOf(run.pausedAt),
    cancelAt: dateOf(run.cancelAt),
    wakeAt: dateOf(run.wakeAt),
    createdAt: new Date(run.createdAt),
    updatedAt: new Date(run.updatedAt),
  }
}

const statusesOf = (place: string, given: ListOptions["status"]) => {
  if (given === undefined) return Either.right(null)
  const asked = typeof given === "string" ? [given] : given
  return Array.isArray(asked) && asked.every((status) => statuses.includes(status))
    ? Either.right(asked as ReadonlyArray<RunStatus>)
    : Either.left(wrong(place, ".status", `expected one or several of ${statuses.join(", ")}`))
}

const textOf = (place: string, field: string, given: unknown) =>
  given === undefined || typeof given === "string"
    ? Either.right(given ?? null)
    : Either.left(wrong(place, field, "expected text"))

const listOptions = "namespace workflow status parent createdFrom createdBefore cursor limit".split(" ")

export const list = (options: ListOptions = {}) =>
  Effect.gen(function* () {
    const place = "options of Cairn.list"
    yield* known(place, options, listOptions)
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const limit = yield* pageSize(place, options.limit)
    const after = yield* readCursor<[number, string]>(place, options.cursor, ["number", "string"])
    const page = {
      namespace,
      limit,
      workflow: yield* textOf(place, ".workflow", options.workflow),
      statuses: yield* statusesOf(place, options.status),
      parentRunId: yield* textOf(place, ".parent", options.parent),
      createdFrom: yield* timeOf(place, ".createdFrom", options.createdFrom),
      createdBefore: yield* timeOf(place, ".createdBefore", options.createdBefore),
      after: after === null ? null : { createdAt: after[0], runId: after[1] },
    }
    const store = yield* CheckpointStore
    const rows = yield* store.listRuns(page)
    const last = rows.at(-1)
    const cursor = last === undefined || rows.length < limit ? null : cursorOf([last.createdAt, last.runId])
    return { runs: rows.map(summaryOf), cursor }
  })

// ---- reviews ---------------------------------------------------------------------------------------------------

/**
 * Which open reviews are listed.
 *
 * *Shape.* `who`: those that are this person's affair by now, escalations counted. `cursor`: that of the page before; with `who` a
 * page may hold fewer than `limit`, even none, and lead on all the same. `limit`: 20 unless given, at most 100.
 *
 * @category options
 * @since 0.1.0
 */
export interface ReviewsOptions {
  readonly namespace?: string
  readonly who?: string
  readonly cursor?: string
  readonly limit?: number
}

/**
 * A review that waits for a decision by `Cairn.review`.
 *
 * *Shape.* `reviewId` names this very occurrence. `shown` is what the workflow shows, as JSON; undefined where it shows nothing.
 * `who`: whose affair it is by the store's clock, null where the workflow names nobody. `escalation`: how often it has been passed
 * on. `deadline`: when it is over by itself, null for never. `unreadable`: what was kept with it, or a number of its run, cannot be read; the rest is right.
 *
 * @category models
 * @since 0.1.0
 */
export interface OpenReview {
  readonly namespace: string
  readonly runId: string
  readonly workflow: string
  readonly version: number
  readonly step: string
  readonly reviewId: string
  readonly shown: unknown
  readonly who: string | null
  readonly escalation: number
  readonly openedAt: Date
  readonly deadline: Date | null
  readonly unreadable: boolean
}

const dataOf = (text: string | null): ReviewData | null => {
  try {
    return JSON.parse(text ?? "") as ReviewData
  } catch {
    return null
  }
}

const openReview = (row: ReviewRow, now: number): OpenReview => {
  const data = dataOf(row.data)
  const passedOn = (data?.escalate ?? []).filter(({ afterMs }) => row.openedAt + afterMs <= now)
  const last = passedOn.reduce<(typeof passedOn)[number] | null>(
    (latest, each) => (latest === null || each.afterMs >= latest.afterMs ? each : latest),
    null,
  )
  return {
    namespace: row.namespace,
    runId: row.runId,
    workflow: row.workflow,
    version: row.version,
    step: row.path,
    reviewId: row.name ?? "",
    shown: data?.shown,
    who: last?.who ?? data?.who ?? null,
    escalation: passedOn.length,
    openedAt: new Date(row.openedAt),
    deadline: dateOf(row.wakeAt),
    unreadable: data === null || row.unreadable !== undefined,
  }
}

/** Most pages of the store that one call looks through for somebody's reviews. */
const maxLooks = 10

export const reviews = (options: ReviewsOptions = {}) =>
  Effect.gen(function* () {
    const place = "options of Cairn.reviews"
    yield* known(place, options, ["namespace", "who", "cursor", "limit"])
    const namespace = yield* checkId("namespace", options.namespace ?? defaultNamespace)
    const who = yield* textOf(place, ".who", options.who)
    const limit = yield* pageSize(place, options.limit)
    const from = yield* readCursor<[number, string, string]>(place, options.cursor, ["number", "string", "string"])
    const store = yield* CheckpointStore
    const now = yield* store.now
    const found: Array<OpenReview> = []
    let after = from === null ? null : { openedAt: from[0], runId: from[1], path: from[2] }
    const cursor = () => (after === null ? null : cursorOf([after.openedAt, after.runId, after.path]))
    for (let look = 0; look < maxLooks; look++) {
      const size = who === null ? limit : largestPage
      const rows = yield* store.listReviews({ namespace, after, limit: size })
      for (const row of rows) {
        after = { openedAt: row.openedAt, runId: row.runId, path: row.path }
        const review = openReview(row, now)
        if (who === null || review.who === who) found.push(review)
        if (found.length === limit) return { reviews: found, cursor: cursor() }
      }
      if (rows.length < size) return { reviews: found, cursor: null }
    }
    return { reviews: found, cursor: cursor() }
  })
