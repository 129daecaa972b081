/** The page that is read: tables a workload, ratios to the best peer of the same promise and to the limit. */
import { medians, type Results } from "./results.js"

interface Column {
  readonly title: string
  readonly workload: string
  readonly figure: string
  /** What it is multiplied by: figures are in the unit that their name says. */
  readonly times?: number
  readonly digits?: number
  /** Shows the least and the largest round as well. */
  readonly spread?: boolean
}

interface Section {
  readonly title: string
  readonly text: string
  readonly columns: ReadonlyArray<Column>
  /** The figure that ratios are taken of. */
  readonly ratio: { readonly workload: string; readonly figure: string; readonly better: "less" | "more" }
}

type Subject = Results["subjects"][number]

const sections: ReadonlyArray<Section> = [
  {
    title: "W10: a run of ten steps, one run at a time",
    text: "The steps do nothing and return 20 characters. `step`: from the first line of a step to the first line of the next, which holds everything an engine does in between. `run`: from the client's call to its answer; where a client or a worker polls, most of it is waiting. `CPU`: of the engine's own process, a step, which other load on the machine changes less than times. Ratios are of `step`.",
    columns: [
      { title: "step, µs", workload: "w10", figure: "stepUs", spread: true },
      { title: "run p50, ms", workload: "w10", figure: "runUs", times: 1e-3, digits: 1 },
      { title: "run p95, ms", workload: "w10", figure: "runP95Us", times: 1e-3, digits: 1 },
      { title: "CPU, µs a step", workload: "w10", figure: "cpuUs" },
    ],
    ratio: { workload: "w10", figure: "stepUs", better: "less" },
  },
  {
    title: "W1000: a run of a thousand steps, one run at a time",
    text: "Whether a step costs more the longer the run has become. Times are medians of whole runs, after some that do not count; where an engine runs ahead, its writes fall into one part of a run or another, and these times hold them seldom. `CPU`: what the engine's own process used a step, on average: it holds them. Ratios are of the total.",
    columns: [
      { title: "total, ms", workload: "w1000", figure: "totalMs", spread: true },
      { title: "first 100, µs a step", workload: "w1000", figure: "firstUs" },
      { title: "last 100, µs a step", workload: "w1000", figure: "lastUs" },
      { title: "CPU of the first 100, µs", workload: "w1000", figure: "firstCpuUs", digits: 1 },
      { title: "CPU of the last 100, µs", workload: "w1000", figure: "lastCpuUs", digits: 1 },
    ],
    ratio: { workload: "w1000", figure: "totalMs", better: "less" },
  },
  {
    title: "FAN: many runs of ten steps at once, in one process",
    text: "All are started at once; the clock stops when the last is durable at its end. `third time`: as many again, when a process that has just started has compiled its code; the other figures, and the ratios, are of the first time. `server CPU`: of all processes of Postgres, a step. Ratios are of steps a second, above 1 is faster.",
    columns: [
      { title: "steps a second", workload: "fan", figure: "stepsPerSecond", spread: true },
      { title: "third time", workload: "fan", figure: "warmPerSecond" },
      { title: "CPU, µs a step", workload: "fan", figure: "cpuUs" },
      { title: "server CPU, µs a step", workload: "fan", figure: "serverCpuUs" },
      { title: "peak RSS, MB", workload: "fan", figure: "peakRssMb" },
      { title: "runs", workload: "fan", figure: "runs" },
    ],
    ratio: { workload: "fan", figure: "stepsPerSecond", better: "more" },
  },
  {
    title: "OPERATIONS: the same runs where two of the ten steps are operations",
    text: "FAN, but the fourth and the eighth step do what must not be done twice, and do nothing: an intent is durable before each, with all that came before, and its outcome before the next step. Engines that know steps only do here what they do in FAN, and are not listed: compare with that.",
    columns: [
      { title: "steps a second", workload: "operations", figure: "stepsPerSecond", spread: true },
      { title: "third time", workload: "operations", figure: "warmPerSecond" },
      { title: "CPU, µs a step", workload: "operations", figure: "cpuUs" },
      { title: "server CPU, µs a step", workload: "operations", figure: "serverCpuUs" },
      { title: "runs", workload: "operations", figure: "runs" },
    ],
    ratio: { workload: "operations", figure: "stepsPerSecond", better: "more" },
  },
  {
    title: "COLD: from the start of the process to the first line of the first step",
    text: "Built code, a database whose tables exist. Where a worker polls, its first look is in it. `RSS`: after the one run. `as one file`: the same when esbuild has made one file of it and all that it needs. Ratios are of the time without that.",
    columns: [
      { title: "first step, ms", workload: "cold", figure: "firstStepMs", spread: true },
      { title: "RSS, MB", workload: "cold", figure: "rssMb" },
      { title: "as one file, ms", workload: "cold", figure: "oneFileMs", spread: true },
      { title: "RSS as one file, MB", workload: "cold", figure: "oneFileRssMb" },
    ],
    ratio: { workload: "cold", figure: "firstStepMs", better: "less" },
  },
  {
    title: "RESUME: from the start of a process to the first line of the next step of a killed run",
    text: "A process commits so many steps of one run and is killed with SIGKILL in the step after them. When its claim has lapsed, a new process is started, and killed in its turn where it reaches the step. It includes starting up; subtract COLD for the share of the history. Ratios are of 1,000 steps.",
    columns: [
      { title: "100 steps (a quick run), ms", workload: "resume 100", figure: "nextStepMs" },
      { title: "1,000 steps, ms", workload: "resume 1,000", figure: "nextStepMs", spread: true },
      { title: "10,000 steps, ms", workload: "resume 10,000", figure: "nextStepMs" },
      { title: "100,000 steps, ms", workload: "resume 100,000", figure: "nextStepMs" },
      { title: "RSS at 1,000, MB", workload: "resume 1,000", figure: "rssMb" },
    ],
    ratio: { workload: "resume 1,000", figure: "nextStepMs", better: "less" },
  },
  {
    title: "BYTES: what a step with an output of 200 characters leaves in the database",
    text: "Runs of ten steps, their own rows included. SQLite: growth of the file after a checkpoint. Postgres: growth of all tables with their indexes after a vacuum (not full), and of its log. Ratios are of the tables.",
    columns: [
      { title: "tables, bytes a step", workload: "bytes", figure: "tableBytes" },
      { title: "WAL, bytes a step", workload: "bytes", figure: "walBytes" },
    ],
    ratio: { workload: "bytes", figure: "tableBytes", better: "less" },
  },
]

