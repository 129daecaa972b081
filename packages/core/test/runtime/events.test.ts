/** Events: what a run has come to, as clients see it, each once and in order, whenever they come and go. */
import { describe, expect, it } from "@effect/vitest"
import { Duration, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Readable } from "node:stream"
import {
  Cairn,
  Events,
  fromDriver,
  MemoryDriver,
  MemoryStore,
  OnUnknown,
  Operation,
  RunCanceled,
  Workflow,
  type AnyWorkflow,
  type CheckpointStoreService,
  type RunEvent,
  type RunPatch,
} from "../../src/index.js"
import { intercepted, startWorker, storeLayer, type Bench } from "./support/bench.js"
import { test } from "./support/adding.js"

const Json: Schema.Schema<any> = Schema.suspend(() =>
  Schema.Union(
    ...[Schema.String, Schema.Number, Schema.Boolean, Schema.Null],
    Schema.Array(Json),
    Schema.Record({ key: Schema.String, value: Json }),
  ),
)
const flow = (name = "w"): any => (Workflow.make as any)(name, { version: 1, input: Json, failure: Schema.String })
const done = (built: any): any => {
  const workflow = built.compile()
  expect(workflow.diagnostics).toEqual([])
  return workflow
}
const gives = (of: unknown): any => [{ effects: [], output: Json }, () => of]

const on = <A, E>(bench: Pick<Bench, "store">, effect: Effect.Effect<A, E, any>) =>
  Effect.provide(effect, storeLayer(bench.store)) as Effect.Effect<A, E>

const begin = (bench: Bench, workflow: AnyWorkflow, needs?: Layer.Layer<any>, input: unknown = null) =>
  Effect.gen(function* () {
    yield* startWorker(bench.store, { workflows: [workflow] }, needs)
    return yield* on(bench, Cairn.start(workflow as any, input as never, { runId: "r" }))
  })

const all = (events: AsyncIterable<RunEvent<any>>) =>
  Effect.promise(async () => {
    const seen: Array<RunEvent<any>> = []
    for await (const event of events) seen.push(event)
    return seen
  })

/** Up to the first event of that kind, which is included; the iterator is left as it is. */
const upTo = (iterator: AsyncIterator<RunEvent<any>>, tag: RunEvent["_tag"]) =>
  Effect.promise(async () => {
    const seen: Array<any> = []
    for (;;) {
      const next = await iterator.next()
      if (next.done === true) throw new Error(`the events ended without ${tag}`)
      seen.push(next.value)
      if (next.value._tag === tag) return seen
    }
  })

const shown = (event: any): string =>
  [event._tag, event.path ?? event.status, event.kind].filter((part) => part !== undefined).join(" ")

/** Pages by their sizes, as they were asked for. */
const counted = (store: CheckpointStoreService) => {
  const calls: Array<string> = []
  return { calls, store: intercepted(store, (method) => Effect.sync(() => void calls.push(method))) }
}

/** A loop of so many turns. */
const turns = (most: number) =>
  done(
    flow().loop(
      "agent",
      { state: Schema.Int, initial: () => 0, maxIterations: most, onLimit: "stop" },
      (flow: any) => flow.step("think", { effects: [], output: Json }, ({ turn }: any) => ({ turn })),
      ({ state }: any) => ({ done: false, state: state + 1 }),
    ),
  )

