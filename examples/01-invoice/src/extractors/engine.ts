/** What reads an invoice's text: rules, or a language model. Plain promises, for whoever wants to use it. */
import type { Journal } from "../providers/journal.js"

export interface Engine {
  /** For the log. */
  readonly name: string
  readonly read: (text: string, signal?: AbortSignal) => Promise<unknown>
}

/** One line of the model's log. */
export interface ModelCall {
  readonly at: number
  readonly process: number
  readonly engine: string
  readonly characters: number
}

/** The engine with every call logged before it is made: a call costs, whatever becomes of its answer. */
export const logged = ({ name, read }: Engine, log: Journal<ModelCall>): Engine => ({
  name,
  read: (text, signal) => {
    log.append({ at: Date.now(), process: process.pid, engine: name, characters: text.length })
    return read(text, signal)
  },
})
