/** Postgres's answers to the questions of `Dialect`, for a schema of any name. */
import type { ColumnType, Dialect } from "@cairn/sql"
import { migrationLockKey, quoteIdentifier, quoteLiteral, wakeChannel } from "./identifiers.js"
import { classify } from "./sqlStates.js"

const columnTypes: Readonly<Record<ColumnType, string>> = {
  // Compares byte for byte, whatever the collation of the database (D10).
  text: 'text collate "C"',
  integer: "bigint",
  // Never `jsonb`: it would drop \u0000, lone surrogates, key order, repeated keys and the spelling of numbers.
  json: "json",
}

const boundTypes: Readonly<Record<ColumnType, string>> = { text: "text", integer: "bigint", json: "json" }

/** In an array a `json` would be parsed by the server's array reader: text is cast instead. */
const arrayTypes: Readonly<Record<ColumnType, string>> = { text: "text[]", integer: "bigint[]", json: "text[]" }

/** What to run where this role may not, or where somebody else is to create the tables. */
const howToMigrate = (schema: string): string =>
  `run the SQL that 'PostgresMigrations.sql({ schema: ${JSON.stringify(schema)} })' prints, with a role that may create tables`

export const defaultLockMs = 5_000

/**
 * The dialect of one schema. Everything is quoted and qualified: no `search_path` matters.
 *
 * *Shape.* `schema` has passed `schemaProblem`. `lockMs`: how long a commit waits for a lock.
 */
export const postgresDialect = (schema: string, lockMs = defaultLockMs): Dialect => {
  const qualified = quoteIdentifier(schema)
  return {
    name: "postgres",
    table: (name) => `${qualified}.${quoteIdentifier(name)}`,
    // An index lives in the schema of its table, and may not be qualified.
    index: (name) => quoteIdentifier(name),
    types: columnTypes,
    numbering: "bigint generated always as identity",
    // With room for more versions in its page, a commit enters that of its run in no index. At 70 a lone commit took a tenth less, and a run of ten steps 20 bytes a step more.
    tableOptions: (rewritten) => (rewritten ? "with (fillfactor = 95)" : ""),
    // Who may read a namespace through the view is decided by the tables below it.
    viewOptions: "with (security_invoker = true) ",
    utcDay: (ms) => `pg_catalog.to_char(pg_catalog.to_timestamp(${ms} / 1000.0) at time zone 'UTC', 'YYYY-MM-DD')`,
    placeholder: (position) => `$${position}`,
    newId: "pg_catalog.gen_random_uuid()::text",
    // `now()` would be the start of the transaction.
    now: "(extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint",
    snapshotName: "select pg_catalog.pg_current_snapshot()::text as snapshot",
    // Not arrays of one: the server guesses that they hold ten, finds a plan for what they hold cheaper, and plans each time.
    row: (columns, place) => `select ${columns.map(({ type }) => `${place()}::${boundTypes[type]}`).join(", ")}`,
    // One array a column: one text serves any number of rows.
    rows: (columns, _count, place) => {
      const names = columns.map((_, index) => `c${index + 1}`)
      const selected = columns.map(({ type }, index) => (type === "json" ? `${names[index]}::json` : names[index]))
      const arrays = columns.map(({ type }) => `${place()}::${arrayTypes[type]}`)
      return `select ${selected.join(", ")} from unnest(${arrays.join(", ")}) as bound (${names.join(", ")})`
    },
    rowParams: (columns, rows) => columns.map((_, index) => rows.map((row) => row[index])),
    batchSizes: null,
    // The client would parse `json` and give back something else than was stored.
    select: (column, type) => (type === "json" ? `${column}::text` : column),
    lockPicked: "for update of run skip locked",
    lockRows: "for update",
    // Of this schema: another one's claims have locks of their own, unless two texts meet in 64 bits, and then one waits.
    lockName: (name) =>
      `pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(${quoteLiteral(schema)} || ':' || ${name}, 0))`,
    looksBeforeClaim: true,
    commitsAtOnce: true,
    // For this transaction, which is the statement: it holds through a pooler, and no session keeps it.
    limitLocks: `pg_catalog.set_config('lock_timeout', '${lockMs}', true)`,
    // In the same transaction: who is woken finds the run.
    wake: `pg_catalog.pg_notify('${wakeChannel(schema)}', '')`,
    // Its id says nothing to who listens there without being it.
    tellOwner: (workerId) => `pg_catalog.pg_notify('${wakeChannel(schema)}', ${workerId})`,
    migrationTableExists: `select 1 from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where n.nspname = ${quoteLiteral(schema)} and c.relname = 'migration' and c.relkind in ('r', 'p')`,
    migrationLock: `select pg_catalog.pg_advisory_xact_lock(${migrationLockKey(schema)})`,
    // Not `if not exists`: that asks for the right to create schemas even where this one is there.
    beforeTables: [
      `do ${quoteLiteral(`begin
  if not exists (select 1 from pg_catalog.pg_namespace where nspname = ${quoteLiteral(schema)}) then
    create schema ${qualified};
  end if;
end`)}`,
    ],
    howToMigrate: howToMigrate(schema),
    problems: {
      Full: "the server's disk is full; the same call succeeds once there is space",
      Corrupt: "the server found damaged data; restore it from a backup",
      Permission: `this role may not do that; see the cause. where tables are to be created, ${howToMigrate(schema)}`,
      SchemaVersion: `the tables are missing or of another version; ${howToMigrate(schema)}`,
    },
    classify,
  }
}
