/** The store, watched: what it has acknowledged is what must still be there at the end. */
import type { CheckpointStoreService, Commit, PlanNode, RunState } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type { Findings } from "./findings.js"

interface Accepted {
  readonly fence: number
  readonly text: string
  readonly steps: Commit["steps"]
  readonly status: string
  /** Whether a transaction step's own transaction brought it. */
  readonly inTransaction: boolean
}

/**
 * A commit without anything is how a worker asks what became of a COMMIT that was not answered: it takes that one's place
 * or, under the same fence, is told that the place is taken.
 */
const asks = ({ steps, effects, attempts, run }: Commit): boolean =>
  run.status === "running" && steps.length + effects.length + attempts.length === 0

/** Every commit of one run that the store has acknowledged, by its `seq`. */
export class CommitLog {
  readonly bySeq = new Map<number, Accepted>()
  /** Paths of the steps that are durable. */
  readonly steps = new Set<string>()
  /** Keys that an intent records. */
  readonly keys = new Set<string>()
  /** Whether it is durable that the run fails or is canceled. */
  fails = false

  constructor(private readonly findings: Findings) {}

  /** Commits of transactions of which nobody has heard how they ended: whoever waited for one may have been interrupted. */
  private readonly unheard = new Map<number, Commit>()

  /** A transaction is about to commit. */
  begins(commit: Commit): void {
    this.unheard.set(commit.seq, commit)
  }

  /** What is read in the store is durable, whether or not its writer has heard of it. */
  read({ run }: RunState): void {
    for (const [seq, commit] of this.unheard) {
      if (seq <= run.seq && !this.bySeq.has(seq)) this.accept(commit, true)
    }
  }

  accept(commit: Commit, inTransaction: boolean): void {
    const { base, lease, seq, run, steps, effects, attempts } = commit
    const text = JSON.stringify({ run, steps, effects, attempts })
    for (const { path } of steps) this.steps.add(path)
    for (const { idempotencyKey } of effects) this.keys.add(idempotencyKey)
    this.fails ||= run.failure !== null
    // What was accepted together stands under each of its numbers.
    for (let joined = base + 1; joined < seq; joined++) {
      this.bySeq.set(joined, {
        fence: lease.fence,
        text,
        steps: steps.filter((step) => step.seq === joined),
        status: "running",
        inTransaction,
      })
    }
    const known = this.bySeq.get(seq)
    if (known === undefined) {
      this.bySeq.set(seq, {
        fence: lease.fence,
        text,
        steps: steps.filter((step) => step.seq === seq),
        status: run.status,
        inTransaction,
      })
    } else if (known.inTransaction && known.fence === lease.fence && asks(commit)) {
      return
    } else if (known.fence !== lease.fence || known.text !== text) {
      // The same commit again is one whose acknowledgement was lost.
      this.findings.add("commit", `the store accepted two commits as number ${seq}`)
    }
  }

  /** Whether an owner has committed anything since so many commits: then it knows what came of what it sent before. */
  hasCommittedSince(fence: number, commits: number): boolean {
    return [...this.bySeq.values()].slice(commits).some((accepted) => accepted.fence === fence)
  }

  /** Steps are committed in the order of the plan, and all of them where the run has completed. */
  private checkOrder({ run, steps }: RunState, plan: ReadonlyArray<PlanNode>): void {
    let before = { path: "", seq: 0 }
    for (const { path } of plan) {
      const step = steps.find((stored) => stored.path === path)
      if (step === undefined) {
        if (run.status === "completed") this.findings.add("commit", `the run has completed without step '${path}'`)
        continue
      }
      if (step.seq <= before.seq) {
        this.findings.add("commit", `step '${path}' is number ${step.seq}, and '${before.path}' ${before.seq}`)
      }
      before = step
    }
  }

  /** Compares with what the store holds in the end. */
  check(state: RunState, plan: ReadonlyArray<PlanNode>): void {
    const { run, steps } = state
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
    this.checkOrder(state, plan)
  }
}

/** The same store; what it accepts is logged. */
export const watched = (store: CheckpointStoreService, log: CommitLog): CheckpointStoreService => {
  const { transact } = store
  return {
    ...store,
    load: (...args) => Effect.tap(store.load(...args), (state) => Effect.sync(() => log.read(state))),
    commit: (batch) =>
      Effect.tap(store.commit(batch), (results) =>
        Effect.sync(() => {
          batch.forEach((commit, index) => {
            if (Either.isRight(results[index]!)) log.accept(commit, false)
          })
        }),
      ),
    ...(transact && {
      transact: <A, E>(...[limits, body]: Parameters<typeof transact<A, E>>) =>
        Effect.map(
          transact(limits, (access) =>
            Effect.map(body(access), (end) => {
              log.begins(end.commit)
              return { commit: end.commit, value: end }
            }),
          ),
          ({ at, value: { commit, value } }) => {
            log.accept(commit, true)
            return { at, value }
          },
        ),
    }),
  }
}