describe("the events of a run", () => {
  test("tell of every committed step, in order, with its result and what it is in the workflow", (bench) =>
    Effect.gen(function* () {
      const workflow = done(
        flow()
          .step("day", { effects: [], output: Schema.Date }, () => new Date(86_400_000))
          .branch("route", () => "large", {
            large: (flow: any) => flow.step("approve", ...gives("yes")),
            small: (flow: any) => flow,
          })
          .loop(
            "agent",
            { state: Schema.NumberFromString, initial: () => 5, maxIterations: 3, onLimit: "fail" },
            (flow: any) => flow.step("think", { effects: [], output: Json }, ({ turn }: any) => turn),
            ({ state, turn }: any) => ({ done: turn === 1, state: state + 1 }),
          )
          .parallel("both", {
            left: (flow: any) => flow.step("a", ...gives("a")),
            right: (flow: any) => flow.step("b", ...gives("b")),
          })
          .forEach(
            "each",
            { items: () => ["x", "y"], key: (item: string) => item, concurrency: 1, onFailure: "collect" },
            (flow: any) =>
              flow.step("send", { effects: [], output: Json }, ({ item }: any) =>
                item === "y" ? Effect.fail(new Error("no such address")) : item,
              ),
          ),
      )
      const handle = yield* begin(bench, workflow)
      const events: ReadonlyArray<any> = yield* all(handle.events())
      expect(events.map((event) => `${event.seq} ${shown(event)}`)).toEqual([
        "1 StepCompleted day step",
        "2 StepCompleted route branch",
        "3 StepCompleted route:large/approve step",
        "4 StepCompleted agent[0] turn",
        "5 StepCompleted agent[0]/think step",
        "6 StepCompleted agent[1] turn",
        "7 StepCompleted agent[1]/think step",
        "8 StepCompleted agent loop",
        "9 StepCompleted both:left/a step",
        "10 StepCompleted both:right/b step",
        "11 StepCompleted each[] items",
        "12 StepCompleted each[x]/send step",
        "13 StepCompleted each[x] item",
        "14 AttemptEnded each[y]/send failed",
        "14 StepCompleted each[y] item",
        "15 StepCompleted each forEach",
        "16 Finished completed",
      ])
      const of = (path: string) => events.findLast((event) => event.path === path)
      // By the schemas of the workflow, beside the text that is stored.
      expect([of("day").result, of("day").json]).toEqual([new Date(86_400_000), '"1970-01-02T00:00:00.000Z"'])
      expect([of("agent[1]").result, of("agent[1]").json, of("agent").result]).toEqual([6, '"6"', 7])
      expect(of("route").result).toEqual({ case: "large" })
      expect(of("each[]").result).toEqual([
        { key: "x", value: "x" },
        { key: "y", value: "y" },
      ])
      expect(of("each[x]").result).toEqual({ ok: true })
      expect(of("each[y]").result).toEqual({ ok: false, step: "each[y]/send", problem: "no such address" })
      expect(of("each").result).toEqual({ total: 2, failed: 1 })
      expect(events.filter(({ isLastOfSeq }) => !isLastOfSeq).map(shown)).toEqual(["AttemptEnded each[y]/send failed"])
      const { steps } = (yield* bench.driver.load("default", "r"))!
      expect(of("day").at).toEqual(new Date(steps[0]!.committedAt))
    }))

  test("are the same from each seq on, whenever somebody comes", (bench) =>
    Effect.gen(function* () {
      const handle = yield* begin(bench, turns(30))
      const live = yield* all(handle.events())
      const { seq: last } = live.at(-1)!
      expect(live.length).toBe(62)
      for (let fromSeq = 0; fromSeq <= last; fromSeq++) {
        const later = yield* all(yield* on(bench, Cairn.events(turns(30), { runId: "r", fromSeq })))
        expect(later).toEqual(live.filter(({ seq }) => seq > fromSeq))
      }
      expect(yield* all(handle.events({ fromSeq: last + 5 }))).toEqual([])
    }))

  test("tell of failed and rejected attempts, and of the failure in the end", (bench) =>
    Effect.gen(function* () {
      let calls = 0
      const workflow = done(
        flow()
          .step("extract", { effects: [], output: Schema.Int, onInvalid: { retries: 1, then: "fail" } }, () =>
            calls++ === 0 ? "no number" : 5,
          )
          .step("decide", { effects: [], output: Json, retry: { times: 1, delay: "20 seconds" } }, () =>
            Effect.fail("it is over"),
          ),
      )
      const handle = yield* begin(bench, workflow)
      const events: ReadonlyArray<any> = yield* all(handle.events())
      const [rejected, extracted, failed, again, end] = events
      expect(events.map(shown)).toEqual([
        "AttemptEnded extract rejected",
        "StepCompleted extract step",
        "AttemptEnded decide failed",
        "AttemptEnded decide failed",
        "Finished failed",
      ])
      expect(rejected).toMatchObject({ attempt: 1, kind: "rejected", retryAt: rejected.at })
      expect(rejected.problem).toContain("no number")
      expect(extracted).toMatchObject({ attempts: 2, result: 5 })
      expect(failed.retryAt - failed.at).toBeGreaterThanOrEqual(Duration.toMillis("20 seconds"))
      expect(again).toMatchObject({ attempt: 2, problem: "it is over", retryAt: null, seq: end.seq })
      expect(end).toMatchObject({ step: "decide", problem: "it is over", error: "it is over", json: '"it is over"' })
    }))

  test("tell what a run waits for while it waits, and of a decision that was made on what was shown", (bench) =>
    Effect.gen(function* () {
      const child = done(
        flow("child")
          .sleep("nap", "1 hour")
          .output(Schema.Int, () => 7),
      )
      const workflow = done(
        flow()
          .review("approve", {
            decision: Schema.Struct({ by: Schema.Date }),
            show: () => ({ cents: 500 }),
            deadline: "2 days",
            onReject: "fail",
            onTimeout: "fail",
            who: "ada",
          })
          .signal("paid", { schema: Schema.Int })
          .child("sub", child, { input: () => null }),
      )
      yield* startWorker(bench.store, { workflows: [workflow, child] })
      const handle = yield* on(bench, Cairn.start(workflow, null as never, { runId: "r" }))
      const iterator = handle.events()[Symbol.asyncIterator]()
      const [review] = yield* upTo(iterator, "Waiting")
      expect(review).toMatchObject({ path: "approve", kind: "review", name: null, seq: 1, isLastOfSeq: true })
      expect(review.until - review.at).toBe(Duration.toMillis("2 days"))
      expect(review.review).toEqual({ reviewId: "approve@1", shown: { cents: 500 }, who: "ada" })
      const { reviewId } = review.review
      yield* on(
        bench,
        Cairn.review(workflow, { runId: "r", reviewId }, { by: "ada", approve: { by: new Date(1_000) } } as never),
      )
      const [approved, signal] = yield* upTo(iterator, "Waiting")
      expect(approved).toMatchObject({ path: "approve", kind: "review", result: { decision: { by: new Date(1_000) } } })
      expect(signal).toMatchObject({ path: "paid", kind: "signal", name: "paid", until: null, review: null })
      // Who comes now hears of what the run waits for by now, and not of what it has waited for.
      const late = handle.events()[Symbol.asyncIterator]()
      expect((yield* upTo(late, "Waiting")).map(shown)).toEqual(["StepCompleted approve review", "Waiting paid signal"])
      yield* Effect.promise(() => late.return!())
      yield* on(bench, Cairn.signal(workflow, { runId: "r" }, "paid", 5))
      const [paid, sub] = yield* upTo(iterator, "Waiting")
      expect([paid.result, sub.kind]).toEqual([5, "child"])
      const [end, finished] = yield* upTo(iterator, "Finished")
      expect(end).toMatchObject({ path: "sub", kind: "child", result: 7 })
      expect(finished).toMatchObject({ status: "completed", output: undefined, unreadable: null })
      expect(yield* Effect.promise(() => iterator.next())).toEqual({ done: true, value: undefined })
    }))

  test("tell that a run is canceled, after what it has taken back", (bench) =>
    Effect.gen(function* () {
      const of = { payload: Json, success: Json, onUnknown: OnUnknown.retryWithKey({ keyWindow: "1 day" }) }
      const Book = (Operation.make as any)("book", of)
      const Unbook = (Operation.make as any)("unbook", of)
      const workflow = done(
        flow()
          .perform("flight", Book, {
            payload: () => "LH1",
            compensate: { operation: Unbook, payload: ({ result }: any) => result },
          })
          .signal("go", { schema: Json }),
      )
      const needs: Layer.Layer<any> = Layer.merge(
        Book.toLayer(() => Effect.succeed("booked")),
        Unbook.toLayer(() => Effect.succeed("unbooked")),
      ) as never
      const handle = yield* begin(bench, workflow, needs)
      const iterator = handle.events()[Symbol.asyncIterator]()
      yield* upTo(iterator, "Waiting")
      yield* on(bench, Cairn.cancel({ runId: "r", reason: "another plan" }))
      const events = yield* upTo(iterator, "Finished")
      expect(events.map(shown)).toEqual(["StepCompleted flight/compensate compensation", "Finished canceled"])
      expect(events[0].result).toBe("unbooked")
      expect(events[1].reason).toBe("another plan")
      expect(yield* Effect.flip(handle.result)).toBeInstanceOf(RunCanceled)
    }))

  test("tell why a run is parked, and go on when somebody has answered, with the attempt that did not happen", (bench) =>
    Effect.gen(function* () {
      let calls = 0
      const of = { payload: Json, success: Json, timeout: "1 second", onUnknown: OnUnknown.review() }
      const Charge = (Operation.make as any)("charge", of)
      const workflow = done(flow().perform("pay", Charge, { payload: () => 500 }))
      const needs = Charge.toLayer(() => (calls++ === 0 ? Effect.die(new Error("cut off")) : Effect.succeed("paid")))
      const handle = yield* begin(bench, workflow, needs)
      const iterator = handle.events()[Symbol.asyncIterator]()
      const [parked] = yield* upTo(iterator, "Parked")
      expect(parked).toMatchObject({ path: "pay", reason: "OutcomeUnknown", isLastOfSeq: true })
      const held = yield* Effect.fork(upTo(iterator, "Finished"))
      yield* Effect.sleep("1 hour")
      expect(held.unsafePoll()).toBe(null)
      yield* on(bench, Cairn.answer(workflow, { runId: "r" }, { happened: false }))
      const events = yield* Fiber.join(held)
      expect(events.map(shown)).toEqual(["AttemptEnded pay refused", "StepCompleted pay perform", "Finished completed"])
      // Nothing of a commit that the client had handled came after it.
      expect(events.every(({ seq }) => seq > parked.seq)).toBe(true)
      const later = yield* all(handle.events({ fromSeq: parked.seq }))
      expect(later).toEqual(events)
    }))

  test("go on after the failure of a run that is tried again, and those of a fork begin with what it has taken over", (bench) =>
    Effect.gen(function* () {
      let works = false
      const workflow = done(
        flow()
          .step("read", ...gives("text"))
          .step("send", { effects: [], output: Json }, () => (works ? "sent" : Effect.fail("no connection"))),
      )
      const handle = yield* begin(bench, workflow)
      const before = yield* all(handle.events())
      expect(before.map(shown)).toEqual(["StepCompleted read step", "AttemptEnded send failed", "Finished failed"])
      works = true
      yield* on(bench, Cairn.retry(workflow, { runId: "r" }))
      const after = yield* all(handle.events({ fromSeq: before.at(-1)!.seq }))
      expect(after.map(shown)).toEqual(["Retried send", "StepCompleted send step", "Finished completed"])
      const fork: any = yield* on(bench, Cairn.fork(workflow, { runId: "r", step: "send", newRunId: "f" }))
      expect(fork.runId).toBe("f")
      const forked = yield* all(yield* on(bench, Cairn.events(workflow, { runId: "f" })))
      expect(forked.map(shown)).toEqual(["StepCompleted read step", "StepCompleted send step", "Finished completed"])
    }))

  test("expose what is durable, and nothing that a killed process would take back (W2)", (bench) =>
    Effect.gen(function* () {
      const open = Effect.unsafeMakeLatch(false)
      const store = intercepted(bench.store, (method) => (method === "commit" ? open.await : Effect.void))
      const workflow = done(
        flow()
          .step("first", ...gives(1))
          .step("second", ...gives(2)),
      )
      yield* startWorker(store, { workflows: [workflow] })
      const handle = yield* on({ store }, Cairn.start(workflow, null as never, { runId: "r" }))
      const first = yield* Effect.fork(Effect.promise(() => handle.events()[Symbol.asyncIterator]().next()))
      yield* Effect.sleep("2 seconds")
      expect([yield* handle.seq, yield* handle.durableSeq]).toEqual([2, 0])
      expect(first.unsafePoll()).toBe(null)
      yield* open.open
      expect((yield* Fiber.join(first)).value).toMatchObject({ path: "first", seq: 1 })
    }))

  test("are told also where this code has no such step, or another schema", (bench) =>
    Effect.gen(function* () {
      const handle = yield* begin(
        bench,
        done(
          flow()
            .step("a", ...gives("text"))
            .step("b", ...gives(2)),
        ),
      )
      yield* handle.result
      const other = done(flow().step("a", { effects: [], output: Schema.Int }, () => 1))
      const [a, b, end]: ReadonlyArray<any> = yield* all(yield* on(bench, Cairn.events(other, { runId: "r" })))
      expect([a.result, a.json]).toEqual([undefined, '"text"'])
      expect(a.unreadable).toContain("Expected")
      expect(b).toMatchObject({ kind: "step", result: undefined, json: "2", unreadable: "this code has no such step" })
      expect(end).toMatchObject({ status: "completed" })
    }))

  test("come as a Stream of Effect as well", (bench) =>
    Effect.gen(function* () {
      const handle = yield* begin(bench, turns(3))
      const stream = Stream.fromAsyncIterable(handle.events(), (error) => error)
      const some = yield* Stream.runCollect(Stream.take(stream, 3))
      expect([...some].map(shown)).toEqual(
        ["turn", "step", "turn"].map(
          (kind, n) => `StepCompleted agent[${n >> 1}]${kind === "step" ? "/think" : ""} ${kind}`,
        ),
      )
    }))
})

