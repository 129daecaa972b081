/** Live output: what a step says while it runs, for whoever looks on. Nothing of it is kept. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { CurrentStep, type CurrentStepService } from "./internal/currentStep.js"

/**
 * A piece of live output: text, or any other value that JSON holds as it is.
 *
 * @category models
 * @since 0.1.0
 */
export type LiveValue = string | number | boolean | object | null

/** The step that runs in this fiber; undefined outside of a step. */
const currentStep: Effect.Effect<CurrentStepService | undefined> = Effect.map(
  Effect.context<never>(),
  (context: Context.Context<never>) => context.unsafeMap.get(CurrentStep.key) as CurrentStepService | undefined,
)

/** Reads an iterable to its end; `onStop` is given how to end it before. */
const readAll = async (
  chunks: AsyncIterable<string>,
  emit: (chunk: string) => void,
  onStop: (stop: () => void) => void,
): Promise<string> => {
  const iterator = chunks[Symbol.asyncIterator]()
  let stopped = false
  onStop(() => {
    stopped = true
    // Whoever makes the chunks lets go; what it throws on the way out is nobody's failure any more.
    Promise.resolve(iterator.return?.()).catch(() => {})
  })
  let text = ""
  for await (const chunk of { [Symbol.asyncIterator]: () => iterator }) {
    if (stopped) break
    emit(chunk)
    text += chunk
  }
  return text
}

/**
 * Says what a running step has to show so far: a model's words as they come. It is shown by `live` of the run, in this process,
 * and kept nowhere: what the step gives back is its output. Outside of a step nothing happens, so that a service may emit wherever
 * it is used.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Live = {
  /**
   * Emits one chunk. Of an Effect `Stream`: `Stream.mkString(Stream.tap(words, Live.emit))` emits each and gives the whole text.
   * In promise style it is `context.emit(chunk)`.
   *
   * *Errors.* A chunk that is no JSON is a defect, `InvalidValue`: the attempt fails.
   *
   * @example
   * ```ts
   * import { Cairn, Live, MemoryStore, Workflow } from "@cairn/core"
   * import { Schema, Stream } from "effect"
   *
   * const words = Stream.make("one ", "step ", "at a time")
   * const write = Workflow.make("write", { version: 1, input: Schema.Null })
   *   .step("draft", { effects: [], output: Schema.String }, () => Stream.mkString(Stream.tap(words, Live.emit)))
   *   .output(Schema.String, ({ results }) => results.draft)
   *   .compile()
   *
   * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [write] })
   * await (await cairn.start(write, null)).result()
   * // => "one step at a time"
   * await cairn.close()
   * ```
   */
  emit: (chunk: LiveValue): Effect.Effect<void> => Effect.map(currentStep, (step) => step?.emit(chunk)),

  /**
   * Emits each text of an async iterable, as most clients of models give it, and gives back the whole.
   *
   * *Shape.* Interrupted, it ends the iteration (`return`).
   *
   * *Errors.* What the iteration throws.
   *
   * @example
   * ```ts
   * import { Live } from "@cairn/core"
   * import { Effect } from "effect"
   *
   * async function* answer() {
   *   yield "Hello "
   *   yield "world"
   * }
   * // Outside of a step it reads all the same, and emits nothing.
   * await Effect.runPromise(Live.text(answer()))
   * // => "Hello world"
   * ```
   */
  text: (chunks: AsyncIterable<string>): Effect.Effect<string, unknown> =>
    Effect.flatMap(currentStep, (step) =>
      Effect.async<string, unknown>((resume) => {
        let stop = (): void => {}
        readAll(
          chunks,
          (chunk) => step?.emit(chunk),
          (given) => (stop = given),
        ).then(
          (text) => resume(Effect.succeed(text)),
          (thrown: unknown) => resume(Effect.fail(thrown)),
        )
        return Effect.sync(() => stop())
      }),
    ),
} as const
