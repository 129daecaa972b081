/** A proxy that passes on so many messages of a client and then nothing any more: as if the client had been killed there. */
import { Effect } from "effect"
import { makeProxy } from "./proxy.js"

/** `lost`: the last message does not reach the server. `unheard`: it does, and its answer does not reach the client. */
export type LastWords = "lost" | "unheard"

export interface MortalProxy {
  readonly url: string
  /** Dies at the message after so many from now on. */
  readonly dieAfter: (messages: number, how: LastWords) => void
  /** Resolves when it has died. */
  readonly died: Promise<void>
}

export const makeMortalProxy = (url: string) =>
  Effect.suspend(() => {
    let left = Infinity
    let lastWords: LastWords = "lost"
    let die: (() => void) | null = null
    let tell = (): void => {}
    const died = new Promise<void>((resolve) => (tell = resolve))
    const proxy = makeProxy(url, ({ toClient, toServer }) => {
      if (die === null) return null
      let isLast = false
      return {
        onClient: (chunk) => {
          if (die === null || isLast) return
          if (left-- > 0) return toServer(chunk)
          if (lastWords === "lost") return die()
          isLast = true
          toServer(chunk)
        },
        onServer: (chunk) => {
          if (isLast) die?.()
          else if (die !== null) toClient(chunk)
        },
      }
    })
    return Effect.map(proxy, ({ endAll, url: through }): MortalProxy => {
      die = () => {
        die = null
        endAll()
        tell()
      }
      const dieAfter: MortalProxy["dieAfter"] = (messages, how) => {
        left = messages
        lastWords = how
      }
      return { url: through, dieAfter, died }
    })
  })
