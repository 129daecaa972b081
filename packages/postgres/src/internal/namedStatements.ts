/**
 * Statements that the server parses and plans once a connection, and not at each call: most of a short statement's time.
 *
 * Behind a pooler that gives each transaction another connection and knows nothing of names, the server refuses a name that
 * it has not heard, or has heard from somebody else. It says so before anything is executed: names are not used from then
 * on, and the call is made again.
 */
import type { Row } from "@cairn/sql"
import { createHash } from "node:crypto"

/** The same for the same text, in every process: through a pooler that shares connections it then means the same. */
const nameOf = (text: string): string => `cairn_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`

const unknownName = "26000"
const takenName = "42P05"

/** What is used of the wire of `pg`, as its own cursors use it. */
interface Wire {
  readonly stream: { readonly cork: () => void; readonly uncork: () => void }
  /** By name, what this connection has had parsed; `pg` keeps it. */
  readonly parsedStatements: Readonly<Record<string, string>>
  readonly parse: (of: { readonly name: string; readonly text: string }) => void
  readonly describe: (of: { readonly type: "P"; readonly name: string }) => void
  readonly bind: (of: {
    readonly statement: string
    readonly values: ReadonlyArray<unknown>
    readonly valueMapper: (value: unknown) => string | null
  }) => void
  readonly execute: (of: { readonly portal: string; readonly rows: number }) => void
  readonly sync: () => void
}

/** What is used of a connection of `pg`. */
export interface NamingClient {
  readonly query: (execution: Execution) => unknown
}

/** A text under its name; `columns` are null until a first execution has told them, and the same on every connection. */
interface Named {
  readonly name: string
  readonly text: string
  columns: ReadonlyArray<string> | null
}

type Done = (cause: unknown, rows: ReadonlyArray<Row>) => void

const special = /[\\"]/

const element = (value: string | number | null): string => {
  if (value === null) return "NULL"
  if (typeof value === "number") return String(value)
  return special.test(value) ? `"${value.replace(/[\\"]/g, "\\$&")}"` : `"${value}"`
}

/** Texts, numbers, nulls, and arrays of them: nothing else is bound. */
const written = (value: unknown): string | null => {
  if (value === null || typeof value === "string") return value
  return Array.isArray(value) ? `{${value.map(element).join(",")}}` : String(value)
}

/**
 * One execution. A query of `pg` itself asks the server for the columns each time, and looks for a parser for each of them; here
 * they are asked for once, and every value is the text that the server sends.
 */
class Execution {
  private readonly rows: Array<Row> = []
  private isTold = false

  constructor(
    private readonly of: Named,
    private readonly values: ReadonlyArray<unknown>,
    /** `pg` puts its limit of time around it. */
    public callback: Done,
  ) {}

  /** By these two `pg` knows what the connection has parsed. */
  get name(): string {
    return this.of.name
  }

  get text(): string {
    return this.of.text
  }

  submit(wire: Wire): void {
    const { columns, name, text } = this.of
    wire.stream.cork()
    try {
      if (wire.parsedStatements[name] === undefined) wire.parse({ name, text })
      wire.bind({ statement: name, values: this.values, valueMapper: written })
      if (columns === null) wire.describe({ type: "P", name: "" })
      wire.execute({ portal: "", rows: 0 })
    } catch (thrown) {
      // More than a text can hold, say. What was written is answered: the connection is as usable as before.
      this.tell(thrown, [])
    } finally {
      wire.sync()
      wire.stream.uncork()
    }
  }

  handleRowDescription({ fields }: { readonly fields: ReadonlyArray<{ readonly name: string }> }): void {
    this.of.columns = fields.map(({ name }) => name)
  }

  handleDataRow({ fields }: { readonly fields: ReadonlyArray<string | null> }): void {
    const columns = this.of.columns!
    const row: Record<string, unknown> = {}
    for (let index = 0; index < columns.length; index++) row[columns[index]!] = fields[index]
    this.rows.push(row)
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    // It gives no rows, ever.
    if (!this.isTold) this.of.columns ??= []
    this.tell(null, this.rows)
  }

  handleError(cause: unknown): void {
    this.tell(cause, [])
  }

  private tell(cause: unknown, rows: ReadonlyArray<Row>): void {
    if (this.isTold) return
    this.isTold = true
    this.callback(cause, rows)
  }
}

/** The named statements of one pool. */
export class NamedStatements {
  private readonly named = new Map<string, Named>()
  private isOn = true

  /** Whether a statement is sent by a name. One without parameters may be several, which have none. */
  takes(client: Partial<NamingClient> | undefined, params: ReadonlyArray<unknown>): client is NamingClient {
    return this.isOn && params.length > 0 && client?.query !== undefined
  }

  /** Executes a statement; `done` is told the rows, each value as text, or what the server, `pg` or the socket says. */
  run(client: NamingClient, text: string, params: ReadonlyArray<unknown>, done: Done): void {
    let of = this.named.get(text)
    if (of === undefined) this.named.set(text, (of = { name: nameOf(text), text, columns: null }))
    const told: Done = (cause, rows) => {
      const code = (cause as { readonly code?: unknown } | null | undefined)?.code
      if (code === unknownName || code === takenName) this.isOn = false
      done(cause ?? null, rows)
    }
    client.query(new Execution(of, params, told))
  }
}
