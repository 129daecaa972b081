/** Counts what the providers' logs say, judges it, and lays it out for people. */
import colors from "picocolors"
import type { ModelEntry } from "./extractors/engine.js"
import { inDollars, inMoney } from "./money.js"
import type { Entry } from "./providers/idempotentApi.js"
import type { Charge } from "./providers/payments.js"
import type { Facts } from "./scenario.js"

export interface Tally {
  readonly workers: number
  readonly kills: number
  readonly chargeRequests: number
  readonly charges: number
  readonly mailRequests: number
  readonly mails: number
  /** Requests that got the kept answer of an earlier one. */
  readonly replayed: number
  readonly modelCalls: number
  /** What they cost, by the model's log, in micro-dollars; null where a price or a bill is not known. */
  readonly modelCost: number | null
  /** Whether nobody was billed, and the tokens are guessed. */
  readonly isEstimate: boolean
  /** What was charged beyond once an invoice, by currency, in hundredths. */
  readonly overcharged: Readonly<Record<string, number>>
}

/** What has happened in the world, by a provider's log. */
export const doneIn = <Done>(log: ReadonlyArray<Entry<Done>>): ReadonlyArray<Done> =>
  log.flatMap((entry) => (entry.entry === "performed" && entry.done !== null ? [entry.done] : []))

const count = (log: ReadonlyArray<Entry<unknown>>, kind: Entry<unknown>["entry"]): number =>
  log.filter(({ entry }) => entry === kind).length

const overchargedBy = (charges: ReadonlyArray<Charge>): Record<string, number> => {
  const paid = new Set<string>()
  const beyond: Record<string, number> = {}
  for (const { invoice, currency, amountCents } of charges) {
    if (paid.has(invoice)) beyond[currency] = (beyond[currency] ?? 0) + amountCents
    paid.add(invoice)
  }
  return beyond
}

type Bill = Extract<ModelEntry, { readonly entry: "billed" }>

const billsIn = ({ model }: Pick<Facts, "model">): ReadonlyArray<Bill> =>
  model.flatMap((entry) => (entry.entry === "billed" ? [entry] : []))

const isEstimated = (facts: Facts): boolean => billsIn(facts).some(({ isEstimate }) => isEstimate)

const costBy = (bills: ReadonlyArray<Bill>): number | null =>
  bills.reduce<number | null>(
    (sum, { microDollars }) => (sum === null || microDollars === null ? null : sum + microDollars),
    0,
  )

export const tally = (facts: Facts): Tally => {
  const charges = doneIn(facts.payments)
  return {
    workers: facts.lives.length,
    kills: facts.lives.filter(({ exit }) => exit === "SIGKILL").length,
    chargeRequests: count(facts.payments, "received"),
    charges: charges.length,
    mailRequests: count(facts.mail, "received"),
    mails: doneIn(facts.mail).length,
    replayed: count(facts.payments, "replayed") + count(facts.mail, "replayed"),
    modelCalls: facts.model.filter(({ entry }) => entry === "asked").length,
    modelCost: costBy(billsIn(facts)),
    isEstimate: isEstimated(facts),
    overcharged: overchargedBy(charges),
  }
}

const timesByInvoice = (done: ReadonlyArray<{ readonly invoice: string }>): ReadonlyMap<string, number> => {
  const times = new Map<string, number>()
  for (const { invoice } of done) times.set(invoice, (times.get(invoice) ?? 0) + 1)
  return times
}

/** What is wrong with a run under Cairn: nothing, if every invoice was charged once and mailed once after two kills. */
export const complaints = (facts: Facts, runs: ReadonlyArray<string>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const exits = facts.lives.map(({ exit }) => exit).join(", ")
  if (exits !== "SIGKILL, SIGKILL, 0") found.push(`the workers ended with ${exits} instead of SIGKILL, SIGKILL, 0`)
  for (const run of runs) {
    const problem = facts.problems.get(run)
    if (problem === undefined) found.push(`${run} did not finish`)
    else if (problem !== null) found.push(`${run} ended badly: ${problem}`)
  }
  for (const [what, done] of [
    ["charged", doneIn(facts.payments)],
    ["mailed", doneIn(facts.mail)],
  ] as const) {
    const times = timesByInvoice(done)
    if (times.size !== runs.length) found.push(`${times.size} of ${runs.length} invoices were ${what}`)
    for (const [invoice, number] of times) if (number !== 1) found.push(`${invoice} was ${what} ${number} times`)
  }
  return found
}

/**
 * Whether what Cairn has saved must be what a plain retry pays more: to the micro-dollar, where a text costs as much each time, and
 * nothing but the kills has cut a run off. On a busy machine a worker may also lose its lease.
 */
