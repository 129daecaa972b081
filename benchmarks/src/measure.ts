/** One subject, one workload: places made, processes started, sizes taken. */
import { randomUUID } from "node:crypto"
import { mkdtemp, rm, stat } from "node:fs/promises"
import path from "node:path"
import type { Answer, Order } from "./child.js"
import { postgresSize, type Server } from "./postgres.js"
import { askChild, isOneFile, type Heard } from "./process.js"
import type { Made, WorkloadName } from "./results.js"
import type { Place, Subject } from "./Subject.js"

export interface Bench {
  readonly folder: string
  readonly server: Server
  readonly quick: boolean
  readonly resumeSteps: ReadonlyArray<number>
  /** Runs that were killed at their last step and may be resumed, by subject and size; or why there is none. */
  readonly prepared: Map<string, Place | Error>
  /** How long that took. */
  readonly prepareMs: Map<string, number>
}

const limitMs = 180_000
/** Committing the steps of one long run: what has not come so far by then is left out. */
const prepareLimitMs = 120_000

const newPlace = async (bench: Bench, subject: Subject): Promise<Place & { readonly remove: () => Promise<void> }> => {
  const folder = await mkdtemp(path.join(bench.folder, "place-"))
  const name = `bench_${randomUUID().replaceAll("-", "")}`
  const url = subject.class === "postgres" ? await bench.server.database(name) : ""
  return {
    file: path.join(folder, "runs.db"),
    url,
    remove: async () => {
      if (url !== "") await bench.server.drop(name)
      await rm(folder, { recursive: true, force: true })
    },
  }
}

interface Limits {
  readonly limit?: number
  readonly asModules?: boolean
}

type Ask = (workload: Order["workload"], count: number, limits?: Limits) => Promise<Heard<Answer>>

const asking =
  (bench: Bench, subject: Subject, { file, url }: Place): Ask =>
  async (workload, count, { asModules = false, limit = limitMs } = {}) => {
    if (url !== "") await bench.server.checkpoint()
    const { engine, name, ...rest } = { ...subject, quick: bench.quick }
    const serverPid = url === "" ? null : bench.server.pid
    return askChild(
      { engine, subject: name, workload, place: { file, url }, count, quick: rest.quick, serverPid },
      limit,
      asModules,
    )
  }

const figuresOf = ({ answer }: Heard<Answer>): Extract<Answer, { figures: unknown }> => {
  if (!("figures" in answer)) throw new Error("it answered something else")
  return answer
}

const simple = async (ask: Ask, workload: "w10" | "w1000" | "fan" | "operations", runs: number, quick: boolean) =>
  figuresOf(await ask(workload, quick ? 50 : runs))

/** The second start on the same data: tables exist, as on any day but the first. */
const cold = async (subject: Subject, ask: Ask) => {
  await ask("cold", 1)
  const started = async (asModules: boolean) => {
    const heard = await ask("cold", 1, { asModules })
    const { figures, settings } = figuresOf(heard)
    return { ms: figures["reachedAt"]! - heard.startedAt, rssMb: figures["rssMb"]!, settings }
  }
  const { ms, rssMb, settings } = await started(true)
  const modules = { firstStepMs: ms, rssMb }
  if (!isOneFile(subject.engine)) return { figures: modules, settings }
  const one = await started(false)
  return { figures: { ...modules, oneFileMs: one.ms, oneFileRssMb: one.rssMb }, settings }
}

