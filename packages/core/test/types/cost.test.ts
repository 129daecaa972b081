/** What long workflows cost the type checker. The counts are TypeScript's own, so they are the same on every machine. */
import { describe, expect, it } from "vitest"
import { chainFile, controlFile, fragmentFile, nestedFile, smallFile, type ChainKind } from "./chains.js"
import { declarationOf, errorsIn, programOf } from "./typescript.js"

interface Cost {
  readonly errors: ReadonlyArray<string>
  readonly instantiations: number
  readonly checkMs: number
}

const costOf = (files: Readonly<Record<string, string>>): Cost => {
  const program = programOf(files)
  const began = performance.now()
  const errors = errorsIn(program, Object.keys(files))
  return { errors, instantiations: program.getInstantiationCount(), checkMs: Math.round(performance.now() - began) }
}

// The budgets that were promised are 200,000 for 100 steps and 650,000 for 200. These are tighter, so that a change
// that eats up the reserve is seen.
const budgets: ReadonlyArray<readonly [ChainKind, steps: number, instantiations: number]> = [
  ["mixed", 50, 85_000],
  ["mixed", 100, 175_000],
  ["mixed", 200, 420_000],
  ["struct", 50, 95_000],
  ["struct", 100, 190_000],
  ["struct", 200, 450_000],
  ["text", 50, 45_000],
  ["text", 100, 85_000],
  ["text", 200, 185_000],
]

describe("type cost", () => {
  it.each(budgets)(
    "a %s chain of %i steps takes at most %i instantiations and keeps exact results",
    (kind, steps, limit) => {
      const cost = costOf({ "chain.ts": chainFile(kind, steps) })
      console.log(`${kind} ${steps}: ${cost.instantiations} instantiations, ${cost.checkMs} ms`)
      expect(cost.errors).toEqual([])
      expect(cost.instantiations).toBeGreaterThan(0)
      expect(cost.instantiations).toBeLessThan(limit)
    },
  )

  it.each([
    [20, 110_000],
    [100, 600_000],
  ])("a chain of %i nodes of every kind takes at most %i instantiations and keeps exact results", (length, limit) => {
    const cost = costOf({ "chain.ts": controlFile(length) })
    console.log(`controls ${length}: ${cost.instantiations} instantiations, ${cost.checkMs} ms`)
    expect(cost.errors).toEqual([])
    expect(cost.instantiations).toBeGreaterThan(0)
    expect(cost.instantiations).toBeLessThan(limit)
  })

  it.each([
    [1, 60_000],
    [3, 85_000],
    [5, 110_000],
    [8, 165_000],
  ])("bodies %i deep take at most %i instantiations", (depth, limit) => {
    const cost = costOf({ "nested.ts": nestedFile(depth) })
    console.log(`nested ${depth}: ${cost.instantiations} instantiations, ${cost.checkMs} ms`)
    expect(cost.errors).toEqual([])
    expect(cost.instantiations).toBeGreaterThan(0)
    expect(cost.instantiations).toBeLessThan(limit)
  })

  it("the declaration of an exported fragment grows by what its bodies add, not by what stands around them", () => {
    const lengths = [2, 4, 6, 8].map((depth) => declarationOf(fragmentFile(depth)).length)
    console.log(`declarations of depth 2, 4, 6, 8: ${lengths.join(", ")} characters`)
    expect(lengths[0]).toBeGreaterThan(300)
    expect(lengths[3]! - lengths[2]!).toBeLessThan(1.5 * (lengths[1]! - lengths[0]!))
    expect(lengths[3]).toBeLessThan(4_000)
  })

  it("a mistake at the bottom of bodies is one error, there, and costs no more than twice the right program", () => {
    const right = nestedFile(5)
    const wrong = right.replace("a: results.l4s1.a", "a: results.l4s9.a")
    const cost = costOf({ "nested.ts": wrong })
    expect(cost.errors).toEqual([expect.stringContaining("Property 'l4s9' does not exist")])
    expect(cost.instantiations).toBeLessThan(2 * costOf({ "nested.ts": right }).instantiations)
    const taken = costOf({ "nested.ts": right.replace(`.step("l5s2"`, `.step("l0s1"`) })
    expect(taken.errors.filter((error) => error.includes("CRN104: step name 'l0s1' is already taken"))).toHaveLength(1)
    expect(taken.errors).toHaveLength(1)
  })

  it("a wrong result type in a long chain is found, so the exactness above means something", () => {
    const wrong = chainFile("mixed", 50).replace("readonly s17: ", "readonly s17: string | ")
    expect(costOf({ "chain.ts": wrong }).errors).toEqual(["TS2322: Type 'true' is not assignable to type 'false'."])
  })

  it("a mistake in the last of 100 steps costs no more than twice the right program", () => {
    const right = chainFile("mixed", 100)
    const wrong = right.replace(`.step("last"`, `.step("s1"`)
    const cost = costOf({ "chain.ts": wrong })
    expect(cost.errors.filter((error) => error.includes("CRN104: step name 's1' is already taken"))).toHaveLength(1)
    expect(cost.instantiations).toBeLessThan(2 * costOf({ "chain.ts": right }).instantiations)
  })

  it("200 files with a small workflow each cost little and grow by the file", () => {
    const files = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`file${i}.ts`, smallFile(i)]))
    const cost = costOf(files)
    const usedMb = Math.round(process.memoryUsage().heapUsed / 1e6)
    console.log(`200 files: ${cost.instantiations} instantiations, ${cost.checkMs} ms, ${usedMb} MB of heap`)
    expect(cost.errors).toEqual([])
    expect(cost.instantiations / 200).toBeLessThan(8_000)
  })
})
