/** Opens each file that it is told, creates a run in it, closes it, and says what it found. */
import { createInterface } from "node:readline"
import { SqliteDriver } from "@cairn/sqlite"
import { Effect } from "effect"
import { newRun } from "../internal/rows.js"

const openOnce = (filename: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const driver = yield* SqliteDriver.make({ filename })
      const own = yield* driver.createRun(newRun(`of ${process.pid}`))
      const shared = yield* driver.createRun(newRun("shared"))
      return { own: own.created, shared: shared.created }
    }),
  )

console.log("ready")
for await (const filename of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await Effect.runPromise(Effect.either(openOnce(filename)))))
}
