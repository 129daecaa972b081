/** What the store has acknowledged of one run, held against the laws as it comes: it must still be there at the end. */
import type { Commit, RunState, StepRecord, WaitRecord } from "@cairn/core"
import type { Findings } from "./findings.js"
import { instanceOf, isStep, scopesOf, templateOf } from "./paths.js"
import type { Part } from "./subject.js"
import { Walk } from "./walk.js"

interface Accepted {
  readonly fence: number
  readonly text: string
  readonly steps: Commit["steps"]
  readonly status: string
  /** Whether a transaction step's own transaction brought it. */
  readonly inTransaction: boolean
}

/** What a run begins to wait for, as its commit says it. */
export type OpenedWait = Commit["waits"][number]

/**
 * A commit without anything is how a worker asks what became of a COMMIT that was not answered: it takes that one's place
 * or, under the same fence, is told that the place is taken.
 */
const asks = ({ attempts, closes, effects, run, steps, waits }: Commit): boolean =>
  run.status === "running" && steps.length + effects.length + attempts.length + waits.length + closes.length === 0

/** Every commit of one run that the store has acknowledged, by its `seq`. */
export class CommitLog {
  readonly bySeq = new Map<number, Accepted>()
  /** The steps that are durable, by their paths. */
  readonly steps = new Map<string, Commit["steps"][number]>()
  /** Keys that an intent records. */
  readonly keys = new Set<string>()
  /** Paths of which intents are known. */
  readonly paths = new Set<string>()
  /** What the run waits for. */
  readonly waits = new Map<string, OpenedWait>()
  /** Which step has taken a signal. */
  readonly consumed = new Map<string, string>()
  /** Whether it is durable that the run fails or is canceled. */
  fails = false
  /** The highest fence under which the run was claimed. */
  fence = 0
  private readonly failures = new Map<string, number>()
  /** Items of which something is known, and which have ended, by their list. */
  private readonly begun = new Map<string, Set<string>>()
  private readonly ended = new Map<string, Set<string>>()

  constructor(
    readonly part: Part,
    private readonly findings: Findings,
    private readonly onWait: (wait: OpenedWait) => void = () => {},
  ) {
    this.hasLists = part.nodes.some(({ kind }) => kind === "forEach")
  }

  private readonly hasLists: boolean

  /** Commits of transactions of which nobody has heard how they ended: whoever waited for one may have been interrupted. */
  private readonly unheard = new Map<number, Commit>()

  /** A transaction is about to commit. */
  begins(commit: Commit): void {
    this.unheard.set(commit.seq, commit)
  }

  /** What is read in the store is durable, whether or not its writer has heard of it. */
  read({ run }: Pick<RunState, "run">): void {
    for (const [seq, commit] of this.unheard) {
      if (seq <= run.seq && !this.bySeq.has(seq)) this.accept(commit, true)
    }
  }

  accept(commit: Commit, inTransaction: boolean): void {
    const { attempts, base, closes, consumes, effects, lease, run, seq, steps, waits } = commit
    const text = JSON.stringify({ run, steps, effects, attempts, consumes, waits, closes })
    const known = this.bySeq.get(seq)
    if (known === undefined) this.take(commit)
    this.fails ||= run.failure !== null
    // What was accepted together stands under each of its numbers.
    for (let joined = base + 1; joined < seq; joined++) {
      const own = steps.filter((step) => step.seq === joined)
      this.bySeq.set(joined, { fence: lease.fence, text, steps: own, status: "running", inTransaction })
    }
    if (known === undefined) {
      const own = steps.filter((step) => step.seq === seq)
      this.bySeq.set(seq, { fence: lease.fence, text, steps: own, status: run.status, inTransaction })
    } else if (known.inTransaction && known.fence === lease.fence && asks(commit)) {
      return
    } else if (known.fence !== lease.fence || known.text !== text) {
      // The same commit again is one whose acknowledgement was lost.
      this.findings.add("commit", `the store accepted two commits as number ${seq}`)
    }
  }

  private take({ attempts, closes, consumes, effects, steps, waits }: Commit): void {
    for (const step of steps) {
      const { path } = step
      if (this.steps.has(path)) this.findings.add("commit", `step '${path}' is committed twice`)
      this.steps.set(path, step)
      if (step.effect.startsWith("item") && step.scope.endsWith("[")) this.countItem(this.ended, path)
    }
    for (const { idempotencyKey, path } of effects) {
      this.keys.add(idempotencyKey)
      this.paths.add(path)
    }
    for (const { path, signalId } of consumes) {
      const taken = this.consumed.get(signalId)
      if (taken !== undefined)
        this.findings.add("signal", `signal '${signalId}' was taken by '${taken}' and by '${path}'`)
      this.consumed.set(signalId, path)
    }
    for (const path of closes) this.waits.delete(path)
    for (const wait of waits) {
      this.waits.set(wait.path, wait)
      this.onWait(wait)
    }
    for (const { kind, path } of attempts) if (kind === "failed" || kind === "refused") this.countFailure(path)
    if (this.hasLists) this.checkWindows([...steps, ...effects, ...attempts, ...waits].map(({ path }) => path))
  }

