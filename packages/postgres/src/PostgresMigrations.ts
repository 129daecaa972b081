/** The tables, for those who let no application create them. */
import { migrationScript } from "@cairn/sql"
import { quoteIdentifier, schemaProblem } from "./internal/identifiers.js"
import { postgresDialect } from "./internal/postgresDialect.js"

/**
 * Which schema's tables.
 *
 * *Shape.* `schema` (`cairn`). `grantTo`: a role that may afterwards read and write the tables, and nothing else.
 *
 * @category models
 * @since 0.1.0
 */
export interface PostgresMigrationsOptions {
  readonly schema?: string
  readonly grantTo?: string
}

const grants = (schema: string, role: string): ReadonlyArray<string> => [
  `grant usage on schema ${schema} to ${role};`,
  `grant select, insert, update, delete on all tables in schema ${schema} to ${role};`,
]

/**
 * The migrations as SQL.
 *
 * @category schema
 * @since 0.1.0
 */
export const PostgresMigrations = {
  /**
   * The SQL that creates schema, tables and indexes in an empty database, for `psql` or any other client.
   *
   * *Errors.* Throws a `TypeError` for a schema name that Postgres does not take.
   *
   * @example
   * ```ts
   * import { PostgresMigrations } from "@cairn/postgres"
   *
   * const script = PostgresMigrations.sql({ schema: "billing", grantTo: "worker" })
   * script.includes('create table "billing"."run"')
   * // => true
   * ```
   */
  sql: ({ grantTo, schema = "cairn" }: PostgresMigrationsOptions = {}): string => {
    const problem = schemaProblem(schema)
    if (problem !== null) throw new TypeError(`the schema ${JSON.stringify(schema)} cannot be used: ${problem}`)
    const script = migrationScript(postgresDialect(schema))
    const granted = grantTo === undefined ? [] : grants(quoteIdentifier(schema), quoteIdentifier(grantTo))
    return `${[script, ...granted].join("\n")}\n`
  },
}
