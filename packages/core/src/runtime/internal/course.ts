/** A run in the hands of its loop: what the parts of the loop share. */
import type { EffectRecord, ParkRecord } from "../../model/Records.js"
import type { Crew } from "./crew.js"
import type { LoopEnd, Turn } from "./leave.js"
import type { RunSession } from "./session.js"

/** What a cancel has cut off under this very lease: when, by the store's clock, and which intents stood then. */
export interface CutOff {
  readonly at: number
  effects: ReadonlySet<EffectRecord>
}

export interface Course {
  readonly session: RunSession
  readonly crew: Crew
  readonly cutOff: CutOff | null
  /** When what has to wait is due, by this process's clock. */
  readonly later: Map<string, number>
  /** What waits for a person, while the rest goes on. */
  readonly held: Map<string, ParkRecord>
  /** Everything that an earlier owner may have left was read. */
  isSettled: boolean
}

/** What a piece of work came to; the run's end, or null where it goes on. */
export const noted = ({ held, later, session }: Course, path: string, turn: Turn): LoopEnd | null => {
  switch (turn?._tag) {
    case "Later":
      later.set(path, session.clock.unsafeCurrentTimeMillis() + turn.delayMs)
      return null
    case "Held":
      held.set(path, turn.parked)
      return null
    default:
      return turn ?? null
  }
}
