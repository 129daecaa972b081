/** SQLite's answers to the questions of `Dialect`. */
import type { Dialect } from "@cairn/sql"
import { classify } from "./resultCodes.js"

const placesOf = (columns: ReadonlyArray<unknown>, place: () => string): string =>
  `(${columns.map(() => place()).join(", ")})`

export const sqliteDialect: Dialect = {
  name: "sqlite",
  // A file has one name space: the prefix keeps the tables apart from the application's.
  table: (name) => `cairn_${name}`,
  index: (name) => `cairn_${name}`,
  // `text` compares byte for byte where no collation is named.
  types: { text: "text", integer: "integer", json: "text" },
  // The row id by another name: it costs nothing.
  numbering: "integer",
  // Without it a column takes any type, and a text in an integer column would come back as it is.
  // Not `without rowid`: a key's page holds few results, and one of 1,200 characters would take a page of its own.
  tableOptions: () => "strict",
  viewOptions: "",
  utcDay: (ms) => `date(${ms} / 1000, 'unixepoch')`,
  placeholder: () => "?",
  newId: "lower(hex(randomblob(16)))",
  // SQLite reads its clock once a statement. It gives seconds with a fraction: rounded, because it is a binary one.
  now: "cast(round(unixepoch('now', 'subsec') * 1000) as integer)",
  snapshotName: null,
  row: (columns, place) => `values ${placesOf(columns, place)}`,
  rows: (columns, count, place) => `values ${Array.from({ length: count }, () => placesOf(columns, place)).join(", ")}`,
  rowParams: (_columns, rows) => rows.flat(),
  // Statements cost no round trip here: three texts are enough, and stay prepared.
  batchSizes: [32, 8, 1],
  select: (column) => column,
  // One writer at a time: the transaction holds the write lock from its beginning.
  lockPicked: "",
  lockRows: null,
  lockName: null,
  // Idle workers of many processes must not take turns at the write lock only to find nothing.
  looksBeforeClaim: true,
  commitsAtOnce: false,
  limitLocks: null,
  wake: null,
  tellOwner: null,
  migrationTableExists: "select 1 from sqlite_master where type = 'table' and name = 'cairn_migration'",
  migrationLock: null,
  beforeTables: [],
  howToMigrate: "run the statements that 'SqliteDriver.migrationScript()' prints",
  problems: {},
  classify,
}
