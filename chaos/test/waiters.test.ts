/** Many that wait beside those that work, over a pool of five (field case P071; `src/figures.ts` has the figures of 2,000). */
import { describe, expect, it } from "vitest"
import { measureWaiters } from "../src/waiters.js"
import { usePlaces } from "./internal/places.js"

const places = usePlaces()

describe("hundreds of clients that wait for sleeping runs", () => {
  it("take one connection at a time from fifty runs that work, at most 200 times a second", async () => {
    const waiters = 300
    const active = 50
    const { url } = places.database()
    const { without, withWaiters } = await measureWaiters({ url, schema: "waiters", waiters, active, rounds: 1 })
    const [alone, among] = [without[0]!, withWaiters[0]!]
    // The same work was done.
    expect([alone.ended, among.ended]).toEqual([active, active])
    expect(alone.commitMs.length).toBe(active * 8)
    expect(among.commitMs.length).toBe(active * 8)
    // The four other connections of the pool are never theirs.
    expect(among.mostLookUpsAtOnce).toBe(1)
    // 200 a second, those who were in line when the round began, and what the fifty ask for themselves.
    const own = alone.lookUpMs.length
    expect(among.lookUpMs.length).toBeLessThanOrEqual((among.wallMs / 1_000) * 200 + waiters + own)
  }, 240_000)
})
