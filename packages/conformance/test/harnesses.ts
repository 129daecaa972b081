/** The memory driver behind harnesses of two kinds: one on a test clock, one that offers every feature there is. */
import type { Harness, OpenStore } from "@cairn/conformance"
import { MemoryDriver, StoreError, type CheckpointDriver, type RunRow } from "@cairn/core"
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
  storeId: around(driver.storeId),
  now: around(driver.now),
  createRun: (run) => around(driver.createRun(run)),
  createChild: (child, parent) => around(driver.createChild(child, parent)),
  createRuns: (runs) => around(driver.createRuns(runs)),
  findRun: (namespace, runId) => around(driver.findRun(namespace, runId)),
  findRuns: (keys) => around(driver.findRuns(keys)),
  load: (namespace, runId) => around(driver.load(namespace, runId)),
  loadOpen: (namespace, runId, paths) => around(driver.loadOpen(namespace, runId, paths)),
  loadSteps: (query) => around(driver.loadSteps(query)),
  loadHistory: (query) => around(driver.loadHistory(query)),
  loadWaits: (namespace, runId) => around(driver.loadWaits(namespace, runId)),
  decideWait: (decision) => around(driver.decideWait(decision)),
  expireWait: (lease, path) => around(driver.expireWait(lease, path)),
  claim: (request) => around(driver.claim(request)),
  commit: (batch) => around(driver.commit(batch)),
  recordOutcome: (outcome) => around(driver.recordOutcome(outcome)),
  findEffect: (key) => around(driver.findEffect(key)),
  beat: (workerId, leaseMs) => around(driver.beat(workerId, leaseMs)),
  loadReached: (workerId) => around(driver.loadReached(workerId)),
  leaseHasEnded: (workerId) => around(driver.leaseHasEnded(workerId)),
  releaseWorker: (workerId) => around(driver.releaseWorker(workerId)),
  unpark: (namespace, runId) => around(driver.unpark(namespace, runId)),
  answer: (given) => around(driver.answer(given)),
  listParked: (page) => around(driver.listParked(page)),
  send: (signal) => around(driver.send(signal)),
  loadSignals: (namespace, runId, names) => around(driver.loadSignals(namespace, runId, names)),
  requestCancel: (namespace, runId, reason) => around(driver.requestCancel(namespace, runId, reason)),
  listRuns: (page) => around(driver.listRuns(page)),
  listReviews: (page) => around(driver.listReviews(page)),
  setPaused: (namespace, runId, paused) => around(driver.setPaused(namespace, runId, paused)),
  reopenRun: (reopen) => around(driver.reopenRun(reopen)),
  forkRun: (fork) => around(driver.forkRun(fork)),
  rewindRun: (rewind) => around(driver.rewindRun(rewind)),
  loadPerformed: (namespace, runId) => around(driver.loadPerformed(namespace, runId)),
  putSchedule: (schedule) => around(driver.putSchedule(schedule)),
  removeSchedule: (namespace, scheduleId) => around(driver.removeSchedule(namespace, scheduleId)),
  listSchedules: (page) => around(driver.listSchedules(page)),
  nextSchedules: (asked) => around(driver.nextSchedules(asked)),
  fireSchedule: (fire) => around(driver.fireSchedule(fire)),
  forgetOutputs: (old) => around(driver.forgetOutputs(old)),
  beginCall: (call) => around(driver.beginCall(call)),
  endCall: (call) => around(driver.endCall(call)),
  findSpend: (namespace, counters) => around(driver.findSpend(namespace, counters)),
  listCalls: (page) => around(driver.listCalls(page)),
  sumCalls: (query) => around(driver.sumCalls(query)),
  ...(driver.onReached === undefined ? {} : { onReached: driver.onReached }),
  ...(driver.onWakeUp === undefined ? {} : { onWakeUp: driver.onWakeUp }),
})

const broken = (problem: string) => new StoreError({ reason: "Corrupt", operation: "read", problem })

type Writes = Pick<
  CheckpointDriver,
  | "commit"
  | "claim"
  | "releaseWorker"
  | "answer"
  | "send"
  | "requestCancel"
  | "decideWait"
  | "reopenRun"
  | "forkRun"
  | "rewindRun"
  | "fireSchedule"
  | "beginCall"
  | "endCall"
