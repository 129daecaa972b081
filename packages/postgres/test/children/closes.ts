/** A process over a Postgres schema that waits for a signal with an hour's timeout, gets it, and closes twice at once. */
import { Cairn, Workflow } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { Redacted, Schema } from "effect"

const [url = "", schema = ""] = process.argv.slice(2)

const say = (event: Record<string, unknown>): void => void process.stdout.write(`${JSON.stringify(event)}\n`)

const waiting = Workflow.make("waiting", { version: 1, input: Schema.Null })
  .signal("word", { schema: Schema.String, timeout: "1 hour", onTimeout: "fail" })
  .step("last", { effects: [], output: Schema.String }, () => "done")
  .output(Schema.String, ({ results }) => results.last)
  .compile()

const cairn = await Cairn.open({
  store: PostgresStore.layer({ url: Redacted.make(url), schema }),
  workflows: [waiting],
})
const handle = await cairn.start(waiting, null, { runId: "r" })
const result = handle.result()
while ((await handle.poll()).status !== "waiting") await new Promise((resolve) => setTimeout(resolve, 10))
await cairn.signal(waiting, { runId: "r" }, "word", "go")
say({ event: "ended", result: await result })
await Promise.all([cairn.close(), cairn.close()])
// Whether a timer or a socket is left is told by when the process exits.
say({ event: "closed", at: Date.now() })
process.on("exit", () => say({ event: "exits", at: Date.now() }))
