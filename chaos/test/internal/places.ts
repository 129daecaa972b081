/** Stores of both databases, each empty when it is asked for. */
import { CheckpointStore, type StoreError } from "@cairn/core"
import { makeTestDatabase, type TestDatabase } from "@cairn/postgres-server"
import { Effect, Layer } from "effect"
import { randomBytes } from "node:crypto"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, beforeAll } from "vitest"
import { storeAt } from "../../src/store.js"

export type Where = "SQLite" | "Postgres"

export const databases: ReadonlyArray<Where> = ["SQLite", "Postgres"]

export interface Place {
  /** As `storeAt` takes it. */
  readonly address: string
  /** Where the outside world writes down what it has seen. */
  readonly log: string
  readonly store: Layer.Layer<CheckpointStore, StoreError>
}

/** The places of a test file; they are there while tests run, and gone afterwards. */
export const usePlaces = () => {
  const folder = mkdtempSync(path.join(tmpdir(), "cairn-chaos-"))
  let database: TestDatabase | null = null
  beforeAll(async () => {
    database = await makeTestDatabase()
  })
  afterAll(async () => {
    await database?.drop()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    folder,
    database: (): TestDatabase => database!,
    make: (where: Where): Place => {
      const name = `t${randomBytes(5).toString("hex")}`
      const address = where === "SQLite" ? path.join(folder, `${name}.db`) : `${database!.url}#${name}`
      // A connection of its own for each who builds it.
      return { address, log: path.join(folder, `${name}.jsonl`), store: Layer.fresh(storeAt(address)) }
    },
  }
}

/** Runs a test's effect over a store. */
export const over = <A, E>(place: Pick<Place, "store">, effect: Effect.Effect<A, E, CheckpointStore>): Promise<A> =>
  Effect.runPromise(Effect.provide(effect, place.store))

/** A run with its steps. */
export const load = (runId: string, namespace = "default") =>
  Effect.flatMap(CheckpointStore, (store) => store.load(namespace, runId))
