/**
 * The same agent as a plain job: run from its start, and again from its start when its worker has died. It asks the same
 * servers and dies at the same moments.
 */
import { Live } from "@cairn/core"
import { Effect, Schema } from "effect"
import { inBrief, maxNotesBytes, namesOfRead, nothingYet, withFound, withText, type Notes } from "./notes.js"
import { clients, type Answering } from "./services.js"
import { Article, Choice } from "./workflow.js"
import { dieAt, question, readSettings, say } from "./workerProtocol.js"

const { addresses, death } = readSettings()
const { choose, write, search, read, sources, publish } = clients(addresses, dieAt(death))

const textOf = ({ words }: Answering): Promise<string> => Effect.runPromise(Live.text(words))

const withinLimit = (notes: Notes): Notes =>
  Buffer.byteLength(JSON.stringify(notes)) > maxNotesBytes ? inBrief(notes) : notes

const agent = async (notes: Notes): Promise<Notes> => {
  const choice = Schema.decodeUnknownSync(Schema.parseJson(Choice))(await textOf(choose(question, notes)))
  switch (choice.tool) {
    case "search":
      return agent(withinLimit(withFound(notes, choice.words, await search(choice.words))))
    case "read":
      return agent(withinLimit(withText(notes, choice.document, await read(choice.document))))
    case "finish":
      return notes
  }
}

say({ event: "found", at: null })
const { value } = await sources(namesOfRead(await agent(nothingYet)))
const article = Schema.decodeUnknownSync(Schema.parseJson(Article))(await textOf(write(question, value)))
const { page } = await publish(article)
say({ event: "ended", page, problem: null, account: null })
