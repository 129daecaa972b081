/** The laws of a driver, kept by drivers whose commits go through the write-behind buffer, without a log and with one. */
import { storeConformance, type Harness } from "@cairn/conformance"
import type { CheckpointDriver } from "@cairn/core"
import { Effect } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { aroundAll, faithful, onTestClock, withEverything } from "./harnesses.js"
import { buffered, fileLog } from "./writeBehind.js"

/** What the log holds in the end is what the store does not have: nothing. */
const temporaryLog = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "cairn-log-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
  ),
  (folder) => fileLog(join(folder, "commits.log")),
)

/**
 * Answers come in a later turn of the event loop, as those of a database do. Readers that ask memory again and again within
 * one turn would not let a flush begin: it waits until what can run has run.
 */
const later = (driver: CheckpointDriver): CheckpointDriver =>
  aroundAll(driver, (call) =>
    Effect.zipRight(
      Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void))),
      call,
    ),
  )

const behindBuffer = (harness: Harness, logged: boolean): Harness => ({
  ...harness,
  open: Effect.gen(function* () {
    const open = yield* harness.open
    const store = open.second === undefined ? open : { ...open, driver: later(open.driver), second: later(open.second) }
    if (!logged) return { ...store, driver: yield* buffered(store.driver) }
    const log = yield* temporaryLog
    yield* Effect.addFinalizer(() => Effect.sync(() => expect(log.unsettled()).toBe(0)))
    return { ...store, driver: yield* buffered(store.driver, log) }
  }),
})

for (const [what, logged] of [
  ["write-behind", false],
  ["write-behind and a local log", true],
] as const) {
  storeConformance(
    `MemoryDriver behind ${what}`,
    behindBuffer(
      onTestClock((driver) => driver),
      logged,
    ),
  )
  storeConformance(`MemoryDriver with every hook, behind ${what}`, behindBuffer(withEverything(faithful), logged))
}
