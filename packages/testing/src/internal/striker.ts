/** Strikes workers as a schedule says, and wakes those that it has stalled. */
import type { RunRecord } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Boundaries, MortalWorker } from "./mortalWorker.js"
import type { Steered } from "./steering.js"
import { Counter, type Boundary, type Schedule, type Strike } from "./schedule.js"
import { lostAt } from "./trouble.js"
import type { FaultPoint, FaultSite } from "@cairn/core"

/** Store calls at which no fault point stands, and that only runs with more than steps make. */
const struckCalls: ReadonlySet<string> = new Set(["loadSteps", "loadWaits", "loadSignals", "expireWait"])

/** What a trial looks at while its workers are at work. */
export interface Eyes {
  /** A run has come so far. */
  readonly reached: (boundary: Pick<Boundary, "point" | "step"> & { readonly runId: string }) => void
  /** A worker is about to call the store. */
  readonly calls: (worker: MortalWorker, name: string, args: ReadonlyArray<unknown>) => void
  /** A worker computes what steers. */
  readonly steered: (worker: MortalWorker, of: Steered) => void
  /** What a step does outside, by its name or path. */
  readonly policyOf: (step: string) => string
}

export class Striker implements Boundaries {
  private readonly counter = new Counter()
  /** Stalled workers, with the fence under which they stalled once it is known. */
  readonly stalled = new Map<MortalWorker, { readonly until: "takenOver" | "finished"; fence: number | null }>()
  /** What was reached since the last trouble. */
  trace: Array<Boundary> = []
  struck = 0

  constructor(
    private readonly schedule: Schedule,
    private readonly eyes: Eyes,
    /** Asks that the run be canceled. */
    private readonly cancel: Effect.Effect<void>,
  ) {}

  reached(worker: MortalWorker, point: FaultPoint, site: FaultSite): Effect.Effect<void> {
    this.eyes.reached({ point, step: site.step, runId: site.runId })
    return this.come(worker, point, site)
  }

  calls(worker: MortalWorker, name: string, args: ReadonlyArray<unknown>): Effect.Effect<void> {
    this.eyes.calls(worker, name, args)
    return struckCalls.has(name) ? this.come(worker, "storeCall", { step: name, attempt: 0 }) : Effect.void
  }

  steered(worker: MortalWorker, of: Steered): void {
    this.eyes.steered(worker, of)
  }

  private lost({ point, step }: Pick<Boundary, "point" | "step">) {
    return lostAt(point, step, point === "storeCall" ? "worker" : this.eyes.policyOf(step))
  }

  private come(worker: MortalWorker, point: Boundary["point"], site: Pick<FaultSite, "attempt" | "step">) {
    const nth = this.counter.next(point, site.step)
    const strike = this.schedule[this.struck]
    const hit = strike?.point === point && strike.step === site.step && strike.nth === nth
    if (hit && !this.atClaim(strike)) return this.strike(worker, strike)
    this.trace.push({ point, step: site.step, attempt: site.attempt, nth })
    return Effect.void
  }

  claimed(worker: MortalWorker) {
    const nth = this.counter.next("claim", "")
    // At once, not at the next look: the old owner and the new one are then under way together.
    for (const [stalled, { until }] of this.stalled) {
      if (until === "takenOver" && stalled !== worker) this.wake(stalled)
    }
    const strike = this.schedule[this.struck]
    if (strike !== undefined && this.atClaim(strike) && strike.nth === nth) this.struckBy(worker, strike)
  }

  private atClaim(strike: Strike): boolean {
    return strike.trouble === "lostAck" && this.lost(strike) === "claim"
  }

  private strike(worker: MortalWorker, strike: Strike): Effect.Effect<void> {
    this.struckBy(worker, strike)
    return strike.trouble === "cancel" ? this.cancel : Effect.void
  }

  private struckBy(worker: MortalWorker, strike: Strike): void {
    const { trouble } = strike
    this.struck++
    this.counter.clear()
    this.trace = []
    switch (trouble) {
      case "kill":
        return worker.stop("killed")
      case "stall":
      case "loseLease":
        this.stalled.set(worker, { until: trouble === "stall" ? "finished" : "takenOver", fence: null })
        return worker.stop("stalled")
      case "lostAck":
        worker.losesAckOf = this.lost(strike)
        return
      case "lostAnswer":
      case "lostRequest":
        worker.losesOperation = trouble
    }
  }

  /** Wakes who has been taken over from, or everybody once the others have done what they can. */
  wakeUp(run: RunRecord, ended: boolean): void {
    for (const [worker, stall] of this.stalled) {
      stall.fence ??= run.fence
      if (!ended && (stall.until === "finished" || run.fence <= stall.fence)) continue
      this.wake(worker)
    }
  }

  private wake(worker: MortalWorker): void {
    this.stalled.delete(worker)
    worker.wake()
  }
}
