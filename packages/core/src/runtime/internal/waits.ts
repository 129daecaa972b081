/**
 * What a run waits for: a time, a signal, a person, a child.
 *
 * - X1: until when it waits, and what a person was shown, is recorded before it is obeyed.
 * - X8: the store's clock says when a time has come. Waits of up to a second are none of the store's business.
 * - X13: what has arrived is looked at together with the `inbox` of the same instant; the commit that lets the run rest names
 *   that one, and nothing that comes after it is slept through.
 */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { SignalNode, SleepNode } from "../../dsl/Definition.js"
import { durationMs } from "../../dsl/OnUnknown.js"
import { codecOf } from "../../model/Codec.js"
import { InvalidValue } from "../../model/Errors.js"
import { shownValue } from "../../model/internal/untrusted.js"
import { SignalTimeout } from "../../model/Failures.js"
import type { PlanControl } from "../../model/Plan.js"
import type { SignalRecord } from "../../model/Records.js"
import type { WaitWrite } from "../../store/CheckpointDriver.js"
import { looked, parkUnreadable, Unreadable } from "./completion.js"
import { lookAtChild } from "./children.js"
import type { Wait } from "./decide.js"
import type { Failure, Turn } from "./leave.js"
import { endWait, failWait, untilMs, waits, went, type Looked } from "./looking.js"
import { prefixOf } from "./paths.js"
import { indexOf } from "./planIndex.js"
import { inProcessMs } from "./retry.js"
import { lookAtReview } from "./reviews.js"
import type { RunSession } from "./session.js"

// ---- sleeps ----------------------------------------------------------------------------------------------------

/** A hundred years: what lies beyond would overflow a clock. */
const longestMs = 100 * 365 * 86_400_000

const timeOf = (given: unknown): number => {
  try {
    return given instanceof Date ? given.getTime() : typeof given === "number" ? given : Number.NaN
  } catch {
    // A proxy: of a Date, or one that was revoked.
    return Number.NaN
  }
}

const sleepOf = (node: SleepNode, given: unknown): WaitWrite["wake"] | InvalidValue => {
  const place = `sleep '${node.name}'`
  if (node.how === "for") {
    const inMs = durationMs(given as never)
    if (inMs >= 0 && inMs <= longestMs) return { inMs: Math.ceil(inMs) }
    const problem = `expected a duration from 0 to 100 years, got ${shownValue(given)}`
    return new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem })
  }
  const at = timeOf(given)
  if (Number.isFinite(at) && Math.abs(at) <= 8.64e15) return { at: Math.ceil(at) }
  const problem = `expected a Date, got ${shownValue(given)}`
  return new InvalidValue({ place, field: "", reason: "SchemaMismatch", problem })
}

const lookAtSleep = (session: RunSession, wait: Wait): Effect.Effect<Looked, Failure> =>
  Effect.gen(function* () {
    const { path, record } = wait
    if (record !== null) {
      const left = yield* untilMs(session, record.wakeAt ?? 0)
      return left > 0 ? waits(left) : yield* endWait(session, wait, null)
    }
    const begun = session.timers.get(path)
    const now = session.nowMs
    if (begun !== undefined) return begun > now ? waits(Math.ceil(begun - now)) : yield* endWait(session, wait, null)
    const node = session.control(path) as SleepNode
    const given =
      typeof node.value === "function"
        ? yield* Effect.either(looked(session, prefixOf(path), node.value as (context: any) => unknown))
        : Either.right(node.value)
    if (Either.isLeft(given)) return yield* failWait(session, wait, given.left)
    const wake = sleepOf(node, given.right)
    if (wake instanceof InvalidValue) return yield* failWait(session, wait, wake)
    const inMs = wake === null ? 0 : "inMs" in wake ? wake.inMs : yield* untilMs(session, wake.at)
    if (inMs === 0) return yield* endWait(session, wait, null)
    if (inMs <= inProcessMs) {
      session.timers.set(path, now + inMs)
      return waits(inMs)
    }
    return waits(inMs, { path, kind: "sleep", name: null, data: null, wake })
  })

// ---- signals ---------------------------------------------------------------------------------------------------

const received = (session: RunSession, wait: Wait, signal: SignalRecord): Effect.Effect<Looked, Failure> => {
  const { path } = wait
  const node = session.control(path) as SignalNode
  const place = `signal '${signal.name}'`
  // It was checked when it was sent; code that has changed since may expect another one.
  const decoded = codecOf(node.schema).decode(signal.payload, place)
  if (Either.isLeft(decoded)) {
    return Effect.map(parkUnreadable(session, path, new Unreadable(path, decoded.left.message)), went)
  }
  const value = signal.payload === null ? "" : `,"value":${signal.payload}`
  const result = node.onTimeout === "continue" ? `{"ok":true${value}}` : signal.payload
  return endWait(session, wait, result, [{ signalId: signal.signalId, path }])
}

