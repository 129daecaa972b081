/** A database of its own on the server of the test run. Without a server a test fails; it is never skipped. */
import { randomBytes } from "node:crypto"
import { connect } from "node:net"
import pg from "pg"

/** Names a server to use instead of starting one. Its role has to be a superuser. */
export const urlVariable = "CAIRN_TEST_POSTGRES_URL"

/** Where the test run answers who asks for its server. */
export const askVariable = "CAIRN_TEST_POSTGRES_ASK"

export type Answer = { readonly url: string } | { readonly problem: string }

const ask = (port: number): Promise<Answer> =>
  new Promise((resolve, reject) => {
    let text = ""
    const socket = connect(port, "127.0.0.1")
    socket.setEncoding("utf8")
    socket.on("data", (chunk: string) => (text += chunk))
    socket.on("error", reject)
    socket.on("end", () => resolve(JSON.parse(text) as Answer))
  })

/**
 * The url of the test run's server, with the rights of a superuser.
 *
 * *Errors.* Rejects where no server can be had.
 *
 * @category testing
 * @since 0.1.0
 */
export const testServerUrl = async (): Promise<string> => {
  const given = process.env[urlVariable]
  if (given !== undefined) return given
  const port = process.env[askVariable]
  if (port === undefined) {
    throw new Error(`there is no Postgres: run vitest with this package's globalSetup, or set ${urlVariable}`)
  }
  const answer = await ask(Number(port))
  if ("problem" in answer) throw new Error(answer.problem)
  return answer.url
}

/**
 * A database that nobody else uses.
 *
 * *Shape.* `query` runs SQL as the superuser in it, over one connection that `drop` closes. `drop` ends all connections.
 *
 * @category models
 * @since 0.1.0
 */
export interface TestDatabase {
  readonly name: string
  readonly url: string
  readonly query: <Row extends object = Record<string, unknown>>(
    text: string,
    values?: ReadonlyArray<unknown>,
  ) => Promise<ReadonlyArray<Row>>
  readonly drop: () => Promise<void>
}

const on = async <A>(url: string, use: (client: pg.Client) => Promise<A>): Promise<A> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

/**
 * Creates a database on the test run's server, or on the one of `serverUrl`.
 *
 * @category testing
 * @since 0.1.0
 */
export const makeTestDatabase = async (serverUrl?: string): Promise<TestDatabase> => {
  const server = serverUrl ?? (await testServerUrl())
  const name = `cairn_test_${randomBytes(6).toString("hex")}`
  await on(server, (client) => client.query(`create database ${name}`))
  const url = new URL(server)
  url.pathname = `/${name}`
  let client: pg.Client | null = null
  const connected = async (): Promise<pg.Client> => {
    if (client !== null) return client
    const made = new pg.Client({ connectionString: url.href, application_name: "cairn tests" })
    // A test may end all connections; the next query opens another one.
    made.on("error", () => (client = null))
    made.on("end", () => (client = null))
    await made.connect()
    client = made
    return made
  }
  let last: Promise<unknown> = Promise.resolve()
  const run = async (text: string, values: ReadonlyArray<unknown>) =>
    (await (await connected()).query(text, [...values])).rows
  return {
    name,
    url: url.href,
    query: <Row extends object>(text: string, values: ReadonlyArray<unknown> = []) => {
      // One after the other: they share a connection.
      const rows = last.then(() => run(text, values)) as Promise<ReadonlyArray<Row>>
      last = rows.catch(() => undefined)
      return rows
    },
    drop: async () => {
      await client?.end()
      await on(server, (admin) => admin.query(`drop database if exists ${name} with (force)`))
    },
  }
}
