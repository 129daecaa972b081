/** A connection that fails at a chosen statement, as if it had died there. */
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import type { CheckpointDriver } from "@cairn/core"
import { Effect } from "effect"

class DeadConnection extends Error {
  readonly code = "SQLITE_IOERR"
}

export interface FaultyConnection {
  readonly connection: Connection
  /** The statement after so many fails; those after it run again. */
  readonly arm: (statements: number) => void
  /** A driver of which only the next call can fail. */
  readonly disarmedByCalls: (driver: CheckpointDriver) => CheckpointDriver
}

export const makeFaultyConnection = (connection: Connection): FaultyConnection => {
  let left: number | null = null

  const faulty: Connection = {
    ...connection,
    execute: (sql, params, transformRows) =>
      Effect.suspend(() => {
        if (left === 0) {
          left = null
          return Effect.fail(new SqlError({ cause: new DeadConnection("the connection is dead") }))
        }
        if (left !== null) left -= 1
        return connection.execute(sql, params, transformRows)
      }),
  }

  const disarm = Effect.sync(() => {
    left = null
  })

  return {
    connection: faulty,
    arm: (statements) => {
      left = statements
    },
    disarmedByCalls: (driver) => ({
      ...driver,
      createRun: (run) => Effect.ensuring(driver.createRun(run), disarm),
      load: (namespace, runId) => Effect.ensuring(driver.load(namespace, runId), disarm),
      loadOpen: (namespace, runId, paths) => Effect.ensuring(driver.loadOpen(namespace, runId, paths), disarm),
      loadSteps: (query) => Effect.ensuring(driver.loadSteps(query), disarm),
      loadWaits: (namespace, runId) => Effect.ensuring(driver.loadWaits(namespace, runId), disarm),
      decideWait: (decision) => Effect.ensuring(driver.decideWait(decision), disarm),
      expireWait: (lease, path) => Effect.ensuring(driver.expireWait(lease, path), disarm),
      claim: (request) => Effect.ensuring(driver.claim(request), disarm),
      commit: (batch) => Effect.ensuring(driver.commit(batch), disarm),
      recordOutcome: (outcome) => Effect.ensuring(driver.recordOutcome(outcome), disarm),
      beat: (workerId, leaseMs) => Effect.ensuring(driver.beat(workerId, leaseMs), disarm),
      releaseWorker: (workerId) => Effect.ensuring(driver.releaseWorker(workerId), disarm),
      unpark: (namespace, runId) => Effect.ensuring(driver.unpark(namespace, runId), disarm),
      answer: (given) => Effect.ensuring(driver.answer(given), disarm),
      reopenRun: (reopen) => Effect.ensuring(driver.reopenRun(reopen), disarm),
      rewindRun: (rewind) => Effect.ensuring(driver.rewindRun(rewind), disarm),
      forkRun: (fork) => Effect.ensuring(driver.forkRun(fork), disarm),
      fireSchedule: (fire) => Effect.ensuring(driver.fireSchedule(fire), disarm),
      beginCall: (call) => Effect.ensuring(driver.beginCall(call), disarm),
      endCall: (call) => Effect.ensuring(driver.endCall(call), disarm),
      setPaused: (namespace, runId, paused) => Effect.ensuring(driver.setPaused(namespace, runId, paused), disarm),
      send: (signal) => Effect.ensuring(driver.send(signal), disarm),
      loadSignals: (namespace, runId, names) => Effect.ensuring(driver.loadSignals(namespace, runId, names), disarm),
      requestCancel: (namespace, runId, reason) =>
        Effect.ensuring(driver.requestCancel(namespace, runId, reason), disarm),
    }),
  }
}
