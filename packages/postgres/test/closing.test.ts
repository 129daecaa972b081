/** How a client over Postgres closes, whatever its runs and its server are doing (field cases P054, P055). */
import { Cairn, Workflow } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, Schema } from "effect"
import { ranWorker } from "../../sql/test/support/workerProcess.js"
import { makeCuttingProxy } from "./internal/cuttingProxy.js"
import { freshSchema, useDatabase } from "./internal/database.js"

const database = useDatabase()

const drainMs = 500

/** A workflow whose only step says that it was begun, and ends when its promise does. */
const stepThat = (waits: () => Promise<null>) => {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => (begin = resolve))
  const workflow = Workflow.make("stepping", { version: 1, input: Schema.Null })
    .step("only", { effects: [], output: Schema.Null }, () => {
      begin()
      return waits()
    })
    .compile()
  return { workflow, begun }
}

const sleeping = Workflow.make("sleeping", { version: 1, input: Schema.Null }).sleep("hour", "1 hour").compile()

const opened = (workflows: ReadonlyArray<typeof sleeping | ReturnType<typeof stepThat>["workflow"]>) =>
  Effect.gen(function* () {
    const schema = yield* freshSchema(database)
    const proxy = yield* makeCuttingProxy(database.url)
    const cairn = yield* Effect.promise(() =>
      Cairn.open({
        // It says that it could not release what it held.
        store: PostgresStore.layer({ url: Redacted.make(proxy.url), schema, maxConnections: 4 }).pipe(
          Layer.provide(Logger.remove(Logger.defaultLogger)),
        ),
        workflows,
        drain: drainMs,
        pollInterval: 50,
      }),
    )
    return { cairn, proxy }
  })

const tookMs = async (act: () => Promise<unknown>): Promise<number> => {
  const began = performance.now()
  await act()
  return performance.now() - began
}

describe("a client that closes", () => {
  it.scopedLive("leaves a step behind that ignores its signal, soon after its drain; closing twice is once", () =>
    Effect.gen(function* () {
      const { begun, workflow } = stepThat(() => new Promise(() => {}))
      const { cairn } = yield* opened([workflow])
      yield* Effect.promise(() => cairn.start(workflow, null, { runId: "r" }))
      yield* Effect.promise(() => begun)
      const ms = yield* Effect.promise(() => tookMs(() => Promise.all([cairn.close(), cairn.close()])))
      expect(ms).toBeGreaterThan(drainMs - 50)
      // A promise has half a second to heed its signal.
      expect(ms).toBeLessThan(drainMs + 500 + 1_500)
    }),
  )

  it.scopedLive("does not wait for a run that sleeps", () =>
    Effect.gen(function* () {
      const { cairn } = yield* opened([sleeping])
      const handle = yield* Effect.promise(() => cairn.start(sleeping, null, { runId: "r" }))
      yield* Effect.repeat(
        Effect.delay(
          Effect.promise(() => handle.poll()),
          5,
        ),
        {
          until: ({ status }) => status === "sleeping",
        },
      )
      expect(yield* Effect.promise(() => tookMs(() => cairn.close()))).toBeLessThan(1_000)
    }),
  )

  it.scopedLive("does not wait for a server that swallows what it is sent", () =>
    Effect.gen(function* () {
      const { begun, workflow } = stepThat(() => new Promise((resolve) => setTimeout(() => resolve(null), 100)))
      const { cairn, proxy } = yield* opened([workflow])
      yield* Effect.promise(() => cairn.start(workflow, null, { runId: "r" }))
      yield* Effect.promise(() => begun)
      proxy.swallow(true)
      const ms = yield* Effect.promise(() => tookMs(() => cairn.close()))
      // A second for its claim, one for its steps, its buffer and its release together, and one for the pool.
      expect(ms).toBeLessThan(drainMs + 3_000 + 2_000)
    }),
  )
})

describe("a process whose client has closed", () => {
  it.scopedLive("ends by itself at once, though a wait of an hour was answered in it", () =>
    Effect.gen(function* () {
      const schema = yield* freshSchema(database)
      const script = new URL("./children/closes.ts", import.meta.url)
      const { output, signal } = yield* ranWorker({ driver: undefined as never, script, args: [database.url, schema] })
      const [ended, closed, exits] = output.split("\n").map((line) => JSON.parse(line))
      expect(signal).toBeNull()
      expect(ended).toEqual({ event: "ended", result: "done" })
      expect(exits.at - closed.at).toBeLessThan(500)
    }),
  )
})
