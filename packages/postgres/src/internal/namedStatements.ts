/**
 * Statements that the server parses and plans once a connection, and not at each call: most of a short statement's time.
 *
 * Behind a pooler that gives each transaction another connection and knows nothing of names, the server refuses a name that
 * it has not heard, or has heard from somebody else. It says so before anything is executed: names are not used from then
 * on, and the call is made again.
 */
import type { Row } from "@cairn/sql"
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"

/** What is used of a connection of `pg`. */
export interface NamingClient {
  readonly query: (
    query: { readonly name: string; readonly text: string; readonly values: Array<unknown> },
    done: (error: unknown, result: { readonly rows: ReadonlyArray<Row> }) => void,
  ) => unknown
}

/** The same for the same text, in every process: through a pooler that shares connections it then means the same. */
const nameOf = (text: string): string => `cairn_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`

const unknownName = "26000"
const takenName = "42P05"

/** The named statements of one pool. */
export class NamedStatements {
  private readonly names = new Map<string, string>()
  private isOn = true

  /** Whether a statement is sent by a name. One without parameters may be several, which have none. */
  takes(client: Partial<NamingClient> | undefined, params: ReadonlyArray<unknown>): client is NamingClient {
    return this.isOn && params.length > 0 && client?.query !== undefined
  }

  run(client: NamingClient, text: string, params: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<Row>, SqlError> {
    return Effect.async<ReadonlyArray<Row>, SqlError>((resume) => {
      let name = this.names.get(text)
      if (name === undefined) this.names.set(text, (name = nameOf(text)))
      client.query({ name, text, values: [...params] }, (cause, result) => {
        if (cause === null || cause === undefined) return resume(Effect.succeed(result.rows))
        const { code } = cause as { readonly code?: unknown }
        if (code === unknownName || code === takenName) this.isOn = false
        resume(Effect.fail(new SqlError({ cause, message: "Failed to execute statement" })))
      })
    })
  }
}
