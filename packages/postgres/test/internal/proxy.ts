/** A proxy before the server: rules of a test's own say what becomes of what passes. */
import { Effect } from "effect"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"

/** One connection, and what is sent on it in either direction. */
export interface Link {
  readonly toServer: (chunk: Buffer) => void
  readonly toClient: (chunk: Buffer) => void
  /** Both sides find it closed. */
  readonly end: () => void
}

export interface Rules {
  readonly onClient: (chunk: Buffer) => void
  readonly onServer: (chunk: Buffer) => void
}

export interface Proxy {
  /** The url of the same database through the proxy. */
  readonly url: string
  /** Every connection that there is ends. */
  readonly endAll: () => void
  /** Whether there is any connection. */
  readonly isUsed: () => boolean
}

/** `onLink` gives the rules of a new connection, or null to refuse it. */
export const makeProxy = (url: string, onLink: (link: Link) => Rules | null) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const target = new URL(url)
        const sockets = new Set<Socket>()
        const endAll = (): void => {
          for (const socket of sockets) socket.destroy()
        }
        const server = createServer((client) => {
          const upstream = connect(Number(target.port), target.hostname)
          const end = (): void => {
            client.destroy()
            upstream.destroy()
          }
          for (const socket of [client, upstream]) {
            sockets.add(socket)
            socket.on("error", () => socket.destroy())
            socket.on("close", () => {
              sockets.delete(socket)
              end()
            })
          }
          const rules = onLink({
            toServer: (chunk) => void upstream.write(chunk),
            toClient: (chunk) => void client.write(chunk),
            end,
          })
          if (rules === null) return end()
          client.on("data", rules.onClient)
          upstream.on("data", rules.onServer)
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        const through = new URL(url)
        through.hostname = "127.0.0.1"
        through.port = String((server.address() as AddressInfo).port)
        return { proxy: { url: through.href, endAll, isUsed: () => sockets.size > 0 } satisfies Proxy, server }
      }),
      ({ proxy, server }) =>
        Effect.promise(() => {
          proxy.endAll()
          return new Promise((resolve) => server.close(resolve))
        }),
    ),
    ({ proxy }) => proxy,
  )
