/** A case of the kit as data, so that a runner can register it, and a test of the kit can run it on a broken driver. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Feature, Harness, OpenStore } from "./Harness.js"
import { makeBench, type Bench } from "./internal/bench.js"

/**
 * The laws of `CheckpointDriver`.
 *
 * @category models
 * @since 0.1.0
 */
export type Law =
  | "D1"
  | "D2"
  | "D3"
  | "D4"
  | "D5"
  | "D6"
  | "D7"
  | "D8"
  | "D9"
  | "D10"
  | "D11"
  | "D12"
  | "D13"
  | "D14"
  | "D15"
  | "D16"
  | "D17"
  | "D18"
  | "D19"
  | "D20"
  | "D21"
  | "D22"
  | "D23"
  | "D24"
  | "D25"
  | "D26"
  | "D27"
  | "D28"
  | "D29"
  | "D30"
  | "D31"
  | "D32"
  | "D33"
  | "D34"
  | "D35"
  | "D36"
  | "D37"
  | "D38"
  | "D39"
  | "D40"
  | "D41"
  | "D42"
  | "D43"
  | "D44"

/**
 * One case: what a law asks in one situation.
 *
 * *Shape.* `title` begins with the law's number and is unique. `run` fails, by an assertion, where the driver breaks the
 * law.
 *
 * @category models
 * @since 0.1.0
 */
export interface Case {
  readonly law: Law
  readonly title: string
  readonly needs: ReadonlyArray<Feature | "exactClock">
  readonly run: (bench: Bench) => Effect.Effect<void, unknown, Scope.Scope>
}

/**
 * Whether a harness offers everything that a case needs.
 *
 * @category cases
 * @since 0.1.0
 */
export const isOffered = (one: Case, harness: Harness): boolean =>
  one.needs.every((need) => (need === "exactClock" ? harness.elapse !== undefined : harness.features.includes(need)))

/** A feature that is declared and not there would make its cases pass for nothing. */
const undelivered = (harness: Harness, store: OpenStore): ReadonlyArray<Feature> => {
  const delivered: Record<Feature, boolean> = {
    second: store.second !== undefined,
    ownClock: true,
    failAfter: store.failAfter !== undefined,
    unsafeInteger: store.plantUnsafeInteger !== undefined,
    unreadable: store.makeUnreadable !== undefined,
    transactions: store.driver.transact !== undefined && store.ledger !== undefined,
    wakeUps: [store.driver, store.second].every(
      (driver) => driver?.onWakeUp !== undefined && driver.onReached !== undefined,
    ),
  }
  return harness.features.filter((feature) => !delivered[feature])
}

// A clock that stood at 0 would hide every time that was never set.
const startMs = 1_000_000_007

/**
 * Runs one case on a store of its own.
 *
 * @category cases
 * @since 0.1.0
 */
export const runCase = (one: Case, harness: Harness): Effect.Effect<void, unknown> => {
  const whole = Effect.scoped(
    Effect.flatMap(harness.open, (store) => {
      const missing = undelivered(harness, store)
      return missing.length > 0
        ? Effect.die(new Error(`the harness declares what its open store lacks: ${missing.join(", ")}`))
        : Effect.zipRight(harness.elapse?.(startMs) ?? Effect.void, one.run(makeBench(harness, store)))
    }),
  )
  return harness.environment === undefined ? whole : Effect.provide(whole, harness.environment)
}
