/**
 * The same work as a plain job queue does it: a job is taken, run from its start, and acknowledged at its end. A job
 * that was not acknowledged, because its worker died, is run again from its start.
 *
 * It sends the same letters, with a Message-ID made from the order's number: the same one each time, as a careful author
 * would have it. The mail server does not look at it.
 */
import { Schema } from "effect"
import { makeKillSwitch } from "./killSwitch.js"
import { appendTo, readJournal } from "./mailServer/journal.js"
import { domain, mailerFor } from "./mailer.js"
import { messageIdOf } from "./messageId.js"
import { letterFor, Order } from "./order.js"
import { orderNumbers, readOrder } from "./orders.js"
import { readSettings, say } from "./workerProtocol.js"

interface Acknowledged {
  readonly order: string
}

const { server, jobFile, dieAt } = readSettings()
const done = new Set(readJournal<Acknowledged>(jobFile).map(({ order }) => order))
const queue = orderNumbers().filter((order) => !done.has(order))
const killSwitch = makeKillSwitch(dieAt, queue.length)
const send = mailerFor(server)

const runJob = async (order: string): Promise<void> => {
  const letter = letterFor(Schema.decodeUnknownSync(Order)(await readOrder(order)))
  await killSwitch.reached("beforeSend")
  const reply = await send(letter, messageIdOf(order, domain))
  say({ event: "sent", order, reply })
  await killSwitch.reached("afterAccept")
  appendTo(jobFile, { order } satisfies Acknowledged)
}

await Promise.all(
  queue.map((order) =>
    runJob(order).then(
      () => say({ event: "finished", order, problem: null }),
      (thrown: unknown) => say({ event: "finished", order, problem: String(thrown) }),
    ),
  ),
)
