import { describe, expect, it } from "vitest"
import { addLookedAt, addMembersOf } from "../../src/runtime/internal/lookedAt.js"

const counting = (value: string) => {
  const counted = { looks: 0, read: () => (counted.looks++, value) }
  return counted
}

describe("a member that is computed when it is looked at", () => {
  it("is there by its name, for who looks, copies, takes it apart or inherits it", () => {
    const input = counting("in")
    const context = addLookedAt({ fence: 1 }, { input: input.read })
    expect(Object.keys(context)).toEqual(["fence", "input"])
    expect(input.looks).toBe(0)
    expect({ ...context }).toEqual({ fence: 1, input: "in" })
    expect(Object.create(context)).toHaveProperty("input", "in")
    expect(input.looks).toBe(2)
  })

  it("is added beside those that were added before, and beside those of another object, which are not looked at", () => {
    const [input, state] = [counting("in"), counting("s")]
    const extras = addLookedAt({ turn: 3 }, { state: state.read })
    const context = addMembersOf(addLookedAt(addLookedAt({}, { input: input.read }), { signal: () => "g" }), extras)
    expect([input.looks, state.looks]).toEqual([0, 0])
    expect({ ...context }).toEqual({ input: "in", signal: "g", turn: 3, state: "s" })
    expect({ ...extras }).toEqual({ turn: 3, state: "s" })
  })

  it("may have any name", () => {
    const results = addLookedAt({}, Object.fromEntries([["__proto__", () => "p"]]))
    expect(Object.getOwnPropertyNames(results)).toEqual(["__proto__"])
    expect(Object.getOwnPropertyDescriptor(results, "__proto__")?.get?.call(results)).toBe("p")
  })

  it("has one getter for all objects: one of its own would keep what it holds on to in the old generation", () => {
    const getterOf = (of: object) => Object.getOwnPropertyDescriptor(of, "input")?.get
    const [a, b] = [addLookedAt({}, { input: () => 1 }), addLookedAt({}, { input: () => 2 })]
    expect(getterOf(a)).toBeTypeOf("function")
    expect(getterOf(a)).toBe(getterOf(b))
    expect([a, b]).toEqual([{ input: 1 }, { input: 2 }])
  })
})
