/**
 * Lets this process die at a chosen moment: when every run has got as far as a given step's answer, and none has
 * recorded it. `SIGKILL` cannot be caught: nothing is flushed, closed or released.
 */
export interface KillSwitch {
  /** A run has its answer. It is held here until the others have theirs, and then the process dies. */
  readonly answered: (step: string) => Promise<void>
}

/** How long the first run waits for the others: one of them may have failed, or be waiting for a person. */
const patienceMs = 1_000

export const makeKillSwitch = (killAfter: string | undefined, runs: number): KillSwitch => {
  let waiting = 0
  return {
    answered: (step) => {
      if (step !== killAfter) return Promise.resolve()
      waiting += 1
      const kill = () => process.kill(process.pid, "SIGKILL")
      if (waiting === runs) kill()
      else if (waiting === 1) setTimeout(kill, patienceMs)
      return new Promise(() => {})
    },
  }
}
