/** Counts what the servers' logs say, judges it, and lays it out for people. */
import colors from "picocolors"
import { deaths, type Facts } from "./scenario.js"

/** Six choices and one article: what the model is asked by a run that nobody kills. */
export const callsOfOneRun = 7

/** Two kills hit an answer that nobody had stored: those are paid again, and no others. */
const paidAgain = deaths.filter(({ call, when }) => when === "answered" && /^(choose|write)/.test(call)).length

export const pagesOf = ({ cms }: Facts): number => cms.filter(({ event }) => event === "published").length

export const dollarsOf = ({ calls }: Facts): string =>
  `$${(calls.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0) / 1e6).toFixed(4)}`

/** What is wrong with a run under Cairn: nothing, if only the answers in flight were paid again, and one page is there. */
export const complaints = (facts: Facts): ReadonlyArray<string> => {
  const found: Array<string> = []
  const exits = facts.lives.map(({ exit }) => exit).join(", ")
  const expected = [...deaths.map(() => "SIGKILL"), 0].join(", ")
  if (exits !== expected) found.push(`the workers ended with ${exits} instead of ${expected}`)
  const most = callsOfOneRun + paidAgain
  if (facts.calls.length > most)
    found.push(`the model was paid for ${facts.calls.length} calls, and at most ${most} were due`)
  if (pagesOf(facts) !== 1) found.push(`${pagesOf(facts)} pages were published`)
  if (new Set(facts.cms.map(({ key }) => key)).size !== 1) found.push("the CMS was asked under more than one key")
  if (facts.cms.some(({ event }) => event === "refused"))
    found.push("the CMS was sent another article under the same key")
  if (facts.ended === null || facts.ended.problem !== null)
    found.push(`the run did not end well: ${facts.ended?.problem ?? "nothing was heard of it"}`)
  return found
}

export const renderTable = (cairn: Facts, plain: Facts): string => {
  const row = (title: string, of: (facts: Facts) => string | number): string =>
    `  ${title.padEnd(38)}${String(of(cairn)).padStart(10)}${String(of(plain)).padStart(14)}`
  return [
    `  ${"".padEnd(38)}${"Cairn".padStart(10)}${"plain retry".padStart(14)}`,
    `  ${colors.dim("-".repeat(62))}`,
    row("workers killed with SIGKILL", ({ lives }) => lives.filter(({ exit }) => exit === "SIGKILL").length),
    row(`model calls (one run needs ${callsOfOneRun})`, ({ calls }) => calls.length),
    row("paid for them", dollarsOf),
    row("requests to the CMS", ({ cms }) => cms.length),
    row("pages published", pagesOf),
  ].join("\n")
}
