/** A run that kills whoever runs it does not take the others with it for ever (law X12). */
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { load, makePlace, removePlace, startWorker, type Ended, type Place } from "./support.js"

describe("a run that kills its worker each time", () => {
  let place: Place
  beforeEach(async () => {
    place = await makePlace()
  })
  afterEach(() => removePlace(place))

  const maxRecoveries = 3
  const work = (runId: string): Promise<Ended> =>
    startWorker(place, runId, "SIGKILL:afterGate:price:poison", { CAIRN_MAX_RECOVERIES: String(maxRecoveries) }).ended

  it("is parked after its last recovery, and a run beside it completes", async () => {
    const first = await work("poison")
    expect(first.signal, first.output).toBe("SIGKILL")
    // A supervisor that restarts what dies. It looks at the poisoned run, so that the worker stays until that is decided.
    const deaths: Array<NodeJS.Signals | null> = []
    let last: Ended
    do {
      await startWorker(place, "healthy", "SIGKILL:afterGate:price:poison", {
        CAIRN_MAX_RECOVERIES: String(maxRecoveries),
      }).ended
      last = await work("poison")
      deaths.push(last.signal)
    } while (last.signal === "SIGKILL" && deaths.length < 10)
    expect(last.code, last.output).toBe(0)
    const poison = await load(place, "poison")
    expect(poison.run.status).toBe("review")
    expect(poison.run.parked?.reason).toBe("TooManyRecoveries")
    expect(poison.run.recoveries).toBe(maxRecoveries + 1)
    expect(poison.steps).toEqual([])
    // One claim more than recoveries at least: a worker that stops before it has tried it gives it back.
    expect(poison.run.fence).toBeGreaterThanOrEqual(maxRecoveries + 2)
    expect((await load(place, "healthy")).run.status).toBe("completed")
  })
})
