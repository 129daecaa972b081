/**
 * Faults of the runtime, planted by tests of the explorer: they stand between a worker and what the explorer watches, so
 * that what is watched is what a faulty runtime would have done. Nothing is planted unless a test provides something.
 */
import type { CheckpointStoreService, Handler, MemberOperation } from "@cairn/core"
import * as Context from "effect/Context"

export interface Tamper {
  /** The store as one worker uses it; made anew for each worker. */
  readonly store: (store: CheckpointStoreService) => CheckpointStoreService
  /** A handler as a worker calls it. */
  readonly handler: (handler: Handler, member: MemberOperation) => Handler
}

const nothing: Tamper = { store: (store) => store, handler: (handler) => handler }

export class Tampering extends Context.Reference<Tampering>()("@cairn/testing/Tampering", {
  defaultValue: () => nothing,
}) {}
