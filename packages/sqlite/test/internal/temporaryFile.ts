/** A database file in a directory of its own, gone when the scope ends. */
import { Effect } from "effect"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const temporaryDirectory = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "cairn-sqlite-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true })),
)

export const temporaryFile = Effect.map(temporaryDirectory, (directory) => join(directory, "runs.sqlite"))
