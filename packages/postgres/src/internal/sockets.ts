/** The sockets of connections: a server that does not answer any more does not say goodbye, and its sockets hold the process. */
import * as Effect from "effect/Effect"
import { Socket } from "node:net"

/** How long a server has for its goodbye, in milliseconds. */
const goodbyeMs = 75

export interface Sockets {
  /** For `pg`: the socket of a new connection. */
  readonly stream: () => Socket
  /** Ends connections in the way that they are given, and in any case soon. */
  readonly ending: (end: () => Promise<unknown>) => Effect.Effect<void>
}

export const makeSockets = (): Sockets => {
  const open = new Set<Socket>()
  return {
    stream: () => {
      const socket = new Socket()
      open.add(socket)
      return socket.once("close", () => open.delete(socket))
    },
    ending: (end) =>
      Effect.promise(() => end().catch(() => undefined)).pipe(
        Effect.interruptible,
        Effect.timeoutOption(goodbyeMs),
        Effect.zipRight(
          Effect.sync(() => {
            for (const socket of open) socket.destroy()
          }),
        ),
      ),
  }
}
