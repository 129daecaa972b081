/**
 * How long a resume takes until its next step begins, and what that depends on.
 *
 * Run it from the root: `node --conditions=@cairn/source --import tsx benchmarks/resume.ts`. It prints medians over
 * interleaved rounds, in milliseconds from the claim to the first line of the next step, on a SQLite file.
 */
import { Effect, Layer, Schema } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { Cairn, Faults, Plan, Worker, type AnyWorkflow } from "../packages/core/src/index.js"
import { SqliteStore } from "../packages/sqlite/src/index.js"

const rounds = 15

interface Case {
  readonly name: string
  /** Steps committed before the crash. */
  readonly committed: number
  /** Length of each output, in characters. */
  readonly output: number
  /** Runs of the same size that lie finished in the same file. */
  readonly others: number
  /** Failed attempts that each committed step left behind. */
  readonly failures: number
}

const cases: ReadonlyArray<Case> = [
  { name: "10 steps", committed: 10, output: 20, others: 0, failures: 0 },
  { name: "100 steps", committed: 100, output: 20, others: 0, failures: 0 },
  { name: "1,000 steps", committed: 1_000, output: 20, others: 0, failures: 0 },
  { name: "1,000 steps, 50 other runs of 1,000", committed: 1_000, output: 20, others: 50, failures: 0 },
  { name: "1,000 steps, 5 failed attempts each", committed: 1_000, output: 20, others: 0, failures: 5 },
  { name: "1,000 steps of 10 kB", committed: 1_000, output: 10_000, others: 0, failures: 0 },
]

let beganAt = 0

const workflowOf = (of: Case): AnyWorkflow => {
  const attempts = new Map<string, number>()
  const steps = Array.from({ length: of.committed }, (_, index) =>
    Plan.step(`s${index}`, { effects: [], output: Schema.String, retry: { times: 9, delay: 0 } }, () => {
      const key = `s${index}`
      const attempt = (attempts.get(key) ?? 0) + 1
      attempts.set(key, attempt)
      return attempt <= of.failures ? Effect.fail("not yet") : "x".repeat(of.output)
    }),
  )
  const next = Plan.step("next", { effects: [], output: Schema.String }, ({ results }: any) => {
    beganAt = performance.now()
    return String(results.s0).slice(0, 1)
  })
  return Plan.make("long", { version: 1, input: Schema.Void, steps: [...steps, next] })
}

const prepare = async (filename: string, of: Case): Promise<void> => {
  const store = SqliteStore.layer({ filename, synchronous: "normal" })
  const dies = (runId: string) =>
    Layer.succeed(Faults, {
      reach: (point, site) =>
        point === "afterCommit" && site.step === `s${of.committed - 1}` && site.runId === runId
          ? Effect.never
          : Effect.void,
    })
  const crashed = Effect.gen(function* () {
    const workflow = workflowOf(of)
    for (let other = 0; other < of.others; other++) {
      yield* (yield* Cairn.start(workflow, undefined, { runId: `other-${other}` })).result
    }
    const handle = yield* Cairn.start(workflow, undefined, { runId: "run" })
    yield* Effect.repeat(handle.poll, { until: ({ cursor }) => cursor === `s${of.committed - 1}` })
  })
  await Effect.runPromise(
    Effect.provide(
      crashed,
      Worker.layer({ workflows: [workflowOf(of)], drain: 0, pollInterval: "20 millis" }).pipe(
        Layer.provide(dies("run")),
        Layer.provideMerge(store),
      ),
    ),
  )
}

/** Milliseconds from the claim to the next step; the run is left as it was. */
const measure = async (filename: string, of: Case): Promise<number> => {
  let claimedAt = 0
  const stops = Layer.succeed(Faults, {
    reach: (point, { step }) =>
      point === "afterClaim"
        ? Effect.sync(() => void (claimedAt = performance.now()))
        : step === "next"
          ? Effect.never
          : Effect.void,
  })
  beganAt = 0
  await Effect.runPromise(
    Effect.provide(
      Effect.repeat(Effect.sleep("1 millis"), { until: () => beganAt > 0 }),
      Worker.layer({ workflows: [workflowOf(of)], drain: 0, pollInterval: "20 millis" }).pipe(
        Layer.provide(stops),
        Layer.provideMerge(SqliteStore.layer({ filename, synchronous: "normal" })),
      ),
    ),
  )
  return beganAt - claimedAt
}

const median = (values: ReadonlyArray<number>): number => [...values].sort((a, b) => a - b)[values.length >> 1]!

const folder = await mkdtemp(path.join(tmpdir(), "cairn-resume-"))
try {
  const files = cases.map((_, index) => path.join(folder, `${index}.db`))
  for (const [index, of] of cases.entries()) await prepare(files[index]!, of)
  const times: ReadonlyArray<Array<number>> = cases.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [index, of] of cases.entries()) times[index]!.push(await measure(files[index]!, of))
  }
  for (const [index, of] of cases.entries()) {
    process.stdout.write(`${of.name.padEnd(40)} ${median(times[index]!).toFixed(2).padStart(8)} ms\n`)
  }
} finally {
  await rm(folder, { recursive: true, force: true })
}
