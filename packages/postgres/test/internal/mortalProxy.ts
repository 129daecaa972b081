/** A proxy that passes on so many messages of a client and then nothing any more: as if the client had been killed there. */
import { Effect } from "effect"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"

export interface MortalProxy {
  readonly url: string
  /**
   * Dies at the message after so many from now on. `lost`: it does not reach the server. `unheard`: it does, and its answer
   * does not reach the client.
   */
  readonly dieAfter: (messages: number, how: "lost" | "unheard") => void
  /** Resolves when it has died. */
  readonly died: Promise<void>
}

export const makeMortalProxy = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const target = new URL(url)
        const sockets = new Set<Socket>()
        let left = Infinity
        let lastWords: "lost" | "unheard" = "lost"
        let dead = false
        let tell = (): void => {}
        const died = new Promise<void>((resolve) => (tell = resolve))
        const die = (): void => {
          dead = true
          for (const socket of sockets) socket.destroy()
          tell()
        }
        const server = createServer((client) => {
          if (dead) return void client.destroy()
          const upstream = connect(Number(target.port), target.hostname)
          for (const socket of [client, upstream]) {
            sockets.add(socket)
            socket.on("error", () => socket.destroy())
            socket.on("close", () => {
              sockets.delete(socket)
              client.destroy()
              upstream.destroy()
            })
          }
          let isLast = false
          client.on("data", (chunk: Buffer) => {
            if (dead || isLast) return
            if (left-- > 0) return void upstream.write(chunk)
            if (lastWords === "lost") return die()
            isLast = true
            upstream.write(chunk)
          })
          upstream.on("data", (chunk: Buffer) => {
            if (isLast) die()
            else if (!dead) client.write(chunk)
          })
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        const through = new URL(url)
        through.hostname = "127.0.0.1"
        through.port = String((server.address() as AddressInfo).port)
        const dieAfter: MortalProxy["dieAfter"] = (messages, how) => {
          left = messages
          lastWords = how
        }
        return { proxy: { url: through.href, dieAfter, died } satisfies MortalProxy, server, sockets }
      }),
      ({ server, sockets }) =>
        Effect.promise(async () => {
          for (const socket of sockets) socket.destroy()
          await new Promise((resolve) => server.close(resolve))
        }),
    ),
    ({ proxy }) => proxy,
  )