  /** A step is tried as often as it says, whoever tries it: what an earlier owner has tried counts. */
  private countFailure(path: string): void {
    const failures = (this.failures.get(path) ?? 0) + 1
    this.failures.set(path, failures)
    const node = this.part.byPath.get(templateOf(path))
    if (node === undefined || !isStep(node) || failures <= node.retry.times + 1) return
    this.findings.add(
      "attempts",
      `step '${path}' has failed ${failures} times, and is tried again ${node.retry.times} times at most`,
    )
  }

  private countItem(into: Map<string, Set<string>>, scope: string): void {
    const { container, of } = instanceOf(scope)!
    into.set(container, (into.get(container) ?? new Set()).add(of))
  }

  /** At most so many items of a list are under way at once as it says. */
  private checkWindows(paths: ReadonlyArray<string>): void {
    for (const scope of paths.flatMap(scopesOf)) {
      const { container } = instanceOf(scope)!
      const node = this.part.byPath.get(templateOf(container))
      if (node?.kind !== "forEach") continue
      this.countItem(this.begun, scope)
      const ended = this.ended.get(container)
      const underWay = [...this.begun.get(container)!].filter((of) => ended?.has(of) !== true)
      if (underWay.length > node.concurrency) {
        this.findings.add(
          "window",
          `${underWay.length} items of '${container}' were under way, at most ${node.concurrency} may be`,
        )
      }
    }
  }

  /** Whether an owner has committed anything since so many commits: then it knows what came of what it sent before. */
  hasCommittedSince(fence: number, commits: number): boolean {
    return [...this.bySeq.values()].slice(commits).some((accepted) => accepted.fence === fence)
  }

  /** How far the run has come by what is durable. */
  walk(): Walk {
    return new Walk(this.part.plan, this.steps)
  }

  /** What is committed stands in the order of the plan, and all of it where the run has completed. */
  private checkOrder({ run }: RunState, steps: ReadonlyArray<StepRecord>): void {
    const walk = new Walk(this.part.plan, new Map(steps.map((step) => [step.path, step])))
    for (const problem of walk.problems) this.findings.add("commit", problem)
    if (run.status !== "completed" || walk.done || walk.mayEnd) return
    const [open] = walk.open
    this.findings.add("commit", `the run has completed without step '${open ?? "?"}'`)
  }

  /** Compares with what the store holds in the end: `steps` are those of all scopes. */
  check(state: RunState, steps: ReadonlyArray<StepRecord>, waits: ReadonlyArray<WaitRecord>): void {
    const { run } = state
    for (let seq = 1; seq <= run.seq; seq++) {
      if (!this.bySeq.has(seq)) this.findings.add("commit", `no commit was accepted as number ${seq} of ${run.seq}`)
    }
    const stored = new Map<string, StepRecord>()
    let before = 0
    for (const step of steps) {
      const { path, seq } = step
      if (stored.has(path)) this.findings.add("commit", `step '${path}' is committed twice`)
      stored.set(path, step)
      if (seq < before) this.findings.add("commit", `step '${path}' stands before one that was committed earlier`)
      before = seq
    }
    for (const [seq, accepted] of this.bySeq) {
      if (seq > run.seq)
        this.findings.add("commit", `commit number ${seq} was accepted, and the run stands at ${run.seq}`)
      for (const step of accepted.steps) {
        const found = stored.get(step.path)
        if (found === undefined) this.findings.add("commit", `the committed step '${step.path}' is lost`)
        else if (found.seq !== seq || found.result !== step.result || found.effect !== step.effect) {
          this.findings.add("commit", `the committed step '${step.path}' was overwritten`)
        }
      }
    }
    if (run.status === "completed" && waits.length > 0) {
      this.findings.add("commit", `the run has completed and still waits at '${waits[0]!.path}'`)
    }
    this.checkOrder(state, steps)
  }

  /** Every scope in which something was committed. */
  get scopes(): ReadonlyArray<string> {
    return [...new Set(["", ...[...this.steps.values()].map(({ scope }) => scope)])]
  }
}
