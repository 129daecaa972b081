/** Two processes fight for one run: one is stopped past its lease and wakes up later (law X6). */
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  isStopped,
  load,
  makePlace,
  removePlace,
  sent,
  startWorker,
  until,
  type Place,
  type RunningWorker,
} from "./support.js"

describe("a worker that is stopped past its lease", () => {
  let place: Place
  const workers: Array<RunningWorker> = []
  beforeEach(async () => {
    place = await makePlace()
  })
  afterEach(async () => {
    for (const { process } of workers.splice(0)) process.kill("SIGKILL")
    await removePlace(place)
  })

  const start = (fault = "", timeoutMs = 1_000): RunningWorker => {
    const worker = startWorker(place, "run", fault, { CAIRN_TIMEOUT_MS: String(timeoutMs) })
    workers.push(worker)
    return worker
  }
  const stoppedAt = async (point: string, timeoutMs = 1_000): Promise<RunningWorker> => {
    const worker = start(`SIGSTOP:${point}`, timeoutMs)
    await until(
      () => isStopped(worker.process.pid!),
      (stopped) => stopped,
      "a stopped process",
    )
    return worker
  }
  const charges = async (): Promise<number> =>
    (await sent(place)).filter((call) => call.operation === "payments.charge").length

  const expectOneRecordAStep = async (): Promise<void> => {
    const { run, steps } = await load(place, "run")
    expect(run.status).toBe("completed")
    // A takeover each time; waiting for the old lease to end releases the run, and either of them may claim it then.
    expect(run.fence).toBeGreaterThanOrEqual(2)
    expect(steps.map((step) => step.path)).toEqual(["price", "charge", "notify", "close"])
  }

  it("records the outcome that it knows, and the new owner reads it instead of sending again", async () => {
    // Long enough for a process to start, on a busy machine, while the outcome is still waited for.
    const timeoutMs = 8_000
    const loser = await stoppedAt("afterEffect:charge", timeoutMs)
    const winner = start("", timeoutMs)
    await until(winner.output, (output) => output.includes("claimed"), "the takeover")
    // The winner waits for the end of the old lease plus the operation's timeout; within that the loser wakes up.
    loser.process.kill("SIGCONT")
    const won = await winner.ended
    const lost = await loser.ended
    expect(won.events.at(-1)?.ok, won.output).toBe(true)
    // The loser's client sees the same end of the run: it attached to it.
    expect(lost.events.at(-1), lost.output).toEqual(won.events.at(-1))
    expect(lost.output).toMatch(/taken over by another worker|LeaseLost/)
    expect(await charges()).toBe(1)
    await expectOneRecordAStep()
  })

  it("starts no further operation when it wakes after the run is done", async () => {
    const loser = await stoppedAt("afterEffect:charge")
    const won = await start().ended
    expect(won.events.at(-1)?.ok, won.output).toBe(true)
    const before = await sent(place)
    loser.process.kill("SIGCONT")
    const lost = await loser.ended
    expect(lost.output).toMatch(/taken over by another worker|LeaseLost/)
    expect(await sent(place)).toEqual(before)
    // Sent twice, under one key: the provider makes one charge of it.
    expect(await charges()).toBe(2)
    expect(new Set(before.filter((call) => call.operation === "payments.charge").map((call) => call.key)).size).toBe(1)
    await expectOneRecordAStep()
  })

  it("never sends what it had only intended: its lease is checked just before the handler", async () => {
    const loser = await stoppedAt("beforeEffect:charge")
    const won = await start().ended
    expect(won.events.at(-1)?.ok, won.output).toBe(true)
    loser.process.kill("SIGCONT")
    const lost = await loser.ended
    expect(lost.output).toMatch(/taken over by another worker|LeaseLost/)
    expect((await sent(place)).filter((call) => call.pid === loser.process.pid)).toEqual([])
    expect(await charges()).toBe(1)
    await expectOneRecordAStep()
  })
})
