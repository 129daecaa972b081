/** Explores the subjects on one store after the other and writes what came of it as a page. */
import { PostgresStore } from "@cairn/postgres"
import { SqliteStore } from "@cairn/sqlite"
import type { CheckpointStore, StoreError } from "@cairn/core"
import { Redacted, type Layer } from "effect"
import { exploreAsync, guarantees, rowsTable, type Report, type ReportRow } from "../src/index.js"
import { input, subjects } from "./subjects.js"

export interface Sample {
  readonly store: string
  /** Schedules of each workflow. */
  readonly each: number
  readonly layer?: Layer.Layer<CheckpointStore, StoreError>
}

export const memorySample = (each: number): Sample => ({ store: "memory", each })
export const sqliteSample = (each: number, filename: string): Sample => ({
  ...{ store: "SQLite", each, layer: SqliteStore.layer({ filename, synchronous: "normal" }) },
})
export const postgresSample = (each: number, url: string): Sample => ({
  ...{ store: "Postgres", each, layer: PostgresStore.layer({ url: Redacted.make(url) }) },
})

/** Explores every subject on one store. */
export const runSample = async (sample: Sample, seed: number): Promise<ReadonlyArray<Report>> => {
  const reports: Array<Report> = []
  for (const workflow of subjects()) {
    const store = sample.layer === undefined ? {} : { store: sample.layer }
    reports.push(await exploreAsync(workflow, { input, seed, maxSchedules: sample.each, ...store }))
  }
  return reports
}

/** Rows of all reports under one policy and point. */
const merged = (reports: ReadonlyArray<Report>): ReadonlyArray<ReportRow> => {
  const rows = new Map<string, ReportRow>()
  for (const row of reports.flatMap((report) => report.rows)) {
    const key = `${row.policy}|${row.point}`
    const known = rows.get(key)
    rows.set(key, {
      ...row,
      schedules: row.schedules + (known?.schedules ?? 0),
      mostRequests: Math.max(row.mostRequests, known?.mostRequests ?? 0),
      mostEffects: Math.max(row.mostEffects, known?.mostEffects ?? 0),
      parked: row.parked + (known?.parked ?? 0),
      breaches: row.breaches + (known?.breaches ?? 0),
    })
  }
  const order = [...Object.keys(guarantees), "transaction", "no operation", "worker"]
  return [...rows.values()].toSorted((a, b) => order.indexOf(a.policy) - order.indexOf(b.policy))
}

const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((a, b) => a + b, 0)

const sectionOf = (store: string, reports: ReadonlyArray<Report>): string => {
  const schedules = sum(reports.map((report) => report.schedules))
  const broken = reports.flatMap(({ workflow, breaches }) => breaches.map((breach) => ({ workflow, ...breach })))
  return [
    `## ${store}: ${schedules} schedules, ${broken.length} breaches`,
    rowsTable(merged(reports)),
    ...broken.map(({ workflow, problem, shown }) => `- ${workflow}: ${problem}. Shortest schedule: ${shown}.`),
  ].join("\n\n")
}

const promises = Object.entries(guarantees).map(([policy, { words }]) => `- \`${policy}\`: ${words}.`)

/** The whole page. */
export const page = (
  seed: number,
  samples: ReadonlyArray<{ readonly store: string; readonly reports: ReadonlyArray<Report> }>,
): string =>
  [
    "# What a crash can do",
    "This page is written by `packages/testing/scripts/table.ts`: the crash-point explorer runs five workflows (one for each policy, and one that takes back what it did), strikes their workers at every boundary, and counts what the providers saw. To strike is to kill a worker, to stall it until another has taken over or has finished, to lose the store's acknowledgement, an operation's answer, or its request. Two troubles in one run are the rule; the second may strike the recovery from the first.",
    `Seed ${seed}. The first run is without trouble; every single trouble is run, then a seeded sample of pairs. "Most requests a key" and "most effects a step" are maxima over all schedules that struck there, whatever else befell them.`,
    "What is promised:",
    promises.join("\n"),
    "A breach would also be a committed step that is lost or doubled, an operation that is sent before its intent is durable, by a worker that had lost the run, or while its first send might still be under way, another result than without trouble, and a run that never ends.",
    ...samples.map(({ store, reports }) => sectionOf(store, reports)),
    "",
  ]
    .join("\n\n")
    .trimEnd() + "\n"
