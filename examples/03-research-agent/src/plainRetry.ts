/**
 * The same agent as a plain job: run from its start, and again from its start when its worker has died. It asks the same
 * servers and dies at the same moments.
 */
import { Schema } from "effect"
import { clients } from "./services.js"
import { Article, Choice, Found, nothingYet, withFound, withText, type Notes } from "./workflow.js"
import { dieAt, question, readSettings, say } from "./workerProtocol.js"

const { addresses, death } = readSettings()
const { choose, write, search, read, publish } = clients(addresses, dieAt(death))

const agent = async (notes: Notes): Promise<Notes> => {
  const choice = Schema.decodeUnknownSync(Choice)(await choose(question, notes))
  switch (choice.tool) {
    case "search":
      return agent(withFound(notes, choice.words, Schema.decodeUnknownSync(Found)(await search(choice.words))))
    case "read":
      return agent(withText(notes, choice.document, String(await read(choice.document))))
    case "finish":
      return notes
  }
}

say({ event: "found", at: null })
const notes = await agent(nothingYet)
const { page } = await publish(Schema.decodeUnknownSync(Article)(await write(question, notes)))
say({ event: "ended", page, problem: null })