>

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
    answer: (given) => Effect.suspend(() => lostAfter(armed(), driver.answer(given))),
    send: (signal) => Effect.suspend(() => lostAfter(armed(), driver.send(signal))),
    requestCancel: (namespace, runId, reason) =>
      Effect.suspend(() => lostAfter(armed(), driver.requestCancel(namespace, runId, reason))),
    decideWait: (decision) => Effect.suspend(() => lostAfter(armed(), driver.decideWait(decision))),
    reopenRun: (reopen) => Effect.suspend(() => lostAfter(armed(), driver.reopenRun(reopen))),
    forkRun: (fork) => Effect.suspend(() => lostAfter(armed(), driver.forkRun(fork))),
    rewindRun: (rewind) => Effect.suspend(() => lostAfter(armed(), driver.rewindRun(rewind))),
    fireSchedule: (fire) => Effect.suspend(() => lostAfter(armed(), driver.fireSchedule(fire))),
    beginCall: (call) => Effect.suspend(() => lostAfter(armed(), driver.beginCall(call))),
    endCall: (call) => Effect.suspend(() => lostAfter(armed(), driver.endCall(call))),
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
      loadSteps: (query) => Effect.suspend(() => current.loadSteps(query)),
      loadWaits: (namespace, runId) => Effect.suspend(() => current.loadWaits(namespace, runId)),
      loadSignals: (namespace, runId, names) => Effect.suspend(() => current.loadSignals(namespace, runId, names)),
      send: (signal) => Effect.suspend(() => (current === plain ? writes.send(signal) : current.send(signal))),
      decideWait: (decision) =>
        Effect.suspend(() => (current === plain ? writes.decideWait(decision) : current.decideWait(decision))),
      expireWait: (lease, path) => Effect.suspend(() => current.expireWait(lease, path)),
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

/** What may make a run claimable. */
export type Act =
  | "createRun"
  | "createChild"
  | "unpark"
  | "releaseWorker"
  | "answer"
  | "send"
  | "requestCancel"
  | "decideWait"
  | "commit"
  | "setPaused"
  | "reopenRun"
  | "forkRun"
  | "fireSchedule"

/** How a driver tells of what became claimable; a mutant replaces one of them. */
export interface Calls {
  /** Stands around a call that may make a run claimable. `made` says whether its result did. */
  readonly telling: <A>(
    call: Effect.Effect<A, StoreError>,
    made: (result: A) => boolean,
    tell: Effect.Effect<void>,
    act: Act,
  ) => Effect.Effect<A, StoreError>
  /** Stands around a call that may reach a run which a worker holds. `owner` says who that is, by its result. */
  readonly reaching: <A>(
    call: Effect.Effect<A, StoreError>,
    owner: (result: A) => string | null,
    tell: (workerId: string) => Effect.Effect<void>,
    act: Act,
  ) => Effect.Effect<A, StoreError>
  /** What a call tells that dies before it was done. */
  readonly dead: (tell: Effect.Effect<void>) => Effect.Effect<void>
}

export const toldInTime: Calls = {
  telling: (call, made, tell) => Effect.tap(call, (result) => (made(result) ? tell : Effect.void)),
  reaching: (call, owner, tell) =>
    Effect.tap(call, (result) => {
      const workerId = owner(result)
      return workerId === null ? Effect.void : tell(workerId)
    }),
  dead: () => Effect.void,
}

