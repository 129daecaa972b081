/** The one line that says which database is meant. */
import type { CheckpointStore, StoreError } from "@cairn/core"
import { PostgresStore } from "@cairn/postgres"
import { SqliteStore } from "@cairn/sqlite"
import { Redacted, type Layer } from "effect"

/** A file name, or a `postgres://` address with the schema behind a `#`. */
export const storeAt = (address: string): Layer.Layer<CheckpointStore, StoreError> => {
  if (!address.startsWith("postgres")) return SqliteStore.layer({ filename: address })
  const [url = "", schema = "cairn"] = address.split("#")
  return PostgresStore.layer({ url: Redacted.make(url), schema })
}
