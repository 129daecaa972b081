import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { once } from "node:events"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { readJournal } from "../src/mailServer/journal.js"
import { openMaildir } from "../src/mailServer/maildir.js"
import { startMailServer, type Question, type RunningMailServer } from "../src/mailServer/mailServer.js"
import { mailerFor } from "../src/mailer.js"
import { messageIdOf } from "../src/messageId.js"

const letter = { order: "B-1", to: "a@reader.example", subject: "Your order B-1", text: "Thank you.\n.\nBye." }
const messageId = messageIdOf("key-1", "bookshop.example")

let folder: string
let server: RunningMailServer

const mailFolder = () => join(folder, "mail")
const questionFile = () => join(folder, "questions.jsonl")
const start = () => startMailServer({ mailFolder: mailFolder(), questionFile: questionFile() })

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "cairn-mail-server-"))
  server = await start()
})

afterEach(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const ask = async (id: string): Promise<ReadonlyArray<string>> =>
  (await (await fetch(`${server.mailboxUrl}?message-id=${encodeURIComponent(id)}`)).json()) as ReadonlyArray<string>

describe("the mail server", () => {
  it("has stored a message under its Message-ID when it says 250", async () => {
    const reply = await mailerFor(server)(letter, messageId)
    const [name, ...others] = readdirSync(join(mailFolder(), "new"))
    expect(others).toEqual([])
    expect(reply).toContain(name)
    expect(reply).toMatch(/^250 /)
    expect(await openMaildir(mailFolder()).messages()).toEqual([{ name, messageId, to: letter.to }])
    expect(readFileSync(join(mailFolder(), "new", name!), "utf8")).toContain("Thank you.\r\n.\r\nBye.")
  })

  it("finds a message by its Message-ID and no other one, and keeps every question", async () => {
    await mailerFor(server)(letter, messageId)
    const other = messageIdOf("key-2", "bookshop.example")
    expect(await ask(messageId)).toHaveLength(1)
    expect(await ask(other)).toEqual([])
    expect(readJournal<Question>(questionFile())).toEqual([
      { messageId, found: 1 },
      { messageId: other, found: 0 },
    ])
  })

  it("takes a message again under the same Message-ID, as SMTP servers do", async () => {
    const send = mailerFor(server)
    await send(letter, messageId)
    await send(letter, messageId)
    expect(await ask(messageId)).toHaveLength(2)
  })

  it("finds after a restart what it had before", async () => {
    await mailerFor(server)(letter, messageId)
    await server.close()
    server = await start()
    expect(await ask(messageId)).toHaveLength(1)
  })

  it("does not see what a crash has left half written", async () => {
    writeFileSync(join(mailFolder(), "tmp", "half"), `Message-ID: ${messageId}\r\n`)
    expect(await ask(messageId)).toEqual([])
  })

  it("stores nothing of a message whose sender went away in the middle of it", async () => {
    const socket = connect(server.smtpPort, "127.0.0.1")
    const lines = ["EHLO a", "MAIL FROM:<a@b.example>", "RCPT TO:<a@reader.example>", "DATA"]
    for (const line of lines) {
      await once(socket, "data")
      socket.write(`${line}\r\n`)
    }
    await once(socket, "data")
    socket.end(`Message-ID: ${messageId}\r\n\r\nDear`)
    await once(socket, "close")
    // A later message is through: the broken one would be there too.
    await mailerFor(server)(letter, messageIdOf("key-2", "bookshop.example"))
    expect(await ask(messageId)).toEqual([])
    expect(await openMaildir(mailFolder()).messages()).toHaveLength(1)
  })

  it("answers 451 when it cannot store the message, and the message is the sender's still", async () => {
    rmSync(join(mailFolder(), "new"), { recursive: true })
    await expect(mailerFor(server)(letter, messageId)).rejects.toMatchObject({ code: "EMESSAGE", responseCode: 451 })
    expect(readdirSync(join(mailFolder(), "tmp"))).toEqual([])
    mkdirSync(join(mailFolder(), "new"))
    expect(await ask(messageId)).toEqual([])
    expect(await mailerFor(server)(letter, messageId)).toMatch(/^250 /)
  })

  it("answers 500, and never that a message is not there, when its folder cannot be read", async () => {
    rmSync(join(mailFolder(), "new"), { recursive: true })
    expect((await fetch(`${server.mailboxUrl}?message-id=a`)).status).toBe(500)
    expect(readJournal(questionFile())).toEqual([])
  })

  it("answers 404 to what is no question", async () => {
    const answers = await Promise.all([
      fetch(server.mailboxUrl),
      fetch(`${server.mailboxUrl}/x?message-id=a`),
      fetch(`${server.mailboxUrl}?message-id=a`, { method: "POST" }),
    ])
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404])
    expect(readJournal(questionFile())).toEqual([])
  })
})
