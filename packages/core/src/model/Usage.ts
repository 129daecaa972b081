/** What paid calls use and cost, as it is counted and stored. Money is whole micro-dollars: a million of them are a dollar. */
import { InvalidValue } from "./Errors.js"

/**
 * What one paid call has used.
 *
 * *Shape.* Tokens are whole numbers. `inputTokens` includes those that came from the provider's cache; `cachedInputTokens` says
 * how many these were, and `cacheWriteTokens` how many were written to it, where that has a price of its own (it is reckoned with, and
 * not kept). `outputTokens` includes what a model has thought. `microDollars`: what the provider itself says the call
 * has cost; left out, it follows from the model's price. What is left out, negative, no whole number, or more than 10^12 (a million
 * dollars) of one call is unknown, never 0.
 *
 * @category models
 * @since 0.1.0
 */
export interface UsageAmounts {
  readonly inputTokens?: number | undefined
  readonly outputTokens?: number | undefined
  readonly cachedInputTokens?: number | undefined
  readonly cacheWriteTokens?: number | undefined
  readonly microDollars?: number | undefined
}

/**
 * Prices of a model, in dollars for a million tokens. `cachedInput`, for what is read from the provider's cache, and `cacheWrite`, for
 * what is written to it, are that of `input` unless given.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelPrice {
  readonly input: number
  readonly output: number
  readonly cachedInput?: number
  readonly cacheWrite?: number
}

/**
 * Prices by the model's name. A name with a date at its end (`gpt-4o-2024-11-20`, `claude-sonnet-4-20250514`) has the price of
 * the name without it, where it has none of its own. A model that is not there has no price: what it costs is unknown.
 *
 * @category models
 * @since 0.1.0
 */
export type Prices = Readonly<Record<string, ModelPrice>>

/**
 * One paid call, as it is stored.
 *
 * *Shape.* `state`: `begun` until its end is known; `known` with what it has used; `unknown` where it was cut off, or its
 * provider did not say. A call that is `begun` and whose run nobody executes under `claimToken` any more is as good as unknown.
 * `microDollars` is null where it is unknown: the model has no price, or the usage was not told. `atMost`: what was reserved for
 * it, in micro-dollars; null for nothing. `scope` and `path` are those of its step; `step` is the path without numbers and keys (`agent[]/think`). `attempt` and `fence`:
 * in whose attempt it was made. Times are milliseconds since 1970 by the store's clock.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallRecord {
  readonly callId: string
  readonly scope: string
  readonly path: string
  readonly step: string
  readonly attempt: number
  readonly fence: number
  readonly claimToken: string
  readonly model: string
  readonly state: "begun" | "known" | "unknown"
  readonly inputTokens: number | null
  readonly outputTokens: number | null
  readonly cachedInputTokens: number | null
  readonly microDollars: number | null
  readonly atMost: number | null
  readonly startedAt: number
  readonly endedAt: number | null
}

/** How a call has ended. */
export type CallEnd = Pick<CallRecord, "inputTokens" | "outputTokens" | "cachedInputTokens" | "microDollars"> & {
  readonly state: "known" | "unknown"
}

/** What is known of a call of which nothing is known. */
export const unknownEnd: CallEnd = {
  state: "unknown",
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  microDollars: null,
}

/** Whole micro-dollars of an amount in dollars: `dollars(0.1)` is 100,000. Throws for what is no amount. */
export const dollars = (amount: number): number => {
  const micros = Math.round(amount * 1_000_000)
  if (Number.isSafeInteger(micros) && micros >= 0) return micros
  const problem = `${String(amount)} is no amount of dollars: expected a number from 0 up`
  throw new InvalidValue({ place: "an amount", field: "", reason: "SchemaMismatch", problem })
}

/** Most that is believed of one call, in tokens or micro-dollars: beyond it a provider has told nonsense, and no sum survives that. */
const mostOfCall = 1e12

const count = (value: unknown): number | null =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= mostOfCall ? value : null

const dated = /-(?:\d{4}-\d{2}-\d{2}|\d{8})$/

const own = <A>(record: Readonly<Record<string, A>>, key: string): A | undefined =>
  Object.prototype.hasOwnProperty.call(record, key) ? record[key] : undefined

/** The price of a model; null where it has none. */
export const priceOf = (prices: Prices, model: string): ModelPrice | null =>
  own(prices, model) ?? own(prices, model.replace(dated, "")) ?? null

/** Fractions of a micro-dollar are counted as a whole one: nothing paid is lost in the sum. A float's dust is none. */
const wholeMicros = (micros: number): number => Math.ceil(Math.round(micros * 1e6) / 1e6)

/** What so many tokens cost, in micro-dollars; null where that is unknown. Dollars a million tokens are micro-dollars a token. */
export const costOf = (
  price: ModelPrice | null,
  tokens: Pick<CallEnd, "inputTokens" | "outputTokens" | "cachedInputTokens">,
  cacheWriteTokens: number | null = null,
): number | null => {
  const { cachedInputTokens, inputTokens, outputTokens } = tokens
  if (price === null || inputTokens === null || outputTokens === null) return null
  const cached = Math.min(inputTokens, cachedInputTokens ?? 0)
  const written = Math.min(inputTokens - cached, cacheWriteTokens ?? 0)
  const micros =
    (inputTokens - cached - written) * price.input +
    cached * (price.cachedInput ?? price.input) +
    written * (price.cacheWrite ?? price.input) +
    outputTokens * price.output
  return count(wholeMicros(micros))
}

/** What a provider or a user has told of a call, as it is stored: what is no count is unknown, never 0. */
export const endOf = (prices: Prices, model: string, told: UsageAmounts | null | undefined): CallEnd => {
  if (told === null || told === undefined || typeof told !== "object") return unknownEnd
  const tokens = {
    inputTokens: count(told.inputTokens),
    outputTokens: count(told.outputTokens),
    cachedInputTokens: count(told.cachedInputTokens),
  }
  // Told and unusable is no reason to reckon something else instead.
  const microDollars =
    told.microDollars === undefined
      ? costOf(priceOf(prices, model), tokens, count(told.cacheWriteTokens))
      : count(told.microDollars)
  const isKnown = microDollars !== null || tokens.inputTokens !== null || tokens.outputTokens !== null
  return isKnown ? { state: "known", ...tokens, microDollars } : unknownEnd
}
