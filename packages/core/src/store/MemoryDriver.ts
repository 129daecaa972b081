/**
 * The reference driver: every law in its plainest form, over Maps. Nothing survives the process.
 *
 * Each method reads the clock and then does its work in one synchronous function, so that no other fiber can come
 * between two of its parts (D2, D6). Rows are flat; they are copied on the way in and on the way out, so that no caller
 * holds what is stored.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import type { Capabilities } from "./Capabilities.js"
import type { CheckpointDriver } from "./CheckpointDriver.js"
import { beginCall, endCall, findSpend, listCalls, sumCalls } from "./internal/memoryCalls.js"
import { beat, claim, heldBy, leaseEnded, releaseWorker } from "./internal/memoryClaims.js"
import { commit } from "./internal/memoryCommit.js"
import { emptyData, find, type Data } from "./internal/memoryData.js"
import { forkRun, listReviews, listRuns, loadPerformed, reopenRun, setPaused } from "./internal/memoryLifecycle.js"
import { loadHistory } from "./internal/memoryHistory.js"
import { loadSignals, requestCancel, send } from "./internal/memoryInbox.js"
import { rewindRun } from "./internal/memoryRewind.js"
import { answer, findEffect, forgetOutputs, recordOutcome, unpark } from "./internal/memoryOutcomes.js"
import { createChild, createRun, listParked, load, loadOpen, loadSteps } from "./internal/memoryRuns.js"
import { fireSchedule, listSchedules, nextSchedules, putSchedule, removeSchedule } from "./internal/memorySchedules.js"
import { decideWait, expireWait, loadWaits } from "./internal/memoryWaits.js"

const capabilities: Capabilities = {
  name: "memory",
  transactions: false,
  notify: false,
  multiProcess: false,
  rowSecurity: false,
}

const atNow = <A>(act: (now: number) => A): Effect.Effect<A> => Effect.map(Clock.currentTimeMillis, act)

const driverOver = (data: Data): CheckpointDriver => ({
  capabilities,
  storeId: Effect.succeed(data.storeId),
  now: Clock.currentTimeMillis,
  createRuns: (runs) => atNow((now) => runs.map((run) => createRun(data, run, now))),
  createRun: (run) => atNow((now) => createRun(data, run, now)),
  createChild: (child, parent) => atNow((now) => createChild(data, child, parent, now)),
  findRun: (namespace, runId) =>
    Effect.sync(() => {
      const run = find(data, namespace, runId)
      return run === undefined ? null : { ...run.row }
    }),
  findRuns: (keys) =>
    Effect.sync(() =>
      keys.map(({ namespace, runId }) => {
        const run = find(data, namespace, runId)
        if (run === undefined) return null
        const { input: _, ...row } = run.row
        return row
      }),
    ),
  load: (namespace, runId) => Effect.sync(() => load(data, namespace, runId)),
  loadOpen: (namespace, runId, paths) => Effect.sync(() => loadOpen(data, namespace, runId, paths)),
  loadSteps: (query) => Effect.sync(() => loadSteps(data, query)),
  loadHistory: (query) => Effect.sync(() => loadHistory(data, query)),
  loadWaits: (namespace, runId) => Effect.sync(() => loadWaits(data, namespace, runId)),
  decideWait: (decision) => atNow((now) => decideWait(data, decision, now)),
  expireWait: (lease, path) => Effect.sync(() => expireWait(data, lease, path)),
  claim: (request) => atNow((now) => claim(data, request, now)),
  commit: (batch) => Effect.flatten(atNow((now) => commit(data, batch, now))),
  recordOutcome: (outcome) => atNow((now) => recordOutcome(data, outcome, now)),
  findEffect: (key) => Effect.sync(() => findEffect(data, key)),
  beat: (workerId, leaseMs) => atNow((now) => beat(data, workerId, leaseMs, now)),
  loadReached: (workerId) => Effect.sync(() => heldBy(data, workerId).filter(({ inbox }) => inbox > 0)),
  leaseHasEnded: (workerId) => atNow((now) => leaseEnded(data.workers.get(workerId), now)),
  releaseWorker: (workerId) => atNow((now) => releaseWorker(data, workerId, now)),
  unpark: (namespace, runId) => atNow((now) => unpark(data, namespace, runId, now)),
  answer: (given) => atNow((now) => answer(data, given, now)),
  listParked: (page) => Effect.sync(() => listParked(data, page)),
  send: (signal) => atNow((now) => send(data, signal, now)),
  loadSignals: (namespace, runId, names) => Effect.sync(() => loadSignals(data, namespace, runId, names)),
  requestCancel: (namespace, runId, reason) => atNow((now) => requestCancel(data, namespace, runId, reason, now)),
  listRuns: (page) => Effect.sync(() => listRuns(data, page)),
  listReviews: (page) => atNow((now) => listReviews(data, page, now)),
  setPaused: (namespace, runId, paused) => atNow((now) => setPaused(data, namespace, runId, paused, now)),
  reopenRun: (reopen) => atNow((now) => reopenRun(data, reopen, now)),
  rewindRun: (rewind) => atNow((now) => rewindRun(data, rewind, now)),
  forkRun: (fork) => atNow((now) => forkRun(data, fork, now)),
  loadPerformed: (namespace, runId) => Effect.sync(() => loadPerformed(data, namespace, runId)),
  putSchedule: (schedule) => atNow((now) => putSchedule(data, schedule, now)),
  removeSchedule: (namespace, scheduleId) => Effect.sync(() => removeSchedule(data, namespace, scheduleId)),
  listSchedules: (page) => Effect.sync(() => listSchedules(data, page)),
  nextSchedules: (asked) => Effect.sync(() => nextSchedules(data, asked)),
  fireSchedule: (fire) => atNow((now) => fireSchedule(data, fire, now)),
  forgetOutputs: (old) => atNow((now) => forgetOutputs(data, old, now)),
  beginCall: (call) => atNow((now) => beginCall(data, call, now)),
  endCall: (call) => atNow((now) => endCall(data, call, now)),
  findSpend: (namespace, counters) => atNow((now) => findSpend(data, namespace, counters, now)),
  listCalls: (page) => Effect.sync(() => listCalls(data, page)),
  sumCalls: (query) => Effect.sync(() => sumCalls(data, query)),
})

/**
 * The driver that keeps runs in the memory of one process: for tests, and for learning what a driver has to do.
 *
 * @category drivers
 * @since 0.1.0
 */
export const MemoryDriver = {
  /**
   * Makes an empty store of its own. Its clock is Effect's, so that `TestClock` moves leases and wake times.
   *
   * *Laws.* D1 to D42.
   */
  make: (): Effect.Effect<CheckpointDriver> => Effect.sync(() => driverOver(emptyData(randomUUID()))),
}
