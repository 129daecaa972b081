/**
 * One process, one subject, one workload. It imports nothing but the subject that it measures, and answers over IPC:
 * engines write logs to standard output.
 */
import { load } from "./catalog.js"
import type { Opened, Place, Shape } from "./Subject.js"
import { serverCpuUs } from "./serverCpu.js"
import { median, quantile } from "./statistics.js"

/** The monotonic clock of the machine, the same in every process, in milliseconds. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6

export interface Order {
  readonly engine: string
  readonly subject: string
  readonly workload: "w10" | "w1000" | "fan" | "bytes" | "cold" | "prepare" | "resume"
  readonly place: Place
  /** Runs of `bytes` and `fan`, committed steps of `prepare` and `resume`. */
  readonly count: number
  readonly quick: boolean
  /** Process of the Postgres server; null for a subject that has none. */
  readonly serverPid: number | null
}

export type Answer =
  | { readonly figures: Readonly<Record<string, number>>; readonly settings: Readonly<Record<string, string>> }
  /** First line of the step that was waited for, on the machine's monotonic clock. */
  | { readonly reachedAt: number; readonly rssBytes: number }

const order = JSON.parse(process.argv[2] ?? "null") as Order

// Nobody is left to answer to.
process.once("disconnect", () => process.exit(1))

const marks: Array<number> = []
const short = "0123456789abcdefghij"
const long = short.repeat(10)
const tell = (answer: Answer): Promise<void> =>
  new Promise((resolve, reject) => process.send!(answer, (error: Error | null) => (error ? reject(error) : resolve())))

const marked = (name: string, steps: number): Shape => ({
  name,
  steps,
  body: (index) => {
    marks[index] = now()
    return short
  },
})

const plain = (name: string, text: string): Shape => ({ name, steps: 10, body: () => text })

/** Its last step says that it was reached, and stays: the process is killed there. */
const held = (name: string, committed: number): Shape => ({
  name,
  steps: committed + 1,
  body: (index) => {
    if (index < committed) return short
    const reachedAt = now()
    void tell({ reachedAt, rssBytes: process.memoryUsage.rss() })
    return new Promise<string>(() => {})
  },
})

const opened = async (shapes: ReadonlyArray<Shape>): Promise<Opened> => {
  const subject = (await load(order.engine)).find(({ name }) => name === order.subject)
  if (subject === undefined) throw new Error(`no subject ${order.subject}`)
  return subject.open(order.place, shapes)
}

const all = (it: Opened, workflow: string, ids: ReadonlyArray<string>): Promise<unknown> =>
  it.runAll?.(workflow, ids) ?? Promise.all(ids.map((id) => it.run(workflow, id)))

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

/** Runs one after the other until the time is up: at least `least`, at most `most`. */
const repeat = async (forMs: number, least: number, most: number, once: (index: number) => Promise<void>) => {
  const until = now() + forMs
  for (let index = 0; index < most && (index < least || now() < until); index++) await once(index)
}

const w10 = async () => {
  const it = await opened([marked("w10", 10)])
  await all(it, "w10", ids("warm", order.quick ? 20 : 100))
  for (const id of ids("alone", 5)) await it.run("w10", id)
  const runs: Array<number> = []
  const steps: Array<number> = []
  const usedBefore = process.cpuUsage()
  await repeat(order.quick ? 200 : 2_000, 5, 3_000, async (index) => {
    const began = now()
    await it.run("w10", `run-${index}`)
    runs.push((now() - began) * 1_000)
    steps.push(((marks[9]! - marks[0]!) / 9) * 1_000)
  })
  const { system, user } = process.cpuUsage(usedBefore)
  const cpuUs = (system + user) / (runs.length * 10)
  return {
    it,
    figures: { stepUs: median(steps), runUs: median(runs), runP95Us: quantile(runs, 0.95), cpuUs, runs: runs.length },
  }
}

const w1000 = async () => {
  const it = await opened([plain("w10", short), marked("w1000", 1_000)])
  for (const id of ids("warm", 20)) await it.run("w10", id)
  const began = now()
  await it.run("w1000", "long")
  const totalMs = now() - began
  const perStep = (from: number, to: number) => ((marks[to]! - marks[from]!) / (to - from)) * 1_000
  return { it, figures: { totalMs, firstUs: perStep(0, 100), lastUs: perStep(899, 999) } }
}

const fan = async () => {
  const it = await opened([plain("w10", short)])
  await all(it, "w10", ids("warm", 50))
  const usedBefore = process.cpuUsage()
  const serverBefore = serverCpuUs(order.serverPid)
  const began = now()
  await all(it, "w10", ids("fan", order.count))
  const seconds = (now() - began) / 1_000
  const { system, user } = process.cpuUsage(usedBefore)
  const serverAfter = serverCpuUs(order.serverPid)
  const steps = order.count * 10
  const server =
    serverBefore === null || serverAfter === null ? {} : { serverCpuUs: (serverAfter - serverBefore) / steps }
  const peakRssMb = process.resourceUsage().maxRSS / 1_024
  const cpuUs = (system + user) / steps
  return { it, figures: { stepsPerSecond: steps / seconds, cpuUs, ...server, peakRssMb, runs: order.count } }
}

const bytes = async () => {
  const it = await opened([plain("bytes", long)])
  for (const id of ids(String(process.pid), order.count)) await it.run("bytes", id)
  return { it, figures: { steps: order.count * 10 } }
}

const cold = async () => {
  let reachedAt = 0
  const it = await opened([{ name: "cold", steps: 10, body: () => ((reachedAt ||= now()), short) }])
  await it.run("cold", `cold-${process.pid}`)
  return { it, figures: { reachedAt, rssMb: process.memoryUsage.rss() / 1_048_576 } }
}

const workloads = { w10, w1000, fan, bytes, cold }

if (order.workload === "prepare" || order.workload === "resume") {
  const it = await opened([held("held", order.count)])
  const go = order.workload === "resume" && it.goOn !== undefined ? it.goOn : it.run
  await go("held", "run")
  throw new Error("the run went past its last step")
}
const { figures, it } = await workloads[order.workload]()
const settings = await it.settings()
await it.close()
await tell({ figures, settings })
process.exit(0)