const classes = ["memory", "sqlite full", "sqlite normal", "postgres"]

const classText: Readonly<Record<string, string>> = {
  memory: "in memory",
  "sqlite full": "SQLite, synchronous=full (survives a power failure)",
  "sqlite normal": "SQLite, synchronous=normal (a power failure may take the last commits back)",
  postgres: "Postgres, fsync=on, synchronous_commit=on",
}

const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string =>
  [head, head.map((_, index) => (index === 0 ? "---" : "---:")), ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .join("\n")

const number = (value: number | undefined, digits = 0): string =>
  value === undefined || Number.isNaN(value)
    ? ""
    : value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })

const ratioText = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)}x`

const samplesOf = (results: Results, subject: Subject, workload: string) =>
  results.samples.filter(
    (sample) => sample.subject === subject.name && sample.workload === workload && sample.problem === null,
  )

const valueOf = (results: Results, subject: Subject, workload: string, figure: string): number | undefined =>
  medians(samplesOf(results, subject, workload).map(({ figures }) => figures))[figure]

const cell = (results: Results, subject: Subject, { digits, figure, spread, times = 1, workload }: Column): string => {
  const value = valueOf(results, subject, workload, figure)
  const shown = number(value === undefined ? undefined : value * times, digits)
  const all = samplesOf(results, subject, workload).map(({ figures }) => figures[figure]! * times)
  return spread !== true || all.length < 2 || shown === ""
    ? shown
    : `${shown} (${number(Math.min(...all), digits)}–${number(Math.max(...all), digits)})`
}

/** The best of those that keep the same promise in the same store. */
const best = (results: Results, among: ReadonlyArray<Subject>, { better, figure, workload }: Section["ratio"]) =>
  among
    .flatMap((subject) => {
      const value = valueOf(results, subject, workload, figure)
      return value === undefined ? [] : [{ subject, value }]
    })
    .sort((a, b) => (better === "less" ? a.value - b.value : b.value - a.value))[0]

const ratios = (results: Results, subject: Subject, { ratio }: Section): ReadonlyArray<string> => {
  const value = valueOf(results, subject, ratio.workload, ratio.figure)
  if (value === undefined) return ["", ""]
  const same = results.subjects.filter((other) => other.class === subject.class)
  const limit = best(
    results,
    same.filter(({ engine }) => engine === "limit"),
    ratio,
  )
  const peers = same.filter(({ engine }) => engine !== "limit" && engine !== "cairn")
  const alike = best(
    results,
    peers.filter(({ mode }) => mode === subject.mode),
    ratio,
  )
  const peer = alike ?? best(results, peers, ratio)
  const differs = alike === undefined ? " (waits for each step)" : ""
  const toPeer =
    subject.engine === "cairn" && peer !== undefined
      ? `${ratioText(value / peer.value)} of ${peer.subject.name.split(",")[0]}${differs}`
      : ""
  return [toPeer, limit === undefined ? "" : ratioText(value / limit.value)]
}

const problemsOf = (results: Results, section: Section): ReadonlyArray<string> => {
  const workloads = new Set(section.columns.map(({ workload }) => workload))
  const lines = results.samples
    .filter(({ problem, workload }) => problem !== null && workloads.has(workload))
    .map(
      ({ problem, subject, workload }) => `- ${subject}, ${workload}: ${problem!.replaceAll("\n", " ").slice(0, 240)}`,
    )
  return [...new Set(lines)]
}

const sectionText = (results: Results, section: Section): string => {
  const columns = section.columns.filter(({ workload }) =>
    results.samples.some((sample) => sample.workload === workload),
  )
  const head = ["", "runs ahead", ...columns.map(({ title }) => title), "to the best peer", "to the limit"]
  const tables = classes.flatMap((of) => {
    const rows = results.subjects
      .filter((subject) => subject.class === of)
      .map((subject) => [
        subject.name,
        subject.mode === "behind" ? "yes" : "",
        ...columns.map((column) => cell(results, subject, column)),
        ...ratios(results, subject, section),
      ])
      .filter((row) => row.slice(2).some((text) => text !== ""))
    return rows.length === 0 ? [] : [`${classText[of]}:\n\n${table(head, rows)}`]
  })
  const problems = problemsOf(results, section)
  const left = problems.length === 0 ? [] : [`Left out:\n\n${problems.join("\n")}`]
  const counted = [...new Set(columns.map(({ workload }) => workload))].map((workload) => {
    const rounds = results.samples.filter((sample) => sample.workload === workload).map(({ round }) => round)
    return `${workload} ${Math.max(...rounds) + 1}`
  })
  const text = `${section.text} Rounds: ${counted.join(", ")}.`
  return [`## ${section.title}`, text, ...tables, ...left].join("\n\n")
}

