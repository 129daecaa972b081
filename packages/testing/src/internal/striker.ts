/** Strikes workers as a schedule says, and wakes those that it has stalled. */
import type { RunRecord } from "@cairn/core"
import * as Effect from "effect/Effect"
import type { Boundaries, MortalWorker } from "./mortalWorker.js"
import { Counter, type Boundary, type Schedule, type Strike } from "./schedule.js"
import { acknowledged } from "./trouble.js"

export class Striker implements Boundaries {
  private readonly counter = new Counter()
  /** Stalled workers, with the fence under which they stalled once it is known. */
  readonly stalled = new Map<MortalWorker, { readonly until: "takenOver" | "finished"; fence: number | null }>()
  /** What was reached since the last trouble. */
  trace: Array<Boundary> = []
  struck = 0

  constructor(
    private readonly schedule: Schedule,
    /** Looks at a run that has come so far. */
    private readonly look: (boundary: Pick<Boundary, "point" | "step">) => void,
    /** Asks that the run be canceled. */
    private readonly cancel: Effect.Effect<void>,
  ) {}

  reached(worker: MortalWorker, point: Boundary["point"], site: { readonly step: string; readonly attempt: number }) {
    this.look({ point, step: site.step })
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

  private atClaim({ trouble, point }: Strike): boolean {
    return trouble === "lostAck" && acknowledged[point] === "claim"
  }

  private strike(worker: MortalWorker, strike: Strike): Effect.Effect<void> {
    this.struckBy(worker, strike)
    return strike.trouble === "cancel" ? this.cancel : Effect.void
  }

  private struckBy(worker: MortalWorker, { trouble, point }: Strike): void {
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
        worker.losesAckOf = acknowledged[point] ?? null
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
