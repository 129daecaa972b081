/**
 * Runs every subject through every workload, interleaved (A B C, A B C, ..), and writes the medians down.
 *
 * `--quick`: one short round, to see that it works. `--rounds 3`. `--minutes 60`: begins no measurement after that.
 * `--only cairn,dbos`: engines. `--workloads w10,fan`. `--resume-steps 1000,10000,100000`. `--write`: replaces
 * results.json and RESULTS.md also after a run of a part. `--add`: puts such a run's figures into them.
 */
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { cpus, loadavg, tmpdir } from "node:os"
import path from "node:path"
import { parseArgs } from "node:util"
import { engines, load } from "./catalog.js"
import { describeMachine, describeTree, versions } from "./machine.js"
import { measure, type Bench } from "./measure.js"
import { startServer } from "./postgres.js"
import { askRates } from "./process.js"
import { joined, medians, workloadNames, type Made, type Results, type Sample } from "./results.js"
import { report } from "./report.js"

const { values: given } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    workloads: { type: "string" },
    minutes: { type: "string", default: "600" },
    "resume-steps": { type: "string" },
    write: { type: "boolean", default: false },
    add: { type: "boolean", default: false },
    remark: { type: "string" },
  },
})

const chosen = (list: string | undefined, from: ReadonlyArray<string>): ReadonlyArray<string> => {
  const names = list?.split(",") ?? from
  const unknown = names.filter((name) => !from.includes(name))
  if (unknown.length > 0) throw new Error(`there is no ${unknown.join(", ")}; there are ${from.join(", ")}`)
  return names
}

const root = path.resolve(import.meta.dirname, "..")
const rounds = Number(given.rounds ?? (given.quick ? 1 : 3))
const chosenEngines = chosen(given.only, engines)
const workloads = workloadNames.filter((name) => chosen(given.workloads, workloadNames).includes(name))
const say = (text: string) => void process.stdout.write(`${text}\n`)

const shown = ({ figures, problem }: Made): string =>
  problem ??
  Object.entries(figures)
    .map(([name, value]) => `${name} ${value.toPrecision(4)}`)
    .join(", ")
const minutesSince = (date: Date): number => (Date.now() - date.getTime()) / 60_000

const loadBefore = loadavg()[0]!
const found = await Promise.all(chosenEngines.map(load))
const subjects = found.flat()
for (const [index, engine] of chosenEngines.entries()) {
  if (found[index]!.length === 0) say(`${engine}: nothing of it can be measured here; the README says what is missing`)
}
const folder = await mkdtemp(path.join(tmpdir(), "cairn-bench-"))
const server = await startServer()
const samples: Array<Sample> = []
/** Rounds of a workload that the time did not suffice for: some subjects would have a round more than others. */
const cutShort = new Set<string>()
const rates: Array<Record<string, number>> = []
const beganAt = new Date()
try {
  const resumeSteps = (given["resume-steps"] ?? (given.quick ? "100" : "1000,10000,100000")).split(",").map(Number)
  const bench: Bench = { folder, server, resumeSteps, quick: given.quick, prepared: new Map(), prepareMs: new Map() }
  for (let round = 0; round < rounds; round++) {
    if (minutesSince(beganAt) > Number(given.minutes)) break
    const url = await server.database(`rates_${round}`)
    const ratesFolder = await mkdtemp(path.join(folder, "rates-"))
    rates.push(await askRates(ratesFolder, url, given.quick ? 100 : 1_000))
    for (const workload of workloads) {
      for (const subject of subjects) {
        // Sizes do not change from round to round.
        if (workload === "bytes" && round > 0) continue
        if (minutesSince(beganAt) > Number(given.minutes)) {
          cutShort.add(`${workload} ${round}`)
          continue
        }
        const began = performance.now()
        for (const made of await measure(bench, subject, workload)) {
          samples.push({ round, ...made })
          const seconds = ((performance.now() - began) / 1_000).toFixed(1)
          say(
            `${round + 1}/${rounds} ${made.workload.padEnd(14)} ${subject.name.padEnd(44)} ${shown(made)}  (${seconds} s)`,
          )
        }
      }
    }
  }
} finally {
  await server.stop()
  await rm(folder, { recursive: true, force: true })
}

const results: Results = {
  date: beganAt.toISOString(),
  minutes: Math.round(minutesSince(beganAt)),
  rounds,
  quick: given.quick,
  ...(given.remark !== undefined && { remark: given.remark }),
  tree: describeTree(root),
  machine: describeMachine(),
  load: [loadBefore, loadavg()[0]!],
  cores: cpus().length,
  postgres: server.settings,
  versions: versions(root, subjects),
  subjects: subjects.map(({ class: of, engine, mode, name, note }) => ({
    name,
    engine,
    class: of,
    mode,
    note: note ?? null,
  })),
  rates: medians(rates),
  samples: samples.filter(
    ({ round, workload }) => round === 0 || !cutShort.has(`${workload.replace(/ .*/, "")} ${round}`),
  ),
}
const textOf = (of: Results): string => `${JSON.stringify(of, null, 1)}\n`
await mkdir(path.join(root, "results"), { recursive: true })
await writeFile(path.join(root, "results", `${beganAt.toISOString().replaceAll(":", "-")}.json`), textOf(results))
// A run of a part must not replace the figures that the docs quote, unless that is asked for.
const whole = !given.quick && given.only === undefined && given.workloads === undefined
if (whole || given.write || given.add) {
  const published = path.join(root, "results.json")
  const all = given.add ? joined(JSON.parse(await readFile(published, "utf8")) as Results, results) : results
  await writeFile(published, textOf(all))
  await writeFile(path.join(root, "RESULTS.md"), report(all))
} else say(`\n${report(results)}`)
// That the longest runs take too long to prepare is a finding and no failure.
const ours = samples.filter(
  ({ engine, workload }) => ["cairn", "limit"].includes(engine) && !/ 10+,000$/.test(workload),
)
const failed = ours.filter(({ problem }) => problem !== null)
for (const { problem, subject, workload } of failed) say(`FAILED ${workload} ${subject}: ${problem}`)
// The embedded server's package sets the exit code when it stops.
process.exit(failed.length > 0 ? 1 : 0)
