/** Paid calls: what a step's model calls use and cost is recorded as they end, whatever becomes of the step. */
import * as Effect from "effect/Effect"
import * as Context from "effect/Context"
import { dollars, type UsageAmounts } from "../model/Usage.js"
import { Ledger, type LedgerService } from "./internal/ledger.js"

/**
 * A call that costs money.
 *
 * *Shape.* `model`: its name as the price table has it. `atMost`: the most that it can use, for budgets: a call that does not say
 * so reserves nothing, and may overshoot a budget by what it costs. `usage`: what the answer says it has used; nothing, or what
 * throws, is unknown. `failed`: the same of a failure; without it what a failed call has cost is unknown. A call that was
 * refused before it cost anything says `{ microDollars: 0 }`.
 *
 * @category models
 * @since 0.1.0
 */
export interface PaidCall<A = unknown, E = unknown> {
  readonly model: string
  readonly atMost?: UsageAmounts | undefined
  readonly usage: (answer: A) => UsageAmounts | null | undefined
  readonly failed?: ((error: E) => UsageAmounts | null | undefined) | undefined
}

/**
 * `Usage.call` in promise style. The step's own `signal` is for `make` to hand on.
 *
 * @category models
 * @since 0.1.0
 */
export type PaidPromise = <A>(call: PaidCall<NoInfer<A>>, make: () => Promise<A>) => Promise<A>

/**
 * Usage of a call that has been made.
 *
 * @category models
 * @since 0.1.0
 */
export interface UsageReport extends UsageAmounts {
  readonly model: string
}

const ledgerOf = (context: Context.Context<never>): LedgerService | undefined =>
  context.unsafeMap.get(Ledger.key) as LedgerService | undefined

/**
 * Records what paid calls use and cost. Outside of a step nothing is recorded: the same service can be used anywhere.
 *
 * @category constructors
 * @since 0.1.0
 */
export const Usage = {
  /**
   * Makes a paid call. That it begins is durable before it does, and what it has used as soon as it ends: with a failed, refused
   * or interrupted attempt too, and once, however often the run is resumed (X11). Of a call that a crash cuts off it is known
   * that it was made, and reported that its cost is not. Where a budget has no room for `atMost` left, the call is not made: the
   * run is parked before it.
   *
   * *Shape.* A step that makes several calls and finds no room for a later one makes the earlier ones again when it goes on: one
   * call a step loses nothing.
   *
   * @example
   * ```ts
   * import { Usage } from "@cairn/core"
   * import { Effect } from "effect"
   *
   * const answer = Effect.succeed({ text: "42", tokens: { input: 12, output: 1 } })
   * const paid = Usage.call(
   *   {
   *     model: "gpt-4o-mini",
   *     atMost: { inputTokens: 100, outputTokens: 10 },
   *     usage: ({ tokens }) => ({ inputTokens: tokens.input, outputTokens: tokens.output }),
   *   },
   *   answer,
   * )
   * Effect.runSync(paid).text
   * // => "42"
   * ```
   */
  call: <A, E, R>(call: PaidCall<NoInfer<A>, NoInfer<E>>, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.contextWithEffect((context: Context.Context<never>) => {
      const ledger = ledgerOf(context)
      return ledger === undefined ? effect : ledger.paid(call as PaidCall, effect)
    }),
  /** Records what a call has used that was made without `call`: known only from here on. */
  report: ({ model, ...amounts }: UsageReport): Effect.Effect<void> =>
    Effect.contextWithEffect((context: Context.Context<never>) => {
      const ledger = ledgerOf(context)
      return ledger === undefined ? Effect.void : ledger.spent(model, amounts)
    }),
  /**
   * An amount in dollars as whole micro-dollars, as budgets take it.
   *
   * *Errors.* Throws an `InvalidValue` for what is no amount.
   *
   * @example
   * ```ts
   * import { Usage } from "@cairn/core"
   *
   * Usage.dollars(0.1) * 10 === Usage.dollars(1)
   * // => true
   * ```
   */
  dollars,
} as const
