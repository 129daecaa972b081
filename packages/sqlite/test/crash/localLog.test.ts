/** Accepted steps that only a killed process knew: its log brings them to the store before anybody claims the run (W8). */
import { readdirSync, readFileSync, truncateSync } from "node:fs"
import path from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  isStopped,
  load,
  makePlace,
  removePlace,
  startWorker,
  until,
  type Place,
  type RunningWorker,
} from "./support.js"

const steps = ["s1", "s2", "s3", "s4", "s5"]

describe("a worker with a local log", () => {
  let place: Place
  beforeEach(async () => {
    place = await makePlace()
  })
  afterEach(() => removePlace(place))

  const directory = () => path.join(place.folder, "local")
  const worker = (environment: Readonly<Record<string, string>> = {}) =>
    startWorker(place, "run", "", { CAIRN_DIRECTORY: directory(), ...environment }, "localWorker")
  const said = (running: RunningWorker, event: string) =>
    until(
      () => running.output(),
      (output) => output.includes(`"event":"${event}"`),
      event,
    )
  const called = () => readFileSync(place.log, "utf8").trim().split("\n")
  /** Runs a worker until all but its last step is accepted, with nothing of it in the store. */
  const held = async (environment: Readonly<Record<string, string>> = {}) => {
    const first = worker({ CAIRN_HOLD: "yes", ...environment })
    await said(first, "last")
    expect((await load(place, "run")).run.seq).toBe(0)
    return first
  }
  const killed = async (running: RunningWorker) => {
    running.process.kill("SIGKILL")
    await running.ended
  }
  const segment = () => {
    const [incarnation] = readdirSync(directory())
    return path.join(directory(), incarnation!, "00000001.log")
  }

  it.each(["synced", "written"])(
    "loses no accepted step to SIGKILL, and nobody waits the lease out (%s)",
    async (log) => {
      const first = await held({ CAIRN_SYNC: log })
      await killed(first)
      const { events, output } = await worker({ CAIRN_SYNC: log }).ended
      expect(events.at(-1), output).toMatchObject({ event: "ended", ok: true })
      expect(called()).toEqual(steps)
      const { value, ms } = events.at(-1) as unknown as { value: ReadonlyArray<string>; ms: number }
      expect(value).toEqual(steps.map((step) => `${step} of ${first.process.pid}`))
      expect(ms).toBeLessThan(15_000)
      // Nothing is left behind: neither by the dead worker nor by the one that ended well.
      expect(readdirSync(directory())).toEqual([])
    },
  )

  it("without a log repeats its local steps, and nobody waits the lease out all the same", async () => {
    await killed(await held({ CAIRN_SYNC: "off" }))
    const { events, output } = await worker({ CAIRN_SYNC: "off" }).ended
    expect(events.at(-1), output).toMatchObject({ event: "ended", ok: true })
    expect(called()).toEqual([...steps, ...steps])
    expect((events.at(-1) as unknown as { ms: number }).ms).toBeLessThan(15_000)
  })

  it("keeps what stands before a torn tail, wherever it was torn", async () => {
    await killed(await held())
    const file = segment()
    const whole = readFileSync(file).length
    truncateSync(file, whole - 7)
    const { events, output } = await worker().ended
    expect(events.at(-1), output).toMatchObject({ event: "ended", ok: true })
    expect(called()).toEqual([...steps, "s5"])
  })

  it("is left alone while its process is merely stopped", async () => {
    const first = await held()
    first.process.kill("SIGSTOP")
    await until(
      () => isStopped(first.process.pid!),
      (stopped) => stopped,
      "the stop",
    )
    const second = worker()
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    expect((await load(place, "run")).run).toMatchObject({ seq: 0, fence: 1, status: "running" })
    await killed(first)
    await killed(second)
    // A third one finds two that are gone.
    const { events, output } = await worker().ended
    expect(events.at(-1), output).toMatchObject({ event: "ended", ok: true })
    expect(called()).toEqual(steps)
  })

  it("is discarded where another worker was first", async () => {
    await killed(await held({ CAIRN_LEASE: "500 millis" }))
    const elsewhere = await worker({ CAIRN_DIRECTORY: "" }).ended
    expect(elsewhere.events.at(-1), elsewhere.output).toMatchObject({ event: "ended", ok: true })
    const { seq } = (await load(place, "run")).run
    const back = await worker().ended
    expect(back.events.at(-1), back.output).toMatchObject({ event: "ended", ok: true })
    expect(back.output).toContain("5 were discarded")
    expect((await load(place, "run")).run.seq).toBe(seq)
    expect(called()).toEqual([...steps, ...steps])
  })

  it("is not brought to another store, and stays for its own", async () => {
    await killed(await held())
    const other = { ...place, filename: path.join(place.folder, "other.db") }
    const environment = { CAIRN_DIRECTORY: directory() }
    const { events, output } = await startWorker(other, "run", "", environment, "localWorker").ended
    expect(events.at(-1), output).toMatchObject({ event: "ended", ok: true })
    expect(output).toContain("belongs to another store")
    const back = await worker().ended
    expect(back.events.at(-1), back.output).toMatchObject({ event: "ended", ok: true })
    expect(called()).toEqual([...steps, ...steps])
    expect(readdirSync(directory())).toEqual([])
  })
})
