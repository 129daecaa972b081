/** Real processes, killed at every point of a step, over one SQLite file. */
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { load, makePlace, removePlace, sent, startWorker, type Place } from "./support.js"

const result = { charge: "ch_500", closed: new Date(1_001).toISOString() }

/** Nothing twice: one key and one payload an operation, one record a step, the same result as without a crash. */
const expectWhole = async (place: Place, runId: string): Promise<void> => {
  const calls = await sent(place)
  for (const operation of ["payments.charge", "chat.notify"]) {
    const own = calls.filter((call) => call.operation === operation)
    expect(own.length).toBeGreaterThan(0)
    expect(new Set(own.map((call) => call.key)).size).toBe(1)
    expect(new Set(own.map((call) => JSON.stringify(call.payload))).size).toBe(1)
  }
  const state = await load(place, runId)
  expect(state.run.status).toBe("completed")
  expect(state.steps.map((step) => step.path)).toEqual(["price", "charge", "notify", "close"])
  expect(JSON.parse(state.run.output!)).toEqual(result)
}

describe("a worker that is killed", () => {
  let place: Place
  beforeEach(async () => {
    place = await makePlace()
  })
  afterEach(() => removePlace(place))

  const operationPoints = [
    "beforeIntent",
    "afterIntent",
    "beforeEffect",
    "afterEffect",
    "afterGate",
    "beforeCommit",
    "afterCommit",
  ]
  const cases = [
    ...operationPoints.map((point) => [point, "charge"] as const),
    ["afterEffect", "notify"],
    ["afterGate", "price"],
    ["afterCommit", "price"],
    ["beforeCommit", "close"],
  ] as const

  it.each(cases)("at %s of step '%s' is resumed by the next, and nothing is done twice", async (point, step) => {
    const first = await startWorker(place, "run", `SIGKILL:${point}:${step}`).ended
    expect(first.signal, first.output).toBe("SIGKILL")
    const second = await startWorker(place, "run").ended
    expect(second.events.at(-1), second.output).toEqual({ event: "ended", ok: true, value: result })
    await expectWhole(place, "run")
    const charges = (await sent(place)).filter((call) => call.operation === "payments.charge").length
    // Sent again only where the answer was lost: the provider sees the same key.
    const lost = step === "charge" && ["afterEffect", "afterGate", "beforeCommit"].includes(point)
    expect(charges).toBe(lost ? 2 : 1)
  })

  it("again and again, at each next point, ends with the same result", async () => {
    const faults = ["price", "charge", "notify", "close"].flatMap((step) =>
      step === "price" || step === "close"
        ? [`SIGKILL:beforeCommit:${step}`]
        : ["beforeIntent", "afterIntent", "afterEffect", "beforeCommit"].map((point) => `SIGKILL:${point}:${step}`),
    )
    for (const fault of faults) {
      const killed = await startWorker(place, "run", fault).ended
      expect(killed.signal, `${fault}\n${killed.output}`).toBe("SIGKILL")
    }
    const last = await startWorker(place, "run").ended
    expect(last.events.at(-1), last.output).toEqual({ event: "ended", ok: true, value: result })
    await expectWhole(place, "run")
  })
})
