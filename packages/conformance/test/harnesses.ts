/** The memory driver behind harnesses of two kinds: one on a test clock, one that offers every feature there is. */
import type { Harness, OpenStore } from "@cairn/conformance"
import { MemoryDriver, StoreError, type CheckpointDriver } from "@cairn/core"
import { Clock, Effect, TestClock, TestContext } from "effect"

export type Mutation = (driver: CheckpointDriver) => CheckpointDriver

/** On a clock that stands still until a case moves it. */
export const onTestClock = (mutate: Mutation): Harness => ({
  open: Effect.map(MemoryDriver.make(), (driver) => ({ driver: mutate(driver) })),
  features: [],
  elapse: (ms) => TestClock.adjust(ms),
  environment: TestContext.TestContext,
})

/** Every method of a driver, as one kind of function, so that a wrapper can stand around all of them. */
export const aroundAll = (
  driver: CheckpointDriver,
  around: <A>(call: Effect.Effect<A, StoreError>) => Effect.Effect<A, StoreError>,
): CheckpointDriver => ({
  capabilities: driver.capabilities,
  now: around(driver.now),
  createRun: (run) => around(driver.createRun(run)),
  findRun: (namespace, runId) => around(driver.findRun(namespace, runId)),
  load: (namespace, runId) => around(driver.load(namespace, runId)),
  loadOpen: (namespace, runId, paths) => around(driver.loadOpen(namespace, runId, paths)),
  claim: (request) => around(driver.claim(request)),
  commit: (batch) => around(driver.commit(batch)),
  recordOutcome: (outcome) => around(driver.recordOutcome(outcome)),
  findEffect: (key) => around(driver.findEffect(key)),
  beat: (workerId, leaseMs) => around(driver.beat(workerId, leaseMs)),
  releaseWorker: (workerId) => around(driver.releaseWorker(workerId)),
  unpark: (namespace, runId) => around(driver.unpark(namespace, runId)),
})

const broken = (problem: string) => new StoreError({ reason: "Corrupt", operation: "read", problem })

type Writes = Pick<CheckpointDriver, "commit" | "claim" | "releaseWorker">

/** As if a call were `begin`, one write and `commit`: a death after the third loses the acknowledgement only. */
export const lostAfter = <A>(
  armed: number | null,
  call: Effect.Effect<A, StoreError>,
): Effect.Effect<A, StoreError> => {
  const lost = Effect.fail(new StoreError({ reason: "Unavailable", operation: "write", problem: "connection lost" }))
  if (armed === null || armed > 3) return call
  return armed < 3 ? lost : Effect.zipRight(call, lost)
}

/** What the harness that offers everything does to a store; a mutant replaces one of them. */
export interface Hooks {
  readonly clocked: (driver: CheckpointDriver, real: Clock.Clock) => CheckpointDriver
  readonly dying: (driver: CheckpointDriver, armed: () => number | null) => Writes
  readonly onUnsafe: (driver: CheckpointDriver) => Pick<CheckpointDriver, "findRun" | "load">
  readonly onUnreadable: (driver: CheckpointDriver) => CheckpointDriver
}

/** As a database would: its own clock, three statements a commit, and errors for what cannot be read. */
export const faithful: Hooks = {
  clocked: (driver, real) => aroundAll(driver, (call) => Effect.withClock(call, real)),
  dying: (driver, armed) => ({
    commit: (batch) => Effect.suspend(() => lostAfter(armed(), driver.commit(batch))),
    claim: (request) => Effect.suspend(() => lostAfter(armed(), driver.claim(request))),
    releaseWorker: (workerId) => Effect.suspend(() => lostAfter(armed(), driver.releaseWorker(workerId))),
  }),
  onUnsafe: () => ({
    findRun: () => Effect.fail(broken("a number is too large")),
    load: () => Effect.fail(broken("a number is too large")),
  }),
  onUnreadable: (driver) => aroundAll(driver, () => Effect.fail(broken("no such table"))),
}

const openWithEverything = (hooks: Hooks): Effect.Effect<OpenStore> =>
  Effect.gen(function* () {
    const plain = hooks.clocked(yield* MemoryDriver.make(), yield* Effect.clock)
    let current: CheckpointDriver = plain
    let armed: number | null = null
    const takeArmed = () => {
      const statements = armed
      armed = null
      return statements
    }
    const writes = hooks.dying(plain, takeArmed)
    const driver: CheckpointDriver = {
      ...plain,
      ...writes,
      findRun: (namespace, runId) => Effect.suspend(() => current.findRun(namespace, runId)),
      load: (namespace, runId) => Effect.suspend(() => current.load(namespace, runId)),
      loadOpen: (namespace, runId, paths) => Effect.suspend(() => current.loadOpen(namespace, runId, paths)),
      findEffect: (key) => Effect.suspend(() => current.findEffect(key)),
      createRun: (run) => Effect.suspend(() => current.createRun(run)),
      commit: (batch) => Effect.suspend(() => (current === plain ? writes.commit(batch) : current.commit(batch))),
    }
    return {
      driver,
      second: plain,
      failAfter: (statements) => Effect.sync(() => (armed = statements)),
      plantUnsafeInteger: () => Effect.sync(() => (current = { ...plain, ...hooks.onUnsafe(plain) })),
      makeUnreadable: Effect.sync(() => (current = hooks.onUnreadable(plain))),
    }
  })

/** On the real clock, over two connections, with every fault hook. */
export const withEverything = (hooks: Hooks): Harness => ({
  open: openWithEverything(hooks),
  features: ["second", "ownClock", "failAfter", "unsafeInteger", "unreadable"],
})
