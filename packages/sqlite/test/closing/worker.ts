/** One process over a SQLite file, which ends as `CAIRN_END` says. It prints one line of JSON an event. */
import { Cairn, Workflow } from "@cairn/core"
import { SqliteStore } from "@cairn/sqlite"
import { Schema } from "effect"

const {
  CAIRN_FILE: filename = "",
  CAIRN_LOCAL: directory = "",
  CAIRN_END: end = "",
  CAIRN_NAME: name = "",
} = process.env

const say = (event: Record<string, unknown>): void => void process.stdout.write(`${JSON.stringify(event)}\n`)

export const stepNames = ["a", "b", "c", "d"] as const

/** Steps that take so long as the input says; the last one says when it has begun. */
let flow: any = Workflow.make("closing", { version: 1, input: Schema.Struct({ stepMs: Schema.Int }) })
for (const step of stepNames) {
  flow = flow.step(step, { effects: [], output: Schema.String }, async ({ input }: any) => {
    if (input.stepMs > 0) await new Promise((resolve) => setTimeout(resolve, input.stepMs))
    return step
  })
}
const closing = flow.output(Schema.Array(Schema.String), ({ results }: any) => Object.values(results)).compile()

const local = directory === "" ? {} : { local: { directory } }
const cairn = await Cairn.open({
  store: SqliteStore.layer({ filename }),
  workflows: [closing],
  drain: "2 seconds",
  pollInterval: "50 millis",
  ...local,
} as never)

if (end === "killed after start") {
  for (let n = 0; n < 25; n++) void (await cairn.start(closing, { stepMs: 0 }, { runId: `${name}-${n}` }))
  process.kill(process.pid, "SIGKILL")
} else if (end === "exit after result") {
  for (let n = 0; n < 25; n++) await (await cairn.start(closing, { stepMs: 0 }, { runId: `${name}-${n}` })).result()
  process.exit(0)
} else if (end === "close") {
  await (await cairn.start(closing, { stepMs: 0 }, { runId: name })).result()
  await Promise.all([cairn.close(), cairn.close()])
  // Whether a timer is left is told by when the process exits.
  say({
    event: "closed",
    at: Date.now(),
    left: process.getActiveResourcesInfo().filter((of) => !/Pipe|TTY|Immediate|Timeout/.test(of)),
  })
  process.on("exit", () => say({ event: "exits", at: Date.now() }))
} else if (end === "until asked") {
  process.once("SIGTERM", () => {
    const asked = Date.now()
    void cairn.close().then(() => {
      say({ event: "closed", ms: Date.now() - asked })
    })
  })
  for (let n = 0; n < 10; n++) await cairn.start(closing, { stepMs: 400 }, { runId: `${name}-${n}` })
  say({ event: "started" })
} else {
  const results = Array.from({ length: 10 }, async (_, n) =>
    (await cairn.start(closing, { stepMs: 400 }, { runId: `${name}-${n}` })).result(),
  )
  say({ event: "ended", results: await Promise.all(results) })
  await cairn.close()
}
