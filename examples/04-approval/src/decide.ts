/** What `decide.js` does: it decides, in a process of its own, and no worker has to run for it. */
import { Cairn } from "@cairn/core"
import { Effect } from "effect"
import { parseArgs } from "node:util"
import { storeAt, type StorePlace } from "./store.js"
import { expense, pettyCash } from "./workflow.js"

const usage = `usage: node decide.js <run> approve|reject [--by <name>] [--note <text>]

  The runs are those of the file approvals.sqlite, or of what APPROVALS names: another file, or postgres://..`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { by: { type: "string", default: process.env["USER"] ?? "somebody" }, note: { type: "string" } },
})
const [runId, what] = positionals
if (runId === undefined || (what !== "approve" && what !== "reject")) {
  console.error(usage)
  process.exit(2)
}

const where = process.env["APPROVALS"] ?? "approvals.sqlite"
const place: StorePlace = /^postgres(ql)?:/.test(where)
  ? { store: "postgres", url: where }
  : { store: "sqlite", filename: where }

const { by, note } = values
const said = what === "approve" ? { by, approve: { note: note ?? "" } } : { by, reject: note ?? null }

process.exitCode = await Effect.runPromise(
  Cairn.review(expense, { runId }, said).pipe(
    // It is a run of another workflow.
    Effect.catchTag("RunConflict", () => Cairn.review(pettyCash, { runId }, said)),
    Effect.match({
      onSuccess: () => {
        console.log(`${by}: ${what} is recorded`)
        return 0
      },
      // DecisionRefused: somebody was first, the time is over, or it waits for no decision.
      onFailure: (error) => {
        console.log(`${by}: ${error._tag}: ${error.message}`)
        return 1
      },
    }),
    Effect.provide(storeAt(place)),
  ),
)
