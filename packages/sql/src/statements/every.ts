/** All statements of the driver in one list, so that a dialect's tests can ask the database how it would run each. */
import type { Dialect } from "../Dialect.js"
import type { Bound, Statement } from "../Statement.js"
import { claimStatements } from "./claim.js"
import { commitStatements } from "./commit.js"
import { effectStatements } from "./effects.js"
import { runStatements } from "./runs.js"
import { workerStatements } from "./workers.js"

const guard: ReadonlyArray<Bound> = ["n", "r", 1, "t", 0, 1, "running", null, null, null, null, null, 0, 1]

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
  const key = { namespace: "n", runId: "r", path: "p", generation: 0 }
  const wanted = { namespace: "n", workflows: [{ name: "w", version: 1 }], limit: 10 }
  const outcome = { idempotencyKey: "k", payloadHash: "h", claimToken: "t", state: "failed", outcome: null } as const
  return {
    "find a run": runs.find("n", "r"),
    "load its steps": runs.steps("n", "r"),
    "load its open effects": runs.openEffects("n", "r"),
    "load its open attempts": runs.openAttempts("n", "r"),
    "find what stands against a commit": runs.standing([["n", "r"]]),
    unpark: runs.unpark("n", "r"),
    "look for due runs": claim.look({ ...wanted, runIds: null }),
    "look for due runs among some": claim.look({ ...wanted, runIds: ["r", "s"] }),
    claim: claim.take([["n", "r"]], "w", "t"),
    commit: commitStatements(dialect).update([guard]),
    "find an effect": effects.find(key),
    "settle an effect": effects.settle({ ...key, ...outcome }),
    "list a worker's leases": workers.leases("w"),
    "give up a worker's runs": workers.giveUp("w"),
    "end a worker": workers.end("w"),
  }
}