const settingsText = (results: Results): string => {
  const rows = results.subjects.map((subject) => {
    const sample = results.samples.find(
      ({ settings, subject: name }) => name === subject.name && Object.keys(settings).length > 0,
    )
    const read = Object.entries(sample?.settings ?? {}).map(([name, value]) => `${name} = ${value}`)
    return [subject.name, read.join("; "), subject.note ?? ""]
  })
  const versions = Object.entries(results.versions).map(([name, version]) => `${name} ${version}`)
  return [
    "## Settings, as read back, and versions",
    "SQLite's `synchronous`: 1 is normal, 2 is full.",
    [["Subject", "In force", "To know"], ["---", "---", "---"], ...rows]
      .map((row) => `| ${row.join(" | ")} |`)
      .join("\n"),
    `${versions.join(", ")}. Postgres: ${Object.entries(results.postgres)
      .map(([name, value]) => `${name} = ${value}`)
      .join(", ")}.`,
  ].join("\n\n")
}

const headText = (results: Results): string => {
  const { commit, changed } = results.tree
  const machine = Object.values(results.machine).join(", ")
  const load = results.load.map((each) => each.toFixed(1)).join(", ")
  // Its own processes account for one or two.
  const busy = Math.max(...results.load) > results.cores + 1
  return [
    "# Benchmarks",
    `Generated by \`pnpm bench\` on ${results.date.slice(0, 10)} from commit ${commit}${changed ? " with changes" : ""}, up to ${results.rounds} rounds in ${results.minutes} minutes, interleaved (A B C, A B C, ..). Figures are medians over the rounds; in brackets the least and the largest round. Each subject ran in a process of its own, as one file made of it by esbuild, as applications are shipped (of DBOS that can't be made: it ran from its modules). How to run it, what is fair and what is not: [README](README.md).`,
    `${machine}. Load average, before and after: ${load}.`,
    ...(busy
      ? [
          "**The machine did other work meanwhile: times are too long and uneven, for every subject. Ratios of times are rough and may turn round; CPU figures moved by up to a half between rounds; bytes are sound.**",
        ]
      : []),
    ...(results.remark === undefined ? [] : [`**${results.remark}**`]),
    ...(results.quick ? ["**A quick run: it shows that the benchmarks work, and nothing else.**"] : []),
  ].join("\n\n")
}

export const report = (results: Results): string =>
  `${[
    headText(results),
    "## The limit: what this machine does in a second",
    table(
      ["", "a second"],
      Object.entries(results.rates).map(([name, value]) => [name, number(value)]),
    ),
    'The rows named "Limit" below are a runner without leases, schemas, retries or types: a step is one insert and one update, in a transaction of its own or in one with all steps that wait at that moment. Ratios to the limit are to the better of the two.',
    ...sections.map((section) => sectionText(results, section)),
    settingsText(results),
  ].join("\n\n")}\n`