const isComparable = (cairn: Facts): boolean =>
  isEstimated(cairn) && cairn.account?.interruptions.every((times) => times === tally(cairn).kills) === true

/**
 * What is wrong with Cairn's account of what the model has cost: nothing, if it agrees with the model's own log, and if what it says
 * was saved is what the other has paid more.
 */
export const accountComplaints = (cairn: Facts, plain: Facts): ReadonlyArray<string> => {
  const { account } = cairn
  const { modelCost: paid } = tally(cairn)
  const { modelCost: paidByPlain } = tally(plain)
  if (account === null) return ["nothing was heard of Cairn's account"]
  const found: Array<string> = []
  // A call that failed, or a model without a price: that its cost is not known is what the account says, too.
  if (account.unknown === 0 && paid !== account.microDollars)
    found.push(`Cairn's account says ${inDollars(account.microDollars)}, the model's log ${billed(paid)}`)
  const more = paid === null || paidByPlain === null ? null : paidByPlain - paid
  if (isEstimated(cairn) && account.unknown > 0) found.push(`Cairn does not know the cost of ${account.unknown} calls`)
  if (isComparable(cairn) && account.saved !== more)
    found.push(`Cairn says that ${inDollars(account.saved)} was saved, the plain retry has paid ${billed(more)} more`)
  return found
}

/** What stands under the table about money: how the model's cost was reckoned, and what resuming has saved. */
export const renderSaved = (cairn: Facts | null, plain: Facts): string => {
  const [bill] = billsIn(plain)
  const basis =
    bill?.isEstimate === true
      ? [
          "  ~ An estimate: rules have read the texts, and nobody bills them. A model would have billed so",
          `    much, by a token for 4 characters and the list price of ${bill.model}.`,
        ]
      : [`  By the provider's count of tokens and the list price of ${bill?.model ?? "the model"}.`]
  if (cairn === null || cairn.account === null) return basis.join("\n")
  const saved = colors.green(approximately(cairn.account.saved, isEstimated(cairn)))
  const comparison = isComparable(cairn) ? ": what the others paid more" : ""
  return [...basis, "", `  Resuming has saved ${saved}, by Cairn's own account (Cairn.cost)${comparison}.`].join("\n")
}

const approximately = (microDollars: number | null, isEstimate: boolean): string =>
  `${isEstimate ? "~" : ""}${billed(microDollars)}`

const billed = (microDollars: number | null): string => (microDollars === null ? "unknown" : inDollars(microDollars))

interface Row {
  readonly label: string
  readonly of: (tally: Tally) => number | string
  /** Whether it should be one for each invoice. */
  readonly once?: true
}

const rows: ReadonlyArray<Row> = [
  { label: "worker processes started", of: (t) => t.workers },
  { label: "of them killed with SIGKILL", of: (t) => t.kills },
  { label: "requests to the payment API", of: (t) => t.chargeRequests },
  { label: "requests to the mail API", of: (t) => t.mailRequests },
  { label: "of both: given a kept answer", of: (t) => t.replayed },
  { label: "charges made", of: (t) => t.charges, once: true },
  { label: "mails delivered", of: (t) => t.mails, once: true },
  { label: "model calls", of: (t) => t.modelCalls, once: true },
  { label: "what they cost", of: (t) => approximately(t.modelCost, t.isEstimate) },
]

const labelWidth = 32

const judged = (text: string, right: boolean): string => (right ? colors.green(text) : colors.red(text))

/** One column a scenario, from the logs of the providers and of the model. */
export const renderTable = (
  columns: ReadonlyArray<{ readonly title: string; readonly tally: Tally }>,
  invoices: number,
): string => {
  const width = Math.max(...columns.map(({ title }) => title.length)) + 3
  const cell = ({ of, once }: Row, tally: Tally): string => {
    const text = String(of(tally)).padStart(width)
    return once === true ? judged(text, of(tally) === invoices) : text
  }
  return [
    `  ${"".padEnd(labelWidth)}${columns.map(({ title }) => title.padStart(width)).join("")}`,
    `  ${colors.dim("-".repeat(labelWidth + width * columns.length))}`,
    ...rows.map((row) => `  ${row.label.padEnd(labelWidth)}${columns.map(({ tally }) => cell(row, tally)).join("")}`),
  ].join("\n")
}

/** What was charged beyond once an invoice, for people. */
export const renderOvercharged = ({ overcharged }: Tally): string =>
  Object.entries(overcharged)
    .map(([currency, cents]) => inMoney(cents, currency))
    .join(", ") || "nothing"
