/** One fault each in paid calls and their budgets (D39 to D41), and in what is kept of rejected outputs (D43). */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { mutant, type Mutant } from "./wrap.js"

const begins = "D39: a call that begins"
const owners = "D39: only the owner's call"
const budgets = "D39: a call that has no room"
const raced = "D39: of twenty calls"
const waits = "D39: a refusal tells"
const ends = "D40: the end of a call"
const exact = "D40: sums are exact"
const cappedCounter = "D40: a counter never leaves"
const cappedSum = "D41: a sum never leaves"
const outcomes = "D41: each call says"
const summed = "D41: calls are summed"
const outputs = "D43: outputs of rejected"
const pages = "D41: the calls of a run are listed"

export const callMutants: ReadonlyArray<Mutant> = [
  mutant("a call that is begun twice is counted twice", begins, (driver) => ({
    beginCall: (call) => driver.beginCall({ ...call, callId: randomUUID() }),
  })),
  mutant("a call reserves nothing", begins, (driver) => ({
    beginCall: (call) => driver.beginCall({ ...call, atMost: null }),
  })),
  mutant("a call is counted in its run alone", begins, (driver) => ({
    beginCall: (call) => driver.beginCall({ ...call, counters: call.counters.filter(({ kind }) => kind === "run") }),
  })),
  mutant("a call needs no lease", owners, (driver) => ({
    beginCall: (call) =>
      Effect.flatMap(driver.findRun(call.namespace, call.runId), (run) =>
        driver.beginCall({
          ...call,
          fence: run?.fence ?? call.fence,
          claimToken: run?.claimToken ?? call.claimToken,
        }),
      ),
  })),
  mutant("the cost of a call that was made asks for a lease", owners, (driver) => ({
    beginCall: (call) =>
      Effect.flatMap(driver.findRun(call.namespace, call.runId), (run) =>
        run?.claimToken === call.claimToken || call.end === null
          ? driver.beginCall(call)
          : Effect.succeed({ _tag: "Lost" } as const),
      ),
  })),
  mutant("budgets are not looked at", budgets, (driver) => ({
    beginCall: (call) =>
      driver.beginCall({ ...call, counters: call.counters.map((counter) => ({ ...counter, limit: null })) }),
  })),
  mutant("what is reserved does not stand against a budget", budgets, (driver) => ({
    beginCall: (call) =>
      Effect.flatMap(driver.findSpend(call.namespace, call.counters), (spend) =>
        driver.beginCall({
          ...call,
          counters: call.counters.map((counter, index) => ({
            ...counter,
            limit: counter.limit === null ? null : counter.limit + (spend[index]?.reserved ?? 0),
          })),
        }),
      ),
  })),
  mutant("a budget that is used up lets a call through that reserves nothing", budgets, (driver) => ({
    beginCall: (call) =>
      driver.beginCall(
        (call.atMost ?? 0) === 0
          ? { ...call, counters: call.counters.map((counter) => ({ ...counter, limit: null })) }
          : call,
      ),
  })),
  mutant("a budget is looked at before, and not as the call begins", raced, (driver) => ({
    beginCall: (call) =>
      Effect.flatMap(Effect.yieldNow(), () =>
        Effect.flatMap(driver.findSpend(call.namespace, call.counters), (spend) => {
          const index = call.counters.findIndex(
            ({ limit }, at) => limit !== null && spend[at]!.spent + spend[at]!.reserved + (call.atMost ?? 0) > limit,
          )
          const none = call.counters[index]
          const begin = driver.beginCall({
            ...call,
            counters: call.counters.map((counter) => ({ ...counter, limit: null })),
          })
          return none === undefined
            ? Effect.zipRight(Effect.yieldNow(), begin)
            : Effect.succeed({
                _tag: "Refused",
                counter: { kind: none.kind, name: none.name },
                limit: none.limit!,
                spent: spend[index]!.spent,
                reserved: spend[index]!.reserved,
                waiting: 0,
              } as const)
        }),
      ),
  })),
  mutant("all that is reserved is told to be under way", waits, (driver) => ({
    beginCall: (call) =>
      Effect.map(driver.beginCall(call), (result) =>
        result._tag === "Refused" ? { ...result, waiting: result.reserved } : result,
      ),
  })),
  mutant("nothing that is reserved is told to be under way", waits, (driver) => ({
    beginCall: (call) =>
      Effect.map(driver.beginCall(call), (result) => (result._tag === "Refused" ? { ...result, waiting: 0 } : result)),
  })),
  mutant("the end of a call asks for the run's token", ends, (driver) => ({
    endCall: (call) =>
      Effect.flatMap(driver.findRun(call.namespace, call.runId), (run) =>
        run?.claimToken === call.claimToken ? driver.endCall(call) : Effect.succeed(false),
      ),
  })),
  mutant("every end of a call is told that it was written", ends, (driver) => ({
    endCall: (call) => Effect.as(driver.endCall(call), true),
  })),
  mutant("what was reserved is given back where the cost is unknown", ends, (driver) => ({
    endCall: (call) =>
      driver.endCall(call.end.microDollars === null ? { ...call, end: { ...call.end, microDollars: 0 } } : call),
  })),
  mutant("the cost of a call forgets its counters", exact, (driver) => ({
    endCall: (call) => driver.endCall({ ...call, counters: [] }),
  })),
  mutant("amounts are rounded", exact, (driver) => ({
    endCall: (call) =>
      driver.endCall({
        ...call,
        end: { ...call.end, microDollars: Math.fround(call.end.microDollars ?? 0) },
      }),
  })),
  mutant("a counter goes on beyond what a number holds", cappedCounter, (driver) => ({
    findSpend: (namespace, counters) =>
      Effect.map(driver.findSpend(namespace, counters), (rows) =>
        rows.map((row) => ({ ...row, spent: row.spent === Number.MAX_SAFE_INTEGER ? 2 ** 53 : row.spent })),
      ),
  })),
  mutant("what is given back of a counter that was full reads as exact", cappedCounter, (driver) => ({
    findSpend: (namespace, counters) =>
      Effect.map(driver.findSpend(namespace, counters), (rows) =>
        rows.map((row) => ({ ...row, reserved: row.reserved === Number.MAX_SAFE_INTEGER ? 0 : row.reserved })),
      ),
  })),
  mutant("a sum goes on beyond what a number holds", cappedSum, (driver) => ({
    sumCalls: (query) =>
      Effect.map(driver.sumCalls(query), (rows) => rows.map((row) => ({ ...row, reserved: row.reserved + 1 }))),
  })),
  mutant("a call that nobody is left to end is under way for ever", outcomes, (driver) => ({
    listCalls: (page) =>
      Effect.map(driver.listCalls(page), (rows) => rows.map((row) => ({ ...row, settled: row.state }))),
  })),
  mutant("what was made again counts as kept", outcomes, (driver) => ({
    listCalls: (page) =>
      Effect.map(driver.listCalls(page), (rows) =>
        rows.map((row) =>
          row.outcome === "lost" && row.state === "known" ? { ...row, outcome: "kept" as const } : row,
        ),
      ),
  })),
  mutant("an interruption saves nothing", outcomes, (driver) => ({
    listCalls: (page) => Effect.map(driver.listCalls(page), (rows) => rows.map((row) => ({ ...row, saved: 0 }))),
  })),
  mutant("an unknown cost is none", summed, (driver) => ({
    sumCalls: (query) => Effect.map(driver.sumCalls(query), (rows) => rows.map((row) => ({ ...row, unknown: 0 }))),
  })),
  mutant("sums by step mix workflows", summed, (driver) => ({
    sumCalls: (query) => Effect.map(driver.sumCalls(query), (rows) => rows.map((row) => ({ ...row, workflow: null }))),
  })),
  mutant("sums look at all times", summed, (driver) => ({
    sumCalls: (query) => driver.sumCalls({ ...query, before: null }),
  })),
  mutant("a page of calls begins anew", pages, (driver) => ({
    listCalls: (page) =>
      page.after === null
        ? driver.listCalls(page)
        : Effect.map(driver.listCalls({ ...page, after: null, limit: 4 }), (rows) => rows.slice(2)),
  })),
  mutant("old outputs are kept for ever", outputs, () => ({ forgetOutputs: () => Effect.succeed(0) })),
  mutant("outputs are taken away whatever their age", outputs, (driver) => ({
    forgetOutputs: (old) => driver.forgetOutputs({ ...old, olderThanMs: Math.min(old.olderThanMs, -1) }),
  })),
  mutant("all old outputs are taken away at once", outputs, (driver) => ({
    forgetOutputs: (old) => driver.forgetOutputs({ ...old, limit: 1_000 }),
  })),
]
