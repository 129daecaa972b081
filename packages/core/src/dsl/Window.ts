/**
 * The window of a workflow: the model context that its runs carry. Here is how a definition holds it; what users write stands in
 * `builder/Window.ts`.
 */
import type { AnySchema } from "../model/Codec.js"
import type { StepNode } from "./Definition.js"

/** Largest window unless its workflow says otherwise, in bytes: more than most prompts, and little enough to be kept at each change. */
export const defaultWindowBytes = 256 * 1024

/** How people read the step that compacts. No step of a workflow stands under this path: the slash of a name is escaped. */
export const compactionName = "window/compact"

export interface WindowDefinition {
  readonly schema: AnySchema
  /** A value, or a function of `{ input }`. */
  readonly initial: unknown
  readonly maxBytes: number
  /** A function from a window to a smaller one, or a step that asks somebody; null where nothing compacts it. */
  readonly compact: ((window: any) => unknown) | StepNode | null
}

/** What changes a window; it is asked when its step is committed, with the window as it stands then. */
export type WindowChange = (window: any) => unknown

const compaction = (given: any, schema: AnySchema): WindowDefinition["compact"] => {
  if (given === undefined || given === null || typeof given === "function") return given ?? null
  const { effects, run, ...options } = given
  return { kind: "step", name: compactionName, effects, output: schema, options, run }
}

/** The `window` of a workflow's options, which may be anything; undefined where there is none. */
export const windowDefinition = (given: any): WindowDefinition | undefined => {
  if (given === undefined || given === null) return undefined
  try {
    const { compact, initial, maxBytes, schema } = given
    return { schema, initial, maxBytes: maxBytes ?? defaultWindowBytes, compact: compaction(compact, schema) }
  } catch {
    // A getter that throws, say: nothing is refused here. `compile` finds that there is no schema.
    return { schema: undefined as never, initial: undefined, maxBytes: defaultWindowBytes, compact: null }
  }
}

/** The step that compacts, where one does. */
export const compactionOf = (window: WindowDefinition | undefined): StepNode | null =>
  window === undefined || window.compact === null || typeof window.compact === "function" ? null : window.compact
