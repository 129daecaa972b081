/**
 * A worker's directory on its host: its log, and a socket by which others can tell that its process is alive.
 *
 * - W8: one directory for each incarnation. That it is orphaned is known when nobody listens at its socket any more, which
 *   the kernel tells of a process that is gone and never of one that is merely stopped; or when the store says that the
 *   worker's lease has ended. A process number proves nothing.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createConnection, createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { StoreError } from "../../model/Errors.js"

/** What a directory says of its worker. */
export interface Incarnation {
  readonly format: 1
  readonly workerId: string
  readonly storeId: string
  readonly namespace: string
  readonly socket: string
}

/** Directories that could not be read to their end; they are left to people. */
export const damagedSuffix = ".damaged"

const description = "incarnation.json"

/** Longest path of a socket that every system takes, in bytes. */
const maxSocketPath = 100

const unusable = (directory: string, cause: unknown): StoreError =>
  new StoreError({
    reason: "Permission",
    operation: "open the worker's local directory",
    problem: `${directory}: ${(cause as Error).message}`,
    cause,
  })

const socketOf = (directory: string, workerId: string): string => {
  if (process.platform === "win32") return `\\\\.\\pipe\\cairn-${workerId}`
  const own = join(directory, "alive.sock")
  return Buffer.byteLength(own) <= maxSocketPath ? own : join(tmpdir(), `cairn-${workerId}.sock`)
}

const listen = (socket: string): Effect.Effect<Server, Error, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Server, Error>((resume) => {
      // Who connects learns that somebody listens; there is nothing to say.
      const server = createServer((connection) => connection.destroy())
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(socket, () => resume(Effect.succeed(server)))
      server.unref()
    }),
    (server) => Effect.async<void>((resume) => void server.close(() => resume(Effect.void))),
  )

/** Makes this worker's directory. It is removed with the scope, if `isSettled` says that nothing in it is needed. */
export const openIncarnation = (
  parent: string,
  of: Pick<Incarnation, "namespace" | "storeId" | "workerId">,
  isSettled: () => boolean,
): Effect.Effect<string, StoreError, Scope.Scope> => {
  const directory = join(parent, of.workerId)
  const socket = socketOf(directory, of.workerId)
  return Effect.acquireRelease(
    Effect.try({
      try: () => {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        const incarnation: Incarnation = { format: 1, ...of, socket }
        writeFileSync(join(directory, description), JSON.stringify(incarnation), { mode: 0o600 })
        return directory
      },
      catch: (cause) => unusable(parent, cause),
    }),
    () =>
      Effect.sync(() => {
        if (isSettled()) rmSync(directory, { recursive: true, force: true })
      }),
  ).pipe(Effect.zipLeft(Effect.mapError(listen(socket), (cause) => unusable(parent, cause))))
}

/** Whether anybody listens: `gone` is the kernel's word that nobody does, `unknown` is no word at all. */
const ask = (socket: string): Effect.Effect<"alive" | "gone" | "unknown"> =>
  Effect.async<"alive" | "gone" | "unknown">((resume) => {
    const connection = createConnection(socket)
    const say = (answer: "alive" | "gone" | "unknown") => {
      connection.destroy()
      resume(Effect.succeed(answer))
    }
    connection.once("connect", () => say("alive"))
    // Refused: the socket is there, and the process that listened is not. Missing: it may stand in another file system.
    connection.once("error", (error: NodeJS.ErrnoException) => say(error.code === "ECONNREFUSED" ? "gone" : "unknown"))
  })

const readDescription = (directory: string): Incarnation | null => {
  try {
    const read = JSON.parse(readFileSync(join(directory, description), "utf8")) as Partial<Incarnation>
    return read.format === 1 && typeof read.workerId === "string" ? (read as Incarnation) : null
  } catch {
    return null
  }
}

/** A directory that another worker has left. */
export interface Left {
  readonly directory: string
  readonly incarnation: Incarnation
}

/** The directories of other workers, readable ones. */
export const otherIncarnations = (parent: string): ReadonlyArray<Left> => {
  try {
    return readdirSync(parent)
      .filter((name) => !name.endsWith(damagedSuffix))
      .map((name) => join(parent, name))
      .filter((directory) => statSync(directory, { throwIfNoEntry: false })?.isDirectory() === true)
      .flatMap((directory) => {
        const incarnation = readDescription(directory)
        return incarnation === null ? [] : [{ directory, incarnation }]
      })
  } catch {
    return []
  }
}

/** Whether the worker of a directory is gone: by the kernel's word, or by the store's. */
export const isOrphaned = <E>(
  { incarnation }: Left,
  leaseHasEnded: (workerId: string) => Effect.Effect<boolean, E>,
): Effect.Effect<boolean, E> =>
  Effect.flatMap(ask(incarnation.socket), (answer) => {
    if (answer === "alive") return Effect.succeed(false)
    return answer === "gone" ? Effect.succeed(true) : leaseHasEnded(incarnation.workerId)
  })
