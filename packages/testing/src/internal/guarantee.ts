/** What each policy promises of an operation, as the explorer checks it. A new policy is one entry. */
import type { PlanOperation } from "@cairn/core"
import type { Schedule, Strike } from "./schedule.js"

type PolicyName = PlanOperation["onUnknown"]["policy"]

/**
 * The promise of one policy.
 *
 * *Shape.* `honoursKeys`: the simulated provider answers a known key with what it answered first. `mostEffects`: effects
 * that one key may have, as the provider counts them, under a schedule; `sideBySide` where several operations of a run may be
 * under way at once: what strikes one may find another between its effect and its record. `parks`: an unknown outcome may park the
 * run. `words`: the promise, for the report.
 *
 * @category models
 * @since 0.1.0
 */
export interface Guarantee {
  readonly honoursKeys: boolean
  readonly mostEffects: (schedule: Schedule, sideBySide?: boolean) => number
  readonly parks: boolean
  readonly words: string
}

/**
 * Where an effect may have happened and nobody has recorded it in time; a heartbeat may come at any time. Who wakes when
 * it is taken over from still records what it knows before anybody sends again (X6).
 */
const betweenEffectAndRecord = ({ point, trouble }: Strike): boolean =>
  (point === "afterEffect" && (trouble === "kill" || trouble === "stall")) ||
  point === "beforeBeat" ||
  trouble === "lostAnswer"

export const guarantees: Readonly<Record<PolicyName, Guarantee>> = {
  retryWithKey: {
    honoursKeys: true,
    mostEffects: () => 1,
    parks: false,
    words: "any number of sends, one key, one payload, one effect",
  },
  checkFirst: {
    honoursKeys: false,
    mostEffects: () => 1,
    parks: false,
    words: "sent again only after the provider said that it did not happen: one effect",
  },
  recordFirst: {
    honoursKeys: false,
    mostEffects: (schedule, sideBySide = false) =>
      1 + (sideBySide ? schedule : schedule.filter(betweenEffectAndRecord)).length,
    parks: false,
    words: "one effect, and one more for each trouble between the effect and its record",
  },
  review: {
    honoursKeys: false,
    mostEffects: () => 1,
    parks: true,
    words: "at most one effect; an unknown outcome waits for a person, whose answer is the outcome",
  },
}