describe("whoever reads events", () => {
  test("is given a page, and no further one before it is done with that", (bench) =>
    Effect.gen(function* () {
      const handle = yield* begin(bench, turns(300))
      yield* handle.result
      const { calls, store } = counted(bench.store)
      const iterator = (yield* on({ store }, Cairn.events(turns(300), { runId: "r" })))[Symbol.asyncIterator]()
      const pages = () => calls.filter((method) => method === "loadHistory").length
      let last: any
      for (let n = 0; n < 602; n++) {
        last = yield* Effect.promise(() => iterator.next())
        // 100 rows a page, the last of which may stand in a commit of several.
        expect(pages()).toBe(Math.floor(n / 99) + 1)
      }
      expect(last.value).toMatchObject({ _tag: "Finished" })
      expect(yield* Effect.promise(() => iterator.next())).toMatchObject({ done: true })
      // One look for all of them, and none after the end.
      expect(calls.filter((method) => method === "findRuns")).toHaveLength(1)
    }))

  test("gets a commit that has left more than a page as one", () =>
    Effect.gen(function* () {
      const driver = yield* MemoryDriver.make()
      const store = fromDriver(driver)
      const workflow = done(flow().step("a", ...gives(1)))
      const { plan } = workflow
      const hash = plan._tag === "Right" ? plan.right.hash : ""
      const of = { namespace: "default", workflow: "w", version: 1, planHash: hash, input: "null", inputHash: "h" }
      const none = { parentRunId: null, parentPath: null, flowKey: null, priority: 0, wakeAt: null }
      yield* driver.createRun({ ...of, runId: "r", ...none })
      yield* driver.beat("me", 60_000)
      const asks = { namespace: "default", workerId: "me", claimToken: "t", runIds: null, limit: 1 }
      const [row] = yield* driver.claim({ ...asks, workflows: [{ name: "w", version: 1 }] })
      const lease = { namespace: "default", runId: "r", fence: row!.fence, claimToken: "t" }
      const run: RunPatch = {
        ...{ status: "completed" as const, cursor: null, wakeInMs: null, output: null, failure: null, parked: null },
        ...{ release: true, seenInbox: null },
      }
      const steps = Array.from({ length: 450 }, (_, n) => ({
        ...{ path: `s${n}`, scope: n % 2 === 0 ? "" : "x[1]", seq: n < 3 ? 1 : n < 448 ? 2 : 3, result: "1" },
        ...{ effect: "none", idempotencyKey: null, attempts: 1, durationMs: 1 },
      }))
      const rest = { effects: [], attempts: [], consumes: [], waits: [], closes: [], wakesParent: null }
      yield* driver.commit([{ lease, base: 0, seq: 3, run, steps, ...rest }])
      const events = yield* all(yield* on({ store }, Cairn.events(workflow, { runId: "r" })))
      expect(events).toHaveLength(451)
      expect(new Set(events.map((event: any) => event.path)).size).toBe(451)
      expect(events.filter(({ isLastOfSeq }) => isLastOfSeq).map(({ seq }) => seq)).toEqual([1, 2, 3])
    }))

  test("and stops is asked about no more, also while it waits for the next one", (bench) =>
    Effect.gen(function* () {
      yield* begin(
        bench,
        done(
          flow()
            .step("a", ...gives(1))
            .signal("go", { schema: Json }),
        ),
      )
      const { calls, store } = counted(bench.store)
      const events = yield* on({ store }, Cairn.events(done(flow().step("a", ...gives(1))), { runId: "r" }))
      const iterator = events[Symbol.asyncIterator]()
      yield* upTo(iterator, "Waiting")
      const waiting = yield* Effect.fork(Effect.promise(() => iterator.next()))
      yield* Effect.sleep("10 seconds")
      const looks = calls.length
      expect(looks).toBeGreaterThan(5)
      expect(looks).toBeLessThan(25)
      expect(yield* Effect.promise(() => iterator.return!())).toEqual({ done: true, value: undefined })
      expect(yield* Fiber.join(waiting)).toEqual({ done: true, value: undefined })
      expect(yield* Effect.promise(() => iterator.next())).toEqual({ done: true, value: undefined })
      yield* Effect.sleep("1 hour")
      expect(calls.length).toBe(looks)
    }))

  it.live("lets go where a connection closes in the middle of a wait", () =>
    Effect.gen(function* () {
      const { calls, store } = counted(fromDriver(yield* MemoryDriver.make()))
      const workflow = done(flow().signal("go", { schema: Json }))
      const handle = yield* on({ store }, Cairn.start(workflow, null as never, { runId: "r" }))
      const frames = Readable.from(Events.toServerSentEvents(handle.events()))
      const closed = new Promise((resolve) => frames.on("close", resolve))
      frames.resume()
      yield* Effect.sleep(50)
      frames.destroy()
      yield* Effect.promise(() => closed)
      const looks = calls.length
      expect(looks).toBeGreaterThan(1)
      yield* Effect.sleep(300)
      expect(calls.length).toBe(looks)
    }),
  )

  it.live("leaves no timer behind", () =>
    Effect.gen(function* () {
      const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length
      const store = fromDriver(yield* MemoryDriver.make())
      const workflow = done(flow().step("a", ...gives(1)))
      const handle = yield* on({ store }, Cairn.start(workflow, null as never, { runId: "r" }))
      const before = timers()
      const iterator = handle.events()[Symbol.asyncIterator]()
      const next = iterator.next()
      yield* Effect.sleep(50)
      expect(timers()).toBeGreaterThan(before)
      yield* Effect.promise(() => iterator.return!())
      yield* Effect.promise(() => next)
      yield* Effect.yieldNow()
      expect(timers()).toBe(before)
    }),
  )

  it.live("without a run, or from nowhere, is told so, and a client that closes tells whoever waits", () =>
    Effect.promise(async () => {
      const workflow = done(flow().signal("go", { schema: Json }))
      const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [workflow] as never })
      const first = (events: AsyncIterable<RunEvent<any>>) => events[Symbol.asyncIterator]().next()
      await expect(first(cairn.events(workflow, { runId: "none" }))).rejects.toMatchObject({ _tag: "RunNotFound" })
      const handle = await cairn.start(workflow, null as never, { runId: "r" })
      await expect(first(handle.events({ fromSeq: -1 }))).rejects.toMatchObject({ _tag: "InvalidValue" })
      await expect(first(cairn.events(workflow, { runId: "r", fromSeq: 0.5 }))).rejects.toThrow("whole number")
      const iterator = handle.events()[Symbol.asyncIterator]()
      expect((await iterator.next()).value).toMatchObject({ _tag: "Waiting", path: "go" })
      const waiting = iterator.next().then(
        () => "told",
        ({ _tag }) => _tag,
      )
      await new Promise((resolve) => setImmediate(resolve))
      await cairn.close()
      expect(await waiting).toBe("ClientClosed")
      for (const events of [handle.events(), cairn.live(workflow, { runId: "r" })]) {
        await expect(events[Symbol.asyncIterator]().next()).rejects.toMatchObject({ _tag: "ClientClosed" })
      }
    }),
  )
})
