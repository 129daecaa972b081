/** Workers that are killed as soon as they work, in each mode of durability, until there were so many kills. */
import { rmSync } from "node:fs"
import path from "node:path"
import { Fleet, judge, type FleetOptions, type Verdict } from "./fleet.js"
import { readTrace } from "./trace.js"

/** A mode of durability. */
export interface Mode {
  readonly name: string
  readonly durability: "barrier" | "step"
  readonly log: "written" | "synced" | null
}

export const modes: ReadonlyArray<Mode> = [
  { name: "barrier", durability: "barrier", log: null },
  { name: "step", durability: "step", log: null },
  { name: "barrier, log written", durability: "barrier", log: "written" },
  { name: "barrier, log synced", durability: "barrier", log: "synced" },
]

export interface KillStorm {
  readonly mode: Mode
  readonly store: string
  readonly folder: string
  readonly workers: number
  /** Runs that are begun together. */
  readonly runs: number
  readonly kills: number
}

export interface StormFigures {
  readonly rounds: number
  readonly kills: number
  readonly completed: number
  readonly takeovers: number
  readonly sent: number
  readonly resent: number
  readonly accepted: number
  /** Accepted steps that were run again. */
  readonly repeated: number
  /** Whatever should not be: empty, if all is well. */
  readonly wrong: ReadonlyArray<string>
}

/** Without a log leases are waited out. With one a worker that comes after brings in what is left, and nobody is before it. */
const leaseMs = ({ log }: Mode): number => (log === null ? 1_000 : 30_000)

/** In this time a worker has begun some steps, and accepted a few of them. */
const lifeMs = [50, 600] as const

/** More than this in one round, and runs that have got nowhere are tried one after the other for minutes. */
const killsInRound = 25

const settleMs = 180_000

/** One round: runs are begun, and workers killed for as long as any of them is not done, or until `most` were. */
const round = async (options: FleetOptions, most: number) => {
  const fleet = new Fleet(options)
  let kills = 0
  let done = false
  try {
    await fleet.startRuns()
    fleet.start()
    const settled = fleet.settled(settleMs).finally(() => (done = true))
    while (!done && kills < most) {
      await new Promise((resolve) => setTimeout(resolve, lifeMs[0] + Math.random() * (lifeMs[1] - lifeMs[0])))
      if (!done && fleet.killWorking()) kills++
    }
    const states = await settled
    return { kills, complaints: fleet.complaints.join(""), verdict: judge(states, fleet.sent()) }
  } finally {
    await fleet.end()
  }
}

const wrongs = (verdict: Verdict): ReadonlyArray<string> =>
  (["others", "wrongSteps", "gaps", "wrongOutputs", "wrongKeys", "wrongPayloads"] as const).flatMap((what) =>
    verdict[what].map((which) => `${what}: ${which}`),
  )

/** Rounds, until there were enough kills. */
export const killStorm = async ({ folder, kills, mode, runs, store, workers }: KillStorm): Promise<StormFigures> => {
  const local = mode.log === null ? {} : { local: { directory: path.join(folder, "local"), log: mode.log } }
  const base = { store, workers, runs, flushMs: 200, leaseMs: leaseMs(mode), durability: mode.durability, ...local }
  const sum = { rounds: 0, kills: 0, completed: 0, takeovers: 0, sent: 0, resent: 0, accepted: 0, repeated: 0 }
  const wrong: Array<string> = []
  while (sum.kills < kills && wrong.length === 0) {
    const log = path.join(folder, `${sum.rounds}.jsonl`)
    const trace = path.join(folder, `${sum.rounds}.trace`)
    const {
      complaints,
      kills: killed,
      verdict,
    } = await round({ ...base, first: sum.rounds * runs, log, trace }, Math.min(killsInRound, kills - sum.kills))
    const { accepted, repeated } = readTrace(trace)
    wrong.push(...wrongs(verdict))
    if (complaints !== "") wrong.push(`workers said: ${complaints.slice(0, 2_000)}`)
    // What is durable is not run again, and neither is what stands in a log.
    if (mode.durability === "step" || mode.log !== null) wrong.push(...repeated.map((step) => `run again: ${step}`))
    sum.rounds += 1
    sum.kills += killed
    sum.completed += verdict.completed
    sum.takeovers += verdict.takeovers
    sum.sent += verdict.sent
    sum.resent += verdict.resent
    sum.accepted += accepted
    sum.repeated += repeated.length
    rmSync(trace, { force: true })
  }
  return { ...sum, wrong }
}
