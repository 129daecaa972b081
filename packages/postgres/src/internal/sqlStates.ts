/** Postgres's SQLSTATEs, and the codes of Node's sockets: what each means to a caller. The only place that knows them. */
import type { StoreError } from "@cairn/core"

type Reason = StoreError["reason"]

/** Codes that mean something else than their class. */
const states: ReadonlyMap<string, Reason> = new Map<string, Reason>([
  // Serialisation failure, deadlock, lock timeout: the same statements succeed once the others are done.
  ["40001", "Busy"],
  ["40P01", "Busy"],
  ["55P03", "Busy"],
  // A named statement that a pooler's other connection does not know, or knows of somebody else: it is sent without a name.
  ["26000", "Busy"],
  ["42P05", "Busy"],
  // Statement timeout or cancel; timeouts that end the session with its transaction.
  ["57014", "Unavailable"],
  ["25P03", "Unavailable"],
  ["25P04", "Unavailable"],
  ["57P05", "Unavailable"],
  // Shut down, crashed, starting up or in recovery.
  ["57P01", "Unavailable"],
  ["57P02", "Unavailable"],
  ["57P03", "Unavailable"],
  ["53100", "Full"],
  ["54000", "Constraint"],
  // Nested deeper than its stack allows.
  ["54001", "Constraint"],
  ["25006", "Permission"],
  ["42501", "Permission"],
  ["3D000", "Unavailable"],
  ["3F000", "SchemaVersion"],
  ["42P01", "SchemaVersion"],
  ["42703", "SchemaVersion"],
  ["58030", "Unavailable"],
  ["XX001", "Corrupt"],
  ["XX002", "Corrupt"],
])

/** By class, the first two characters, where the code itself is not listed. */
const classes: ReadonlyMap<string, Reason> = new Map<string, Reason>([
  ["08", "Unavailable"],
  // Out of memory, too many connections, configured limits: over when others are done.
  ["53", "Unavailable"],
  ["28", "Permission"],
  ["22", "Constraint"],
  ["23", "Constraint"],
])

/** What Node's sockets and resolver say. */
const systemReasons: ReadonlyMap<string, Reason> = new Map<string, Reason>([
  ["ECONNREFUSED", "Unavailable"],
  ["ECONNRESET", "Unavailable"],
  ["ECONNABORTED", "Unavailable"],
  ["EPIPE", "Unavailable"],
  ["ETIMEDOUT", "Unavailable"],
  ["EHOSTUNREACH", "Unavailable"],
  ["ENETUNREACH", "Unavailable"],
  ["ENETDOWN", "Unavailable"],
  ["ENOTFOUND", "Unavailable"],
  ["EAI_AGAIN", "Unavailable"],
  ["ENOENT", "Unavailable"],
  ["EACCES", "Permission"],
])

const sqlState = /^[0-9A-Z]{5}$/

// The client's error holds the driver's; deeper than this nothing of ours nests.
const maxDepth = 5

/** The error at the end of a chain of causes, or the first with a code. */
const origin = (error: unknown): unknown => {
  let current: unknown = error
  for (let depth = 0; depth < maxDepth; depth++) {
    if (typeof current !== "object" || current === null) return current
    const { cause, code } = current as { readonly code?: unknown; readonly cause?: unknown }
    if (typeof code === "string" || cause === undefined || cause === current) return current
    current = cause
  }
  return current
}

/** What an error of `pg`, or one that holds it, means. */
export const classify = (error: unknown): Reason => {
  const found = origin(error)
  const code = (found as { readonly code?: unknown } | null)?.code
  if (typeof code === "string") {
    const system = systemReasons.get(code)
    if (system !== undefined) return system
    if (!sqlState.test(code)) return "Unknown"
    return states.get(code) ?? classes.get(code.slice(0, 2)) ?? "Unknown"
  }
  // What the server says has a code, and so has what a socket says. `pg` gives none to what it finds out by itself: that
  // the connection has ended, or that nobody answers in time. A bug is an error of another class.
  return found instanceof Error && found.name === "Error" ? "Unavailable" : "Unknown"
}

/** "Current transaction is aborted": a statement before has failed, and nothing of the transaction will be committed. */
export const isAborted = (error: unknown): boolean =>
  (origin(error) as { readonly code?: unknown } | null)?.code === "25P02"
