/** What the agent knows: the window of its workflow, which is what the model is sent. */
import { Schema } from "effect"

export const Notes = Schema.Struct({
  searched: Schema.Array(Schema.String),
  toRead: Schema.Array(Schema.String),
  read: Schema.Array(Schema.Struct({ document: Schema.String, text: Schema.String })),
})
export type Notes = typeof Notes.Type

/** As large as notes may grow, in bytes of JSON: what is sent is paid for at every turn. */
export const maxNotesBytes = 500

export const nothingYet: Notes = { searched: [], toRead: [], read: [] }

export const withFound = ({ searched, toRead, read }: Notes, words: string, found: ReadonlyArray<string>): Notes => {
  const known = [...toRead, ...read.map(({ document }) => document)]
  return { searched: [...searched, words], toRead: [...toRead, ...found.filter((each) => !known.includes(each))], read }
}

export const withText = ({ searched, toRead, read }: Notes, document: string, text: string): Notes => ({
  searched,
  toRead: toRead.filter((other) => other !== document),
  read: [...read, { document, text }],
})

/** Of each text its first sentence. */
export const inBrief = ({ read, ...notes }: Notes): Notes => ({
  ...notes,
  read: read.map(({ document, text }) => ({ document, text: text.split(". ")[0]! })),
})

export const namesOfRead = ({ read }: Notes): ReadonlyArray<string> => read.map(({ document }) => document)
