/** The explorer can fail: each planted fault is found, by a check that names it, with a short schedule. */
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import type { HandlerContext } from "@cairn/core"
import { expectNoBreach, exploreAsync, showSchedule, type Check, type SimulatedProvider } from "../src/index.js"
import { storeMutants } from "./support/mutants.js"
import { Charge, invoice, Mail, model } from "./support/workflows.js"

const limits = { input: "ada", services: model, maxSchedules: 90 } as const

/** Which check finds it, and how many troubles that takes. */
const expected: Readonly<Partial<Record<keyof typeof storeMutants, readonly [check: Check, troubles: number]>>> = {
  withoutFence: ["commit", 1],
  withoutIntents: ["intent", 0],
  losesAStep: ["commit", 0],
  hidesIntents: ["early", 1],
  forgetsOwners: ["early", 1],
  altersResults: ["commit", 0],
  losesStepsOnTakeover: ["parked", 1],
  endlessLease: ["stuck", 1],
  refusesRetries: ["commit", 1],
}

describe("a store with a fault", () => {
  for (const [name, [check, troubles]] of Object.entries(expected)) {
    it(`${name} is found: ${check}, with ${troubles} troubles`, async () => {
      const store = storeMutants[name as keyof typeof storeMutants]
      const { breaches, table } = await exploreAsync(invoice, { ...limits, store })
      const breach = breaches.find((found) => found.check === check)
      expect(breach?.schedule, table).toHaveLength(troubles)
      expect(table).toContain(`shortest schedule: ${showSchedule(breach!.schedule)}`)
    }, 120_000)
  }
})

/** Handlers that send under a key of their own making. */
const sendingUnder = (keyOf: (context: HandlerContext) => string) => (provider: SimulatedProvider) => {
  const send = (operation: string, answer: unknown) => (payload: unknown, context: HandlerContext) =>
    provider.receive({ operation, key: keyOf(context), payload }, () => answer) as Effect.Effect<any, never>
  return Layer.merge(
    Charge.toLayer(send(Charge.name, { id: "ch_1", at: new Date(5) })),
    Mail.toLayer(send(Mail.name, undefined)),
  )
}

let calls = 0
const keys: Readonly<Record<string, (context: HandlerContext) => string>> = {
  "the attempt's number": ({ attempt }) => `attempt-${attempt}`,
  "the owner's fence": ({ idempotencyKey, fence }) => `${idempotencyKey}-${fence}`,
  "another one each time": () => `call-${++calls}`,
}

describe("a handler that sends under", () => {
  it("the key that it is given is all right", async () => {
    const { breaches } = await exploreAsync(invoice, { ...limits, handlers: sendingUnder((of) => of.idempotencyKey) })
    expect(breaches).toEqual([])
  })

  for (const [name, keyOf] of Object.entries(keys)) {
    it(`${name} is found without any trouble`, async () => {
      const { breaches } = await exploreAsync(invoice, { ...limits, handlers: sendingUnder(keyOf) })
      expect(breaches.map(({ check, shown }) => [check, shown])).toContainEqual(["intent", "no trouble at all"])
    })
  }

  it("its key and another payload each time is found", async () => {
    const handlers = (provider: SimulatedProvider) =>
      Layer.merge(
        Charge.toLayer((payload, { idempotencyKey: key }) =>
          Effect.as(
            provider.receive({ operation: Charge.name, key, payload: { ...payload, sentAs: ++calls } }, () => null),
            { id: "ch_1", at: new Date(5) },
          ).pipe(Effect.orDie),
        ),
        Mail.toLayer(() => Effect.void),
      )
    const { breaches } = await exploreAsync(invoice, { ...limits, handlers })
    expect(breaches.find(({ check }) => check === "payload")?.schedule).toHaveLength(1)
  })
})

describe("expectNoBreach", () => {
  it("rejects with the table and the shortest schedule", async () => {
    const exploring = expectNoBreach(invoice, { ...limits, store: storeMutants.losesAStep })
    await expect(exploring).rejects.toThrow(
      /the committed step 'charge' is lost\n {2}shortest schedule: no trouble at all/,
    )
  })
})
