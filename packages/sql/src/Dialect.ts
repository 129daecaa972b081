/** Where databases differ. Everything that two of them say alike is in `statements/`; every difference is a field here. */
import type { StoreError } from "@cairn/core"
import type { Bound, Place } from "./Statement.js"
import type { Column, ColumnType, TableName } from "./tables.js"

/**
 * The answers of one database. Each field says what a database that does nothing special answers, and what follows.
 *
 * @category models
 * @since 0.1.0
 */
export interface Dialect {
  /** The store's name in errors and capabilities. */
  readonly name: string

  /**
   * A table's name as statements write it, quoted and qualified as the database needs it. Default: the bare name; then
   * the tables share a name space with those of the application.
   */
  readonly table: (name: TableName) => string

  /** An index's name as `create index` writes it. Default: the bare name; it must be free in the database or schema. */
  readonly index: (name: string) => string

  /**
   * The column types. `text` has to compare exactly (D10): no folding, no trimming, no linguistic collation. `integer`
   * holds 64 bits. `json` keeps text unit for unit, and nothing may operate on it.
   */
  readonly types: Readonly<Record<ColumnType, string>>

  /** The type of a key that the database gives each new row by itself: whole numbers up to 2^53 - 1 (D13). No default. */
  readonly numbering: string

  /**
   * What follows the closing bracket of `create table`. Default: nothing; then column types are as lax as the database. `rewritten`:
   * each row is written again and again, so that room beside it may pay.
   */
  readonly tableOptions: (rewritten: boolean) => string

  /** What follows a view's name in `create view`, with a space after it. Default: nothing; then a view reads with its owner's rights. */
  readonly viewOptions: string

  /** An expression of the day of a time in milliseconds since 1970, in UTC: `2026-11-30`. */
  readonly utcDay: (ms: string) => string

  /** The placeholder at a position, counted from 1. Default: `?`; then values are bound by their order in the text. */
  readonly placeholder: (position: number) => string

  /** A text that no database has given before. */
  readonly newId: string

  /** The database's clock in whole milliseconds since 1970, read when the statement runs and not when it began (D8). */
  readonly now: string

  /**
   * A query of one row and one column: the name that the database has for the state which a statement sees, for people who look
   * into it later. Default: null, it has none.
   */
  readonly snapshotName: string | null

  /**
   * A query that gives one bound row, value by value: what stands after `insert into t (…)`, and in `with r (…) as (…)`. Default:
   * `values`. A database that plans by types casts each value.
   */
  readonly row: (columns: ReadonlyArray<Column>, place: Place) => string

  /**
   * The same of several rows. Default: `values`; then each number of rows is a text of its own. A database with arrays binds one
   * array a column, cast to its type.
   */
  readonly rows: (columns: ReadonlyArray<Column>, count: number, place: Place) => string

  /** The values that `rows` binds, in its order. Default: row after row. */
  readonly rowParams: (
    columns: ReadonlyArray<Column>,
    rows: ReadonlyArray<ReadonlyArray<Bound>>,
  ) => ReadonlyArray<unknown>

  /**
   * How many rows a statement takes, from the largest size to 1. Default: null, all rows at once; then a text for each
   * number of rows is prepared, unless `rows` does not depend on it.
   */
  readonly batchSizes: ReadonlyArray<number> | null

  /** A column as it is selected. Default: the column; a client that parses JSON by itself needs a cast to text. */
  readonly select: (column: string, type: ColumnType) => string

  /**
   * The clause that locks picked rows of `run` and passes over those that another claimer has locked. Default: nothing;
   * then writers have to be serialised by the transaction itself, or claimers wait for each other.
   */
  readonly lockPicked: string

  /**
   * The clause that locks selected rows until the transaction ends, and waits for who holds them. Default: null; then the
   * transaction that writes has to keep all other writers out, and nothing is locked by row.
   */
  readonly lockRows: string | null

  /**
   * An expression that waits for the lock of a name, given as an expression, and holds it until the transaction ends. Default:
   * null; then the transaction has to keep all other writers out.
   */
  readonly lockName: ((name: string) => string) | null

  /**
   * Whether to look for due runs before the transaction that claims them begins. Default: false. True costs one more
   * query for each claim that finds something, and saves an idle worker the write lock.
   */
  readonly looksBeforeClaim: boolean

  /**
   * Whether statements that write may stand in `with` and feed each other. Default: false, a commit is a transaction of
   * several statements; with true it is one statement, which costs one round trip and locks its runs in order. It
   * asks for `rows` whose text is the same for any number of rows.
   */
  readonly commitsAtOnce: boolean

  /**
   * An expression that limits how long a statement of its own waits for locks; evaluated before it takes the first.
   * Default: null, then only what limits the transaction or the connection does.
   */
  readonly limitLocks: string | null

  /**
   * An expression that wakes the workers of other processes, once, when the transaction is committed; evaluated for each run
   * that becomes claimable by what D18 names. Default: null, they find it by polling.
   */
  readonly wake: string | null

  /**
   * An expression that tells a worker, given as an expression of its id, once the transaction is committed, that something has
   * reached a run that it holds (D44). Default: null, it looks by itself. There where `wake` is.
   */
  readonly tellOwner: ((workerId: string) => string) | null

  /** A query that gives one row if the migration table exists, none if not. It must not fail, and change nothing. */
  readonly migrationTableExists: string

  /** A statement that makes other migrators wait until this transaction ends. Default: null, the transaction does it. */
  readonly migrationLock: string | null

  /** Statements before the first table. Default: none; a store with a schema of its own creates it here. */
  readonly beforeTables: ReadonlyArray<string>

  /** How somebody else creates the tables; completes "to create them, …" in errors. */
  readonly howToMigrate: string

  /** What errors of a reason say instead of the common text. Default: none. */
  readonly problems: Readonly<Partial<Record<StoreError["reason"], string>>>

  /** What a driver's error means, by its code, never by its message. Default: `Unknown`, which nobody retries. */
  readonly classify: (cause: unknown) => StoreError["reason"]
}
