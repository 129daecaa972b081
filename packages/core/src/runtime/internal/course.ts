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
      later.set(path, session.nowMs + turn.delayMs)
      return null
    case "Held":
      held.set(path, turn.parked)
      return null
    default:
      return turn ?? null
  }
}

/** Forgets what had to wait and is due. */
export const dropDue = ({ later, session }: Course): void => {
  if (later.size === 0) return
  const now = session.nowMs
  for (const [path, at] of later) if (at <= now) later.delete(path)
}

/** Milliseconds until the first of what has to wait is due, or until `inMs`; null where nothing has a time. */
export const soonestMs = ({ later, session }: Course, inMs: number | null): number | null => {
  if (later.size === 0) return inMs
  const now = session.nowMs
  let soonest = inMs ?? Number.POSITIVE_INFINITY
  for (const at of later.values()) soonest = Math.min(soonest, Math.max(0, Math.ceil(at - now)))
  return soonest
}
