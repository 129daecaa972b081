/** A proxy before the server that cuts the connection on which a chosen answer passes, before the client hears it. */
import { Effect } from "effect"
import { makeProxy } from "./proxy.js"

export interface CuttingProxy {
  /** The url of the same database through the proxy. */
  readonly url: string
  /** The next answer of the server that holds this text is dropped, with its connection. */
  readonly cutAt: (answer: string) => void
  /** How often it has cut. */
  readonly cuts: () => number
  /** From now on nothing passes any more, and no connection ends: a socket whose other side is gone. */
  readonly swallow: (on: boolean) => void
  /** From now on there is no server: every connection ends, and new ones are refused. */
  readonly stop: () => void
  /** Whether there is any connection. */
  readonly isUsed: () => boolean
  /** Resolves when something that the client has sent is lost. */
  readonly swallowed: () => Promise<void>
}

export const makeCuttingProxy = (url: string) =>
  Effect.suspend(() => {
    let answer: Buffer | null = null
    let cuts = 0
    let swallowing = false
    let stopped = false
    let lost = () => undefined as void
    const proxy = makeProxy(url, ({ end, toClient, toServer }) =>
      stopped
        ? null
        : {
            onClient: (chunk) => (swallowing ? lost() : toServer(chunk)),
            onServer: (chunk) => {
              if (swallowing) return
              if (answer === null || !chunk.includes(answer)) return toClient(chunk)
              answer = null
              cuts++
              end()
            },
          },
    )
    return Effect.map(proxy, (through): CuttingProxy => ({
      url: through.url,
      cutAt: (text) => void (answer = Buffer.from(text)),
      cuts: () => cuts,
      swallow: (on) => void (swallowing = on),
      isUsed: through.isUsed,
      stop: () => {
        stopped = true
        through.endAll()
      },
      swallowed: () => new Promise((resolve) => (lost = resolve)),
    }))
  })
