/** The expenses of the demo, by the run that each of them is. */
import { expense, pettyCash } from "./workflow.js"

export const expenses = {
  "paper-6": { workflow: expense, of: { person: "Ira Dahl", what: "paper, ten boxes", cents: 21_000 } },
  "train-7": { workflow: expense, of: { person: "Jo Amara", what: "train to Bern", cents: 14_200 } },
  "hotel-8": { workflow: expense, of: { person: "Kim Berg", what: "hotel, two nights", cents: 38_000 } },
  "books-9": { workflow: pettyCash, of: { person: "Lou Cerny", what: "three books", cents: 9_350 } },
} as const

export type RunId = keyof typeof expenses
export const runIds = Object.keys(expenses) as ReadonlyArray<RunId>
