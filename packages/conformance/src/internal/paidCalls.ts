/** Paid calls as cases write them and look at them. */
import assert from "node:assert/strict"
import type { CallEnd, Counter, EndCallRow, Lease, NewCallRow } from "@cairn/core"
import * as Effect from "effect/Effect"
import { fresh, type Bench } from "./bench.js"

export const used = (microDollars: number | null, over: Partial<CallEnd> = {}): CallEnd => ({
  state: microDollars === null ? "unknown" : "known",
  inputTokens: null,
  outputTokens: null,
  cachedInputTokens: null,
  microDollars,
  ...over,
})

export const callOf = (lease: Lease, over: Partial<NewCallRow> = {}): NewCallRow => ({
  namespace: lease.namespace,
  runId: lease.runId,
  callId: fresh("call"),
  scope: "",
  path: "think",
  step: "think",
  attempt: 1,
  fence: lease.fence,
  claimToken: lease.claimToken,
  model: "gpt-4o",
  atMost: null,
  counters: [],
  end: null,
  ...over,
})

export const endOf = (
  { callId, claimToken, counters, namespace, runId }: NewCallRow,
  end: CallEnd,
  over: Partial<EndCallRow> = {},
): EndCallRow => ({
  namespace,
  runId,
  callId,
  claimToken,
  counters: counters.map(({ kind, name }) => ({ kind, name })),
  end,
  ...over,
})

export const listed = (bench: Bench, { namespace, runId }: Pick<Lease, "namespace" | "runId">) =>
  bench.driver.listCalls({ namespace, runId, after: null, limit: 1_000 })

export const spendOf = (bench: Bench, counter: Counter) =>
  Effect.map(bench.driver.findSpend(bench.namespace, [counter]), ([row]) => {
    assert.ok(row !== undefined, "a counter that was asked for is missing")
    const { calls, kind, name, reserved, spent, unknown } = row
    assert.deepEqual({ kind, name }, { kind: counter.kind, name: counter.name })
    return { spent, reserved, calls, unknown }
  })

export const runCounter = (lease: Pick<Lease, "runId">): Counter => ({ kind: "run", name: lease.runId })
export const workflowCounter: Counter = { kind: "workflow", name: "invoice" }
export const dayCounter: Counter = { kind: "namespace", name: "" }

export const unlimited = (...counters: ReadonlyArray<Counter>) =>
  counters.map((counter) => ({ ...counter, limit: null }))

export const begun = (bench: Bench, call: NewCallRow) =>
  Effect.map(bench.driver.beginCall(call), (result) => {
    assert.equal(result._tag, "Begun", `the beginning of a call was ${result._tag}`)
    return call
  })
