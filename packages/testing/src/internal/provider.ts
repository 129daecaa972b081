/** A simulated provider: it sees every request, and counts what each key did. */
import { NotPerformed } from "@cairn/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { guarantees } from "./guarantee.js"
import type { PlanOperation } from "@cairn/core"

/**
 * One request as a provider receives it.
 *
 * *Shape.* `earlier`: how often a request under this key has arrived before.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProviderRequest {
  readonly operation: string
  readonly key: string
  readonly payload: unknown
  readonly earlier: number
}

/** What a provider knows of one key. */
export interface KeyRecord {
  readonly operation: string
  readonly key: string
  readonly payloads: Set<string>
  requests: number
  effects: number
  /** The answer that was given first: success or a declared failure. */
  answer: Exit.Exit<unknown, unknown> | null
}

export type Answer = (request: ProviderRequest) => unknown

const written = (payload: unknown): string => {
  try {
    return JSON.stringify(payload, (_, value: unknown) => (typeof value === "bigint" ? `${value}n` : value)) ?? "void"
  } catch {
    return String(payload)
  }
}

const asEffect = (answer: () => unknown): Effect.Effect<unknown, unknown> =>
  Effect.suspend(() => {
    const given = answer()
    if (Effect.isEffect(given)) return given as Effect.Effect<unknown, unknown>
    return given instanceof Promise
      ? Effect.tryPromise({ try: () => given, catch: (thrown) => thrown })
      : Effect.succeed(given)
  })

/**
 * A provider that counts. By an operation's policy it honours keys (it answers a known key with what it answered first)
 * or performs each request anew.
 *
 * @category models
 * @since 0.1.0
 */
export class SimulatedProvider {
  readonly keys = new Map<string, KeyRecord>()

  /** The operations of the workflow, by name. */
  constructor(private readonly operations: ReadonlyMap<string, PlanOperation>) {}

  private record(operation: string, key: string): KeyRecord {
    const name = `${operation}|${key}`
    const known = this.keys.get(name)
    if (known !== undefined) return known
    const made = { operation, key, payloads: new Set<string>(), requests: 0, effects: 0, answer: null }
    this.keys.set(name, made)
    return made
  }

  private honours(operation: string): boolean {
    const declared = this.operations.get(operation)
    return declared === undefined || guarantees[declared.onUnknown.policy].honoursKeys
  }

  /** What stands under a key; a policy's check asks this. */
  find(operation: string, key: string): Exit.Exit<unknown, unknown> | null {
    return this.keys.get(`${operation}|${key}`)?.answer ?? null
  }

  /** Whether anything was ever sent under a key. */
  knows(operation: string, key: string): boolean {
    return this.keys.has(`${operation}|${key}`)
  }

  /** Counts a request that somebody else answers. */
  count(request: Omit<ProviderRequest, "earlier">, answer: Answer): Effect.Effect<unknown, unknown> {
    return Effect.suspend(() => {
      const record = this.record(request.operation, request.key)
      const earlier = record.requests++
      record.payloads.add(written(request.payload))
      return Effect.onExit(
        asEffect(() => answer({ ...request, earlier })),
        (exit) => Effect.sync(() => this.note(record, exit)),
      )
    })
  }

  /** Receives a request and answers it, or answers again what it has answered under this key. */
  receive(request: Omit<ProviderRequest, "earlier">, answer: Answer): Effect.Effect<unknown, unknown> {
    return this.count(request, (received) => {
      const { answer: first } = this.record(request.operation, request.key)
      return first !== null && this.honours(request.operation) ? first : answer(received)
    })
  }

  private note(record: KeyRecord, exit: Exit.Exit<unknown, unknown>): void {
    const replayed = record.answer !== null && this.honours(record.operation)
    if (replayed) return
    if (Exit.isSuccess(exit)) record.effects++
    // What was not performed leaves nothing behind; a decline is remembered, as well-known providers do.
    const failure = Exit.isFailure(exit) ? Cause.failureOption(exit.cause) : null
    const remembered = failure === null || (failure._tag === "Some" && !(failure.value instanceof NotPerformed))
    if (remembered) record.answer = exit
  }
}
