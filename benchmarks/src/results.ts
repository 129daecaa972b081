import { median } from "./statistics.js"

export const workloadNames = ["w10", "fan", "operations", "cold", "resume", "bytes", "w1000"] as const
export type WorkloadName = (typeof workloadNames)[number]

export interface Made {
  readonly engine: string
  readonly subject: string
  /** `resume` comes once for each number of committed steps. */
  readonly workload: string
  readonly figures: Readonly<Record<string, number>>
  readonly settings: Readonly<Record<string, string>>
  /** Why there are no figures. */
  readonly problem: string | null
}

export interface Sample extends Made {
  readonly round: number
}

export interface Results {
  readonly date: string
  readonly minutes: number
  readonly rounds: number
  readonly quick: boolean
  /** Said at the head of the report: what was unusual about this run. */
  readonly remark?: string
  readonly tree: { readonly commit: string; readonly changed: boolean }
  readonly machine: Readonly<Record<string, string>>
  /** Load averages of a minute, before and after; and how many cores there are to bear it. */
  readonly load: ReadonlyArray<number>
  readonly cores: number
  readonly postgres: Readonly<Record<string, string>>
  readonly versions: Readonly<Record<string, string>>
  readonly subjects: ReadonlyArray<{
    readonly name: string
    readonly engine: string
    readonly class: string
    readonly mode: string
    readonly note: string | null
  }>
  readonly rates: Readonly<Record<string, number>>
  readonly samples: ReadonlyArray<Sample>
}

/** Of each figure, the median over the rounds. */
export const medians = (rounds: ReadonlyArray<Readonly<Record<string, number>>>): Record<string, number> =>
  Object.fromEntries(Object.keys(rounds[0] ?? {}).map((name) => [name, median(rounds.map((round) => round[name]!))]))

/** Results with those of a later, smaller run in the place of its workloads and subjects. */
export const joined = (earlier: Results, later: Results): Results => {
  const made = new Set(later.samples.map(({ subject, workload }) => `${workload} of ${subject}`))
  const kept = earlier.samples.filter(({ subject, workload }) => !made.has(`${workload} of ${subject}`))
  const names = new Set(later.subjects.map(({ name }) => name))
  return {
    ...earlier,
    minutes: earlier.minutes + later.minutes,
    load: [...earlier.load, ...later.load],
    versions: { ...earlier.versions, ...later.versions },
    subjects: [...earlier.subjects.filter(({ name }) => !names.has(name)), ...later.subjects],
    samples: [...kept, ...later.samples],
  }
}
