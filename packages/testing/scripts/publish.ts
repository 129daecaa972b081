/** Explores the subjects on one store after the other and writes what came of it as a page. */
import { PostgresStore } from "@cairn/postgres"
import { SqliteStore } from "@cairn/sqlite"
import type { CheckpointStore, StoreError } from "@cairn/core"
import { Redacted, type Layer } from "effect"
import { exploreAsync, guarantees, type Report, type ReportRow } from "../src/index.js"
import { points } from "../src/internal/report.js"
import { otherRows } from "../src/internal/subject.js"
import { textTable } from "../src/internal/table.js"
import { booking, makeLedger, subjects, type Parameter } from "./subjects.js"

export interface Sample {
  readonly store: string
  /** Schedules of each workflow in each durability. */
  readonly each: number
  /** Where the clock is real and there are transactions. */
  readonly database?: {
    readonly layer: Layer.Layer<CheckpointStore, StoreError>
    readonly parameter: Parameter
  }
}

export const memorySample = (each: number): Sample => ({ store: "memory", each })
export const sqliteSample = (each: number, filename: string): Sample => ({
  ...{ store: "SQLite", each },
  database: { layer: SqliteStore.layer({ filename, synchronous: "normal" }), parameter: "?" },
})
export const postgresSample = (each: number, url: string): Sample => ({
  ...{ store: "Postgres", each },
  database: { layer: PostgresStore.layer({ url: Redacted.make(url) }), parameter: "$1" },
})

/** Explores every subject on one store. */
export const runSample = async (
  { each, database }: Sample,
  seed: number,
  onReport: (report: Report) => void = () => {},
): Promise<ReadonlyArray<Report>> => {
  const reports: Array<Report> = []
  if (database !== undefined) await makeLedger(database.layer)
  const explored = database === undefined ? subjects("virtual") : [...subjects("real"), booking(database.parameter)]
  for (const durability of ["barrier", "step"] as const) {
    for (const { workflow, options } of explored) {
      // Transactions are of the databases alone, where a sample is small: three times as many, for each of their points.
      const maxSchedules = workflow.name === "booking" ? 3 * each : each
      const limits = { seed, maxSchedules, durability, ...(database && { store: database.layer }) }
      const report = await exploreAsync(workflow, { ...options, ...limits })
      onReport(report)
      reports.push(report)
    }
  }
  return reports
}

/** A row over reports of both durabilities. */
interface Row extends ReportRow {
  readonly byDurability: Readonly<Record<Report["durability"], number>>
}

/** Rows of all reports under one policy and point. */
const merged = (reports: ReadonlyArray<Report>): ReadonlyArray<Row> => {
  const rows = new Map<string, Row>()
  for (const { durability, ...row } of reports.flatMap((report) =>
    report.rows.map((row) => ({ ...row, durability: report.durability })),
  )) {
    const key = `${row.policy}|${row.point}`
    const known = rows.get(key)
    rows.set(key, {
      ...row,
      schedules: row.schedules + (known?.schedules ?? 0),
      mostRequests: Math.max(row.mostRequests, known?.mostRequests ?? 0),
      mostEffects: Math.max(row.mostEffects, known?.mostEffects ?? 0),
      parked: row.parked + (known?.parked ?? 0),
      breaches: row.breaches + (known?.breaches ?? 0),
      byDurability: {
        ...(known?.byDurability ?? { barrier: 0, step: 0 }),
        [durability]: row.schedules + (known?.byDurability[durability] ?? 0),
      },
    })
  }
  const order = [...Object.keys(guarantees), ...otherRows]
  const rank = ({ policy, point }: Row): number => order.indexOf(policy) * 100 + points.indexOf(point)
  return [...rows.values()].toSorted((a, b) => rank(a) - rank(b))
}

const head = [
  ...["step declares", "crash point", "barrier", "step"],
  ...["most requests a key", "most effects a step", "parked", "breaches"],
]

const tableOf = (rows: ReadonlyArray<Row>): string =>
  textTable(
    head,
    rows.map(({ policy, point, byDurability, mostRequests, mostEffects, parked, breaches }) => [
      ...[policy, point, byDurability.barrier, byDurability.step, mostRequests, mostEffects, parked, breaches],
    ]),
  )

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

const sectionOf = (store: string, reports: ReadonlyArray<Report>): string => {
  const schedules = sum(reports.map((report) => report.schedules))
  const broken = reports.flatMap(({ workflow, durability, breaches }) =>
    breaches.map((breach) => ({ workflow, durability, ...breach })),
  )
  return [
    `## ${store}: ${schedules} schedules, ${broken.length} breaches`,
    tableOf(merged(reports)),
    ...broken.map(
      ({ workflow, durability, problem, shown }) =>
        `- ${workflow} (${durability}): ${problem}. Shortest schedule: ${shown}.`,
    ),
  ].join("\n\n")
}

const promises = [
  ...Object.entries(guarantees).map(([policy, { words }]) => `- \`${policy}\`: ${words}.`),
  "- `transaction`: exactly once: what the step writes and its checkpoint are one transaction of the store's database. The effects of such a step are the rows that it has left in a ledger, counted by the explored workflow's own check (`invariant`). The memory store has no transactions, and no such rows.",
]

/** The whole page. */
export const page = (
  seed: number,
  samples: ReadonlyArray<{ readonly store: string; readonly reports: ReadonlyArray<Report> }>,
): string =>
  [
    "# What a crash can do",
    "This page is written by `packages/testing/scripts/table.ts`: the crash-point explorer runs a workflow for each policy, one of several local steps in a row, one that takes back what it did and, where the store has transactions, one that writes in them, strikes their workers at every boundary, and counts what the providers saw. A run that waits for a person is answered, by what its provider knows: by two people at once, of whom one is heard, and by a third who comes late and is wrong; it must then end as it would have ended without trouble. To strike is to kill a worker, to stall it until another has taken over or has finished, to lose the store's acknowledgement, an operation's answer, or its request; or to ask just then that the run be canceled. Two troubles in one run are the rule; the second may strike the recovery from the first.",
    `Seed ${seed}. The first run is without trouble; every single trouble is run, then a seeded sample of pairs. "Most requests a key" and "most effects a step" are maxima over all schedules that struck there, whatever else befell them.`,
    "Each workflow is explored in both durabilities; the columns `barrier` and `step` count the schedules that struck there. With `barrier` a run goes on from steps that touch nothing outside while they wait for a common write (a flush); with `step` it waits for each. A run that is taken over again without progress is executed step by step in either.",
    "What is promised:",
    promises.join("\n"),
    "A breach would also be a committed step that is lost or doubled, an operation that is sent before its intent and all steps before it are durable, a step that goes on from an operation before the outcome is durable, an operation that is sent by a worker that had lost the run, or while its first send might still be under way, another result than without trouble, and a run that never ends. A run that is asked to be canceled must end as canceled, with no outcome unknown, and everything that happened and can be taken back taken back once; unless it has failed by then, or ends before it hears of it, without having begun another operation: then it ends as it would have.",
    ...samples.map(({ store, reports }) => sectionOf(store, reports)),
    "",
  ]
    .join("\n\n")
    .trimEnd() + "\n"
