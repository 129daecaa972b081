/**
 * The same work as a plain job queue does it: a job is taken, run from its start, and acknowledged at its end. A job
 * that was not acknowledged, because its worker died, is run again from its start.
 *
 * It uses the same engine, the same payloads and the same providers. It sends no keys; with `ownKeys`, it sends keys
 * made from the invoice's number, as a careful author would.
 */
import { addsUp } from "./arithmetic.js"
import { engineFrom } from "./extractors/choose.js"
import { logged, type ModelEntry } from "./extractors/engine.js"
import { readInbox } from "./inbox.js"
import type { Invoice } from "./invoice.js"
import { makeKillSwitch } from "./killSwitch.js"
import { inMoney } from "./money.js"
import { chargeFor, receiptFor } from "./payloads.js"
import { openJournal } from "./providers/journal.js"
import type { InvoiceRequest } from "./workflow.js"
import { filesIn, readSettings, say } from "./workerProtocol.js"

interface Acknowledged {
  readonly job: string
}

const settings = readSettings<{ readonly ownKeys: boolean }>()
const files = filesIn(settings.folder)
const acknowledgements = openJournal<Acknowledged>(files.jobs)
const done = new Set(acknowledgements.read().map(({ job }) => job))
const queue = readInbox().filter(({ file }) => !done.has(file))
const killSwitch = makeKillSwitch(settings.killAfter ?? undefined, queue.length)
const engine = logged(await engineFrom(process.env), openJournal<ModelEntry>(files.model))

const extract = async (text: string): Promise<Invoice> => {
  const invoice = (await engine.read(text)).invoice as Invoice
  const problem = addsUp(invoice)
  if (problem !== true) throw new Error(problem)
  const amount = inMoney(invoice.totalCents, invoice.currency)
  say({ event: "extracted", engine: engine.name, invoice: invoice.number, amount, dueOn: invoice.dueOn })
  return invoice
}

const post = async (step: "charge" | "email", url: string, payload: { readonly invoice: string }): Promise<string> => {
  const key = settings.ownKeys ? { "idempotency-key": `${payload.invoice}:${step}` } : {}
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...key },
    body: JSON.stringify(payload),
  })
  const body = (await response.json()) as { readonly id: string }
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${JSON.stringify(body)}`)
  const replayed = response.headers.get("idempotent-replayed") === "true"
  say({
    event: "answered",
    invoice: payload.invoice,
    step,
    answered: { status: response.status, replayed, id: body.id },
  })
  await killSwitch.answered(step)
  return body.id
}

const runJob = async (job: string, request: InvoiceRequest): Promise<void> => {
  const invoice = await extract(request.text)
  const charge = await post("charge", `${settings.paymentsUrl}/charges`, chargeFor(request.card, invoice))
  await post("email", `${settings.mailUrl}/mails`, receiptFor(request.email, invoice, charge))
  acknowledgements.append({ job })
}

await Promise.all(
  queue.map(({ file, request }) =>
    runJob(file, request).then(
      () => say({ event: "finished", run: file, problem: null }),
      (thrown: unknown) => say({ event: "finished", run: file, problem: String(thrown) }),
    ),
  ),
)
