/** How a client over Postgres closes, whatever its runs and its server are doing (field cases P054, P055). */
import { Cairn, Workflow, type CairnClient } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, Schema } from "effect"
import { ranWorker } from "../../sql/test/support/workerProcess.js"
import { makeCuttingProxy, type CuttingProxy } from "./internal/cuttingProxy.js"
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

type Call = (cairn: CairnClient) => Promise<unknown>

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

  const troubles = [
    ["is stopped", ({ stop }: CuttingProxy) => stop()],
    ["swallows what it is sent", ({ swallow }: CuttingProxy) => swallow(true)],
  ] as const
  const works: ReadonlyArray<readonly [work: string, step: (() => Promise<null>) | null, call: Call | null]> = [
    ["nothing", null, null],
    ["a step that is about to end", () => new Promise((resolve) => setTimeout(() => resolve(null), 100)), null],
    ["a step that ignores its signal", () => new Promise(() => {}), null],
    ["a call under way", null, (cairn) => cairn.list()],
    ["a cancel under way", null, (cairn) => cairn.cancel({ runId: "r" })],
  ]
  const cases = troubles.flatMap(([server, begin]) =>
    works.map(([work, step, call]) => ({ server, begin, work, step, call })),
  )

  /** How long closing takes, in milliseconds, in such a trouble; and then no connection is left. */
  const closes = ({ begin, call, step }: (typeof cases)[number]) =>
    Effect.gen(function* () {
      const { begun, workflow } = stepThat(step ?? (() => Promise.resolve(null)))
      const { cairn, proxy } = yield* opened([workflow])
      if (step !== null) {
        yield* Effect.promise(() => cairn.start(workflow, null, { runId: "r" }))
        yield* Effect.promise(() => begun)
      }
      begin(proxy)
      const called = call?.(cairn).catch((error: unknown) => error)
      // Its next claim is under way, and is tried again and again.
      yield* Effect.sleep(200)
      const ms = yield* Effect.promise(() => tookMs(() => cairn.close()))
      if (called !== undefined) expect(yield* Effect.promise(() => called)).toMatchObject({ _tag: "ClientClosed" })
      yield* Effect.repeat(Effect.sleep(5), { until: () => !proxy.isUsed() })
      return ms
    }).pipe(Effect.scoped)

  // On a machine that is busy with something else some take longer.
  it.live.each(cases)("is done a second after its drain where the server $server, with $work", (trouble) =>
    Effect.repeat(closes(trouble), { until: (ms) => ms <= drainMs + 1_000, times: 7 }).pipe(
      Effect.map((last) => expect(Number(last)).toBeLessThanOrEqual(drainMs + 1_000)),
    ),
  )

  it.scopedLive("does not cut off calls that have reached a server which answers", () =>
    Effect.gen(function* () {
      const { cairn, proxy } = yield* opened([sleeping])
      const starts = Array.from({ length: 50 }, (_, n) =>
        cairn.start(sleeping, null, { runId: `r-${n}` }).then(
          () => "started",
          (error: { readonly _tag: string }) => error._tag,
        ),
      )
      yield* Effect.promise(() => cairn.close())
      for (const ending of yield* Effect.promise(() => Promise.all(starts))) {
        expect(["started", "ClientClosed"]).toContain(ending)
      }
      yield* Effect.repeat(Effect.sleep(5), { until: () => !proxy.isUsed() })
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
