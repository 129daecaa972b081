/** Counts what the servers' logs say, judges it, and lays it out for people. */
import colors from "picocolors"
import { deaths, type Facts } from "./scenario.js"
import type { ModelCall } from "./servers/model.js"

/** Six choices and one article: what the model is asked by a run that nobody kills. */
export const callsOfOneRun = 7

const hitsAnAnswer = (death: (typeof deaths)[number] | null): boolean =>
  death !== null && death.when === "answered" && /^(choose|write)/.test(death.call)

/** Two kills hit an answer that nobody had stored: those are paid again, and no others. */
const paidAgain = deaths.filter(hitsAnAnswer).length

export const pagesOf = ({ cms }: Facts): number => cms.filter(({ event }) => event === "published").length

/** In micro-dollars. */
export const costOf = (calls: ReadonlyArray<ModelCall>): number =>
  calls.reduce((sum, { costMicroUsd }) => sum + costMicroUsd, 0)

export const inDollars = (microDollars: number): string => `$${(microDollars / 1e6).toFixed(6)}`

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

/** The answers that a kill has hit, by the model's log: Cairn knows that they were asked for, and not what they cost. */
const cutOff = ({ lives }: Facts): ReadonlyArray<ModelCall> =>
  lives.flatMap(({ calls, death }) => (hitsAnAnswer(death) ? calls.slice(-1) : []))

/**
 * What is wrong with Cairn's account: nothing, if what it knows and what was cut off make up the model's bill, if what it has set
 * aside covers what was cut off, and if what it says was saved is what the plain retry has paid more. On a busy machine a worker
 * may lose its lease beside the kills, and then more was saved.
 */
export const accountComplaints = (cairn: Facts, plain: Facts): ReadonlyArray<string> => {
  const account = cairn.ended?.account ?? null
  if (account === null) return ["nothing was heard of Cairn's account"]
  const { microDollars, reserved, saved, unknown } = account
  const [billed, lost] = [costOf(cairn.calls), cutOff(cairn)]
  const more = costOf(plain.calls) - billed
  const found: Array<string> = []
  if (unknown !== lost.length) found.push(`Cairn knows of ${unknown} calls that were cut off, and ${lost.length} were`)
  if (microDollars + costOf(lost) !== billed)
    found.push(`Cairn knows of ${inDollars(microDollars)}, the model has billed ${inDollars(billed - costOf(lost))}`)
  if (reserved < costOf(lost))
    found.push(`${inDollars(reserved)} were set aside for calls that have cost ${inDollars(costOf(lost))}`)
  if (saved < more)
    found.push(`Cairn says that ${inDollars(saved)} was saved, the plain retry has paid ${inDollars(more)} more`)
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
    row("billed for them", ({ calls }) => inDollars(costOf(calls))),
    row("requests to the CMS", ({ cms }) => cms.length),
    row("pages published", pagesOf),
  ].join("\n")
}

/** Cairn's own account of the model's bill, for people. */
export const renderAccount = ({ ended }: Facts): string => {
  if (ended === null || ended.account === null) return ""
  const { microDollars, reserved, saved, unknown } = ended.account
  const row = (title: string, micros: number): string => `  ${title.padEnd(38)}${inDollars(micros).padStart(10)}`
  return [
    "  By Cairn's own account (cairn.cost):",
    row("paid for answers that it has seen", microDollars),
    row(`for ${unknown} answers cut off, at most`, reserved),
    row("saved by resuming", saved),
  ].join("\n")
}
