/** SQLite's log needs shared memory and locks that hold: network file systems give neither, and corrupt the file. */
import { StoreError } from "@cairn/core"
import { storeError } from "@cairn/sql"
import { statfs } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import * as Effect from "effect/Effect"
import { sqliteDialect } from "./sqliteDialect.js"

/** `f_type` of statfs(2) on Linux. */
const networkFileSystems: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xfe534d42, "SMB2"],
  [0xff534d42, "CIFS"],
  [0x65735546, "FUSE"],
  [0x01021997, "9P"],
  [0x5346414f, "AFS"],
  [0x00c36400, "Ceph"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x73757245, "Coda"],
])

/** The network file system that a type of statfs stands for, or null for a local one. */
export const networkFileSystem = (type: number): string | null =>
  // Some platforms give the type as a signed number of 32 bits.
  networkFileSystems.get(type >>> 0) ?? null

export const isInMemory = (filename: string): boolean => filename === ":memory:"

type StatFs = (directory: string) => Promise<{ readonly type: number }>

/**
 * Refuses a file that SQLite could not keep whole, and a directory that is not there.
 *
 * Types are compared on Linux only: elsewhere the numbers mean something else.
 */
export const checkFileSystem = (
  filename: string,
  allowNetworkFileSystem: boolean,
  system: { readonly statfs: StatFs; readonly platform: string } = { statfs, platform: process.platform },
): Effect.Effect<void, StoreError> => {
  if (isInMemory(filename)) return Effect.void
  const directory = dirname(resolve(filename))
  const operation = `open '${filename}'`
  return Effect.tryPromise({
    try: () => system.statfs(directory),
    catch: (cause) => storeError(sqliteDialect, operation, cause),
  }).pipe(
    Effect.flatMap(({ type }) => {
      const name = system.platform === "linux" ? networkFileSystem(type) : null
      if (name === null || allowNetworkFileSystem) return Effect.void
      return new StoreError({
        reason: "Unavailable",
        operation,
        problem:
          `'${directory}' is on a network file system (${name}), where several writers corrupt a SQLite file; ` +
          `use a local disk or Postgres, or set allowNetworkFileSystem if only one machine ever opens it`,
      })
    }),
  )
}
