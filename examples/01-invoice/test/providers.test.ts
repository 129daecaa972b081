import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { startApi, type ApiOptions, type Entry, type RunningApi } from "../src/providers/idempotentApi.js"
import { readJournal } from "../src/providers/journal.js"
import { mail, type Mail } from "../src/providers/mail.js"
import { declinedCard, payments, type Charge } from "../src/providers/payments.js"

const order = { card: "card_1", amountCents: 1250, currency: "EUR", invoice: "RE-1" }
const message = { to: "a@b.example", subject: "Receipt", body: "Paid.", invoice: "RE-1" }

let folder: string
let open: Array<RunningApi>

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cairn-providers-"))
  open = []
})

afterEach(async () => {
  await Promise.all(open.map((api) => api.close()))
  rmSync(folder, { recursive: true, force: true })
})

const logFile = () => join(folder, "log.jsonl")

const startPayments = async (options: Partial<ApiOptions> = {}): Promise<RunningApi> => {
  const api = await startApi(payments, { logFile: logFile(), ...options })
  open.push(api)
  return api
}

const restart = async (api: RunningApi): Promise<RunningApi> => {
  await api.close()
  open = open.filter((other) => other !== api)
  return startPayments()
}

const post = async (url: string, body: unknown, key?: string) => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...(key === undefined ? {} : { "idempotency-key": key }) },
    body: typeof body === "string" ? body : JSON.stringify(body),
  })
  const answer = (await response.json()) as { id?: string; error?: { code: string } }
  return { status: response.status, replayed: response.headers.get("idempotent-replayed"), ...answer }
}

const chargesIn = (file: string): ReadonlyArray<Charge> =>
  readJournal<Entry<Charge>>(file).flatMap((entry) =>
    entry.entry === "performed" && entry.done !== null ? [entry.done] : [],
  )

/** A promise and what resolves it. */
const gate = () => {
  let pass = () => {}
  const passed = new Promise<void>((resolve) => (pass = resolve))
  return { pass: () => pass(), passed }
}

