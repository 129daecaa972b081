import { describe, expect, it } from "@effect/vitest"
import { Cairn, MemoryStore, NotPerformed, Worker, Workflow } from "@cairn/core"
import { Cause, Effect, Exit, Fiber, Layer, Logger, LogLevel, Option, Schema } from "effect"
import { mailHandler, mailing } from "../src/handlers.js"
import { domain, type MailServerAddress } from "../src/mailer.js"
import { messageIdOf } from "../src/messageId.js"
import { MailRefused, SendMail } from "../src/workflow.js"
import { accepted, scripted, type Fate, type Look } from "./scriptedServer.js"

const letter = { order: "B-1", to: "a@reader.example", subject: "Your order B-1", text: "Thank you." }
const key = "default/B-1/mail#0"
const messageId = messageIdOf(key, domain)

const turnedAway = (message: string): Fate => ({ message, kept: false })
const recipientTurnedAway = (recipient: string): Fate => ({ recipient, message: "250 stored", kept: true })

/** One send, as Cairn would ask for it, with what the server then has. */
const sendTo = (fate: Fate) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* scripted([fate])
      const { send } = mailing(server)
      const exit = yield* Effect.exit(send(letter, { idempotencyKey: key, signal: new AbortController().signal }))
      return { exit, ...server }
    }),
  )

const failureOf = <A, E>(exit: Exit.Exit<A, E>): E | null =>
  Exit.isFailure(exit) ? Option.getOrNull(Cause.failureOption(exit.cause)) : null

describe("a send", () => {
  it.effect("succeeds with the key's Message-ID when the server says 250", () =>
    Effect.gen(function* () {
      const { exit, kept, asked } = yield* sendTo(accepted)
      expect(exit).toEqual(Exit.succeed({ messageId }))
      expect(kept).toEqual([messageId])
      expect(asked).toEqual([])
    }),
  )

  it.effect.each<[string, Fate]>([
    ["450 4.2.1 mailbox busy", recipientTurnedAway("450 4.2.1 mailbox busy")],
    ["421 4.3.2 shutting down", recipientTurnedAway("421 4.3.2 shutting down")],
    ["451 4.3.0 local error", turnedAway("451 4.3.0 local error")],
    ["452 4.3.1 out of space", turnedAway("452 4.3.1 out of space")],
  ])("is known not to have happened when the server answers %s", ([reply, fate]) =>
    Effect.gen(function* () {
      const { exit, kept } = yield* sendTo(fate)
      expect(failureOf(exit)).toBeInstanceOf(NotPerformed)
      expect(String(exit)).toContain(reply)
      expect(kept).toEqual([])
    }),
  )

  it.effect.each<[string, Fate]>([
    ["550 5.1.1 no such mailbox", recipientTurnedAway("550 5.1.1 no such mailbox")],
    ["554 5.7.1 looks like spam", turnedAway("554 5.7.1 looks like spam")],
  ])("fails with the declared failure when the server answers %s", ([reply, fate]) =>
    Effect.gen(function* () {
      const { exit, kept } = yield* sendTo(fate)
      expect(failureOf(exit)).toEqual(new MailRefused({ reply }))
      expect(kept).toEqual([])
    }),
  )

  it.effect.each<[string, Fate]>([
    ["the connection is lost after the message", { message: null, kept: true }],
    ["the connection is lost within an answer", { message: "451 4.3.0 lo", cut: true, kept: true }],
    ["a server that shuts down says 421 after the message", { message: "421 4.3.2 shutting down", kept: true }],
  ])("says neither when %s", ([, fate]) =>
    Effect.gen(function* () {
      const { exit, kept } = yield* sendTo(fate)
      expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
      expect(failureOf(exit)).toBeNull()
      expect(kept).toEqual([messageId])
    }),
  )

  it.effect("is known not to have happened when nobody listens", () =>
    Effect.gen(function* () {
      const { send } = mailing(yield* Effect.scoped(scripted([])))
      const exit = yield* Effect.exit(send(letter, { idempotencyKey: key, signal: new AbortController().signal }))
      expect(failureOf(exit)).toBeInstanceOf(NotPerformed)
      expect(String(exit)).toContain("ECONNREFUSED")
    }),
  )

  it.effect("breaks the connection when Cairn gives it up, and then says neither", () =>
    Effect.gen(function* () {
      const server = yield* scripted([{ message: "silence", kept: true }])
      const cairn = new AbortController()
      const sending = yield* Effect.fork(mailing(server).send(letter, { idempotencyKey: key, signal: cairn.signal }))
      yield* Effect.promise(() => server.silent)
      cairn.abort()
      yield* Effect.promise(() => server.broken)
      const exit = yield* Fiber.await(sending)
      expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
    }).pipe(Effect.scoped),
  )
})

