/**
 * Lets this process die at a chosen moment: when every run has come so far. `SIGKILL` cannot be caught: nothing is
 * flushed, closed or released.
 */
import type { Moment } from "./workerProtocol.js"

export interface KillSwitch {
  /** A run has come so far. It is held here until the others have too, and then the process dies. */
  readonly reached: (moment: Moment) => Promise<void>
}

/** How long the first run waits for the others, which may share two cores with much else: one of them may have failed. */
const patienceMs = 10_000

export const makeKillSwitch = (dieAt: Moment | null, runs: number): KillSwitch => {
  let waiting = 0
  return {
    reached: (moment) => {
      if (moment !== dieAt) return Promise.resolve()
      waiting += 1
      const kill = () => process.kill(process.pid, "SIGKILL")
      if (waiting === runs) kill()
      else if (waiting === 1) setTimeout(kill, patienceMs)
      return new Promise(() => {})
    },
  }
}
