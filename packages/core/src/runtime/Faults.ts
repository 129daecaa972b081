/**
 * Named points between two acts of the runtime, where a test can let the process die, stall or lose its lease. In
 * production nothing listens, and a point costs one comparison.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/**
 * The points, in the order in which a step with an operation passes them.
 *
 * - `afterClaim`: the run is owned, nothing was read.
 * - `beforeIntent`: the payload is known, nothing is stored.
 * - `afterIntent`: the intent is durable, nothing is sent.
 * - `beforeEffect`: the lease was checked; the handler is next.
 * - `afterEffect`: the handler has answered; nothing of it is stored.
 * - `afterRecord`: of an operation with `recordFirst`, the outcome is recorded; nothing of the step is.
 * - `beforeCall`: that a paid call begins is durable; it is next.
 * - `afterCall`: the call has ended; what it has cost is not stored.
 * - `afterUsage`: what the call has cost is stored; nothing of the step is.
 * - `afterGate`: the output has passed its schema; nothing of it is stored.
 * - `beforeCommit`, `afterCommit`: around the commit of a step, a failed attempt or the end of the run.
 * - `beforeFlush`, `afterFlush`: around the write of what was accepted, of whatever runs (\`runId\` is one of them).
 * - `beforeBeat`: the worker is about to prolong its lease (`step` is empty).
 *
 * @category models
 * @since 0.1.0
 */
export const faultPoints = [
  "afterClaim",
  "beforeIntent",
  "afterIntent",
  "beforeEffect",
  "afterEffect",
  "afterRecord",
  "beforeCall",
  "afterCall",
  "afterUsage",
  "afterGate",
  "beforeCommit",
  "afterCommit",
  "beforeFlush",
  "afterFlush",
  "beforeBeat",
] as const

export type FaultPoint = (typeof faultPoints)[number]

/**
 * Where the runtime stands when it reaches a point.
 *
 * *Shape.* `step` is the path of the step: `charge`, `agent[3]/think`. `attempt` counts from 1; 0 where something steers.
 *
 * @category models
 * @since 0.1.0
 */
export interface FaultSite {
  readonly runId: string
  readonly step: string
  readonly attempt: number
}

export interface FaultsService {
  readonly reach: (point: FaultPoint, site: FaultSite) => Effect.Effect<void>
}

/** What production has: nothing listens. */
export const noFaults: FaultsService = { reach: () => Effect.void }

/**
 * What happens at each point: nothing, unless a test provides something else.
 *
 * @example
 * ```ts
 * import { Faults } from "@cairn/core"
 * import { Effect, Layer } from "effect"
 *
 * const killAfterCharge = Layer.succeed(Faults, {
 *   reach: (point, { step }) =>
 *     Effect.sync(() => {
 *       if (point === "afterEffect" && step === "charge") process.kill(process.pid, "SIGKILL")
 *     }),
 * })
 * ```
 *
 * @category services
 * @since 0.1.0
 */
export class Faults extends Context.Reference<Faults>()("@cairn/core/Faults", { defaultValue: () => noFaults }) {}
