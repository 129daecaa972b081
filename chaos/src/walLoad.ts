/**
 * Writes to a SQLite file as fast as a worker can, while a listing that user code has begun stays open and a run sleeps:
 * what becomes of the write-ahead log (field case P078).
 */
import { Cairn, CheckpointStore, OnUnknown, Operation, Worker, Workflow } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { Chunk, Effect, Exit, Layer, Logger, LogLevel, Option, Schema, Scope, Stream } from "effect"
import { statSync } from "node:fs"

export interface WalLoad {
  readonly filename: string
  /** Length of each of the four outputs of a run. */
  readonly outputChars: number
  /** Asked after each run: whether the load has lasted long enough. */
  readonly enough: (done: { readonly runs: number; readonly ms: number }) => boolean
}

export interface WalFigures {
  readonly runs: number
  readonly ms: number
  /** What the outputs alone have written into the log. */
  readonly writtenBytes: number
  readonly largestWalBytes: number
  /** Once the writer has closed; the reader and its listing are still open. */
  readonly walBytesAfterWriter: number
  readonly walBytesAfterClose: number
  readonly fileBytes: number
  /** The parked runs that the listing gave, before and after the load. */
  readonly listed: ReadonlyArray<string>
  readonly sleeper: string
}

const atOnce = 8
const parkedRuns = 12
const pageLength = 5

const Unsure = Operation.make("unsure", {
  payload: Schema.Null,
  success: Schema.Null,
  onUnknown: OnUnknown.review(),
  timeout: "1 second",
})

const parking = Workflow.make("parking", { version: 1, input: Schema.Null })
  .perform("unsure", Unsure, { payload: () => null })
  .compile()

const sleeping = Workflow.make("sleeping", { version: 1, input: Schema.Null })
  .step("nap", { effects: [], output: Schema.Null, retry: { times: 1, delay: "1 day" } }, () =>
    Effect.fail(new Error("not today")),
  )
  .compile()

const text = ({ input }: { readonly input: { readonly chars: number } }) => "x".repeat(input.chars)

const writing = Workflow.make("writing", { version: 1, input: Schema.Struct({ chars: Schema.Int }) })
  .step("a", { effects: [], output: Schema.String }, text)
  .step("b", { effects: [], output: Schema.String }, text)
  .step("c", { effects: [], output: Schema.String }, text)
  .step("d", { effects: [], output: Schema.String }, text)
  .compile()

const sizeOf = (filename: string): number => statSync(filename, { throwIfNoEntry: false })?.size ?? 0

/** What an application writes to show all that is parked. */
const listing = Stream.paginateChunkEffect("", (after) =>
  Effect.map(
    Cairn.parked({ limit: pageLength, ...(after === "" ? {} : { after }) }),
    (page) =>
      [
        Chunk.fromIterable(page.map(({ runId }) => runId)),
        page.length < pageLength ? Option.none<string>() : Option.some(page.at(-1)!.runId),
      ] as const,
  ),
)

const writers = Worker.layer({
  workflows: [parking, sleeping, writing],
  concurrency: atOnce,
  // What one flush may hold is what the log grows by before it can be brought into the file.
  maxPendingBytes: 4 * 1024 * 1024,
}).pipe(
  Layer.provide(Unsure.toLayer(() => Effect.die("nobody knows"))),
  Layer.provide(Logger.minimumLogLevel(LogLevel.None)),
)

const statusIs = (runId: string, wanted: string) =>
  Effect.flatMap(CheckpointStore, (store) =>
    Effect.repeat(Effect.delay(store.findRun("default", runId), 20), { until: ({ status }) => status === wanted }),
  )

const prepare = Effect.gen(function* () {
  for (let n = 10; n < 10 + parkedRuns; n++) yield* Cairn.start(parking, null, { runId: `parked-${n}` })
  yield* Cairn.start(sleeping, null, { runId: "sleeper" })
  for (let n = 10; n < 10 + parkedRuns; n++) yield* statusIs(`parked-${n}`, "review")
  yield* statusIs("sleeper", "sleeping")
})

const write = ({ enough, filename, outputChars }: WalLoad) =>
  Effect.gen(function* () {
    let runs = 0
    let largest = 0
    const began = performance.now()
    const one = Effect.gen(function* () {
      yield* (yield* Cairn.start(writing, { chars: outputChars })).result
      runs++
      largest = Math.max(largest, sizeOf(`${filename}-wal`))
    })
    const elapsed = () => Math.round(performance.now() - began)
    const line = Effect.repeat(one, { until: () => enough({ runs, ms: elapsed() }) })
    yield* Effect.forEach(Array.from({ length: atOnce }), () => line, { concurrency: "unbounded", discard: true })
    return { runs, ms: elapsed(), largestWalBytes: largest }
  })

/** Runs the load. Reader and writer have a connection each, as two processes would. */
export const walLoad = (load: WalLoad): Promise<WalFigures> =>
  Effect.gen(function* () {
    const { filename } = load
    const wal = () => sizeOf(`${filename}-wal`)
    const store = Layer.fresh(SqliteStore.layer({ filename }))
    const opened = yield* Effect.all({ reader: Scope.make(), writer: Scope.make() })
    const writer = yield* Layer.buildWithScope(Layer.provideMerge(writers, store), opened.writer)
    yield* Effect.provide(prepare, writer)
    const reader = yield* Layer.buildWithScope(store, opened.reader)
    const pull = yield* Scope.extend(Stream.toPull(Stream.provideContext(listing, reader)), opened.reader)
    const listed = [...(yield* pull)]
    const written = yield* Effect.provide(write(load), writer)
    yield* Scope.close(opened.writer, Exit.void)
    const walBytesAfterWriter = wal()
    while (listed.length < parkedRuns) listed.push(...(yield* pull))
    const sleeper = yield* Effect.provide(
      Effect.flatMap(CheckpointStore, ({ findRun }) => findRun("default", "sleeper")),
      reader,
    )
    yield* Scope.close(opened.reader, Exit.void)
    return {
      ...written,
      writtenBytes: written.runs * 4 * load.outputChars,
      walBytesAfterWriter,
      walBytesAfterClose: wal(),
      fileBytes: sizeOf(filename),
      listed,
      sleeper: sleeper.status,
    }
  }).pipe(Effect.orDie, Effect.runPromise)
