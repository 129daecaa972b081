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
  readonly workload: "w10" | "w1000" | "fan" | "operations" | "bytes" | "cold" | "prepare" | "resume"
  readonly place: Place
  /** Runs of `bytes`, `fan` and `operations`, committed steps of `prepare` and `resume`. */
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
  await repeat(order.quick ? 200 : 6_000, 5, 3_000, async (index) => {
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

const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length

/**
 * Whole runs come before those that count, or the first steps would pay for the compiling of code that the last ones find.
 * Times are medians. Where an engine runs ahead, its writes fall into one part of a run or another, and a median would see
 * none of them: what they cost is in the means of what the process has used.
 */
const w1000 = async () => {
  const usedAt = new Map<number, number>([0, 100, 899, 999].map((index) => [index, 0]))
  const timed = marked("w1000", 1_000)
  const body = (index: number) => {
    if (usedAt.has(index)) {
      const { system, user } = process.cpuUsage()
      usedAt.set(index, system + user)
    }
    return timed.body(index)
  }
  const it = await opened([{ ...timed, body }])
  await repeat(order.quick ? 500 : 2_000, 2, 50, (index) => it.run("w1000", `warm-${index}`))
  const totals: Array<number> = []
  const parts: Array<Record<"firstUs" | "lastUs" | "firstCpuUs" | "lastCpuUs", number>> = []
  await repeat(order.quick ? 1_000 : 5_000, 5, 301, async (index) => {
    const began = now()
    await it.run("w1000", `long-${index}`)
    totals.push(now() - began)
    parts.push({
      firstUs: (marks[100]! - marks[0]!) * 10,
      lastUs: (marks[999]! - marks[899]!) * 10,
      firstCpuUs: (usedAt.get(100)! - usedAt.get(0)!) / 100,
      lastCpuUs: (usedAt.get(999)! - usedAt.get(899)!) / 100,
    })
  })
  const all = (name: keyof (typeof parts)[number]) => parts.map((part) => part[name])
  const figures = {
    totalMs: median(totals),
    firstUs: median(all("firstUs")),
    lastUs: median(all("lastUs")),
    firstCpuUs: mean(all("firstCpuUs")),
    lastCpuUs: mean(all("lastCpuUs")),
    runs: totals.length,
  }
  return { it, figures }
}

const many = async (shape: Shape) => {
  const it = await opened([shape])
  await all(it, shape.name, ids("warm", 50))
  const usedBefore = process.cpuUsage()
  const serverBefore = serverCpuUs(order.serverPid)
  const began = now()
  await all(it, shape.name, ids("fan", order.count))
  const seconds = (now() - began) / 1_000
  const { system, user } = process.cpuUsage(usedBefore)
  const serverAfter = serverCpuUs(order.serverPid)
  const steps = order.count * 10
  const server =
    serverBefore === null || serverAfter === null ? {} : { serverCpuUs: (serverAfter - serverBefore) / steps }
  const peakRssMb = process.resourceUsage().maxRSS / 1_024
  const cpuUs = (system + user) / steps
  // A worker lives for days: by the third time its code is compiled.
  await all(it, shape.name, ids("again", order.count))
  const againAt = now()
  await all(it, shape.name, ids("third", order.count))
  const warmPerSecond = steps / ((now() - againAt) / 1_000)
  const figures = { stepsPerSecond: steps / seconds, warmPerSecond, cpuUs, ...server, peakRssMb, runs: order.count }
  return { it, figures }
}

const fan = () => many(plain("w10", short))

const operations = () => many({ ...plain("paying", short), operations: [3, 7] })

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

const workloads = { w10, w1000, fan, operations, bytes, cold }

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
