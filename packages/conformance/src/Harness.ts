/** What the kit needs of a driver's tests: how to open a store, and what beyond the contract can be done to it. */
import type { CheckpointDriver, TransactionAccess } from "@cairn/core"
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"

/**
 * What a harness can offer beyond a driver. Cases that need one are registered only where it is declared, and the
 * suite's title names what is missing.
 *
 * *Shape.* `second`: another connection to the same data. `ownClock`: the store's clock is not Effect's. `failAfter`:
 * a call can be made to die between two statements. `unsafeInteger`: a number past 2^53 - 1 can be planted. `unreadable`:
 * the data can be made unreadable. `wakeUps`: `driver` and `second` have the capability `notify`, and nobody else makes runs
 * claimable there while a case runs. `transactions`: the driver has that capability, and there is a table of the application
 * beside its own. (`exactClock` is not declared: it follows from `elapse`.)
 *
 * @category models
 * @since 0.1.0
 */
export type Feature = "second" | "ownClock" | "failAfter" | "unsafeInteger" | "unreadable" | "wakeUps" | "transactions"

/**
 * A store that is open for one case.
 *
 * @category models
 * @since 0.1.0
 */
export interface OpenStore {
  readonly driver: CheckpointDriver
  /** For `second`: a driver with a connection of its own to the same data. */
  readonly second?: CheckpointDriver
  /**
   * For `failAfter`: the next call of `driver`, and only that one, fails as if its connection died after so many of its
   * statements (0: before the first; `begin` and `commit` count). A call that has no more statements than that succeeds;
   * the fault is then disarmed.
   */
  readonly failAfter?: (statements: number) => Effect.Effect<void, unknown>
  /** For `unsafeInteger`: writes 2^53 + 1 into the `version` of this run, past the driver. */
  readonly plantUnsafeInteger?: (namespace: string, runId: string) => Effect.Effect<void, unknown>
  /**
   * For `transactions`: a table of names, with no name in it twice. `insert` adds one through what the body of `transact`
   * was given; `names` reads them all over a connection of its own.
   */
  readonly ledger?: {
    readonly insert: (access: TransactionAccess, name: string) => Effect.Effect<unknown, unknown>
    readonly names: Effect.Effect<ReadonlyArray<string>, unknown>
  }
  /** For `unreadable`: makes every read of this store fail from now on (a table renamed, a file overwritten). */
  readonly makeUnreadable?: Effect.Effect<void, unknown>
}

/**
 * How the kit runs a driver.
 *
 * *Shape.* `open` is run once a case, in a scope that ends with it; the data may be shared between cases, because each
 * works in namespaces and with worker ids of its own, unless `unreadable` is declared. Without `elapse` the store's clock
 * is real: cases take short leases and poll `now` until it has moved.
 *
 * @example
 * ```ts
 * import { storeConformance } from "@cairn/conformance"
 * import { MemoryDriver } from "@cairn/core"
 * import { Effect, TestClock, TestContext } from "effect"
 *
 * storeConformance("memory", {
 *   open: Effect.map(MemoryDriver.make(), (driver) => ({ driver })),
 *   features: [],
 *   elapse: (ms) => TestClock.adjust(ms),
 *   environment: TestContext.TestContext,
 * })
 * ```
 *
 * @category models
 * @since 0.1.0
 */
export interface Harness {
  readonly open: Effect.Effect<OpenStore, unknown, Scope.Scope>
  readonly features: ReadonlyArray<Feature>
  /** Moves the store's clock by exactly so much. Left out where the clock is real. */
  readonly elapse?: (ms: number) => Effect.Effect<void>
  /** Provided to each case as a whole, `open` included: a test clock, say. */
  readonly environment?: Layer.Layer<any, unknown>
}
