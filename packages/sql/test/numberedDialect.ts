/** A dialect unlike SQLite in every answer: numbered placeholders, one array a column, a schema, clauses that lock. */
import type { Dialect } from "@cairn/sql"

const casts = { text: "text", integer: "bigint", json: "text" } as const

export const numberedDialect: Dialect = {
  name: "numbered",
  table: (name) => `"store"."${name}"`,
  index: (name) => `"${name}"`,
  types: { text: 'text collate "C"', integer: "bigint", json: "json" },
  numbering: "bigserial",
  tableOptions: () => "",
  viewOptions: "",
  utcDay: (ms) => `day(${ms})`,
  placeholder: (position) => `$${position}`,
  newId: "new_id()",
  now: "clock_ms()",
  snapshotName: null,
  row: (columns, place) => `select ${columns.map((column) => `${place()}::${casts[column.type]}`).join(", ")}`,
  rows: (columns, _count, place) => {
    const arrays = columns.map((column) => `${place()}::${casts[column.type]}[]`)
    return `select * from unnest(${arrays.join(", ")})`
  },
  rowParams: (columns, rows) => columns.map((_, index) => rows.map((row) => row[index])),
  batchSizes: null,
  select: (column, type) => (type === "json" ? `${column}::text` : column),
  lockPicked: "for update skip locked",
  lockRows: "for update",
  lockName: (name) => `lock(${name})`,
  looksBeforeClaim: false,
  commitsAtOnce: true,
  limitLocks: "limit()",
  wake: "wake()",
  tellOwner: (workerId) => `tell(${workerId})`,
  migrationTableExists: "select 1 from tables where name = 'migration'",
  migrationLock: "select lock(1)",
  beforeTables: ['create schema "store"'],
  howToMigrate: "run the script",
  problems: {},
  classify: () => "Unknown",
}
