import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer } from "effect"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { nothingYet } from "../src/notes.js"
import { services } from "../src/services.js"
import { Model } from "../src/workflow.js"

/** A model that answers each question with these lines, in pieces that end anywhere. */
const answering = (status: number, lines: ReadonlyArray<object>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("")
      const server = createServer((_, response) => {
        response.writeHead(status)
        response.write(text.slice(0, 15))
        response.end(text.slice(15))
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
    }),
    ({ server }) => Effect.promise(() => new Promise((resolve) => server.close(resolve))),
  )

const ask = (status: number, lines: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const { url } = yield* answering(status, lines)
    const addresses = { model: url, library: url, cms: url }
    const choose = Effect.flatMap(Model, (model) => model.choose("why?", nothingYet))
    return yield* Effect.exit(Effect.provide(choose, Layer.orDie(services(addresses))))
  })

const end = { usage: { inputTokens: 1, outputTokens: 1 } }

describe("an answer of the model", () => {
  it.scopedLive("is what it has said piece by piece", () =>
    Effect.gen(function* () {
      const exit = yield* ask(200, [{ text: '{"tool":' }, { text: '"finish"}' }, end])
      expect(exit).toEqual(Exit.succeed('{"tool":"finish"}'))
    }),
  )

  it.scopedLive.each<[string, number, ReadonlyArray<object>, string]>([
    ["breaks off", 200, [{ text: '{"tool":' }], "broke off before the answer was whole"],
    ["is refused", 503, [], "answered 503"],
  ])("that %s is none, and may be asked for again", ([, status, lines, problem]) =>
    Effect.gen(function* () {
      const exit = yield* ask(status, lines)
      expect(exit).toMatchObject(Exit.fail({ _tag: "Unreachable" }))
      expect(String(exit)).toContain(problem)
    }),
  )
})
