/** The store, watched: what it has acknowledged is what must still be there at the end. */
import type { CheckpointStoreService, Commit, RunState } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Findings } from "./findings.js"

interface Accepted {
  readonly fence: number
  readonly text: string
  readonly steps: Commit["steps"]
  readonly status: string
}

/** Every commit of one run that the store has acknowledged, by its `seq`. */
export class CommitLog {
  readonly bySeq = new Map<number, Accepted>()

  constructor(private readonly findings: Findings) {}

  accept(commit: Commit): void {
    const { lease, seq, run, steps, effects, attempts } = commit
    const text = JSON.stringify({ run, steps, effects, attempts })
    const known = this.bySeq.get(seq)
    if (known === undefined) {
      this.bySeq.set(seq, { fence: lease.fence, text, steps, status: run.status })
    } else if (known.fence !== lease.fence || known.text !== text) {
      // The same commit again is one whose acknowledgement was lost.
      this.findings.add("commit", `the store accepted two commits as number ${seq}`)
    }
  }

  /** Whether an owner has committed anything since so many commits: then it knows what came of what it sent before. */
  hasCommittedSince(fence: number, commits: number): boolean {
    return [...this.bySeq.values()].slice(commits).some((accepted) => accepted.fence === fence)
  }

  /** Compares with what the store holds in the end. */
  check({ run, steps }: RunState): void {
    for (let seq = 1; seq <= run.seq; seq++) {
      if (!this.bySeq.has(seq)) this.findings.add("commit", `no commit was accepted as number ${seq} of ${run.seq}`)
    }
    const paths = new Set<string>()
    let before = 0
    for (const { path, seq } of steps) {
      if (paths.has(path)) this.findings.add("commit", `step '${path}' is committed twice`)
      paths.add(path)
      if (seq < before) this.findings.add("commit", `step '${path}' stands before one that was committed earlier`)
      before = seq
    }
    for (const [seq, accepted] of this.bySeq) {
      if (seq > run.seq)
        this.findings.add("commit", `commit number ${seq} was accepted, and the run stands at ${run.seq}`)
      for (const step of accepted.steps) {
        const stored = steps.find(({ path }) => path === step.path)
        if (stored === undefined) this.findings.add("commit", `the committed step '${step.path}' is lost`)
        else if (stored.seq !== seq || stored.result !== step.result) {
          this.findings.add("commit", `the committed step '${step.path}' was overwritten`)
        }
      }
    }
  }
}

/** The same store; what it accepts is logged. */
export const watched = (store: CheckpointStoreService, log: CommitLog): CheckpointStoreService => ({
  ...store,
  commit: (commit) => Effect.tap(store.commit(commit), () => Effect.sync(() => log.accept(commit))),
})
