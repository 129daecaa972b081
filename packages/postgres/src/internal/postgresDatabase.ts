/**
 * Transactions over a pool of connections.
 *
 * - **G1** A transaction begins and ends on one reserved connection, and nothing interrupts it in between. The client's
 *   own `withTransaction` is not used: it reports success for a transaction that it has rolled back, and gives failures
 *   of COMMIT and ROLLBACK as defects.
 * - **G2** Success means that the server has answered COMMIT with COMMIT. It answers ROLLBACK, and no error, where a
 *   statement before has failed.
 * - **G3** A connection whose state is not known is closed, not given back: after a lost connection, a timeout of the
 *   client, a rollback that failed.
 * - **G4** What the server has undone is tried again (serialisation failures, deadlocks), and what never reached a COMMIT
 *   as well (lost connections). Nothing is tried again whose COMMIT was sent and not answered.
 * - **G5** No call needs a second connection while it holds one: a pool of one never waits for itself.
 * - **G6** Heartbeats have a line of their own and, in a pool of two or more, a connection that no other call takes: calls
 *   that wait for locks cost no worker its lease. In a pool of one, one call at most stands before a heartbeat.
 * - **G7** Limits of time are set inside the transaction, so that they hold through a pooler too; a limit on the side of
 *   the client, above them, notices a dead socket. A statement alone is limited in its waits for locks
 *   (`Dialect.limitLocks`) and by the client.
 * - **G8** A transaction that is lent to a body is tried again by nobody here: the body may have run. Its limits are the
 *   body's: what waits longer than that is nobody's any more, and its locks must go.
 */
import { StoreError, TransactionAborted } from "@cairn/core"
import { storeError, type Database, type Dialect, type Row, type Session, type Statement } from "@cairn/sql"
import type { Connection } from "@effect/sql/SqlConnection"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { NamedStatements, type NamingClient } from "./namedStatements.js"
import { reserving, type Pooled } from "./pooledConnection.js"
import { isAborted } from "./sqlStates.js"

/** Limits in milliseconds. */
export interface TimeLimits {
  readonly retryMs: number
  readonly statementMs: number
  readonly lockMs: number
  readonly idleInTransactionMs: number
}

export interface PostgresDatabaseOptions extends TimeLimits {
  readonly maxConnections: number
}

/** A try that failed. `undone`: it is known that nothing of it was committed. */
class FailedTry extends Data.Error<{ readonly error: StoreError; readonly undone: boolean }> {}

// The database is busy in real time, whatever clock the fiber has.
const realClock = Clock.make()

const firstDelayMs = 5
const maxDelayMs = 400

// Jitter has to differ between processes: a seeded source would make them collide again and again.
const delayMs = (tries: number): number => (0.5 + Math.random()) * Math.min(maxDelayMs, firstDelayMs * 2 ** tries)

/** Repeats what may be repeated (G4), until the deadline; then the last error stands. */
const untilDone = <A>(retryMs: number, once: Effect.Effect<A, FailedTry>): Effect.Effect<A, StoreError> =>
  Effect.suspend(() => {
    const deadline = performance.now() + retryMs
    const from = (tries: number): Effect.Effect<A, StoreError> =>
      Effect.catchAll(once, ({ error, undone }) =>
        undone && error.isRetryable && performance.now() < deadline
          ? Effect.flatMap(Effect.withClock(Effect.sleep(delayMs(tries)), realClock), () => from(tries + 1))
          : Effect.fail(error),
      )
    return from(0)
  })

/** The client's connection keeps the driver's here; its type does not say so. */
interface Reserved extends Connection {
  readonly pg?: Partial<NamingClient> & { readonly end: (done: () => void) => void }
}

/** A connection that one call holds, its errors classified. */
interface Held {
  readonly operation: string
  readonly connection: Connection
  readonly run: Session["run"]
  /** COMMIT, with the server's answer to it. */
  readonly commit: Effect.Effect<unknown, StoreError>
  /** G3: the pool lets go of a connection that is ending. */
  readonly close: Effect.Effect<void>
}

const undone = (error: StoreError): FailedTry => new FailedTry({ error, undone: true })

type Reserve = (operation: string) => Effect.Effect<Held, FailedTry, Scope.Scope>

const close = ({ pg }: Reserved): void => pg?.end(() => undefined)

/** Its failures and defects as errors of the store. */
const classifying =
  (dialect: Dialect, operation: string) =>
  <A, R>(effect: Effect.Effect<A, unknown, R>): Effect.Effect<A, StoreError, R> =>
    Effect.catchAllCause(effect, (cause) => Effect.fail(storeError(dialect, operation, Cause.squash(cause))))

