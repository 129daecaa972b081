/** Something happens to the fleet again and again for a while; then it is judged. */
import { Fleet, judge, type FleetOptions, type Verdict } from "./fleet.js"

export interface Storm {
  readonly name: string
  /** Called once every `everyMs`. */
  readonly strike: (fleet: Fleet) => void | Promise<void>
  readonly everyMs: number
  readonly forMs: number
}

/** Long after the last strike everything must be done: leases, timeouts and probation take their time. */
const settleMs = 120_000

export const weather = async (
  options: FleetOptions,
  storm: Storm,
): Promise<Verdict & { readonly complaints: string }> => {
  const fleet = new Fleet(options)
  try {
    await fleet.startRuns()
    fleet.start()
    const end = Date.now() + storm.forMs
    while (Date.now() < end) {
      await new Promise((resolve) => setTimeout(resolve, storm.everyMs))
      await storm.strike(fleet)
    }
    const states = await fleet.settled(settleMs)
    return { ...judge(states, fleet.sent()), complaints: fleet.complaints.join("") }
  } finally {
    await fleet.end()
  }
}

export const kills = (forMs: number): Storm => ({
  name: "SIGKILL of a random worker every second",
  strike: (fleet) => fleet.killOne(),
  everyMs: 1_000,
  forMs,
})

/** Stopped for longer than a lease: the others take over, and it wakes up among them. */
export const stalls = (forMs: number, leaseMs: number): Storm => ({
  name: "SIGSTOP of a random worker past its lease, then SIGCONT",
  strike: (fleet) => fleet.stallOne(leaseMs * 1.5),
  everyMs: 1_000,
  forMs,
})
