/**
 * A worker under Cairn. It starts the run; if that is there already it is attached to, and goes on where its last worker died.
 */
import { Cairn } from "@cairn/core"
import { Layer } from "effect"
import { prices, services } from "./services.js"
import { storeAt } from "./store.js"
import { leaseMs, research } from "./workflow.js"
import { dieAt, logsOnStandardError, question, readSettings, runId, say } from "./workerProtocol.js"

const { addresses, store, death } = readSettings()
if (store === null) throw new Error("A worker under Cairn needs a store.")

const cairn = await Cairn.open({
  store: storeAt(store),
  workflows: [research],
  handlers: Layer.merge(services(addresses, dieAt(death)), logsOnStandardError),
  prices,
  lease: leaseMs,
  pollInterval: "100 millis",
})
const run = await cairn.start(research, question, { runId })
say({ event: "found", at: run.created ? null : (await run.poll()).cursor })
// What the model says, while it says it.
const tell = async (): Promise<void> => {
  for await (const live of run.live()) say({ event: "live", live })
}
tell().catch((error: Error) => console.error(error.message))
const ended = await run.result().then(
  (page) => ({ page, problem: null }),
  (error: Error) => ({ page: null, problem: error.message }),
)
const [account = null] = await cairn.cost({ by: "run", runId })
say({ event: "ended", ...ended, account })
await cairn.close()