const heldBy =
  (client: Pooled, dialect: Dialect, named: NamedStatements): Reserve =>
  (operation) => {
    const classified = classifying(dialect, operation)
    return classified(reserving(client)).pipe(
      Effect.mapError(undone),
      Effect.map((connection: Reserved) => {
        const { pg } = connection
        const run: Session["run"] = ({ params, text }) =>
          named.takes(pg, params)
            ? Effect.async((resume) =>
                named.run(pg, text, params, (cause, rows) =>
                  resume(cause === null ? Effect.succeed(rows) : Effect.fail(storeError(dialect, operation, cause))),
                ),
              )
            : classified(connection.execute(text, params, undefined))
        return {
          operation,
          connection,
          run,
          commit: classified(Effect.suspend(() => connection.executeRaw("commit", []))),
          close: Effect.sync(() => close(connection)),
        }
      }),
    )
  }

const rollBack = ({ close, run }: Held, error: StoreError): Effect.Effect<void> =>
  // G3: where the connection is gone, or does not answer, a rollback would only wait once more.
  error.reason === "Unavailable"
    ? close
    : Effect.catchAll(Effect.asVoid(run({ text: "rollback", params: [] })), () => close)

const commit = (held: Held): Effect.Effect<void, FailedTry> =>
  held.commit.pipe(
    // Only a refusal by the server says that nothing was committed (G4).
    Effect.mapError((error) => new FailedTry({ error, undone: error.reason === "Busy" })),
    Effect.filterOrFail(
      (result) => (result as { readonly command?: unknown }).command === "COMMIT",
      () => {
        const problem = "a statement had failed, so the server rolled the transaction back instead of committing it"
        return undone(new StoreError({ reason: "Unknown", operation: held.operation, problem }))
      },
    ),
    Effect.tapError(({ error }) => rollBack(held, error)),
  )

/** Runs a body that sees no connection, and remembers the failure of a statement that it keeps to itself (G2). */
const runBody = <A>(
  { operation, run }: Held,
  body: (session: Session) => Effect.Effect<A, StoreError>,
): Effect.Effect<A, StoreError> =>
  Effect.suspend(() => {
    let failed: StoreError | null = null
    const session: Session = {
      run: (statement) =>
        Effect.tapError(run(statement), (error) =>
          Effect.sync(() => {
            failed ??= error
          }),
        ),
    }
    return Effect.suspend(() => body(session)).pipe(
      Effect.catchAllDefect((cause) =>
        Effect.fail(new StoreError({ reason: "Unknown", operation, problem: "the transaction's body threw", cause })),
      ),
      Effect.flatMap((value) => (failed === null ? Effect.succeed(value) : Effect.fail(failed))),
    )
  })

/** One try of a transaction. */
const within = <A>(
  reserved: ReturnType<Reserve>,
  beginning: string,
  body: (session: Session) => Effect.Effect<A, StoreError>,
): Effect.Effect<A, FailedTry> =>
  Effect.gen(function* () {
    const held = yield* reserved
    const done = yield* Effect.either(Effect.zipRight(held.run({ text: beginning, params: [] }), runBody(held, body)))
    if (Either.isLeft(done)) {
      yield* rollBack(held, done.left)
      return yield* undone(done.left)
    }
    yield* commit(held)
    return done.right
    // G1: also the wait for a connection, which the pool bounds; a client given to nobody would be lost to the pool.
  }).pipe(Effect.scoped, Effect.uninterruptible)

/** G8: the database had given the transaction up for what the body did in it, or refuses to commit that. */
const endOfLent = (error: StoreError): StoreError | TransactionAborted => {
  if (isAborted(error.cause)) {
    const problem = "a statement of it had failed and the step went on; Postgres commits nothing of such a transaction"
    return new TransactionAborted({ problem, cause: error })
  }
  return error.reason === "Constraint"
    ? new TransactionAborted({ problem: "it breaks a constraint that is checked at its end", cause: error })
    : error
}

