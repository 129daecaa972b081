/** A worker's lease: prolonged by a heartbeat, ended with everything that it holds. */
import type { CheckpointDriver, HeldLease } from "@cairn/core"
import * as Array from "effect/Array"
import * as Effect from "effect/Effect"
import type { Database } from "../Database.js"
import type { Dialect } from "../Dialect.js"
import { attempt, readEach, readNear, readRow, readRun, wholeMs } from "../readRow.js"
import { beatResult, leaseColumns, workerStatements } from "../statements/workers.js"

/** What the driver does with a worker's lease. */
export const workers = (dialect: Dialect, database: Database) => {
  const statements = workerStatements(dialect)

  const beat: CheckpointDriver["beat"] = (workerId, leaseMs) => {
    const operation = `beat for worker '${workerId}'`
    return Effect.flatMap(
      attempt(() => statements.beat(workerId, wholeMs(operation, "leaseMs", leaseMs))),
      (statement) =>
        database.transaction(operation, "heartbeat", (session) =>
          Effect.gen(function* () {
            const beaten = yield* session.run(statement)
            const held = yield* session.run(statements.leases(workerId))
            return yield* attempt(() => ({
              ...readRow<{ readonly until: number; readonly now: number }>(operation, beatResult, beaten[0] ?? {}),
              // What of a run cannot be read takes no other run from its worker (D14).
              leases: held.map((row) => readNear<HeldLease>(readRun(row), leaseColumns, row)),
            }))
          }),
        ),
    )
  }

  const releaseWorker: CheckpointDriver["releaseWorker"] = (workerId) =>
    database.transaction(`release worker '${workerId}'`, "usual", (session) =>
      Effect.asVoid(Effect.zipRight(session.run(statements.giveUp(workerId)), session.run(statements.end(workerId)))),
    )
  const loadReached: CheckpointDriver["loadReached"] = (workerId) => {
    const operation = `look at what has reached the runs of worker '${workerId}'`
    return Effect.flatMap(database.query(operation, statements.reached(workerId)), (rows) =>
      // What cannot be read is said by heartbeats: these looks come too often (D14).
      attempt(() => Array.getRights(readEach<HeldLease>(readRun, leaseColumns, rows))),
    )
  }

  const leaseHasEnded: CheckpointDriver["leaseHasEnded"] = (workerId) =>
    Effect.map(
      database.query(`read the lease of worker '${workerId}'`, statements.living(workerId)),
      (rows) => rows.length === 0,
    )

  return { beat, leaseHasEnded, loadReached, releaseWorker }
}
