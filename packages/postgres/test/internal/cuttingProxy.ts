/** A proxy before the server that cuts the connection on which a chosen answer passes, before the client hears it. */
import { Effect } from "effect"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"

export interface CuttingProxy {
  /** The url of the same database through the proxy. */
  readonly url: string
  /** The next answer of the server that holds this text is dropped, with its connection. */
  readonly cutAt: (answer: string) => void
  /** How often it has cut. */
  readonly cuts: () => number
  /** From now on nothing passes any more, and no connection ends: a socket whose other side is gone. */
  readonly swallow: (on: boolean) => void
  /** Resolves when something that the client has sent is lost. */
  readonly swallowed: () => Promise<void>
}

export const makeCuttingProxy = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const target = new URL(url)
        const sockets = new Set<Socket>()
        let answer: Buffer | null = null
        let cuts = 0
        let swallowing = false
        let lost = () => undefined as void
        const server = createServer((client) => {
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
          client.on("data", (chunk: Buffer) => {
            if (swallowing) lost()
            else upstream.write(chunk)
          })
          upstream.on("data", (chunk: Buffer) => {
            if (swallowing) return
            if (answer !== null && chunk.includes(answer)) {
              answer = null
              cuts++
              client.destroy()
              return
            }
            client.write(chunk)
          })
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        const through = new URL(url)
        through.hostname = "127.0.0.1"
        through.port = String((server.address() as AddressInfo).port)
        const proxy: CuttingProxy = {
          url: through.href,
          cutAt: (text) => void (answer = Buffer.from(text)),
          cuts: () => cuts,
          swallow: (on) => void (swallowing = on),
          swallowed: () => new Promise((resolve) => (lost = resolve)),
        }
        return { proxy, server, sockets }
      }),
      ({ server, sockets }) =>
        Effect.promise(async () => {
          for (const socket of sockets) socket.destroy()
          await new Promise((resolve) => server.close(resolve))
        }),
    ),
    ({ proxy }) => proxy,
  )
