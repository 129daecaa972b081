/** The step that runs now, as operations find it. The runtime provides it to the step's effect and to nothing else. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { AnyDataVersion } from "../DataVersion.js"
import type { AnyOperation } from "../Operation.js"

export interface CurrentStepService {
  readonly perform: (operation: AnyOperation, payload: unknown) => Effect.Effect<unknown, unknown>
  readonly read: (version: AnyDataVersion, key: unknown) => Effect.Effect<unknown, unknown>
  readonly emit: (chunk: unknown) => void
}

export const CurrentStep = Context.GenericTag<CurrentStepService>("@cairn/core/CurrentStep")