/** Two connections to one memory that hear each other, on a test clock. A call may die, before or after it was done. */
export const withWakeUps = ({ dead, reaching, telling }: Calls): Harness => ({
  open: Effect.map(MemoryDriver.make(), (memory) => {
    const listeners: Array<() => void> = []
    const tell = Effect.sync(() => {
      for (const listener of listeners) listener()
    })
    const owners: Array<(workerId: string) => void> = []
    const tellOwner = (workerId: string) =>
      Effect.sync(() => {
        for (const owner of owners) owner(workerId)
      })
    let armed: number | null = null
    const dying = <A>(call: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError> =>
      Effect.suspend(() => {
        const statements = armed
        armed = null
        const died = statements !== null && statements < 3
        return Effect.tapError(lostAfter(statements, call), () => (died ? dead(tell) : Effect.void))
      })
    const isRunning = (workerId: string) =>
      Effect.map(memory.beat(workerId, 60_000), ({ leases }) => leases).pipe(
        Effect.flatMap((leases) => Effect.forEach(leases, (lease) => memory.findRun(lease.namespace, lease.runId))),
        Effect.map((rows) => rows.some((row) => row?.status === "running")),
      )
    /** Tells of a call if the run was not claimable before it, and is after it. */
    const waking = <A>(
      namespace: string,
      runId: string,
      call: Effect.Effect<A, StoreError>,
      act: Act,
    ): Effect.Effect<A, StoreError> =>
      Effect.gen(function* () {
        const before = yield* memory.findRun(namespace, runId)
        const told = Effect.gen(function* () {
          const result = yield* call
          return { result, after: yield* memory.findRun(namespace, runId) }
        })
        const woke = ({ after }: { readonly after: RunRow | null }) =>
          after?.status === "pending" && before?.status !== "pending"
        const reached = ({ after }: { readonly after: RunRow | null }) =>
          after !== null && before !== null && after.inbox > before.inbox ? before.leaseOwner : null
        return (yield* dying(reaching(telling(told, woke, tell, act), reached, tellOwner, act))).result
      })
    const driver: CheckpointDriver = {
      ...memory,
      capabilities: { ...memory.capabilities, notify: true },
      send: (signal) => waking(signal.namespace, signal.runId, memory.send(signal), "send"),
      requestCancel: (namespace, runId, reason) =>
        waking(namespace, runId, memory.requestCancel(namespace, runId, reason), "requestCancel"),
      decideWait: (decision) => waking(decision.namespace, decision.runId, memory.decideWait(decision), "decideWait"),
      createRun: (run) =>
        dying(
          telling(
            memory.createRun(run),
            ({ created, run: { status } }) => created && status === "pending",
            tell,
            "createRun",
          ),
        ),
      createChild: (child, parent) =>
        dying(
          telling(
            memory.createChild(child, parent),
            (made) => made !== null && made.created && made.run.status === "pending",
            tell,
            "createChild",
          ),
        ),
      unpark: (namespace, runId) => dying(telling(memory.unpark(namespace, runId), (done) => done, tell, "unpark")),
      answer: (given) => dying(telling(memory.answer(given), (done) => done, tell, "answer")),
      setPaused: (namespace, runId, paused) =>
        Effect.flatMap(memory.findRun(namespace, runId), (row) =>
          dying(
            reaching(
              telling(
                memory.setPaused(namespace, runId, paused),
                (result) => result === "Done" && !paused && row?.status === "pending",
                tell,
                "setPaused",
              ),
              (result) => (result === "Done" && paused ? (row?.leaseOwner ?? null) : null),
              tellOwner,
              "setPaused",
            ),
          ),
        ),
      reopenRun: (reopen) => dying(telling(memory.reopenRun(reopen), (done) => done, tell, "reopenRun")),
      forkRun: (fork) =>
        dying(
          telling(
            memory.forkRun(fork),
            (result) => result !== null && result.created && result.run.status === "pending",
            tell,
            "forkRun",
          ),
        ),
      rewindRun: (rewind) => dying(memory.rewindRun(rewind)),
      beginCall: (call) => dying(memory.beginCall(call)),
      endCall: (call) => dying(memory.endCall(call)),
      fireSchedule: (fire) =>
        dying(
          telling(
            memory.fireSchedule(fire),
            (result) => result._tag === "Fired" && result.created,
            tell,
            "fireSchedule",
          ),
        ),
      releaseWorker: (workerId) =>
        Effect.flatMap(isRunning(workerId), (running) =>
          dying(telling(memory.releaseWorker(workerId), () => running, tell, "releaseWorker")),
        ),
      commit: (batch) => {
        const child = batch.find(({ wakesParent }) => wakesParent !== null)
        return child === undefined
          ? dying(memory.commit(batch))
          : waking(child.lease.namespace, child.wakesParent ?? "", memory.commit(batch), "commit")
      },
      claim: (request) => dying(memory.claim(request)),
      onWakeUp: (listener) => void listeners.push(listener),
      onReached: (listener) => void owners.push(listener),
    }
    return { driver, second: driver, failAfter: (statements) => Effect.sync(() => (armed = statements)) }
  }),
  features: ["second", "failAfter", "wakeUps"],
  elapse: (ms) => TestClock.adjust(ms),
  environment: TestContext.TestContext,
})
