/**
 * Plays a language model: it says its answers piece by piece, costs money by the length of what it is given and what it says, and
 * never says the same thing twice: each article is numbered. What it was asked is paid for, whether anybody hears it or not.
 */
import type { Notes } from "../notes.js"
import { notFound, type Api } from "./server.js"

export interface ModelCall {
  readonly call: number
  readonly kind: "choose" | "write"
  /** How often it had been asked before in this run, had nobody been killed: where the agent stood. Null for an article. */
  readonly turn: number | null
  readonly costMicroUsd: number
}

/** What it is sent; an answer ends, whole or not, after `maxTokens`. */
interface Request {
  readonly prompt: { readonly question: string; readonly notes?: Notes; readonly sources?: ReadonlyArray<string> }
  readonly maxTokens: number
}

/** One line of an answer: a piece of it, or at its end what it has used. */
export type Said =
  { readonly text: string } | { readonly usage: { readonly inputTokens: number; readonly outputTokens: number } }

const pieces = 8
const pieceMs = 15
const charactersPerToken = 4
const microUsdPerToken = { in: 3, out: 15 } as const

const choose = ({ searched, toRead }: Notes): object => {
  if (searched.length === 0) return { tool: "search", words: "cairn" }
  if (toRead.length > 0) return { tool: "read", document: toRead[0] }
  return searched.length === 1 ? { tool: "search", words: "stone" } : { tool: "finish" }
}

const write = (question: string, sources: ReadonlyArray<string>, draft: number): object => ({
  title: question,
  text: `${sources.map((text) => text.split(". ")[0]).join(". ")}. (Draft ${draft}.)`,
})

const tokens = (text: string): number => Math.ceil(text.length / charactersPerToken)

const piecesOf = (text: string): ReadonlyArray<string> => {
  const length = Math.ceil(text.length / pieces)
  return Array.from({ length: Math.ceil(text.length / length) }, (_, i) => text.slice(i * length, (i + 1) * length))
}

let calls = 0
let drafts = 0

export const model: Api = ({ url, body, log }) => {
  const kind = url.pathname.slice(1)
  if (kind !== "choose" && kind !== "write") return notFound
  const { prompt, maxTokens } = body as Request
  const { notes = null, question, sources = [] } = prompt
  const answer = notes === null ? write(question, sources, ++drafts) : choose(notes)
  const text = JSON.stringify(answer).slice(0, maxTokens * charactersPerToken)
  const usage = { inputTokens: tokens(JSON.stringify(prompt)), outputTokens: tokens(text) }
  const costMicroUsd = usage.inputTokens * microUsdPerToken.in + usage.outputTokens * microUsdPerToken.out
  const turn = notes === null ? null : notes.searched.length + notes.read.length
  log({ call: ++calls, kind, turn, costMicroUsd } satisfies ModelCall)
  const lines: ReadonlyArray<Said> = [...piecesOf(text).map((piece) => ({ text: piece })), { usage }]
  return { status: 200, lines, eachAfterMs: pieceMs }
}
