/** A worker. It starts the runs; those that are there already are attached to, and go on when somebody has decided. */
import { Cairn } from "@cairn/core"
import { Layer } from "effect"
import { setTimeout as sleep } from "node:timers/promises"
import { expenses, runIds } from "./expenses.js"
import { payOutHandler } from "./handlers.js"
import { storeAt } from "./store.js"
import { expense, leaseMs, pettyCash } from "./workflow.js"
import { logsOnStandardError, readSettings, say } from "./workerProtocol.js"

const { bankUrl, store } = readSettings()

const cairn = await Cairn.open({
  store: storeAt(store),
  workflows: [expense, pettyCash],
  handlers: Layer.merge(payOutHandler(bankUrl), logsOnStandardError),
  lease: leaseMs,
  pollInterval: "100 millis",
})
const runs = await Promise.all(
  runIds.map((runId) => cairn.start(expenses[runId].workflow, expenses[runId].of, { runId })),
)

/** On a slow machine one may have expired by then. */
const allWait = async (): Promise<boolean> =>
  (await Promise.all(runs.map((run) => run.poll()))).every(
    ({ status }) => status === "review" || status === "completed",
  )

if (runs.every(({ created }) => created)) {
  while (!(await allWait())) await sleep(50)
  say({ event: "waiting" })
}
await Promise.all(
  runs.map(({ runId, result }) =>
    result().then(
      (output) => say({ event: "ended", runId, output }),
      (error: Error) => say({ event: "failed", runId, problem: error.message }),
    ),
  ),
)
await cairn.close()
