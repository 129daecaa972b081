/** SQLite's result codes, as better-sqlite3 names them, and what they mean to a caller. The only place that knows them. */
import type { StoreError } from "@cairn/core"

type Reason = StoreError["reason"]

/**
 * By primary code; an extended code (`SQLITE_IOERR_FSYNC`) means what its primary one does.
 *
 * PROTOCOL is a lost race for the locks of the write-ahead log: like a busy file, it is over when the other is done.
 */
const reasons: ReadonlyMap<string, Reason> = new Map<string, Reason>([
  ["BUSY", "Busy"],
  ["LOCKED", "Busy"],
  ["PROTOCOL", "Busy"],
  ["FULL", "Full"],
  ["IOERR", "Unavailable"],
  ["CANTOPEN", "Unavailable"],
  ["NOMEM", "Unavailable"],
  ["CORRUPT", "Corrupt"],
  ["NOTADB", "Corrupt"],
  ["READONLY", "Permission"],
  ["PERM", "Permission"],
  ["AUTH", "Permission"],
  ["CONSTRAINT", "Constraint"],
  ["TOOBIG", "Constraint"],
  ["MISMATCH", "Constraint"],
])

// What the operating system says before SQLite is asked, while the directory is looked at.
const systemReasons: ReadonlyMap<string, Reason> = new Map<string, Reason>([
  ["EACCES", "Permission"],
  ["EPERM", "Permission"],
  ["EROFS", "Permission"],
  ["ENOSPC", "Full"],
  ["ENOENT", "Unavailable"],
  ["ENOTDIR", "Unavailable"],
  ["EIO", "Unavailable"],
])

const prefix = "SQLITE_"

// A client's error holds the driver's, and may be held itself; deeper than this nothing of ours nests.
const maxDepth = 5

/** The first code in a chain of causes, or null. */
const codeOf = (error: unknown): string | null => {
  let current: unknown = error
  for (let depth = 0; depth < maxDepth && typeof current === "object" && current !== null; depth++) {
    const { cause, code } = current as { readonly code?: unknown; readonly cause?: unknown }
    if (typeof code === "string") return code
    current = cause
  }
  return null
}

/** What an error of better-sqlite3, or one that holds it, means. */
export const classify = (error: unknown): Reason => {
  const code = codeOf(error)
  if (code === null) return "Unknown"
  if (!code.startsWith(prefix)) return systemReasons.get(code) ?? "Unknown"
  const [primary = ""] = code.slice(prefix.length).split("_")
  return reasons.get(primary) ?? "Unknown"
}