const lookAtSignal = (session: RunSession, wait: Wait): Effect.Effect<Looked, Failure> =>
  Effect.gen(function* () {
    const { path, record } = wait
    const { onTimeout, signal: name, timeoutMs } = wait.node as Extract<PlanControl, { kind: "signal" }>
    const index = session.mail.signals.findIndex((signal) => signal.name === name)
    if (index >= 0) return yield* received(session, wait, session.mail.signals.splice(index, 1)[0]!)
    if (record === null) {
      const wake = timeoutMs === null ? null : { inMs: timeoutMs }
      return waits(timeoutMs, { path, kind: "signal", name, data: null, wake })
    }
    const left = record.wakeAt === null ? null : yield* untilMs(session, record.wakeAt)
    if (left !== 0) return waits(left)
    return onTimeout === "continue"
      ? yield* endWait(session, wait, '{"ok":false,"error":"timeout"}')
      : yield* failWait(session, wait, new SignalTimeout({ step: path, signal: name }))
  })

// ---- all of them -----------------------------------------------------------------------------------------------

const isExternal = ({ node }: Wait): boolean => node.kind !== "sleep"

/** Reads what has arrived, if anything may have since the last look. */
const readMail = (session: RunSession, work: ReadonlyArray<Wait>): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const { store, arrivals } = session.env
    const { namespace, runId } = session.lease
    const { mail } = session
    const mayHaveMore = (arrivals.row?.inbox ?? 0) > session.inbox
    mail.hasNews = mayHaveMore || !mail.isFresh
    if ((mail.isFresh && !mayHaveMore) || !work.some(isExternal)) return
    // Nothing was ever sent to it.
    if (!mayHaveMore && session.inbox === 0 && session.waits?.size === 0) return
    // W2: what stands in the store is what this process knows.
    yield* session.barrier()
    const gone = () => Effect.fail(session.leaseLost())
    // All names: what was sent early for a later wait is not asked for again.
    const names = indexOf(session.env.plan).signals
    let { inbox } = session
    if (mayHaveMore || !mail.waitsAreFresh) {
      const loaded = yield* session
        .persist(store.loadWaits(namespace, runId))
        .pipe(Effect.catchTag("RunNotFound", gone))
      session.waits = new Map(loaded.waits.map((wait) => [wait.path, wait]))
      inbox = loaded.inbox
    }
    mail.waitsAreFresh = false
    if (names.length > 0) {
      const sent = yield* session
        .persist(store.loadSignals(namespace, runId, names))
        .pipe(Effect.catchTag("RunNotFound", gone))
      mail.signals = [...sent.signals]
      inbox = Math.min(inbox, sent.inbox)
    }
    session.inbox = inbox
    mail.isFresh = true
  })

const lookAtOne = (session: RunSession, wait: Wait): Effect.Effect<Looked, Failure> => {
  switch (wait.node.kind) {
    case "sleep":
      return lookAtSleep(session, wait)
    case "signal":
      return lookAtSignal(session, wait)
    case "review":
      return lookAtReview(session, wait)
    case "child":
      return lookAtChild(session, wait)
  }
}

/**
 * Looks at everything that the run waits for.
 *
 * *Shape.* `turn`: what came of those that are over; `went`: whether there were any. `opens`: what it begins to wait for. `inMs`:
 * when the first of them is over by itself.
 */
export const lookAtWaits = (session: RunSession, work: ReadonlyArray<Wait>) =>
  Effect.gen(function* () {
    yield* readMail(session, work)
    if (work.some(isExternal)) session.listens = true
    const opens: Array<WaitWrite> = []
    const turns: Array<{ readonly path: string; readonly turn: Turn }> = []
    let inMs: number | null = null
    for (const each of work) {
      const record = session.waits?.get(each.path) ?? null
      const result = yield* lookAtOne(session, record === each.record ? each : { ...each, record })
      if (result._tag === "Went") turns.push({ path: each.path, turn: result.turn })
      else {
        if (result.open !== null) opens.push(result.open)
        if (result.inMs !== null) inMs = Math.min(inMs ?? Number.POSITIVE_INFINITY, result.inMs)
      }
    }
    return { turns, opens, inMs }
  })
