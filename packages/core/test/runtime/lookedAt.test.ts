import { inspect } from "node:util"
import { describe, expect, it } from "vitest"
import { joinedMembers, readAt } from "../../src/runtime/internal/lookedAt.js"

const counting = (value: string) => {
  const counted = { looks: 0, read: () => (counted.looks++, value) }
  return counted
}

describe("a member that is computed when it is looked at", () => {
  it("is there by its name, for who looks, copies, takes it apart or inherits it", () => {
    const input = counting("in")
    const context = readAt({ fence: 1 }, { input: input.read })
    expect(Object.keys(context)).toEqual(["fence", "input"])
    expect("input" in context && Object.hasOwn(context, "input")).toBe(true)
    expect(input.looks).toBe(0)
    expect({ ...context }).toEqual({ fence: 1, input: "in" })
    expect(Object.create(context)).toHaveProperty("input", "in")
    expect(input.looks).toBe(2)
  })

  it("stands beside those of another object, which are not looked at; of two of one name the second one's is there", () => {
    const [input, state] = [counting("in"), counting("s")]
    const extras = readAt({ turn: 3 }, { state: state.read, value: () => 1 })
    const context = joinedMembers(readAt({ emit: "e" }, { input: input.read }), extras)
    const inner = joinedMembers(context, readAt({ turn: 4 }, { value: () => 2 }))
    expect([input.looks, state.looks]).toEqual([0, 0])
    expect({ ...context }).toEqual({ emit: "e", input: "in", turn: 3, state: "s", value: 1 })
    expect({ ...inner }).toEqual({ emit: "e", input: "in", turn: 4, state: "s", value: 2 })
    expect({ ...extras }).toEqual({ turn: 3, state: "s", value: 1 })
  })

  it("may have any name", () => {
    const results = readAt({}, Object.fromEntries([["__proto__", () => "p"]]))
    expect(Object.getOwnPropertyNames(results)).toEqual(["__proto__"])
    expect(Object.getOwnPropertyDescriptor(results, "__proto__")?.get?.call(results)).toBe("p")
  })

  it("cannot be set, and others can be added", () => {
    const context = readAt({ emit: 1 } as Record<string, unknown>, { input: () => "in" })
    expect(() => ((context as Record<string, unknown>)["input"] = "other")).toThrow(TypeError)
    Object.defineProperty(context, "window", { enumerable: true, get: () => "w" })
    expect({ ...context }).toEqual({ emit: 1, window: "w", input: "in" })
  })

  it("is shown to who prints the object, as is why it cannot be read", () => {
    const refused = (): never => {
      throw new TypeError("of other code")
    }
    const printed = inspect(readAt({ turn: 3 }, { input: () => "in", state: refused }))
    expect(printed).toContain("turn: 3")
    expect(printed).toContain("input: 'in'")
    expect(printed).toContain("of other code")
  })
})
