import { describe, expect, it } from "@effect/vitest"
import { Cairn, MemoryStore, Worker, Workflow } from "@cairn/core"
import { Effect, Exit, Layer, Logger, LogLevel, Schema } from "effect"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { handlers, type Addresses } from "../src/handlers.js"
import { ChargeCard } from "../src/workflow.js"

/** What the payment API does with one request; it drops the connection where there is no status. */
interface Reply {
  readonly status: number | null
  readonly headers?: Record<string, string>
  readonly body?: unknown
}

const charged: Reply = { status: 201, body: { id: "ch_1" } }
const keptAnswer: Reply = { ...charged, headers: { "idempotent-replayed": "true" } }
const dropped: Reply = { status: null }

/** A payment API that answers what the test says, in that order, and keeps the keys that it was sent. */
const scripted = (replies: ReadonlyArray<Reply>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const keys: Array<string | undefined> = []
      const server: Server = createServer((request, response) => {
        const reply = replies[keys.length] ?? { status: 500, body: { error: { code: "unexpected", message: "" } } }
        keys.push(request.headers["idempotency-key"] as string | undefined)
        if (reply.status === null) return response.destroy()
        response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers })
        response.write(JSON.stringify(reply.body ?? {}))
        // A promised length that does not come: the connection ends in the middle of the answer.
        return reply.headers?.["content-length"] === undefined ? response.end() : setImmediate(() => response.destroy())
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const close = () =>
        new Promise<void>((resolve) => {
          server.closeAllConnections()
          server.close(() => resolve())
        })
      return { url, keys, close }
    }),
    ({ close }) => Effect.promise(close),
  )

/** Only the charge, with retries that do not keep a test waiting. */
const charge = Workflow.make("charge", { version: 1, input: Schema.String })
  .perform("charge", ChargeCard, {
    payload: ({ input }) => ({ card: "card_1", amountCents: 100, currency: "EUR", invoice: input }),
    retry: { times: 2, delay: "1 millis" },
  })
  .output(Schema.String, ({ results }) => results.charge.id)
  .compile()

const run = (addresses: Addresses) =>
  Cairn.start(charge, "RE-1", { runId: "RE-1.txt" }).pipe(
    Effect.flatMap((handle) => handle.result),
    Effect.exit,
    Effect.provide(
      Worker.layer({ workflows: [charge] }).pipe(
        Layer.provide(handlers(addresses)),
        Layer.provideMerge(MemoryStore.layer),
        // Unknown outcomes are warned of; here they are what is tested.
        Layer.provide(Logger.minimumLogLevel(LogLevel.Error)),
      ),
    ),
  )

const chargeAgainst = (replies: ReadonlyArray<Reply>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const api = yield* scripted(replies)
      const exit = yield* run({ paymentsUrl: api.url, mailUrl: api.url })
      return { exit, keys: api.keys }
    }),
  )

describe("the charge handler", () => {
  it.live("sends a key", () =>
    Effect.gen(function* () {
      const { exit, keys } = yield* chargeAgainst([charged])
      expect(exit).toEqual(Exit.succeed("ch_1"))
      expect(keys).toHaveLength(1)
      expect(keys[0]).toMatch(/.+/)
    }),
  )

  it.live.each<[string, Reply]>([
    ["the connection is lost", dropped],
    ["the provider answers 500", { status: 500, body: { error: { code: "internal", message: "" } } }],
    ["the first request is still being performed", { status: 409, body: { error: { code: "in_use", message: "" } } }],
    ["the answer is cut short", { status: 201, headers: { "content-length": "999" }, body: { id: "ch_1" } }],
  ])("sends again under the same key when %s", ([, reply]) =>
    Effect.gen(function* () {
      const { exit, keys } = yield* chargeAgainst([reply, keptAnswer])
      expect(exit).toEqual(Exit.succeed("ch_1"))
      expect(keys).toHaveLength(2)
      expect(new Set(keys).size).toBe(1)
    }),
  )

  it.live("parks the run for a person when the provider's success cannot be read", () =>
    Effect.gen(function* () {
      const { exit, keys } = yield* chargeAgainst([{ status: 201, body: { charge: "ch_1" } }])
      expect(exit).toMatchObject(Exit.fail({ _tag: "RunParked", step: "charge", reason: "OutputInvalid" }))
      expect(keys).toHaveLength(1)
    }),
  )

  it.live.each([429, 503])("sends again under a new key when %i says that nothing was done", (status) =>
    Effect.gen(function* () {
      const { exit, keys } = yield* chargeAgainst([{ status, headers: { "retry-after": "0" } }, charged])
      expect(exit).toEqual(Exit.succeed("ch_1"))
      expect(keys).toHaveLength(2)
      expect(new Set(keys).size).toBe(2)
    }),
  )

  it.live("fails the run with the declared failure when the card is declined, and asks once", () =>
    Effect.gen(function* () {
      const error = { code: "card_declined", message: "The bank declined this card." }
      const { exit, keys } = yield* chargeAgainst([{ status: 402, body: { error } }])
      expect(exit).toMatchObject(Exit.fail({ _tag: "CardDeclined", ...error }))
      expect(keys).toHaveLength(1)
    }),
  )

  it.live("knows that nothing was sent when nobody listens", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(Effect.map(scripted([]), ({ url }) => url))
      const exit = yield* run({ paymentsUrl: gone, mailUrl: gone })
      expect(exit).toMatchObject(Exit.fail({ _tag: "RunFailed", step: "charge" }))
      expect(String(exit)).toContain("refused the connection")
    }),
  )
})