const bytes = async (subject: Subject, place: Place, ask: Ask, quick: boolean) => {
  const size = async () =>
    subject.class === "postgres" ? postgresSize(place.url) : { tables: (await stat(place.file)).size, wal: 0 }
  await ask("bytes", 10)
  const before = await size()
  const { figures, settings } = figuresOf(await ask("bytes", quick ? 10 : 100))
  const after = await size()
  const steps = figures["steps"]!
  const wal = subject.class === "postgres" ? { walBytes: (after.wal - before.wal) / steps } : {}
  return { figures: { tableBytes: (after.tables - before.tables) / steps, ...wal }, settings }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const reached = ({ answer, startedAt }: Heard<Answer>) => {
  if (!("reachedAt" in answer)) throw new Error("it answered something else")
  return { nextStepMs: answer.reachedAt - startedAt, rssMb: answer.rssBytes / 1_048_576 }
}

const prepare = async (bench: Bench, subject: Subject, steps: number): Promise<Place | Error> => {
  // A tenth of it says how long the whole would take, at least.
  const tookMs = bench.prepareMs.get(`${subject.name} ${steps / 10}`) ?? 0
  if (tookMs * 10 > prepareLimitMs) {
    const seconds = Math.round(tookMs / 100)
    return new Error(
      `not tried: committing ${steps} steps would take more than ${seconds} s (a tenth took ${seconds / 10} s)`,
    )
  }
  const place = await newPlace(bench, subject)
  const began = performance.now()
  try {
    const commit = () => asking(bench, subject, place)("prepare", steps, { limit: prepareLimitMs })
    await (subject.class === "postgres" ? bench.server.unsafely(commit) : commit())
    bench.prepareMs.set(`${subject.name} ${steps}`, performance.now() - began)
    return place
  } catch (cause) {
    await place.remove()
    return new Error(`${steps} steps could not be committed: ${(cause as Error).message}`)
  }
}

/** The process is killed at the next step each time: what it left is as it was, and can be resumed again. */
const resume = async (bench: Bench, subject: Subject, steps: number) => {
  const key = `${subject.name} ${steps}`
  const place = bench.prepared.get(key) ?? (await prepare(bench, subject, steps))
  bench.prepared.set(key, place)
  if (place instanceof Error) throw place
  await pause(subject.leaseMs * 1.1)
  return { figures: reached(await asking(bench, subject, place)("resume", steps)), settings: {} }
}

const resumeSizes = (bench: Bench, subject: Subject): ReadonlyArray<number> =>
  bench.resumeSteps.map((steps) =>
    // An engine with a limit near a thousand is measured at its limit.
    steps === 1_000 ? Math.min(steps, subject.maxResumeSteps ?? steps) : steps,
  )

const attempt = async (
  subject: Subject,
  workload: string,
  act: () => Promise<{ readonly figures: Record<string, number>; readonly settings: Readonly<Record<string, string>> }>,
): Promise<Made> => {
  const of = { engine: subject.engine, subject: subject.name, workload }
  try {
    return { ...of, ...(await act()), problem: null }
  } catch (cause) {
    return { ...of, figures: {}, settings: {}, problem: (cause as Error).message }
  }
}

export const measure = async (bench: Bench, subject: Subject, workload: WorkloadName): Promise<ReadonlyArray<Made>> => {
  if (workload === "resume") {
    // What is only in memory does not outlive its process.
    if (subject.class === "memory") return []
    const made: Array<Made> = []
    for (const steps of resumeSizes(bench, subject)) {
      if (steps > 1_000 && steps > (subject.maxResumeSteps ?? Infinity)) continue
      // "resume 1,000" also where it was a few less: the engine's own limit.
      const name = `resume ${(steps >= 900 && steps < 10_000 ? 1_000 : steps).toLocaleString("en-US")}`
      made.push(await attempt(subject, name, () => resume(bench, subject, steps)))
    }
    return made
  }
  if (workload === "bytes" && subject.class === "memory") return []
  // The others know steps only: theirs are the figures of `fan`.
  if (workload === "operations" && subject.engine !== "cairn") return []
  const place = await newPlace(bench, subject)
  const ask = asking(bench, subject, place)
  try {
    return [
      await attempt(subject, workload, () => {
        if (workload === "cold") return cold(subject, ask) as never
        if (workload === "bytes") return bytes(subject, place, ask, bench.quick) as never
        return simple(ask, workload, subject.fanRuns ?? 1_000, bench.quick) as never
      }),
    ]
  } finally {
    await place.remove()
  }
}
