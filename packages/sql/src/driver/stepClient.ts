/**
 * The `SqlClient` of a transaction step: the client that `@effect/sql` knows, bound to the connection of one transaction.
 *
 * - **T1** Its statements run on that connection, one at a time, and nothing interrupts one: the server is not asked to
 *   cancel it over a second connection, which a pool of one does not have.
 * - **T2** It ends with the step's function. What still holds it is refused, and never reaches the connection, which by then
 *   serves others.
 * - **T3** A nested transaction is a savepoint with a name of its own, and while it lasts everything beside it waits:
 *   siblings would stand in each other's savepoints, and one's rollback would discard what the other has written.
 * - **T4** Statements that begin or end the transaction itself are refused: they would part what the step writes from its
 *   checkpoint.
 *
 * Refusals are `SqlError`s, like everything that goes wrong with a statement.
 */
import type { StoreError, TransactionAccess } from "@cairn/core"
import { TransactionAborted } from "@cairn/core"
import * as SqlClient from "@effect/sql/SqlClient"
import type { Connection } from "@effect/sql/SqlConnection"
import { SqlError } from "@effect/sql/SqlError"
import * as Statement from "@effect/sql/Statement"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { storeError } from "../Database.js"
import type { Dialect } from "../Dialect.js"

/** The transaction, or one that is nested in it. */
interface Level {
  readonly of: object
  readonly connection: Connection
  /** Held by a statement while it runs, and by a nested transaction while it lasts (T3). */
  readonly turn: Effect.Semaphore
  ended: boolean
  nested: number
}

const CurrentLevel = Context.GenericTag<Level>("@cairn/sql/TransactionLevel")

export interface StepClient {
  readonly access: TransactionAccess
  /** T2. From here on everything is refused. */
  readonly end: Effect.Effect<void>
  /** Waits for what is still under way once the client has ended. */
  readonly settled: Effect.Effect<void, TransactionAborted>
  /** The last failure of a statement that another try may not meet: a lost connection, a deadlock. */
  readonly trouble: () => StoreError | null
}

const refused = (problem: string): SqlError => new SqlError({ cause: new Error(problem), message: problem })

const unread = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[\s\S]*?\*\/|\$(\w*)\$[\s\S]*?\$\1\$/g
const controls = /^(?:begin|start\s+transaction|commit|end|abort|prepare\s+transaction|rollback)\b/
const toSavepoint = /^rollback\s+(?:(?:work|transaction)\s+)?to\b/

/** T4. Definitions of functions and triggers hold words that look alike, and are no such statements. */
export const controlsTransaction = (text: string): boolean => {
  const statements = text
    .replace(unread, " ")
    .split(";")
    .map((statement) => statement.trim().toLowerCase())
  if (statements[0]?.startsWith("create ")) return false
  return statements.some((statement) => controls.test(statement) && !toSavepoint.test(statement))
}

