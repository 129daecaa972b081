/** A mail server that answers what a test says, and a mailbox that shows what the test lets it show. */
import { Effect } from "effect"
import { once } from "node:events"
import { createServer as createHttpServer } from "node:http"
import { createServer, type AddressInfo, type Socket } from "node:net"
import type { MailServerAddress } from "../src/mailer.js"

/** What becomes of one mail. */
export interface Fate {
  /** Answer to `RCPT TO`; 250 unless given. */
  readonly recipient?: string
  /** Answer to the finished message; null breaks the connection instead, "silence" says nothing at all. */
  readonly message: string | null | "silence"
  /** Whether the connection breaks within that answer, before its line ends. */
  readonly cut?: true
  /** Whether the server has the mail afterwards, whatever it has said. */
  readonly kept: boolean
}

export const accepted: Fate = { message: "250 stored", kept: true }

/** What the mailbox answers to a question once the server has a mail; null: by what it has. */
export type Look = { readonly status: number; readonly body: unknown } | null

interface Scripted extends MailServerAddress {
  /** Message-IDs that were brought to the server, finished or turned away. */
  readonly brought: Array<string>
  readonly kept: Array<string>
  readonly asked: Array<string>
  /** Resolves when a message is there that the server says nothing to. */
  readonly silent: Promise<void>
  /** Resolves when the sender has ended the connection over such a silence. */
  readonly broken: Promise<void>
}

/** A promise and what resolves it. */
const gate = () => {
  let pass = () => {}
  const passed = new Promise<void>((resolve) => (pass = resolve))
  return { pass: () => pass(), passed }
}

const messageIdIn = (text: string): string => /^Message-ID: (<.*>)\r$/im.exec(text)?.[1] ?? ""

/** What is to happen, and what has. */
const makeScript = (fates: ReadonlyArray<Fate>, looks: ReadonlyArray<Look>) => ({
  brought: [] as Array<string>,
  kept: [] as Array<string>,
  asked: [] as Array<string>,
  silence: gate(),
  break: gate(),
  looks: [...looks],
  // A connection that ends before anything is decided has no fate: on a busy machine there may be such ones.
  fates: [...fates],
})
type Script = ReturnType<typeof makeScript>

const tooMany: Fate = { recipient: "554 one mail too many", message: null, kept: false }

const finish = (script: Script, socket: Socket, message: string): void => {
  const fate = script.fates.shift() ?? tooMany
  script.brought.push(messageIdIn(message))
  if (fate.kept) script.kept.push(messageIdIn(message))
  if (fate.message === "silence") {
    socket.on("close", script.break.pass)
    script.silence.pass()
  } else if (fate.message === null) socket.destroy()
  else if (fate.cut === true) socket.end(fate.message)
  else socket.write(`${fate.message}\r\n`)
}

/** One SMTP conversation, with a client that waits for each answer. */
const converse = (script: Script, socket: Socket): void => {
  let text = ""
  let inMessage = false
  const answer = (command: string): string => {
    const { recipient } = script.fates[0] ?? tooMany
    if (command.startsWith("RCPT") && recipient !== undefined) {
      script.fates.shift()
      return recipient
    }
    inMessage = command.startsWith("DATA")
    return inMessage ? "354 go on" : "250 fine"
  }
  socket.on("error", () => undefined)
  socket.on("data", (chunk) => {
    text += chunk.toString()
    if (!text.endsWith(inMessage ? "\r\n.\r\n" : "\r\n")) return
    const said = text
    text = ""
    if (!inMessage) return socket.write(`${answer(said)}\r\n`)
    inMessage = false
    return finish(script, socket, said)
  })
  socket.write("220 ready\r\n")
}

const mailboxOf = (script: Script) =>
  createHttpServer((request, response) => {
    const id = new URL(request.url!, "http://mailbox").searchParams.get("message-id")!
    script.asked.push(id)
    // Before it has a mail there is nothing to show too late.
    const look = script.kept.length === 0 ? null : (script.looks.shift() ?? null)
    const body = look === null ? script.kept.filter((kept) => kept === id) : look.body
    response.writeHead(look?.status ?? 200).end(JSON.stringify(body))
  })

const open = async (fates: ReadonlyArray<Fate>, looks: ReadonlyArray<Look>) => {
  const script = makeScript(fates, looks)
  const sockets = new Set<Socket>()
  const smtp = createServer((socket) => {
    sockets.add(socket)
    converse(script, socket)
  })
  const mailbox = mailboxOf(script)
  const servers = [smtp, mailbox]
  await Promise.all(servers.map((server) => once(server.listen(0, "127.0.0.1"), "listening")))
  const { brought, kept, asked } = script
  const server: Scripted = {
    brought,
    kept,
    asked,
    silent: script.silence.passed,
    broken: script.break.passed,
    smtpPort: (smtp.address() as AddressInfo).port,
    mailboxUrl: `http://127.0.0.1:${(mailbox.address() as AddressInfo).port}/messages`,
  }
  const close = async () => {
    for (const socket of sockets) socket.destroy()
    mailbox.closeAllConnections()
    await Promise.all(servers.map((each) => new Promise((resolve) => each.close(resolve))))
  }
  return { server, close }
}

export const scripted = (fates: ReadonlyArray<Fate>, looks: ReadonlyArray<Look> = []) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => open(fates, looks)),
      ({ close }) => Effect.promise(close),
    ),
    ({ server }) => server,
  )
