import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { makeGate } from "../src/internal/gate.js"

/** A gate that is held, and a way to note who comes in. */
const heldGate = Effect.gen(function* () {
  const gate = makeGate()
  const order: Array<string> = []
  const free = yield* Deferred.make<void>()
  const holder = yield* Effect.fork(gate.hold(Deferred.await(free)))
  yield* Effect.yieldNow()
  const enter = (name: string, urgent = false) =>
    Effect.tap(
      Effect.fork(
        gate.hold(
          Effect.sync(() => order.push(name)),
          urgent,
        ),
      ),
      () => Effect.yieldNow(),
    )
  const open = Effect.zipRight(Deferred.succeed(free, undefined), Fiber.join(holder))
  return { gate, order, enter, open }
})

describe("a gate", () => {
  it.effect("is handed on in order of arrival, urgent ones first", () =>
    Effect.gen(function* () {
      const { enter, open, order } = yield* heldGate
      const fibers = [yield* enter("a"), yield* enter("b"), yield* enter("c", true), yield* enter("d", true)]
      expect(order).toEqual([])
      yield* open
      yield* Fiber.joinAll(fibers)
      expect(order).toEqual(["c", "d", "a", "b"])
    }),
  )

  it.effect("is shared between fibers that take it again and again", () =>
    Effect.gen(function* () {
      const gate = makeGate()
      const order: Array<string> = []
      const loop = (name: string) =>
        Effect.repeatN(
          gate.hold(
            Effect.zipRight(
              Effect.yieldNow(),
              Effect.sync(() => order.push(name)),
            ),
          ),
          9,
        )
      yield* Effect.all([loop("a"), loop("b"), loop("c")], { concurrency: "unbounded" })
      expect(order.slice(0, 9).join("")).toBe("abcabcabc")
      expect(order).toHaveLength(30)
    }),
  )

  it.effect("is not lost with a waiter that is interrupted while it waits", () =>
    Effect.gen(function* () {
      const { enter, gate, open, order } = yield* heldGate
      const waiting = yield* enter("gone")
      const last = yield* enter("last")
      yield* Fiber.interrupt(waiting)
      yield* open
      yield* Fiber.join(last)
      expect(order).toEqual(["last"])
      expect(yield* gate.hold(Effect.succeed("free"))).toBe("free")
    }),
  )

  it.effect.each(["before", "after"] as const)(
    "is not lost with a waiter that is interrupted in the same turn %s it is handed over",
    (when) =>
      Effect.gen(function* () {
        const gate = makeGate()
        const free = yield* Deferred.make<void>()
        const order: Array<string> = []
        let called: Fiber.RuntimeFiber<number> | undefined
        const stop = Effect.suspend(() => Fiber.interruptFork(called!))
        // No operation of another fiber comes between the two: both messages reach the waiter at once.
        const holder = yield* Effect.fork(
          when === "before"
            ? gate.hold(Effect.zipRight(Deferred.await(free), stop))
            : Effect.zipRight(gate.hold(Deferred.await(free)), stop),
        )
        yield* Effect.yieldNow()
        called = yield* Effect.fork(gate.hold(Effect.sync(() => order.push("called"))))
        yield* Effect.yieldNow()
        const last = yield* Effect.fork(gate.hold(Effect.sync(() => order.push("last"))))
        yield* Effect.yieldNow()
        yield* Deferred.succeed(free, undefined)
        yield* Fiber.join(holder)
        yield* Fiber.join(last)
        // Whether the waiter still came in is the runtime's affair; whoever waits behind it must.
        expect(order.at(-1)).toBe("last")
        expect(yield* gate.hold(Effect.succeed("free"))).toBe("free")
      }),
  )

  it.effect("is given on by a holder that fails, dies or is interrupted", () =>
    Effect.gen(function* () {
      const gate = makeGate()
      yield* Effect.exit(gate.hold(Effect.fail("failed")))
      yield* Effect.exit(gate.hold(Effect.die("died")))
      const holder = yield* Effect.fork(gate.hold(Effect.never))
      yield* Effect.yieldNow()
      yield* Fiber.interrupt(holder)
      expect(yield* gate.hold(Effect.succeed("free"))).toBe("free")
    }),
  )
})
