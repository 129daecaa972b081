/** Where the runs are kept. */
import type { CheckpointStore, StoreError } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { SqliteStore } from "@cairn/sqlite"
import { Redacted, type Layer } from "effect"

export type StorePlace =
  { readonly store: "sqlite"; readonly filename: string } | { readonly store: "postgres"; readonly url: string }

/** Everything that a change of store changes in a program. */
export const storeAt = (place: StorePlace): Layer.Layer<CheckpointStore, StoreError> =>
  place.store === "sqlite"
    ? SqliteStore.layer({ filename: place.filename })
    : PostgresStore.layer({ url: Redacted.make(place.url) })
