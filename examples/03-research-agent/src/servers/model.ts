/**
 * Plays a language model: it takes its time, costs money by the length of what it is given and what it says, and never says
 * the same thing twice: each article is numbered. What it was asked is paid for, whether anybody hears the answer or not.
 */
import type { Notes } from "../workflow.js"
import { notFound, type Api } from "./server.js"

export interface ModelCall {
  readonly call: number
  readonly kind: "choose" | "write"
  /** How often it had been asked before in this run, had nobody been killed: where the agent stood. */
  readonly turn: number
  readonly costMicroUsd: number
}

interface Prompt {
  readonly question: string
  readonly notes: Notes
}

const thinkingMs = 120
const charactersPerToken = 4
const microUsdPerToken = { in: 3, out: 15 } as const

const choose = ({ notes: { searched, toRead } }: Prompt): object => {
  if (searched.length === 0) return { tool: "search", words: "cairn" }
  if (toRead.length > 0) return { tool: "read", document: toRead[0] }
  return searched.length === 1 ? { tool: "search", words: "stone" } : { tool: "finish" }
}

const write = ({ question, notes: { read } }: Prompt, draft: number): object => ({
  title: question,
  text: `${read.map(({ text }) => text.split(". ")[0]).join(". ")}. (Draft ${draft}.)`,
})

let calls = 0
let drafts = 0

export const model: Api = ({ url, body, log }) => {
  const kind = url.pathname.slice(1)
  if (kind !== "choose" && kind !== "write") return notFound
  const prompt = body as Prompt
  const answer = kind === "choose" ? choose(prompt) : write(prompt, ++drafts)
  const tokens = (value: object): number => Math.ceil(JSON.stringify(value).length / charactersPerToken)
  const costMicroUsd = tokens(prompt) * microUsdPerToken.in + tokens(answer) * microUsdPerToken.out
  const turn = prompt.notes.searched.length + prompt.notes.read.length
  log({ call: ++calls, kind, turn, costMicroUsd } satisfies ModelCall)
  return { status: 200, body: answer, afterMs: thinkingMs }
}
