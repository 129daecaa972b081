/** All statements of the driver in one list, so that a dialect's tests can ask the database how it would run each. */
import type { CommitRows, NewRunRow } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import type { Statement } from "../Statement.js"
import { callStatements } from "./calls.js"
import { claimStatements } from "./claim.js"
import { commitStatements, guardRow } from "./commit.js"
import { commitAtOnce } from "./commitAtOnce.js"
import { effectStatements } from "./effects.js"
import { historyStatements } from "./history.js"
import { inboxStatements } from "./inbox.js"
import { lifecycleStatements } from "./lifecycle.js"
import { limitedClaimStatements } from "./limitedClaim.js"
import { listingStatements } from "./listings.js"
import { runStatements } from "./runs.js"
import { scheduleStatements } from "./schedules.js"
import { stepsStatement } from "./steps.js"
import { parentStatements, waitStatements } from "./waits.js"
import { workerStatements } from "./workers.js"

const lease = { namespace: "n", runId: "r", fence: 1, claimToken: "t" }

const newRun: NewRunRow = {
  namespace: "n",
  runId: "r",
  workflow: "w",
  version: 1,
  planHash: "h",
  input: null,
  inputHash: "h",
  parentRunId: null,
  parentPath: null,
  flowKey: null,
  priority: 0,
  wakeAt: null,
}

const whole: CommitRows = {
  lease,
  base: 0,
  seq: 1,
  run: {
    status: "running",
    cursor: null,
    wakeInMs: null,
    output: null,
    failure: null,
    parked: null,
    release: false,
    seenInbox: 0,
  },
  steps: [
    { path: "p", scope: "", seq: 1, result: "1", effect: "none", idempotencyKey: null, attempts: 1, durationMs: 1 },
  ],
  effects: [
    {
      path: "q",
      generation: 0,
      operation: "o",
      idempotencyKey: "k",
      payload: "1",
      payloadHash: "h",
      state: "intended",
      outcome: null,
      claimToken: "t",
      sends: 1,
    },
  ],
  attempts: [{ path: "q", attempt: 1, kind: "failed", error: "{}", output: null, retryInMs: null }],
  consumes: [{ signalId: "s", path: "p" }],
  waits: [{ path: "a", kind: "sleep", name: null, data: null, wake: { inMs: 1 } }],
  closes: ["b"],
  wakesParent: "parent",
}

/**
 * Every statement that looks for rows, with example values. Plain inserts are left out: they look for none.
 *
 * @category testing
 * @since 0.1.0
 */
