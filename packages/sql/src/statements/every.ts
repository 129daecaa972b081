/** All statements of the driver in one list, so that a dialect's tests can ask the database how it would run each. */
import type { CommitRows } from "@cairn/core"
import type { Dialect } from "../Dialect.js"
import type { Statement } from "../Statement.js"
import { claimStatements } from "./claim.js"
import { commitStatements, guardRow } from "./commit.js"
import { commitAtOnce } from "./commitAtOnce.js"
import { effectStatements } from "./effects.js"
import { inboxStatements } from "./inbox.js"
import { runStatements } from "./runs.js"
import { workerStatements } from "./workers.js"

const lease = { namespace: "n", runId: "r", fence: 1, claimToken: "t" }

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
  steps: [{ path: "p", seq: 1, result: "1", effect: "none", idempotencyKey: null, attempts: 1, durationMs: 1 }],
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
  const key = { namespace: "n", runId: "r", path: "p", generation: 0 }
  const wanted = { namespace: "n", workflows: [{ name: "w", version: 1 }], limit: 10 }
  const outcome = { idempotencyKey: "k", payloadHash: "h", claimToken: "t", state: "failed", outcome: null } as const
  return {
    "find a run": runs.find("n", "r"),
    "load its steps": runs.steps("n", "r"),
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
        }),
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
    "load signals": inbox.waiting("n", "r", ["s", "t"]),
    "list a worker's leases": workers.leases("w"),
    "give up a worker's runs": workers.giveUp("w"),
    "end a worker": workers.end("w"),
  }
}
