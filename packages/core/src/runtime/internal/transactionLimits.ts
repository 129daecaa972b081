/** How long a transaction step may take: it holds a connection that its worker's heartbeats may need. */
import type { PlanStep } from "../../model/Plan.js"

/** Enough for what belongs into a transaction. */
const defaultTimeoutMs = 10_000

// With one connection a heartbeat waits for the step, and is due itself every third of the lease.
const leaseShare = 3

export const isTransaction = (node: Pick<PlanStep, "effects">): boolean =>
  node.effects.some((effect) => effect.kind === "transaction")

export const maxTransactionMs = (leaseMs: number): number => Math.max(1, Math.floor(leaseMs / leaseShare))

/** The timeout of a transaction step: it always has one. */
export const transactionTimeoutMs = ({ timeoutMs }: Pick<PlanStep, "timeoutMs">, leaseMs: number): number =>
  Math.min(timeoutMs ?? defaultTimeoutMs, maxTransactionMs(leaseMs))
