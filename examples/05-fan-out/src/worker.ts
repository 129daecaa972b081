/** A worker. It starts the run; if that is there already it is attached to, and goes on where its last worker died. */
import { Cairn } from "@cairn/core"
import { Layer } from "effect"
import { mailHandler } from "./handlers.js"
import { recipients } from "./recipients.js"
import { storeAt } from "./store.js"
import { leaseMs, newsletter } from "./workflow.js"
import { logsOnStandardError, readSettings, runId, say } from "./workerProtocol.js"

const { apiUrl, store, dieAfter } = readSettings()

const megabytes = (bytes: number): number => Math.round(bytes / 1024 / 1024)
let answers = 0
const sayMemory = (): void => {
  const { heapUsed, rss } = process.memoryUsage()
  say({ event: "memory", answers, heapMb: megabytes(heapUsed), rssMb: megabytes(rss) })
}

const cairn = await Cairn.open({
  store: storeAt(store),
  workflows: [newsletter],
  handlers: Layer.merge(
    mailHandler(apiUrl, () => {
      answers += 1
      if (answers % 100 === 0) sayMemory()
      // Others are under way, and of this answer nothing is stored. SIGKILL cannot be caught: nothing is flushed or released.
      if (answers === dieAfter) process.kill(process.pid, "SIGKILL")
    }),
    logsOnStandardError,
  ),
  lease: leaseMs,
  pollInterval: "100 millis",
})
const run = await cairn.start(newsletter, { subject: "News of paths", recipients }, { runId })
sayMemory()
await run.result().then(
  (output) => say({ event: "ended", ...output }),
  (error: Error) => say({ event: "failed", problem: error.message }),
)
sayMemory()
await cairn.close()
