/** What a step would record of the calls in it: as the runtime asks `Usage.call`, without a run. */
import type { PaidCall, UsageAmounts } from "@cairn/core"
import { Context, Effect, Exit, Option, Cause } from "effect"

export interface Recorded {
  readonly model: string
  readonly atMost: UsageAmounts | undefined
  /** Null where it is unknown. */
  readonly told: UsageAmounts | null
}

/** By the keys under which the runtime provides them. */
const Ledger = Context.GenericTag<{ readonly paid: unknown }>("@cairn/core/Ledger")
const Step = Context.GenericTag<{ readonly emit: unknown }>("@cairn/core/CurrentStep")

const toldOf = (call: PaidCall, exit: Exit.Exit<unknown, unknown>): UsageAmounts | null => {
  if (Exit.isSuccess(exit)) return call.usage(exit.value) ?? null
  const error = Cause.failureOption(exit.cause)
  return Option.isSome(error) ? (call.failed?.(error.value) ?? null) : null
}

export const recordingCalls = () => {
  const calls: Array<Recorded> = []
  const emitted: Array<unknown> = []
  const paid = <A, E, R>(call: PaidCall, effect: Effect.Effect<A, E, R>) =>
    Effect.onExit(effect, (exit) =>
      Effect.sync(() => calls.push({ model: call.model, atMost: call.atMost, told: toldOf(call, exit) })),
    )
  return {
    calls,
    emitted,
    inStep: <A, E, R>(program: Effect.Effect<A, E, R>) =>
      program.pipe(
        Effect.provideService(Ledger, { paid }),
        Effect.provideService(Step, { emit: (chunk: unknown) => emitted.push(chunk) }),
      ),
  }
}
