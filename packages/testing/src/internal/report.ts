/** What an exploration found, counted and printed. */
import { faultPoints } from "@cairn/core"
import type { Check } from "./findings.js"
import { guarantees } from "./guarantee.js"
import { showSchedule, type Point, type Schedule, type Strike } from "./schedule.js"
import { templateOf } from "./paths.js"
import { nodeAt, otherRows, policyOf, type Durability, type Subject } from "./subject.js"
import { textTable } from "./table.js"
import type { Trial } from "./trial.js"

/**
 * One row: a policy and a crash point.
 *
 * *Shape.* `policy`: that of the operation, or `transaction`, `no operation`, or `worker` for claims and heartbeats.
 * `schedules`: how many struck there. `mostRequests`: most requests under one key that reached the provider.
 * `mostEffects`: most effects of one step.
 *
 * @category reports
 * @since 0.1.0
 */
export interface ReportRow {
  readonly policy: string
  readonly point: Point
  readonly schedules: number
  readonly mostRequests: number
  readonly mostEffects: number
  readonly parked: number
  readonly breaches: number
}

/**
 * One kind of breach, with the shortest schedule that shows it.
 *
 * @category reports
 * @since 0.1.0
 */
export interface Breach {
  readonly check: Check
  readonly problem: string
  readonly schedule: Schedule
  readonly shown: string
  /** Schedules that showed it. */
  readonly count: number
}

/**
 * What an exploration found.
 *
 * *Shape.* Everything but `timing` follows from the workflow, the options and the seed. `notReached`: schedules of which
 * a later trouble found nothing to strike. `table` is plain text.
 *
 * @category reports
 * @since 0.1.0
 */
export interface Report {
  readonly workflow: string
  readonly store: string
  readonly durability: Durability
  readonly seed: number
  readonly schedules: number
  /** By number of troubles: the first is the run without any. */
  readonly byDepth: ReadonlyArray<number>
  /** Schedules that could be made of what was reached; fewer were run where `maxSchedules` says so. */
  readonly possible: number
  readonly notReached: number
  readonly parked: number
  readonly rows: ReadonlyArray<ReportRow>
  readonly breaches: ReadonlyArray<Breach>
  readonly table: string
  readonly timing: { readonly elapsedMs: number; readonly schedulesPerMinute: number }
}

/** The points of a row, in their order. */
export const points: ReadonlyArray<Point> = [...faultPoints, "storeCall"]

/** The row of the report that a strike belongs to. */
export const rowOf = (subject: Subject, { point, step }: Pick<Strike, "point" | "step">): string =>
  point === "storeCall" ? "worker" : policyOf(subject, step)

/** Trials are counted as they come, so that thousands need not be kept. */
export class Tally {
  private readonly rows = new Map<string, { -readonly [K in keyof ReportRow]: ReportRow[K] }>()
  readonly firsts = new Map<Check, { readonly trial: Trial; count: number }>()
  schedules = 0
  notReached = 0
  parked = 0
  readonly byDepth: Array<number> = []

  constructor(private readonly subject: Subject) {}

  add(trial: Trial): void {
    const { schedule, findings, complete, parked } = trial
    this.schedules++
    this.byDepth[schedule.length] = (this.byDepth[schedule.length] ?? 0) + 1
    if (!complete) this.notReached++
    if (parked > 0) this.parked++
    for (const check of new Set(findings.map((finding) => finding.check))) {
      const known = this.firsts.get(check)
      if (known === undefined) this.firsts.set(check, { trial, count: 1 })
      else known.count++
    }
    const struck = new Map(schedule.map((strike) => [`${rowOf(this.subject, strike)}|${strike.point}`, strike]))
    for (const [key, strike] of struck) this.count(key, trial, strike)
  }

  private count(key: string, trial: Trial, { point, step }: Strike): void {
    const policy = rowOf(this.subject, { point, step })
    const none = { schedules: 0, mostRequests: 0, mostEffects: 0, parked: 0, breaches: 0 }
    const row = this.rows.get(key) ?? { policy, point, ...none }
    const path = nodeAt(this.subject, step)?.path
    const effects = trial.steps.filter((of) => policy === "worker" || templateOf(of.path) === path)
    row.schedules++
    row.mostRequests = Math.max(row.mostRequests, ...effects.map(({ requests }) => requests))
    row.mostEffects = Math.max(row.mostEffects, ...effects.map((of) => of.effects))
    if (trial.parked > 0) row.parked++
    if (trial.findings.length > 0) row.breaches++
    this.rows.set(key, row)
  }

  sortedRows(): ReadonlyArray<ReportRow> {
    const policies = [...Object.keys(guarantees), ...otherRows]
    const rank = ({ policy, point }: ReportRow): number => policies.indexOf(policy) * 100 + points.indexOf(point)
    return [...this.rows.values()].sort((a, b) => rank(a) - rank(b))
  }
}

const head = [
  "step declares",
  "crash point",
  "schedules",
  "most requests a key",
  "most effects a step",
  "parked",
  "breaches",
]

const shownBreach = ({ check, problem, shown, count }: Breach): string =>
  `breach of '${check}', in ${count} ${count === 1 ? "schedule" : "schedules"}: ${problem}\n  shortest schedule: ${shown}`

const rowsTable = (rows: ReadonlyArray<ReportRow>): string =>
  textTable(
    head,
    rows.map((row) => [
      ...[row.policy, row.point, row.schedules, row.mostRequests, row.mostEffects, row.parked, row.breaches],
    ]),
  )

export const reportOf = (options: {
  readonly subject: Subject
  readonly store: string
  readonly seed: number
  readonly tally: Tally
  readonly possible: number
  /** The shortest trial of each kind of breach. */
  readonly shortest: ReadonlyMap<Check, Trial>
  readonly elapsedMs: number
}): Report => {
  const { subject, store, seed, tally, possible, shortest, elapsedMs } = options
  const breaches = [...tally.firsts].map(([check, { trial, count }]): Breach => {
    const { schedule, findings } = shortest.get(check) ?? trial
    const problem = findings.find((finding) => finding.check === check)!.problem
    return { check, problem, schedule, shown: showSchedule(schedule), count }
  })
  const rows = tally.sortedRows()
  const workflow = subject.workflow.name
  const title = `Workflow '${workflow}' on the store '${store}': ${tally.schedules} schedules, ${breaches.length} kinds of breach (durability ${subject.durability}, seed ${seed}).`
  return {
    ...{
      workflow,
      store,
      durability: subject.durability,
      seed,
      schedules: tally.schedules,
      byDepth: tally.byDepth,
      possible,
    },
    ...{ notReached: tally.notReached, parked: tally.parked, rows, breaches },
    table: [title, rowsTable(rows), ...breaches.map(shownBreach)].join("\n\n"),
    timing: { elapsedMs, schedulesPerMinute: Math.round((tally.schedules / Math.max(1, elapsedMs)) * 60_000) },
  }
}
