/** Where the server is, and as whom: read once, into parts. No text that holds the password leaves this file. */
import { StoreError } from "@cairn/core"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { ConnectionOptions } from "node:tls"
import type { ClientConfig } from "pg"
import { parseIntoClientConfig } from "pg-connection-string"
import { schemaProblem } from "./identifiers.js"
import { defaultLockMs } from "./postgresDialect.js"

/**
 * How a Postgres database is reached and used.
 *
 * *Shape.* `url`, or its parts; a part that is given wins over the url's. `schema` (`cairn`): where the tables are; any
 * name that Postgres takes. `maxConnections` (10): one works, no call needs two; of two or
 * more, one is kept for heartbeats. `migrate` (true): creates and changes
 * the tables; with false, tables of another version are an error. `listen` (true): keeps one more connection, by which
 * other processes wake this one; it must reach the server itself and not a transaction pooler: set it to false, or give
 * `listenUrl`. Limits, in milliseconds: `connectTimeoutMs` (5,000), `statementTimeoutMs` (30,000), `lockTimeoutMs`
 * (5,000), `idleInTransactionTimeoutMs` (10,000), `retryTimeoutMs` (5,000: how long a call repeats what deadlocks, locks
 * and lost connections undid), `listenProbeMs` (15,000: how often the listening connection is tried).
 *
 * @category models
 * @since 0.1.0
 */
export interface PostgresStoreOptions {
  readonly url?: string | Redacted.Redacted
  readonly host?: string
  readonly port?: number
  readonly database?: string
  readonly username?: string
  readonly password?: string | Redacted.Redacted
  readonly ssl?: boolean | ConnectionOptions
  readonly schema?: string
  readonly applicationName?: string
  readonly maxConnections?: number
  readonly migrate?: boolean
  readonly listen?: boolean
  readonly listenUrl?: string | Redacted.Redacted
  readonly connectTimeoutMs?: number
  readonly statementTimeoutMs?: number
  readonly lockTimeoutMs?: number
  readonly idleInTransactionTimeoutMs?: number
  readonly retryTimeoutMs?: number
  readonly listenProbeMs?: number
}

export interface ReadOptions {
  readonly client: ClientConfig
  /** For the connection that listens; null where there is none. */
  readonly listener: ClientConfig | null
  /** What errors name: never a credential. */
  readonly place: string
  readonly schema: string
  readonly migrate: boolean
  readonly maxConnections: number
  readonly retryMs: number
  readonly statementMs: number
  readonly lockMs: number
  readonly idleInTransactionMs: number
  readonly probeMs: number
}

const operation = "read the options of the Postgres store"

// Without a cause: the parser's error holds the url.
const refused = (problem: string): StoreError => new StoreError({ reason: "Unknown", operation, problem })

const plain = (text: string | Redacted.Redacted): string => (Redacted.isRedacted(text) ? Redacted.value(text) : text)

/** A password with an unescaped `@`, `/` or `#` would become part of the host name, and show in errors. */
const urlProblem = (url: string): string | null => {
  if (!/^postgres(ql)?:\/\//i.test(url)) return "it does not begin with postgres://"
  const unescaped = url.includes("#") || url.split("@").length > 2
  return unescaped ? "user name or password hold unescaped characters; percent-encode them, or give them apart" : null
}

const readUrl = (name: string, url: string): Effect.Effect<ClientConfig, StoreError> => {
  const problem = urlProblem(url)
  return problem === null
    ? Effect.try({ try: () => parseIntoClientConfig(url), catch: () => refused(`'${name}' cannot be read as a url`) })
    : Effect.fail(refused(`'${name}' cannot be used: ${problem}`))
}

const given = <A extends object>(values: A): Partial<A> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<A>

const milliseconds = (name: string, value: number, least = 1): Effect.Effect<number, StoreError> =>
  Number.isSafeInteger(value) && value >= least && value <= 2 ** 31 - 1
    ? Effect.succeed(value)
    : Effect.fail(refused(`'${name}' is ${value}, it has to be a whole number from ${least} to 2147483647`))

// Above the server's own limit: it strikes only where the server can no longer be heard.
const graceMs = 5_000

// A probe that is not answered in the time between two means a dead connection; a busy server is given this much.
const leastAnswerMs = 1_000

const readClient = (options: PostgresStoreOptions, statementMs: number, probeMs: number) =>
  Effect.gen(function* () {
    const fromUrl = options.url === undefined ? {} : yield* readUrl("url", plain(options.url))
    const parts = given({
      host: options.host,
      port: options.port,
      database: options.database,
      user: options.username,
      password: options.password === undefined ? undefined : plain(options.password),
      ssl: options.ssl,
    })
    const common: ClientConfig = {
      application_name: options.applicationName ?? fromUrl.application_name ?? "cairn",
      connectionTimeoutMillis: yield* milliseconds("connectTimeoutMs", options.connectTimeoutMs ?? 5_000),
      query_timeout: statementMs + graceMs,
      keepAlive: true,
    }
    const client: ClientConfig = { ...fromUrl, ...parts, ...common }
    if (options.listen === false) return { client, listener: null }
    const direct = options.listenUrl === undefined ? client : yield* readUrl("listenUrl", plain(options.listenUrl))
    const listener = { ...direct, ...common, application_name: `${common.application_name} (listen)` }
    return { client, listener: { ...listener, query_timeout: Math.max(probeMs, leastAnswerMs) } }
  })

/** Checks the options and takes them apart. */
export const readOptions = (options: PostgresStoreOptions): Effect.Effect<ReadOptions, StoreError> =>
  Effect.gen(function* () {
    const schema = options.schema ?? "cairn"
    const problem = schemaProblem(schema)
    if (problem !== null) return yield* refused(`the schema ${JSON.stringify(schema)} cannot be used: ${problem}`)
    const maxConnections = options.maxConnections ?? 10
    if (!Number.isSafeInteger(maxConnections) || maxConnections < 1) {
      return yield* refused(`'maxConnections' is ${maxConnections}, it has to be a whole number from 1`)
    }
    const statementMs = yield* milliseconds("statementTimeoutMs", options.statementTimeoutMs ?? 30_000)
    const probeMs = yield* milliseconds("listenProbeMs", options.listenProbeMs ?? 15_000)
    const { client, listener } = yield* readClient(options, statementMs, probeMs)
    return {
      client,
      listener,
      place: `${client.host ?? "localhost"}:${client.port ?? 5432}/${client.database ?? client.user ?? ""}`,
      schema,
      migrate: options.migrate ?? true,
      maxConnections,
      statementMs,
      retryMs: yield* milliseconds("retryTimeoutMs", options.retryTimeoutMs ?? 5_000, 0),
      lockMs: yield* milliseconds("lockTimeoutMs", options.lockTimeoutMs ?? defaultLockMs),
      idleInTransactionMs: yield* milliseconds(
        "idleInTransactionTimeoutMs",
        options.idleInTransactionTimeoutMs ?? 10_000,
      ),
      probeMs,
    }
  })
