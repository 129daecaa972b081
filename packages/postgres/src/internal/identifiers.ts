/** Names and texts as SQL writes them, for the few places where nothing can be bound: identifiers and DDL. */
import { createHash } from "node:crypto"

export const quoteIdentifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Standard-conforming: every server that this store supports reads a backslash as itself. */
export const quoteLiteral = (text: string): string => `'${text.replaceAll("'", "''")}'`

// NAMEDATALEN - 1. Postgres cuts longer names without a word, and two schemas would become one.
const maxIdentifierBytes = 63

/** What is wrong with a schema's name, or null. */
export const schemaProblem = (schema: string): string | null => {
  if (schema === "") return "it is empty"
  if (schema.includes("\u0000")) return "it holds a NUL character"
  if (schema.startsWith("pg_")) return "Postgres keeps names that begin with pg_ for itself"
  const bytes = Buffer.byteLength(schema)
  return bytes > maxIdentifierBytes ? `it has ${bytes} bytes, Postgres keeps ${maxIdentifierBytes}` : null
}

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

/** The advisory lock of a schema's migrations. Its number is ours by the hash's word: 64 bits of it. */
export const migrationLockKey = (schema: string): bigint => digest(`cairn migrations of ${schema}`).readBigInt64BE()

/** The channel of a schema's wake-ups. Schemas may have any name; a channel's has to be short. */
export const wakeChannel = (schema: string): string =>
  `cairn_${digest(`cairn wake-ups of ${schema}`).toString("hex").slice(0, 16)}`