export const makeStepClient = (dialect: Dialect, connection: Connection, compiler: Statement.Compiler): StepClient => {
  const owner = {}
  let trouble: StoreError | null = null
  let savepoints = 0

  const usable = (level: Level): Effect.Effect<void, SqlError> =>
    Effect.suspend(() => {
      if (root.ended) return Effect.fail(refused("the step has ended, and its SqlClient with it"))
      return level.ended ? Effect.fail(refused("the nested transaction of this statement has ended")) : Effect.void
    })

  const run = <A>(level: Level, text: string, execute: () => Effect.Effect<A, SqlError>): Effect.Effect<A, SqlError> =>
    Effect.suspend(() => {
      if (controlsTransaction(text)) {
        const problem = `a transaction step's own transaction begins and ends by itself; '${text.trim().slice(0, 60)}' is refused (nested ones: sql.withTransaction)`
        return Effect.fail(refused(problem))
      }
      const executed = Effect.zipRight(usable(level), Effect.suspend(execute)).pipe(
        // Some clients throw where they should fail.
        Effect.catchAllDefect((cause) => Effect.fail(new SqlError({ cause, message: "Failed to execute statement" }))),
        Effect.tapError((error) =>
          Effect.sync(() => {
            const failure = storeError(dialect, "run a statement of a transaction step", error)
            if (failure.isRetryable) trouble = failure
          }),
        ),
      )
      // Asked twice: who comes too late need not wait, and who waits may be too late by then.
      return Effect.zipRight(usable(level), level.turn.withPermits(1)(Effect.uninterruptible(executed)))
    })

  const makeLevel = (): Level => {
    const level: Level = {
      of: owner,
      turn: Effect.unsafeMakeSemaphore(1),
      ended: false,
      nested: 0,
      connection: {
        execute: (text, params, transform) => run(level, text, () => connection.execute(text, params, transform)),
        executeRaw: (text, params) => run(level, text, () => connection.executeRaw(text, params)),
        executeValues: (text, params) => run(level, text, () => connection.executeValues(text, params)),
        executeUnprepared: (text, params, transform) =>
          run(level, text, () => connection.executeUnprepared(text, params, transform)),
        // All rows at once: a cursor would hold the connection for as long as its reader likes.
        executeStream: (text, params, transform) =>
          Stream.fromIterableEffect(run(level, text, () => connection.execute(text, params, transform))),
      },
    }
    return level
  }
  const root = makeLevel()

  const current: Effect.Effect<Level> = Effect.map(Effect.serviceOption(CurrentLevel), (level) =>
    Option.isSome(level) && level.value.of === owner ? level.value : root,
  )

  const control = (level: Level, text: string): Effect.Effect<void, SqlError> =>
    Effect.zipRight(
      usable(level),
      Effect.suspend(() => Effect.asVoid(connection.execute(text, [], undefined))),
    )

  /** From the savepoint to its end; the level's turn is held, and nothing interrupts but what `restore` lets. */
  const nested = <A, E, R>(
    level: Level,
    self: Effect.Effect<A, E, R>,
    restore: <B, F, S>(effect: Effect.Effect<B, F, S>) => Effect.Effect<B, F, S>,
  ): Effect.Effect<A, E | SqlError, R> =>
    Effect.gen(function* () {
      const child = makeLevel()
      const name = `cairn_nested_${++savepoints}`
      yield* control(level, `savepoint ${name}`)
      const exit = yield* Effect.exit(restore(Effect.provideService(self, CurrentLevel, child)))
      child.ended = true
      // Where even this fails, the database has given up the whole; what failed before says more.
      const back = Effect.ignore(
        Effect.zipRight(control(level, `rollback to savepoint ${name}`), control(level, `release savepoint ${name}`)),
      )
      if (child.nested > 0) {
        yield* back
        return yield* Effect.fail(refused("a nested transaction was still open when the one around it ended"))
      }
      // A statement that the body has left behind in another fiber has its end first.
      yield* child.turn.withPermits(1)(Effect.void)
      if (Exit.isSuccess(exit)) yield* Effect.tapError(control(level, `release savepoint ${name}`), () => back)
      else yield* back
      return yield* exit
    })

  const withTransaction: SqlClient.SqlClient["withTransaction"] = (self) =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(current, (level) =>
        Effect.zipRight(
          Effect.zipRight(usable(level), restore(level.turn.take(1))),
          Effect.suspend(() => {
            level.nested += 1
            return Effect.ensuring(
              nested(level, self, restore),
              Effect.suspend(() => {
                level.nested -= 1
                return level.turn.release(1)
              }),
            )
          }),
        ),
      ),
    )

  const acquirer = Effect.map(current, (level) => level.connection)
  const noReactivity = refused(
    "a transaction step has no reactive queries: what they would follow is not committed yet",
  )
  const client: SqlClient.SqlClient = Object.assign(Statement.make(acquirer, compiler, [], undefined), {
    [SqlClient.TypeId as SqlClient.TypeId]: SqlClient.TypeId as SqlClient.TypeId,
    safe: undefined as never,
    withTransaction,
    withoutTransforms: () => client,
    reserve: acquirer,
    reactive: () => Stream.die(noReactivity),
    reactiveMailbox: () => Effect.die(noReactivity),
  }) as never
  ;(client as { safe: SqlClient.SqlClient }).safe = client

  const query: TransactionAccess["query"] = (text, parameters) =>
    Effect.flatMap(acquirer, (bound) => bound.execute(text, parameters, undefined))
  const { snapshotName } = dialect

  return {
    access: {
      services: Context.make(SqlClient.SqlClient, client),
      query,
      ...(snapshotName === null
        ? {}
        : { snapshot: Effect.map(query(snapshotName, []), ([row]) => String(Object.values(row as object)[0])) }),
    },
    end: Effect.sync(() => {
      root.ended = true
    }),
    settled: Effect.suspend(() =>
      root.nested > 0
        ? Effect.fail(new TransactionAborted({ problem: "a nested transaction was still open when the step ended" }))
        : root.turn.withPermits(1)(Effect.void),
    ),
    trouble: () => trouble,
  }
}