/** One try of a lent transaction. Its end is a value: from the body on nothing is tried again (G8). */
const lending = <A, B, E>(
  reserved: ReturnType<Reserve>,
  beginning: string,
  body: (connection: Connection) => Effect.Effect<A, E>,
  end: (session: Session, value: A) => Effect.Effect<{ readonly keep: boolean; readonly value: B }, StoreError>,
): Effect.Effect<Exit.Exit<B, E | StoreError | TransactionAborted>, FailedTry> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const held = yield* reserved
      const begun = yield* Effect.either(held.run({ text: beginning, params: [] }))
      if (Either.isLeft(begun)) {
        yield* rollBack(held, begun.left)
        return yield* undone(begun.left)
      }
      // Also after a failure of the body that the connection has not caused: where it is gone, this closes it (G3).
      const takeBack = Effect.catchAll(Effect.asVoid(held.run({ text: "rollback", params: [] })), () => held.close)
      const given = yield* Effect.exit(restore(Effect.suspend(() => body(held.connection))))
      if (Exit.isFailure(given)) {
        yield* takeBack
        return Exit.failCause(given.cause)
      }
      const ended = yield* Effect.either(runBody(held, (session) => end(session, given.value)))
      if (Either.isLeft(ended)) {
        yield* rollBack(held, ended.left)
        return Exit.fail(endOfLent(ended.left))
      }
      if (!ended.right.keep) {
        yield* takeBack
        return Exit.succeed(ended.right.value)
      }
      const done = yield* Effect.either(commit(held))
      return Either.isLeft(done) ? Exit.fail(endOfLent(done.left.error)) : Exit.succeed(ended.right.value)
    }).pipe(Effect.scoped),
  )

/**
 * One try of a statement without a transaction around it. A step that waits for its commit waits for what this costs: from the
 * connection to the rows, no fiber is asked.
 */
const alone =
  (client: Pooled, dialect: Dialect, named: NamedStatements) =>
  (
    operation: string,
    { params, text }: Statement,
    isUndone: (error: StoreError) => boolean,
  ): Effect.Effect<ReadonlyArray<Row>, FailedTry> =>
    Effect.uninterruptible(
      Effect.async((resume) =>
        client.take((cause, it) => {
          if (it === null) return resume(Effect.fail(undone(storeError(dialect, operation, cause))))
          const { giveBack } = it
          const connection: Reserved = it.connection
          const failed = (error: StoreError): FailedTry => {
            if (error.reason === "Unavailable") close(connection)
            return new FailedTry({ error, undone: isUndone(error) })
          }
          if (named.takes(connection.pg, params)) {
            return named.run(connection.pg, text, params, (cause, rows) => {
              const end =
                cause === null ? Effect.succeed(rows) : Effect.fail(failed(storeError(dialect, operation, cause)))
              giveBack()
              resume(end)
            })
          }
          const executed = classifying(dialect, operation)(connection.execute(text, params, undefined))
          resume(Effect.ensuring(Effect.mapError(executed, failed), Effect.sync(giveBack)))
        }),
      ),
    )

/** The ways to the database over a client whose pool has `maxConnections`. */
export const makePostgresDatabase = (client: Pooled, dialect: Dialect, options: PostgresDatabaseOptions): Database => {
  const limited = (statementMs: number, idleMs: number): string =>
    `set local statement_timeout = ${statementMs}; set local lock_timeout = ${Math.min(options.lockMs, statementMs)}; ` +
    `set local idle_in_transaction_session_timeout = ${idleMs}`
  const limits = limited(options.statementMs, options.idleInTransactionMs)
  // Said in full: a role or a database may have other defaults.
  const begin = "begin isolation level read committed read write"
  const write = `${begin}; ${limits}`
  const read = `begin isolation level repeatable read read only; ${limits}`

  // G6
  const lines = {
    usual: Effect.unsafeMakeSemaphore(Math.max(1, options.maxConnections - 1)),
    heartbeat: Effect.unsafeMakeSemaphore(1),
  }
  const inLine = <A>(urgency: keyof typeof lines, once: Effect.Effect<A, FailedTry>): Effect.Effect<A, StoreError> =>
    // Whoever waits to try again leaves its place to others.
    untilDone(options.retryMs, lines[urgency].withPermits(1)(once))

  const named = new NamedStatements()
  const reserve = heldBy(client, dialect, named)
  const once = alone(client, dialect, named)
  return {
    compiler: Effect.promise(async () => (await import("@effect/sql-pg/PgClient")).makeCompiler()),
    lend: (operation, { timeoutMs }, body, end) => {
      const beginning = `${begin}; ${limited(Math.min(options.statementMs, timeoutMs), timeoutMs)}`
      return Effect.flatten(inLine("usual", lending(reserve(operation), beginning, body, end)))
    },
    query: (operation, statement) =>
      inLine(
        "usual",
        once(operation, statement, () => true),
      ),
    // A statement alone is its own COMMIT: only what the server has undone is sent again (G4).
    write: (operation, statement) =>
      inLine(
        "usual",
        once(operation, statement, ({ reason }) => reason === "Busy"),
      ),
    snapshot: (operation, body) => inLine("usual", within(reserve(operation), read, body)),
    transaction: (operation, urgency, body) => inLine(urgency, within(reserve(operation), write, body)),
  }
}
