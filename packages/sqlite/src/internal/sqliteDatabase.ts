/**
 * One connection to one file, shared by all fibers of the process; other processes have their own.
 *
 * - **S1** A transaction begins with `begin immediate`: it never has to turn a read lock into a write lock, which SQLite
 *   refuses without waiting.
 * - **S2** From begin to commit or rollback nothing interrupts, and every failure, defects included, ends in a rollback: a
 *   failing `commit` would otherwise leave the connection in a transaction, and the next innocent one would fail.
 * - **S3** SQLite never waits (`busy_timeout` is 0): a wait inside it would stop the event loop, and the heartbeats with
 *   it. Waiting is a sleep of the fiber, with the connection given back.
 * - **S4** One writer and one reader wait for their turn at a time; heartbeats have a line of their own and retry in
 *   shorter steps, so that no queue of commits can cost a worker its lease.
 * - **S5** No row of transactions keeps the event loop longer than `maxRowMs`: each is synchronous work, and fibers that
 *   follow each other never let a timer fire by themselves, not even the one that starts the next heartbeat.
 * - **S6** Only a busy file is tried again, and only after a rollback: nothing is sent twice whose end is not known.
 * - **S7** A transaction that is lent to a body holds the connection, and with it the store of this process, until it ends.
 *   Before its commit it is asked whether it is still there: after some errors SQLite has ended it, and each further
 *   statement would be a transaction of its own.
 */
import { storeError, type Database, type Row, type Session, type Statement } from "@cairn/sql"
import { TransactionAborted, type StoreError } from "@cairn/core"
import type { Connection } from "@effect/sql/SqlConnection"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
// Not the global: timers that a test has replaced would stop the store.
import { setImmediate } from "node:timers"
import { makeGate } from "./gate.js"
import { sqliteDialect } from "./sqliteDialect.js"

// Another process holds the lock in real time, whatever clock the fiber has.
const realClock = Clock.make()

// Long enough to let the other writer finish, short enough that a free lock is not left waiting.
const maxDelayMs = 25
const maxHeartbeatDelayMs = 3

// Jitter has to differ between processes: a seeded source would make them collide again and again.
const delayMs = (urgency: "usual" | "heartbeat", tries: number): number =>
  1 + Math.random() * (urgency === "heartbeat" ? maxHeartbeatDelayMs : Math.min(maxDelayMs, 2 ** tries))

// A few commits with their fsync. Well under any lease, and under what people notice.
const maxRowMs = 10

/** S5: once in a while, whoever is next lets timers and sockets have their turn first. */
const makeTurns = (): Effect.Effect<void> => {
  let last = performance.now()
  const turn = Effect.async<void>((resume) => {
    setImmediate(() => {
      last = performance.now()
      resume(Effect.void)
    })
  })
  return Effect.suspend(() => (performance.now() - last < maxRowMs ? Effect.void : turn))
}

/** Repeats what found the file busy, until the deadline; then the busy error stands. */
export const untilFree = <A>(
  busyTimeoutMs: number,
  urgency: "usual" | "heartbeat",
  once: Effect.Effect<A, StoreError>,
): Effect.Effect<A, StoreError> =>
  Effect.suspend(() => {
    const deadline = performance.now() + busyTimeoutMs
    const from = (tries: number): Effect.Effect<A, StoreError> =>
      Effect.catchAll(once, (error) =>
        error.reason !== "Busy" || performance.now() >= deadline
          ? Effect.fail(error)
          : Effect.flatMap(Effect.withClock(Effect.sleep(delayMs(urgency, tries)), realClock), () => from(tries + 1)),
      )
    return from(0)
  })

/** A defect of the client is an error of the database like any other. */
const classified =
  (operation: string) =>
  <A>(effect: Effect.Effect<A, unknown>): Effect.Effect<A, StoreError> =>
    Effect.catchAllCause(effect, (cause) => Effect.fail(storeError(sqliteDialect, operation, Cause.squash(cause))))

const run = (
  connection: Connection,
  operation: string,
  { params, text }: Statement,
): Effect.Effect<ReadonlyArray<Row>, StoreError> => classified(operation)(connection.execute(text, params, undefined))

const control = (connection: Connection, operation: string, text: string): Effect.Effect<void, StoreError> =>
  Effect.asVoid(classified(operation)(connection.execute(text, [], undefined)))

/**
 * Rolls back, and takes any failure for "there is no transaction": SQLite has ended it by itself after errors such as a
 * full disk, and gives that no code of its own. If one was left open after all, `begin` closes it.
 */
const rollback = (connection: Connection): Effect.Effect<void> =>
  Effect.ignore(control(connection, "roll back", "rollback"))

/**
 * Begins, also on a connection that somebody else has left in a transaction (S2): SQLite's answer to that has no code of
 * its own, it is what no other code names.
 */