describe("a provider that honours Idempotency-Key", () => {
  it("performs every request without a key", async () => {
    const { url } = await startPayments()
    expect(await post(`${url}/charges`, order)).toMatchObject({ status: 201, id: "ch_0001", replayed: null })
    expect(await post(`${url}/charges`, order)).toMatchObject({ status: 201, id: "ch_0002", replayed: null })
    expect(chargesIn(logFile())).toHaveLength(2)
  })

  it("answers the same key and payload with the kept answer and does nothing again", async () => {
    const { url } = await startPayments()
    await post(`${url}/charges`, order, "key-1")
    const reordered = Object.fromEntries(Object.entries(order).reverse())
    expect(await post(`${url}/charges`, reordered, "key-1")).toMatchObject({
      status: 201,
      id: "ch_0001",
      replayed: "true",
    })
    expect(chargesIn(logFile())).toEqual([{ id: "ch_0001", ...order }])
  })

  it("refuses the same key with another payload", async () => {
    const { url } = await startPayments()
    await post(`${url}/charges`, order, "key-1")
    const other = await post(`${url}/charges`, { ...order, amountCents: 1251 }, "key-1")
    expect(other).toMatchObject({ status: 422, error: { code: "key_reused" } })
    expect(chargesIn(logFile())).toHaveLength(1)
  })

  it("refuses the same key while its first request is being performed", async () => {
    const started = gate()
    const finish = gate()
    const { url } = await startPayments({
      work: () => {
        started.pass()
        return finish.passed
      },
    })
    const first = post(`${url}/charges`, order, "key-1")
    await started.passed
    expect(await post(`${url}/charges`, order, "key-1")).toMatchObject({ status: 409, error: { code: "key_in_use" } })
    expect(await post(`${url}/charges`, { ...order, card: "card_2" }, "key-1")).toMatchObject({ status: 422 })
    finish.pass()
    expect(await first).toMatchObject({ status: 201, id: "ch_0001" })
    expect(chargesIn(logFile())).toHaveLength(1)
  })

  it("keeps a decline under its key like any other answer", async () => {
    const { url } = await startPayments()
    const declined = { ...order, card: declinedCard }
    expect(await post(`${url}/charges`, declined, "key-1")).toMatchObject({ status: 402, replayed: null })
    expect(await post(`${url}/charges`, declined, "key-1")).toMatchObject({
      status: 402,
      replayed: "true",
      error: { code: "card_declined" },
    })
    expect(await post(`${url}/charges`, declined, "key-2")).toMatchObject({ status: 402, replayed: null })
    expect(chargesIn(logFile())).toEqual([])
  })

  it("remembers keys and counts on after a restart", async () => {
    const before = await startPayments()
    await post(`${before.url}/charges`, order, "key-1")
    const after = await restart(before)
    expect(await post(`${after.url}/charges`, order, "key-1")).toMatchObject({ id: "ch_0001", replayed: "true" })
    expect(await post(`${after.url}/charges`, order, "key-2")).toMatchObject({ id: "ch_0002", replayed: null })
    const requests = readJournal<Entry<Charge>>(logFile()).filter(({ entry }) => entry === "received")
    expect(requests.map(({ request }) => request)).toEqual([1, 2, 3])
  })

  it("performs a request of which a crash left only the beginning of a line", async () => {
    const before = await startPayments()
    await post(`${before.url}/charges`, order, "key-1")
    appendFileSync(logFile(), '{"entry":"performed","request":2,"key":"key-2","answ')
    const after = await restart(before)
    expect(await post(`${after.url}/charges`, order, "key-2")).toMatchObject({ id: "ch_0002", replayed: null })
    expect(chargesIn(logFile()).map(({ id }) => id)).toEqual(["ch_0001", "ch_0002"])
  })

  it("forgets a key after 24 hours", async () => {
    let now = 0
    const { url } = await startPayments({ now: () => now })
    await post(`${url}/charges`, order, "key-1")
    now = 24 * 60 * 60 * 1000 - 1
    expect(await post(`${url}/charges`, order, "key-1")).toMatchObject({ replayed: "true" })
    now += 1
    expect(await post(`${url}/charges`, order, "key-1")).toMatchObject({ id: "ch_0002", replayed: null })
  })

  it.each([
    ["no JSON", "{"],
    ["another shape", { card: "card_1" }],
    ["an amount that is no whole number", { ...order, amountCents: 12.5 }],
    ["a negative amount", { ...order, amountCents: -1 }],
    ["nothing", "null"],
  ])("refuses a payload that is %s and does not bind the key to it", async (_, body) => {
    const { url } = await startPayments()
    expect(await post(`${url}/charges`, body, "key-1")).toMatchObject({ status: 400 })
    expect(await post(`${url}/charges`, order, "key-1")).toMatchObject({ status: 201, replayed: null })
  })

  it("refuses a key of more than 255 characters", async () => {
    const { url } = await startPayments()
    expect(await post(`${url}/charges`, order, "k".repeat(256))).toMatchObject({ error: { code: "invalid_key" } })
    expect(await post(`${url}/charges`, order, "k".repeat(255))).toMatchObject({ status: 201 })
  })

  it("gives its log to who asks, from the file", async () => {
    const { url } = await startPayments()
    await post(`${url}/charges`, order, "key-1")
    await post(`${url}/charges`, order, "key-1")
    await post(`${url}/charges`, { ...order, card: "card_2" }, "key-1")
    const log = (await (await fetch(`${url}/log`)).json()) as ReadonlyArray<Entry<Charge>>
    expect(log).toEqual(readJournal(logFile()))
    expect(log.map(({ entry, request }) => `${request} ${entry}`)).toEqual([
      "1 received",
      "1 performed",
      "2 received",
      "2 replayed",
      "3 received",
      "3 refused",
    ])
  })
})

describe("the mail provider", () => {
  it("delivers once for each key", async () => {
    const api = await startApi(mail, { logFile: logFile() })
    open.push(api)
    expect(await post(`${api.url}/mails`, message, "key-1")).toMatchObject({ status: 202, id: "msg_0001" })
    expect(await post(`${api.url}/mails`, message, "key-1")).toMatchObject({ id: "msg_0001", replayed: "true" })
    expect(await post(`${api.url}/mails`, { ...message, to: "nobody" }, "key-2")).toMatchObject({ status: 400 })
    const delivered = readJournal<Entry<Mail>>(logFile()).filter(({ entry }) => entry === "performed")
    expect(delivered).toHaveLength(1)
  })
})
