/** A driver that keeps the paths of everything that it is given to commit, so that a case can ask for all of them. */
import type { CheckpointDriver, CommitRows } from "@cairn/core"
import * as Effect from "effect/Effect"

const note = ({ attempts, effects, steps }: CommitRows, paths: Set<string>): void => {
  for (const { path } of [...steps, ...effects, ...attempts]) paths.add(path)
}

/** `transact` of a driver, its commit's paths noted as well. */
const transacting = (transact: CheckpointDriver["transact"], paths: Set<string>): Pick<CheckpointDriver, "transact"> =>
  transact === undefined
    ? {}
    : {
        transact: (limits, body) =>
          transact(limits, (access) =>
            Effect.tap(body(access), ({ commit }) => Effect.sync(() => note(commit, paths))),
          ),
      }

/** The same driver; the paths of each batch are added to `paths`, also of what is refused: it must not be found. */
export const notingPaths = (driver: CheckpointDriver, paths: Set<string>): CheckpointDriver => ({
  capabilities: driver.capabilities,
  storeId: driver.storeId,
  now: driver.now,
  createRun: (run) => driver.createRun(run),
  createChild: (child, parent) => driver.createChild(child, parent),
  createRuns: (runs) => driver.createRuns(runs),
  findRun: (namespace, runId) => driver.findRun(namespace, runId),
  findRuns: (keys) => driver.findRuns(keys),
  load: (namespace, runId) => driver.load(namespace, runId),
  loadOpen: (namespace, runId, asked) => driver.loadOpen(namespace, runId, asked),
  loadSteps: (query) => driver.loadSteps(query),
  loadHistory: (query) => driver.loadHistory(query),
  loadWaits: (namespace, runId) => driver.loadWaits(namespace, runId),
  decideWait: (decision) => driver.decideWait(decision),
  expireWait: (lease, path) => driver.expireWait(lease, path),
  claim: (request) => driver.claim(request),
  commit: (batch) => {
    for (const commit of batch) note(commit, paths)
    return driver.commit(batch)
  },
  recordOutcome: (outcome) => driver.recordOutcome(outcome),
  findEffect: (key) => driver.findEffect(key),
  beat: (workerId, leaseMs) => driver.beat(workerId, leaseMs),
  loadReached: (workerId) => driver.loadReached(workerId),
  leaseHasEnded: (workerId) => driver.leaseHasEnded(workerId),
  releaseWorker: (workerId) => driver.releaseWorker(workerId),
  unpark: (namespace, runId) => driver.unpark(namespace, runId),
  answer: (answer) => {
    paths.add(answer.path)
    return driver.answer(answer)
  },
  listParked: (page) => driver.listParked(page),
  send: (signal) => driver.send(signal),
  loadSignals: (namespace, runId, names) => driver.loadSignals(namespace, runId, names),
  requestCancel: (namespace, runId, reason) => driver.requestCancel(namespace, runId, reason),
  listRuns: (page) => driver.listRuns(page),
  listReviews: (page) => driver.listReviews(page),
  setPaused: (namespace, runId, paused) => driver.setPaused(namespace, runId, paused),
  reopenRun: (reopen) => {
    paths.add(reopen.path)
    return driver.reopenRun(reopen)
  },
  forkRun: (fork) => driver.forkRun(fork),
  rewindRun: (rewind) => {
    paths.add(rewind.mark.path)
    return driver.rewindRun(rewind)
  },
  loadPerformed: (namespace, runId) => driver.loadPerformed(namespace, runId),
  putSchedule: (schedule) => driver.putSchedule(schedule),
  removeSchedule: (namespace, scheduleId) => driver.removeSchedule(namespace, scheduleId),
  listSchedules: (page) => driver.listSchedules(page),
  nextSchedules: (asked) => driver.nextSchedules(asked),
  fireSchedule: (fire) => driver.fireSchedule(fire),
  forgetOutputs: (old) => driver.forgetOutputs(old),
  beginCall: (call) => driver.beginCall(call),
  endCall: (call) => driver.endCall(call),
  findSpend: (namespace, counters) => driver.findSpend(namespace, counters),
  listCalls: (page) => driver.listCalls(page),
  sumCalls: (query) => driver.sumCalls(query),
  ...transacting(driver.transact, paths),
  ...(driver.onReached === undefined
    ? {}
    : { onReached: (listener: (workerId: string) => void) => driver.onReached?.(listener) }),
  ...(driver.onWakeUp === undefined ? {} : { onWakeUp: (listener: () => void) => driver.onWakeUp?.(listener) }),
})
