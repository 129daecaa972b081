/** What scripts that measure a heap share: a store of their own, and the heap when what can be collected is. */
import type { CheckpointStore, StoreError } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { startPostgres } from "@cairn/postgres-server"
import { SqliteStore } from "@cairn/sqlite"
import { Effect, Redacted, type Layer } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"

/** A heap of so many bytes, once what was let go is gone. Node has to be told `--expose-gc`. */
export const collectedHeap: Effect.Effect<number> = Effect.gen(function* () {
  if (globalThis.gc === undefined) throw new Error("node has to be told: --expose-gc")
  // What is let go in a later turn of the event loop is let go.
  for (let times = 0; times < 5; times++) {
    yield* Effect.sleep(200)
    globalThis.gc()
  }
  return process.memoryUsage().heapUsed
})

/** A store in none of this process's memory, and what removes it. */
export const storeOf = async (
  which: string,
): Promise<{ readonly layer: Layer.Layer<CheckpointStore, StoreError>; readonly remove: () => Promise<void> }> => {
  if (which === "postgres") {
    const server = await startPostgres()
    return { layer: PostgresStore.layer({ url: Redacted.make(server.url) }), remove: () => server.stop() }
  }
  const root = await mkdtemp(path.join(tmpdir(), "cairn-heap-"))
  return {
    layer: SqliteStore.layer({ filename: path.join(root, "runs.db"), synchronous: "normal" }),
    remove: () => rm(root, { recursive: true, force: true }),
  }
}
