/** Works on runs of its own in a file that others work on, and says each commit that was acknowledged. */
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { claimOf, leaseOf, newRun, stepCommit } from "../internal/rows.js"

const [filename = "", workerId = "", runCount = "0", stepCount = "0"] = process.argv.slice(2)

const work = Effect.scoped(
  Effect.gen(function* () {
    const driver = yield* SqliteDriver.make({ filename })
    const ids = Array.from({ length: Number(runCount) }, (_, index) => `${workerId} ${index}`)
    for (const runId of ids) yield* driver.createRun(newRun(runId))
    yield* driver.beat(workerId, 600_000)
    const runs = yield* driver.claim({ ...claimOf(workerId, ids), limit: ids.length })
    yield* Effect.forEach(
      runs,
      (run) =>
        Effect.gen(function* () {
          for (let seq = run.seq; seq < run.seq + Number(stepCount); seq++) {
            const [result] = yield* driver.commit([stepCommit(leaseOf(run), seq)])
            if (result?._tag !== "Committed") return yield* Effect.dieMessage(`refused: ${JSON.stringify(result)}`)
            console.log(`${run.runId}\t${seq + 1}`)
          }
        }),
      { concurrency: "unbounded", discard: true },
    )
  }),
)

await Effect.runPromise(work)
console.log("done")