const begin = (connection: Connection, operation: string, text: string): Effect.Effect<void, StoreError> =>
  Effect.catchAll(control(connection, operation, text), (error) =>
    error.reason === "Unknown"
      ? Effect.zipRight(rollback(connection), control(connection, operation, text))
      : Effect.fail(error),
  )

/** S7: SQLite refuses to begin within a transaction, and says so with no code of its own. */
const stillThere = (connection: Connection, operation: string): Effect.Effect<void, StoreError | TransactionAborted> =>
  Effect.matchEffect(control(connection, operation, "begin"), {
    onFailure: (error) => (error.reason === "Unknown" ? Effect.void : Effect.fail(error)),
    onSuccess: () => Effect.fail(new TransactionAborted({ problem: "SQLite had ended it after a failed statement" })),
  })

/** What is checked only now (deferred constraints) is refused for what the body wrote. */
const commitLent = (connection: Connection, operation: string): Effect.Effect<void, StoreError | TransactionAborted> =>
  Effect.mapError(control(connection, operation, "commit"), (error) =>
    error.reason === "Constraint"
      ? new TransactionAborted({ problem: "it breaks a constraint that is checked at its end", cause: error })
      : error,
  )

export interface SqliteDatabaseOptions {
  readonly busyTimeoutMs: number
}

/** The ways to the database over a connection that is configured already. */
export const makeSqliteDatabase = (connection: Connection, { busyTimeoutMs }: SqliteDatabaseOptions): Database => {
  const turns = makeTurns()

  // S4
  const lines = {
    read: makeGate(),
    usual: makeGate(),
    heartbeat: makeGate(),
  }
  const gate = makeGate()

  const held = <A, E>(urgency: "usual" | "heartbeat", use: () => Effect.Effect<A, E>): Effect.Effect<A, E> => {
    const once = Effect.suspend(use)
    return urgency === "heartbeat" ? gate.hold(once, true) : Effect.zipRight(turns, gate.hold(once))
  }

  /** One try of a transaction. */
  const within = <A>(
    operation: string,
    urgency: "usual" | "heartbeat",
    beginning: "begin" | "begin immediate",
    body: (session: Session) => Effect.Effect<A, StoreError>,
  ): Effect.Effect<A, StoreError> =>
    held(urgency, () => {
      const session: Session = { run: (statement) => run(connection, operation, statement) }
      // S2: also a body that throws ends here.
      const committed = Effect.flatMap(classified(operation)(Effect.suspend(() => body(session))), (value) =>
        Effect.as(control(connection, operation, "commit"), value),
      )
      return Effect.uninterruptible(
        Effect.zipRight(
          begin(connection, operation, beginning),
          Effect.flatMap(Effect.exit(committed), (exit) =>
            Exit.isSuccess(exit) ? exit : Effect.zipRight(rollback(connection), exit),
          ),
        ),
      )
    })

  const transaction: Database["transaction"] = (operation, urgency, body) =>
    lines[urgency].hold(untilFree(busyTimeoutMs, urgency, within(operation, urgency, "begin immediate", body)))

  /** One try of a lent transaction. Its end is a value: from the body on nothing is tried again. */
  const lending = <A, B, E>(
    operation: string,
    body: (connection: Connection) => Effect.Effect<A, E>,
    end: (session: Session, value: A) => Effect.Effect<{ readonly keep: boolean; readonly value: B }, StoreError>,
  ) =>
    held("usual", () => {
      const session: Session = { run: (statement) => run(connection, operation, statement) }
      return Effect.uninterruptibleMask((restore) =>
        Effect.zipRight(
          begin(connection, operation, "begin immediate"),
          Effect.gen(function* () {
            const value = yield* restore(Effect.suspend(() => body(connection)))
            yield* stillThere(connection, operation)
            const ended = yield* classified(operation)(Effect.suspend(() => end(session, value)))
            if (ended.keep) yield* commitLent(connection, operation)
            else yield* rollback(connection)
            return ended.value
          }).pipe(
            Effect.onError(() => rollback(connection)),
            Effect.exit,
          ),
        ),
      )
    })

  return {
    compiler: Effect.promise(async () => (await import("@effect/sql/Statement")).makeCompilerSqlite()),
    lend: (operation, _limits, body, end) =>
      Effect.flatten(lines.usual.hold(untilFree(busyTimeoutMs, "usual", lending(operation, body, end)))),
    query: (operation, statement) => {
      const once = held("usual", () => run(connection, operation, statement))
      return lines.read.hold(untilFree(busyTimeoutMs, "usual", once))
    },
    snapshot: (operation, body) =>
      lines.read.hold(untilFree(busyTimeoutMs, "usual", within(operation, "usual", "begin", body))),
    write: (operation, statement) => transaction(operation, "usual", (session) => session.run(statement)),
    transaction,
  }
}