export const everyStatement = (dialect: Dialect): Readonly<Record<string, Statement>> => {
  const runs = runStatements(dialect)
  const claim = claimStatements(dialect)
  const effects = effectStatements(dialect)
  const workers = workerStatements(dialect)
  const inbox = inboxStatements(dialect)
  const steps = stepsStatement(dialect)
  const waits = waitStatements(dialect)
  const parents = parentStatements(dialect)
  const listings = listingStatements(dialect)
  const lifecycle = lifecycleStatements(dialect)
  const history = historyStatements(dialect)
  const limited = limitedClaimStatements(dialect)
  const schedules = scheduleStatements(dialect)
  const calls = callStatements(dialect)
  const ofRun = { kind: "run", name: "r" } as const
  const ofDay = { kind: "namespace", name: "" } as const
  const call = {
    ...{
      namespace: "n",
      runId: "r",
      callId: "c",
      claimToken: "t",
      fence: 1,
      scope: "",
      path: "p",
      step: "p",
      attempt: 1,
    },
    ...{ model: "m", atMost: 1, counters: [], end: null },
  }
  const sums = { namespace: "n", by: "step", workflow: null, runId: null, from: null, before: null, limit: 20 } as const
  const used = { state: "known", inputTokens: 1, outputTokens: 1, cachedInputTokens: null, microDollars: 1 } as const
  const stretch = { namespace: "n", runId: "r", after: 5, through: 90, limit: 100 }
  const every = {
    namespace: "n",
    workflow: null,
    statuses: null,
    parentRunId: null,
    createdFrom: null,
    createdBefore: null,
    after: null,
    limit: 20,
  } as const
  const fork = { run: { ...newRun, runId: "fork" }, from: "r", beforeSeq: 5, effects: [] }
  const all = { namespace: "n", runId: "r", newestFirst: false, after: null, limit: null, withResults: true }
  const key = { namespace: "n", runId: "r", path: "p", generation: 0 }
  const wanted = { namespace: "n", workflows: [{ name: "w", version: 1 }], limit: 10 }
  const limits = { running: 1, perKey: 2, rate: { count: 3, perMs: 4, perKey: true } }
  const withLimits = [{ name: "w", version: 1, limits }]
  const fire = { namespace: "n", scheduleId: "s", at: 1, lastAt: 1, nextAt: 2, run: newRun }
  const outcome = { idempotencyKey: "k", payloadHash: "h", claimToken: "t", state: "failed", outcome: null } as const
  return {
    "find a run": runs.find("n", "r"),
    "create a child": runs.insertChild({ ...newRun, runId: "child", parentRunId: "r", parentPath: "p" }, lease),
    "load its steps": runs.steps("n", "r"),
    "load the newest turn": steps({ ...all, scopes: ["agent["], newestFirst: true, limit: 1 }),
    "load a page of turns": steps({ ...all, scopes: ["agent["], after: { seq: 5, path: "p" }, limit: 100 }),
    "load the steps of a turn": steps({ ...all, scopes: ["agent[1]"] }),
    "load the steps of some turns": steps({ ...all, scopes: ["agent[1]", "agent[2]"] }),
    "load what was performed": steps({ ...all, scopes: null, newestFirst: true }),
    "load the steps of a history": history.steps(stretch),
    "load the attempts of a history": history.attempts(stretch),
    "load the waits of a history": history.waits(stretch),
    "load the effects of a path": runs.effectsAt("n", "r", ["p"]),
    "load the effects of some paths": runs.effectsAt("n", "r", ["p", "q"]),
    "load the attempts of a path": runs.attemptsAt("n", "r", ["p"]),
    "load the attempts of some paths": runs.attemptsAt("n", "r", ["p", "q"]),
    "find what stands against a commit": runs.standing([["n", "r"]]),
    unpark: runs.unpark("n", "r"),
    "list parked runs": runs.listParked({ namespace: "n", after: "r", limit: 10 }),
    "hold a parked run": runs.lockParked({ namespace: "n", runId: "r", seq: 1 }),
    "look for due runs": claim.look({ ...wanted, runIds: null }),
    "look for due runs among some": claim.look({ ...wanted, runIds: ["r", "s"] }),
    "pick due runs": claim.pick({ ...wanted, runIds: null }),
    "pick due runs among some": claim.pick({ ...wanted, runIds: ["r", "s"] }),
    ...(claim.lockWorkers === null ? {} : { "lock a claim's workers": claim.lockWorkers([["n", "r"]], "w") }),
    claim: claim.take([["n", "r"]], "w", "t"),
    ...(dialect.commitsAtOnce
      ? {
          commit: commitAtOnce(dialect)([whole]),
          "commit several runs": commitAtOnce(dialect)([whole, { ...whole, lease: { ...lease, runId: "s" } }]),
        }
      : {
          commit: commitStatements(dialect).update([guardRow(whole)]),
          "consume a signal": commitStatements(dialect).consume([["n", "r", "s", "p"]]),
          "close a wait": commitStatements(dialect).closeWaits([["n", "r", "p"]]),
        }),
    ...(parents.lock === null ? {} : { "lock children and parents": parents.lock([whole]) }),
    "wake parents": parents.wake([["n", "r", 1]]),
    "find an effect": effects.find(key),
    "settle an effect": effects.settle({ ...key, ...outcome }),
    "answer for an effect": effects.answer({ ...key, seq: 1, state: "notPerformed", outcome: null, attempt: null }),
    "read the inbox of a run": inbox.inbox("n", "r"),
    "hold a run": inbox.lock("n", "r"),
    "find a signal": inbox.findSignal("n", "r", "s"),
    "count a signal": inbox.count("n", "r"),
    "count a signal and end a wait": inbox.countAndWake("n", "r"),
    "mark a run as to be canceled": inbox.cancel("n", "r", "why"),
    "mark a run that rests as to be canceled": inbox.cancelAndWake("n", "r", "why"),
    "list waits": waits.list("n", "r"),
    "find a wait": waits.find("n", "r", "p"),
    "decide a wait": waits.decide({ namespace: "n", runId: "r", path: "p", name: "w", decision: "1" }),
    "expire a wait": waits.expire("n", "r", "p"),
    "list the newest runs": listings.listRuns(every),
    "list a page of runs": listings.listRuns({
      ...every,
      workflow: "w",
      statuses: ["failed"],
      createdFrom: 1,
      createdBefore: 9,
      after: { createdAt: 5, runId: "r" },
    }),
    "list the runs that are running": listings.listRuns({ ...every, statuses: ["running"] }),
    "list the runs that have ended": listings.listRuns({ ...every, statuses: ["completed", "failed", "canceled"] }),
    "list the children of a run": listings.listRuns({ ...every, parentRunId: "r" }),
    "list the oldest reviews": listings.listReviews({ namespace: "n", after: null, limit: 20 }),
    "list a page of reviews": listings.listReviews({
      namespace: "n",
      after: { openedAt: 1, runId: "r", path: "p" },
      limit: 20,
    }),
    "pause a run": lifecycle.pause("n", "r"),
    "resume a paused run": lifecycle.unpause("n", "r"),
    "reopen a run": lifecycle.reopen("n", "r", 1),
    "find the source of a fork": lifecycle.source("n", "r"),
    "copy the steps of a run": lifecycle.copySteps(fork),
    "copy the effects of some paths": lifecycle.copyEffects(fork, ["p", "q"]),
    "set the seq of a fork": lifecycle.takeSeq(fork),
    "load the steps that performed": lifecycle.performed("n", "r"),
    "load the effects that happened": lifecycle.happened("n", "r"),
    "look for due runs with limits": limited.look({ ...wanted, workflows: withLimits, runIds: null }, 10),
    "pick due runs with limits": limited.pick({ ...wanted, workflows: withLimits, runIds: ["r", "s"] }, 10),
    "forget what began": limited.forgetStarts("n", "w", 1_000),
    "list schedules": schedules.list({ namespace: "n", after: "s", limit: 20 }),
    "look for schedules": schedules.next({ namespace: "n", workflows: wanted.workflows, limit: 20 }),
    "remove a schedule": schedules.remove("n", "s"),
    "move a schedule": schedules.move(fire),
    "find what a schedule started last": schedules.statusOf("n", "r"),
    "note what a schedule started": schedules.started(fire),
    "forget old outputs": effects.forgetOutputs({ namespace: "n", olderThanMs: 1, limit: 10 }),
    "find a call": calls.find(call),
    "take a call back": calls.forget(call),
    "end a call": calls.end({ ...call, end: used }),
    "read what was spent": calls.findSpend("n", [ofRun, ofDay], 1),
    "sum what a run's calls under way reserve": calls.waiting("n", ofRun, 1),
    "sum what a workflow's calls under way reserve": calls.waiting("n", { kind: "workflow", name: "w" }, 1),
    "sum what a namespace's calls under way reserve": calls.waiting("n", ofDay, 1),
    "list the first calls of a run": calls.list({ namespace: "n", runId: "r", after: null, limit: 20 }),
    "list more calls of a run": calls.list({
      namespace: "n",
      runId: "r",
      after: { startedAt: 1, callId: "c" },
      limit: 20,
    }),
    "sum the calls of a run": calls.sum({ ...sums, runId: "r" }),
    "sum the calls of a day": calls.sum({ ...sums, by: "model", from: 1, before: 90_000_000 }),
    "load signals": inbox.waiting("n", "r", ["s", "t"]),
    "list a worker's leases": workers.leases("w"),
    "list what has reached a worker's runs": workers.reached("w"),
    "give up a worker's runs": workers.giveUp("w"),
    "end a worker": workers.end("w"),
  }
}
