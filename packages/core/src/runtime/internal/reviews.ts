/**
 * Waiting for a person's decision.
 *
 * - X1: what is shown is recorded when the review is opened; a decision is about that, and about nothing else.
 * - A decision and the deadline exclude each other: the store takes a decision only into a wait that is open, and only the
 *   run's owner closes one (D28).
 * - An approval that has grown too old, or is about something that would be shown otherwise now, is not acted on: the review is
 *   opened anew.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { ReviewNode } from "../../dsl/Definition.js"
import { codecOf } from "../../model/Codec.js"
import { ReviewExpired, ReviewRejected } from "../../model/Failures.js"
import { fingerprint } from "../../model/Ids.js"
import { canonicalText, toJsonText } from "../../model/internal/json.js"
import { tooLarge } from "../../model/internal/tooLarge.js"
import type { PlanControl } from "../../model/Plan.js"
import type { WaitRecord } from "../../model/Records.js"
import type { WaitWrite } from "../../store/CheckpointDriver.js"
import { tried } from "./asynchrony.js"
import { looked, parkUnreadable, Unreadable } from "./completion.js"
import type { Wait } from "./decide.js"
import type { Failure } from "./leave.js"
import { prefixOf } from "./paths.js"
import type { StoredDecision } from "./reviewResult.js"
import type { RunSession } from "./session.js"
import { endWait, failWait, untilMs, waits, went, type Looked } from "./looking.js"

type ReviewPlan = Extract<PlanControl, { kind: "review" }>

/** What is kept with an open review, as JSON. */
export interface ReviewData {
  readonly shown?: unknown
  readonly shownHash: string
  readonly who: string | null
  readonly escalate: ReviewPlan["escalate"]
}

/** What JSON has no number for: null would be shown as if there were nothing. */
const isNoJsonNumber = (value: unknown): boolean =>
  typeof value === "bigint" || (typeof value === "number" && !Number.isFinite(value))

/**
 * What people look at need not be read back as it was: a bigint is shown by its digits, NaN by its name, a Map by its entries, a date
 * as JSON has it.
 */
const shownText = (shown: unknown): string | null => {
  const exact = toJsonText(shown)
  if ("text" in exact) return exact.text
  const legible = (_: string, value: unknown): unknown =>
    isNoJsonNumber(value) ? String(value) : value instanceof Map || value instanceof Set ? [...value] : value
  return JSON.stringify(shown, legible) ?? null
}

const show = (session: RunSession, path: string): Effect.Effect<string | null, unknown> => {
  const node = session.control(path) as ReviewNode
  const most = session.env.maxValueLength
  return Effect.flatMap(looked(session, prefixOf(path), node.show), (shown) =>
    Effect.filterOrFail(
      tried(() => shownText(shown)),
      (text) => (text?.length ?? 0) <= most,
      (text) => tooLarge(`what review '${node.name}' shows`, text?.length ?? 0, most),
    ),
  )
}

const opened = (session: RunSession, wait: Wait, shown: string | null): Looked => {
  const { path } = wait
  const { deadlineMs, escalate, who } = wait.node as ReviewPlan
  const of: Omit<ReviewData, "shown"> = { shownHash: fingerprint(canonicalText(shown)), who, escalate }
  const data = shown === null ? JSON.stringify(of) : `{"shown":${shown},${JSON.stringify(of).slice(1)}`
  // An earlier occurrence, or an earlier opening of this one, has another id.
  const name = `${path}@${session.seq + 1}`
  const open: WaitWrite = { path, kind: "review", name, data, wake: { inMs: deadlineMs } }
  return waits(deadlineMs, open)
}

const expired = (session: RunSession, wait: Wait, { data, wakeAt }: WaitRecord): Effect.Effect<Looked, Failure> => {
  const { onReject, onTimeout } = wait.node as ReviewPlan
  if (onTimeout === "fail" || onReject === "fail")
    return failWait(session, wait, new ReviewExpired({ step: wait.path }))
  return endWait(session, wait, ended({ outcome: "expired" }, wakeAt ?? 0, data))
}

const ended = (end: object, at: number, data: string | null): string => {
  const { shown } = JSON.parse(data ?? "{}") as ReviewData
  const ended = toJsonText({ ...end, at, ...(shown === undefined ? {} : { shown }) })
  return (ended as { readonly text: string }).text
}

/** Why an approval is not acted on; null where it is. */
const outdated = (session: RunSession, wait: Wait, { data, decidedAt }: WaitRecord, shown: string | null) =>
  Effect.gen(function* () {
    const { validForMs } = wait.node as ReviewPlan
    const { shownHash } = JSON.parse(data ?? "{}") as ReviewData
    if (fingerprint(canonicalText(shown)) !== shownHash) return "something else would be shown by now"
    if (validForMs === null) return null
    return (yield* untilMs(session, (decidedAt ?? 0) + validForMs)) === 0 ? "it has grown too old" : null
  })

const decided = (session: RunSession, wait: Wait, record: WaitRecord): Effect.Effect<Looked, Failure> =>
  Effect.gen(function* () {
    const { path } = wait
    const decision = JSON.parse(record.decision ?? "null") as StoredDecision
    const at = record.decidedAt ?? 0
    if (decision.outcome === "rejected") {
      const { by, reason } = decision
      return (wait.node as ReviewPlan).onReject === "fail"
        ? yield* failWait(session, wait, new ReviewRejected({ step: path, by, reason }))
        : yield* endWait(session, wait, ended(decision, at, record.data))
    }
    const node = session.control(path) as ReviewNode
    const text = (toJsonText(decision.decision) as { readonly text: string | null }).text
    // It was checked when it was given; code that has changed since may expect another one.
    const readable = codecOf(node.decision).decode(text, `decision of '${path}'`)
    if (Either.isLeft(readable)) {
      return went(yield* parkUnreadable(session, path, new Unreadable(path, readable.left.message)))
    }
    const shown = yield* Effect.either(show(session, path))
    if (Either.isLeft(shown)) return yield* failWait(session, wait, shown.left)
    const why = yield* outdated(session, wait, record, shown.right)
    if (why === null) return yield* endWait(session, wait, ended(decision, at, record.data))
    yield* Effect.logWarning(
      `the approval of '${path}' by ${decision.by} is not acted on: ${why}; it is asked for anew`,
    )
    return opened(session, wait, shown.right)
  })

/** Looks at a review: opens it, obeys a decision, or its deadline. */
export const lookAtReview = (session: RunSession, wait: Wait): Effect.Effect<Looked, Failure> =>
  Effect.gen(function* () {
    const { path, record } = wait
    if (record === null) {
      const shown = yield* Effect.either(show(session, path))
      return Either.isLeft(shown) ? yield* failWait(session, wait, shown.left) : opened(session, wait, shown.right)
    }
    if (record.state === "decided") return yield* decided(session, wait, record)
    if (record.state === "expired") return yield* expired(session, wait, record)
    const left = record.wakeAt === null ? null : yield* untilMs(session, record.wakeAt)
    if (left !== 0) return waits(left)
    const closed = yield* session.persist(session.env.store.expireWait(session.lease, path))
    if (closed === null) return yield* Effect.fail(session.leaseLost())
    return closed.state === "decided" ? yield* decided(session, wait, closed) : yield* expired(session, wait, closed)
  })
