/** What the driver needs of a connection or a pool: a few ways to run statements. The dialect's package implements it. */
import { StoreError, type TransactionAborted, type TransactionLimits } from "@cairn/core"
import type { Connection } from "@effect/sql/SqlConnection"
import type { Compiler } from "@effect/sql/Statement"
import type * as Effect from "effect/Effect"
import type { Dialect } from "./Dialect.js"
import type { Statement } from "./Statement.js"

/**
 * A row as the client gives it.
 *
 * @category models
 * @since 0.1.0
 */
export type Row = Readonly<Record<string, unknown>>

/**
 * A connection inside a transaction.
 *
 * @category models
 * @since 0.1.0
 */
export interface Session {
  readonly run: (statement: Statement) => Effect.Effect<ReadonlyArray<Row>, StoreError>
}

/**
 * The ways to the database. `operation` completes "The store could not …" in errors.
 *
 * *Errors.* `StoreError` only: defects of clients are caught and classified here. What the database asks to repeat (a
 * busy file, a serialisation failure) is repeated here, up to a deadline, from the beginning of the transaction.
 *
 * *Laws.* A transaction begins and ends whatever happens to the fiber: nothing interrupts it in the middle, no failure
 * leaves it open. `transaction` succeeds only if its commit did.
 *
 * @category models
 * @since 0.1.0
 */
export interface Database {
  /** One statement that only reads. */
  readonly query: (operation: string, statement: Statement) => Effect.Effect<ReadonlyArray<Row>, StoreError>

  /** One statement that writes, a transaction of its own. */
  readonly write: (operation: string, statement: Statement) => Effect.Effect<ReadonlyArray<Row>, StoreError>

  /** Several statements that read, all at one instant. */
  readonly snapshot: <A>(
    operation: string,
    body: (session: Session) => Effect.Effect<A, StoreError>,
  ) => Effect.Effect<A, StoreError>

  /** Statements that write, together or not at all. A heartbeat passes everything that waits. */
  readonly transaction: <A>(
    operation: string,
    urgency: "usual" | "heartbeat",
    body: (session: Session) => Effect.Effect<A, StoreError>,
  ) => Effect.Effect<A, StoreError>

  /** How the client spells statements that are built from parts: loaded by whoever asks first. */
  readonly compiler: Effect.Effect<Compiler>

  /**
   * A transaction whose connection is lent to a body, which may be interrupted and may fail with errors of its own; `end`
   * then writes in the same transaction, and says whether it is kept.
   *
   * *Errors.* Those of the body; `TransactionAborted` where the database has given the transaction up before `end`, or
   * refused its commit for what the body wrote. `StoreError`: nothing was kept, unless it is retryable and the body has
   * ended: then the commit may have been made.
   *
   * *Laws.* The body runs once at most: only the beginning is tried again.
   */
  readonly lend: <A, B, E>(
    operation: string,
    limits: TransactionLimits,
    body: (connection: Connection) => Effect.Effect<A, E>,
    end: (session: Session, value: A) => Effect.Effect<{ readonly keep: boolean; readonly value: B }, StoreError>,
  ) => Effect.Effect<B, E | TransactionAborted | StoreError>
}

const problems: Readonly<Record<StoreError["reason"], string>> = {
  Busy: "other writers kept the database locked past the deadline; try again, or raise the deadline",
  Unavailable: "the database could not be reached or its files could not be used; see the cause",
  Full: "there is no space left; the same call succeeds once there is",
  Corrupt: "the file is damaged or is no database of this kind; restore it from a backup",
  Permission: "this process may not do that with the database; see the cause",
  SchemaVersion: "the tables are of another version",
  Constraint: "a row of that key exists already, or a value does not fit its column; see the cause",
  Unknown: "the database refused it for a reason that is not classified; see the cause",
}

/**
 * Makes the error of a failed statement. An error that is classified already passes as it is.
 *
 * @category constructors
 * @since 0.1.0
 */
export const storeError = (dialect: Dialect, operation: string, cause: unknown): StoreError => {
  // By tag, not by class: two copies of the package may meet.
  if ((cause as { readonly _tag?: unknown } | null)?._tag === "StoreError") return cause as StoreError
  const reason = dialect.classify(cause)
  return new StoreError({ reason, operation, problem: dialect.problems[reason] ?? problems[reason], cause })
}
