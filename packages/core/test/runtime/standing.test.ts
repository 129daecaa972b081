/** What of a run has begun, laid against a plan: what has no place in it, or would be done in another order, is named. */
import { describe, expect, it } from "@effect/vitest"
import { Either } from "effect"
import * as fc from "fast-check"
import type { StepRecord } from "../../src/index.js"
import { effectOf, type Plan } from "../../src/model/Plan.js"
import { prefixOf, scopeOf } from "../../src/runtime/internal/paths.js"
import { nodeAt } from "../../src/runtime/internal/planIndex.js"
import { begun, committed, Standing, type Fact } from "../../src/runtime/internal/standing.js"
import { around, both, branch, each, loop, parallel, perform, same, step, type Flow } from "./support/deploys.js"

const planOf = (inner: Flow): Plan => Either.getOrThrow(around(inner).plan)

const record = (path: string, effect: string, seq: number, result = "1"): StepRecord => ({
  ...{ path, scope: scopeOf(prefixOf(path)), seq, result, effect },
  ...{ idempotencyKey: null, attempts: 1, durationMs: 0, committedAt: 0 },
})

/** Facts of paths as a plan has them, committed in that order. */
const done = (plan: Plan, ...paths: ReadonlyArray<string>): ReadonlyArray<Fact> =>
  paths.map((path, index) => committed(record(path, effectOf(nodeAt(plan, path)!), index + 1)))

const misfitOf = (plan: Plan, facts: ReadonlyArray<Fact>) => {
  const standing = new Standing(plan)
  for (const fact of facts) standing.add(fact)
  return standing.check()?.step ?? null
}

describe("what a run has", () => {
  it("fits the plan that it was made under, wherever it stands", () => {
    const body = both(step("s"), perform("pay"))
    const plan = planOf(
      both(both(loop("l", body), each("e", body)), parallel("p", { x: branch("r", body), y: perform("q") })),
    )
    const facts = [
      ...done(plan, "a"),
      committed(record("l[0]", "turn", 2)),
      committed(record("l[0]/s", "none", 3)),
      committed(record("l[0]/pay", "external:op", 4)),
      committed(record("l", "loop", 5)),
      committed(record("e[]", "items", 6)),
      committed(record("e[k2]/s", "none", 7)),
      committed(record("e[k1]/s", "none", 8)),
      committed(record("e[k2]/pay", "external:op", 9)),
      committed(record("e[k2]", "item", 10)),
      committed(record("e[k1]", "item:failed", 11)),
      committed(record("e", "forEach", 12)),
      committed(record("p:x/r", "branch", 13, '{"case":"x"}')),
      committed(record("p:x/r:x/s", "none", 14)),
    ]
    for (let n = 0; n <= facts.length; n++) expect(misfitOf(plan, facts.slice(0, n))).toBeNull()
    expect(misfitOf(plan, [...facts, begun("p:x/r:x/pay", null), begun("p:y/q", null)])).toBeNull()
    expect(misfitOf(plan, [...facts, begun("z", null)])).toBe("z")
  })

  it("does not fit where what it stands in has not come to it", () => {
    const inCase = planOf(branch("r", step("s")))
    const chosen = committed(record("r", "branch", 2, '{"case":"x"}'))
    const inside = committed(record("r:x/s", "none", 3))
    expect(misfitOf(inCase, [...done(inCase, "a"), chosen, inside])).toBeNull()
    expect(misfitOf(inCase, [...done(inCase, "a"), inside])).toBe("r:x/s")
    const other = committed(record("r", "branch", 2, '{"case":"gone"}'))
    expect(misfitOf(inCase, [...done(inCase, "a"), other])).toBe("r")
    const inTurn = planOf(loop("l"))
    expect(misfitOf(inTurn, [...done(inTurn, "a"), begun("l[0]/pay", null)])).toBe("l[0]/pay")
    const inItem = planOf(each("e"))
    expect(misfitOf(inItem, [...done(inItem, "a"), begun("e[k]/pay", null)])).toBe("e[k]/pay")
  })

  it("keeps no order in what is over, and has a place there all the same", () => {
    const [body, more] = [both(step("s"), step("t")), both(step("n"), both(step("s"), step("t")))]
    const turns = [
      committed(record("l[0]", "turn", 2)),
      committed(record("l[0]/s", "none", 3)),
      committed(record("l[0]/t", "none", 4)),
      committed(record("l[1]", "turn", 5)),
    ]
    for (const plan of [planOf(loop("l", body)), planOf(loop("l", more))]) {
      expect(misfitOf(plan, [...done(plan, "a"), ...turns])).toBeNull()
    }
    const plan = planOf(loop("l", more))
    expect(misfitOf(plan, [...done(plan, "a"), ...turns, committed(record("l[1]/s", "none", 6))])).toBe("l[1]/s")
    const without = planOf(loop("l", both(step("n"), step("t"))))
    expect(misfitOf(without, [...done(without, "a"), ...turns])).toBe("l[0]/s")
  })
})

const names = fc.uniqueArray(fc.stringMatching(/^[b-y]{1,3}$/), { minLength: 1, maxLength: 6 })
const stepsOf = (names: ReadonlyArray<string>): Flow => names.reduce<Flow>((flow, name) => both(flow, step(name)), same)

describe("for any steps, of which any number are committed", () => {
  it("appending is fine; removing, renaming, inserting before, swapping or changing the effect of a committed one is not", () => {
    fc.assert(
      fc.property(names, fc.nat(), fc.nat(), (names, some, at) => {
        const count = 1 + (some % names.length)
        const index = at % count
        const recorded = done(planOf(stepsOf(names)), "a", ...names.slice(0, count))
        const of = (changed: ReadonlyArray<string>) => misfitOf(planOf(stepsOf(changed)), recorded)
        expect(of([...names, "new"])).toBeNull()
        expect(of(names.slice(0, count))).toBeNull()
        expect(of([...names.slice(0, index), ...names.slice(index + 1)])).toBe(names[index])
        expect(of(names.with(index, "new"))).toBe(names[index])
        expect(of([...names.slice(0, index), "new", ...names.slice(index)])).toBe(names[index])
        if (index > 0)
          expect(of(names.with(index, names[index - 1]!).with(index - 1, names[index]!))).toBe(names[index - 1])
        const performed = names.reduce<Flow>(
          (flow, name, n) => both(flow, n === index ? perform(name) : step(name)),
          same,
        )
        expect(misfitOf(planOf(performed), recorded)).toBe(names[index])
      }),
      { numRuns: 40 },
    )
  })
})
