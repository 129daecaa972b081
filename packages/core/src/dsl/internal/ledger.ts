/** Where paid calls are recorded: the runtime provides it to a step's effect and to the handlers of its operations. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { UsageAmounts } from "../../model/Usage.js"
import type { PaidCall } from "../Usage.js"

export interface LedgerService {
  readonly paid: <A, E, R>(call: PaidCall, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  readonly spent: (model: string, amounts: UsageAmounts) => Effect.Effect<void>
}

export const Ledger = Context.GenericTag<LedgerService>("@cairn/core/Ledger")
