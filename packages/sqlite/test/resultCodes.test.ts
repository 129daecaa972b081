import { describe, expect, it } from "vitest"
import { classify } from "../src/internal/resultCodes.js"

const meanings = {
  SQLITE_BUSY: "Busy",
  SQLITE_BUSY_RECOVERY: "Busy",
  SQLITE_BUSY_SNAPSHOT: "Busy",
  SQLITE_BUSY_TIMEOUT: "Busy",
  SQLITE_LOCKED: "Busy",
  SQLITE_LOCKED_SHAREDCACHE: "Busy",
  SQLITE_PROTOCOL: "Busy",
  SQLITE_FULL: "Full",
  SQLITE_IOERR: "Unavailable",
  SQLITE_IOERR_FSYNC: "Unavailable",
  SQLITE_IOERR_SHMSIZE: "Unavailable",
  SQLITE_CANTOPEN: "Unavailable",
  SQLITE_CANTOPEN_ISDIR: "Unavailable",
  SQLITE_NOMEM: "Unavailable",
  SQLITE_CORRUPT: "Corrupt",
  SQLITE_CORRUPT_INDEX: "Corrupt",
  SQLITE_NOTADB: "Corrupt",
  SQLITE_READONLY: "Permission",
  SQLITE_READONLY_DBMOVED: "Permission",
  SQLITE_PERM: "Permission",
  SQLITE_AUTH: "Permission",
  SQLITE_CONSTRAINT: "Constraint",
  SQLITE_CONSTRAINT_PRIMARYKEY: "Constraint",
  SQLITE_CONSTRAINT_FOREIGNKEY: "Constraint",
  SQLITE_CONSTRAINT_DATATYPE: "Constraint",
  SQLITE_TOOBIG: "Constraint",
  SQLITE_MISMATCH: "Constraint",
  SQLITE_ERROR: "Unknown",
  SQLITE_MISUSE: "Unknown",
  EACCES: "Permission",
  EPERM: "Permission",
  EROFS: "Permission",
  ENOSPC: "Full",
  ENOENT: "Unavailable",
  ENOTDIR: "Unavailable",
  EIO: "Unavailable",
  ERR_DLOPEN_FAILED: "Unknown",
} as const

describe("what a result code means", () => {
  it.each(Object.entries(meanings))("%s is %s", (code, reason) => {
    expect(classify({ code })).toBe(reason)
  })

  it("is found inside the errors that hold it", () => {
    expect(classify({ cause: { cause: { code: "SQLITE_FULL" } } })).toBe("Full")
  })

  it("is never read from a message", () => {
    expect(classify(new Error("SQLITE_BUSY: database is locked"))).toBe("Unknown")
  })

  it("is unknown for what is no error, and for causes that hold themselves", () => {
    const circular: { cause?: unknown } = {}
    circular.cause = circular
    for (const odd of [undefined, null, "SQLITE_BUSY", 5, circular]) expect(classify(odd)).toBe("Unknown")
  })
})