/** Only the mail, with retries that do not keep a test waiting. */
const mail = Workflow.make("mail", { version: 1, input: Schema.Void })
  .perform("mail", SendMail, { payload: () => letter, retry: { times: 5, delay: "1 millis" } })
  .output(Schema.String, ({ results }) => results.mail.messageId)
  .compile()

const run = (address: MailServerAddress) =>
  Cairn.start(mail, undefined, { runId: "B-1" }).pipe(
    Effect.flatMap((handle) => handle.result),
    Effect.exit,
    Effect.provide(
      Worker.layer({ workflows: [mail] }).pipe(
        Layer.provide(mailHandler(address)),
        Layer.provideMerge(MemoryStore.layer),
        // Unknown outcomes are warned of; here they are what is tested.
        Layer.provide(Logger.minimumLogLevel(LogLevel.Error)),
      ),
    ),
  )

const mailAgainst = (fates: ReadonlyArray<Fate>, looks: ReadonlyArray<Look> = []) =>
  Effect.scoped(
    Effect.gen(function* () {
      const server = yield* scripted(fates, looks)
      const exit = yield* run(server)
      return { exit, ...server }
    }),
  )

const lost = { message: null } as const

/**
 * Real sockets, so real time: an unknown outcome is looked into when the operation's timeout has passed, and together
 * they wait only once. On a busy machine an answer may come too late, and is then asked for: nothing here counts on less.
 */
describe.concurrent("a run", () => {
  it.live("sends once more when the server turns the mail away for now", () =>
    Effect.gen(function* () {
      const { exit, brought, kept } = yield* mailAgainst([turnedAway("451 4.3.0 local error"), accepted])
      expect(exit).toEqual(Exit.succeed(kept[0]))
      expect(brought).toHaveLength(2)
      expect(kept).toHaveLength(1)
    }),
  )

  it.live("fails with what the server said when it refuses the mail for good", () =>
    Effect.gen(function* () {
      const refused = turnedAway("554 5.7.1 looks like spam")
      const { exit, kept } = yield* mailAgainst([refused, refused])
      expect(exit).toMatchObject(Exit.fail({ _tag: "MailRefused", reply: "554 5.7.1 looks like spam" }))
      expect(kept).toEqual([])
    }),
  )

  it.live.each<[string, Fate]>([
    ["the connection is lost", { ...lost, kept: true }],
    ["a server that shuts down says 421", { message: "421 4.3.2 shutting down", kept: true }],
    ["no answer comes in time", { message: "silence", kept: true }],
  ])("does not send again when %s and the mailbox has the mail", ([, fate]) =>
    Effect.gen(function* () {
      const { exit, brought, asked } = yield* mailAgainst([fate, accepted])
      expect(exit).toEqual(Exit.succeed(messageId))
      expect(brought).toEqual([messageId])
      expect(asked).toContain(messageId)
    }),
  )

  it.live("sends again under the same Message-ID when the connection is lost and the mailbox does not have it", () =>
    Effect.gen(function* () {
      const { exit, brought, kept, asked } = yield* mailAgainst([{ ...lost, kept: false }, accepted])
      expect(exit).toEqual(Exit.succeed(messageId))
      expect(brought).toEqual([messageId, messageId])
      expect(kept).toEqual([messageId])
      expect(asked).toContain(messageId)
    }),
  )

  it.live.each<[string, Look]>([
    ["answers 500", { status: 500, body: [] }],
    ["answers something else than a list", { status: 200, body: {} }],
  ])("asks again and sends nothing while the mailbox %s", ([, look]) =>
    Effect.gen(function* () {
      const { exit, brought, asked } = yield* mailAgainst([{ ...lost, kept: true }, accepted], [look])
      expect(exit).toEqual(Exit.succeed(messageId))
      expect(brought).toEqual([messageId])
      expect(asked.length).toBeGreaterThanOrEqual(2)
    }),
  )

  it.live("has a limit: a mailbox that shows the mail later than the operation's timeout is asked too early", () =>
    Effect.gen(function* () {
      const { exit, kept } = yield* mailAgainst([{ ...lost, kept: true }, accepted], [{ status: 200, body: [] }])
      expect(exit).toEqual(Exit.succeed(messageId))
      // Two mails; one to a reader whose mailbox drops what it has under the same Message-ID.
      expect(kept).toEqual([messageId, messageId])
    }),
  )
})
