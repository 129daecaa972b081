/** Counts what lies on the mail server's disk, judges it, and lays it out for people. */
import colors from "picocolors"
import type { Facts } from "./scenario.js"

/** What the server has accepted under one Message-ID, and what its mailbox was asked about it. */
export interface Row {
  readonly to: string
  readonly messageId: string
  readonly mails: number
  /** The answers of the mailbox, oldest first: whether it had such a message. */
  readonly answers: ReadonlyArray<boolean>
}

/** A row a Message-ID that was accepted, by recipient. */
export const rowsOf = ({ messages, questions }: Facts): ReadonlyArray<Row> => {
  const rows = new Map<string, Row>()
  for (const { messageId, to } of messages) {
    const id = messageId ?? "(none)"
    const mails = (rows.get(id)?.mails ?? 0) + 1
    const answers = questions.filter((question) => question.messageId === id).map(({ found }) => found > 0)
    rows.set(id, { to: to ?? "(nobody)", messageId: id, mails, answers })
  }
  return [...rows.values()].sort((one, other) => (one.to < other.to ? -1 : 1))
}

/** What is wrong with a run under Cairn: nothing, if every order was confirmed by one mail after two kills. */
export const complaints = (facts: Facts, orders: ReadonlyArray<string>): ReadonlyArray<string> => {
  const found: Array<string> = []
  const exits = facts.lives.map(({ exit }) => exit).join(", ")
  if (exits !== "SIGKILL, SIGKILL, 0") found.push(`the workers ended with ${exits} instead of SIGKILL, SIGKILL, 0`)
  for (const order of orders) {
    const problem = facts.problems.get(order)
    if (problem === undefined) found.push(`${order} did not finish`)
    else if (problem !== null) found.push(`${order} ended badly: ${problem}`)
  }
  const rows = rowsOf(facts)
  if (new Set(rows.map(({ to }) => to)).size !== orders.length || rows.length !== orders.length)
    found.push(`${rows.length} Message-IDs were accepted for ${orders.length} orders`)
  for (const { to, messageId, mails, answers } of rows) {
    if (mails !== 1) found.push(`${to} was sent ${mails} mails with ${messageId}`)
    if (answers[0] !== false || answers.at(-1) !== true)
      found.push(`the mailbox was not asked about ${messageId} both before and after it was sent`)
  }
  return found
}

const widths = { messageId: 53, answers: 14, mails: 7, plain: 22 } as const

const judged = (text: string, right: boolean): string => (right ? colors.green(text) : colors.red(text))

const inWords = (answers: ReadonlyArray<boolean>): string => answers.map((yes) => (yes ? "yes" : "no")).join(", ")

/** One row a mail under Cairn, with how many mails the same recipient was sent by the plain retry. */
export const renderTable = (cairn: ReadonlyArray<Row>, plain: ReadonlyArray<Row>): string => {
  const head = [
    "Message-ID".padEnd(widths.messageId),
    "is it there?".padEnd(widths.answers),
    "mails".padStart(widths.mails),
    "by the plain retry".padStart(widths.plain),
  ].join("")
  return [
    `  ${head}`,
    `  ${colors.dim("-".repeat(head.length))}`,
    ...cairn.map(({ to, messageId, mails, answers }) => {
      const others = plain.filter((row) => row.to === to).reduce((sum, row) => sum + row.mails, 0)
      return [
        `  ${messageId.padEnd(widths.messageId)}`,
        inWords(answers).padEnd(widths.answers),
        judged(String(mails).padStart(widths.mails), mails === 1),
        judged(String(others).padStart(widths.plain), others === 1),
      ].join("")
    }),
  ].join("\n")
}
