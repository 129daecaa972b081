/** The store over the memory driver. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { CheckpointStore } from "./CheckpointStore.js"
import { fromDriver } from "./fromDriver.js"
import { MemoryDriver } from "./MemoryDriver.js"

/**
 * A store in the memory of this process: nothing of it survives, nothing has to be installed.
 *
 * @category layers
 * @since 0.1.0
 */
export const MemoryStore = {
  layer: Layer.effect(CheckpointStore, Effect.map(MemoryDriver.make(), fromDriver)),
}
