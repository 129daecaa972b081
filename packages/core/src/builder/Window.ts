/** The window of a workflow: its options, and what its functions are given of it. */
import type { AnyEffect, Local, Read } from "../dsl/Effects.js"
import type { checkJson } from "../dsl/internal/jsonSide.js"
import type { Unvalidated } from "../dsl/Output.js"
import type { StepOptions } from "../dsl/StepOptions.js"
import type { AnySchema, givenOf, typeOf } from "../model/Codec.js"
import type { compactionPerforms } from "../model/DiagnosticCode.js"
import type { AnyYield, checkRun, yieldedNeeds } from "./internal/checks.js"
import type { RunFunction, SignalContext } from "./Step.js"

/**
 * What functions see of a workflow's window.
 *
 * *Shape.* The window as it is committed when the function begins: decoded from the text that is stored, so that what a resumed
 * run sees is the same byte for byte (X3). What a function does to it is lost; `changeWindow` changes it.
 *
 * @category models
 * @since 0.1.0
 */
export interface SeesWindow<Window> {
  readonly window: Window
}

/**
 * How a step changes the window of its workflow.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChangesWindow<Window, Given = Window> {
  /**
   * Changes the window when this step is committed, and only then: what an attempt that fails or is refused has asked for is
   * forgotten. `change` is given the window as it stands at that moment, with what steps beside this one have made of it, and
   * must not do anything else; several are asked one after the other. It must be called before the step has ended.
   */
  readonly changeWindow: (change: (window: Window) => Given) => void
}

/**
 * What a function that compacts is given, where it is a step of its own.
 *
 * @category models
 * @since 0.1.0
 */
export interface CompactContext<Input, Window> extends SeesWindow<Window>, SignalContext {
  readonly input: Input
}

type checkReads<Fx extends ReadonlyArray<AnyEffect>> = [Exclude<Fx[number], Read<any> | Local<any>>] extends [never]
  ? unknown
  : compactionPerforms

/**
 * A compaction that is a step of its own: it may ask a model, and is tried again, timed out and counted like any step.
 *
 * *Shape.* It begins when the step whose change has made the window too large is committed, before anything else of the run, and
 * once what is under way beside it has ended. One that leaves the window too large counts as failed.
 *
 * @category options
 * @since 0.1.0
 */
export interface CompactSpec<
  Input,
  Win extends AnySchema,
  Fx extends ReadonlyArray<AnyEffect>,
  A,
  E,
  R,
  Y extends AnyYield,
> extends StepOptions {
  /** Reads and locals. */
  readonly effects: checkReads<Fx> & Fx
  readonly run: checkRun<"window/compact", Fx, R | yieldedNeeds<Y>> &
    RunFunction<CompactContext<Input, typeOf<Win>>, A, E, R, Y>
}

/**
 * The window of a workflow: the model context that its runs carry from step to step, small and decoded; not the transcript.
 *
 * *Shape.* `initial` is asked once, when a run begins. `maxBytes`: of its JSON in UTF-8, 256 KiB unless given. A window that is
 * larger is compacted: by a plain function before it is committed, or by a step that may ask a model. Without `compact`, or where
 * it stays too large, the run fails with `WindowTooLarge`.
 *
 * *Laws.* Each change is kept in the commit of its step (X2), and what is compacted follows from what is committed (X1). A fork
 * begins with the window as it was then.
 *
 * @example
 * ```ts
 * import { Cairn, MemoryStore, Workflow } from "@cairn/core"
 * import { Schema } from "effect"
 *
 * const agent = Workflow.make("agent", {
 *   version: 1,
 *   input: Schema.String,
 *   window: {
 *     schema: Schema.Array(Schema.String),
 *     initial: ({ input }) => [input],
 *     maxBytes: 40,
 *     compact: (notes) => notes.slice(-1),
 *   },
 * })
 *   .step("think", { effects: [], output: Schema.Void }, ({ window, changeWindow }) =>
 *     changeWindow((notes) => [...notes, `thought of ${window[0]}`]))
 *   .step("think again", { effects: [], output: Schema.Void }, ({ changeWindow }) =>
 *     changeWindow((notes) => [...notes, "thought again"]))
 *   .output(Schema.Array(Schema.String), ({ window }) => window)
 *   .compile()
 *
 * const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [agent] })
 * await (await cairn.start(agent, "stones")).result()
 * // => ["thought again"]
 * await cairn.close()
 * ```
 *
 * @category options
 * @since 0.1.0
 */
export interface WindowSpec<
  Name extends string,
  Input,
  Win extends AnySchema,
  Fx extends ReadonlyArray<AnyEffect>,
  A,
  E,
  R,
  Y extends AnyYield,
> {
  readonly schema: checkJson<`window of workflow '${Name}'`, Win> & Win
  readonly initial: givenOf<Win> | ((context: { readonly input: Input }) => givenOf<Win>)
  readonly compact?: ((window: typeOf<Win>) => givenOf<Win>) | CompactSpec<Input, Win, Fx, A, E, R, Y>
  readonly maxBytes?: number
}

/** What a compaction may give. */
export type compacted<Win extends AnySchema> = givenOf<Win> | Unvalidated

/** What functions that look are given of the window; nothing where there is none. */
export type seesWindow<Win extends AnySchema> = [typeOf<Win>] extends [never] ? {} : SeesWindow<typeOf<Win>>

/** What steps are given to change it. */
export type changesWindow<Win extends AnySchema> = [typeOf<Win>] extends [never]
  ? {}
  : ChangesWindow<typeOf<Win>, givenOf<Win>>
