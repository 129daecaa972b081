/**
 * For vitest's `globalSetup`: one server for all test files of a run, started when the first one asks, so that a run
 * without Postgres tests pays nothing. Test files live in other processes; they ask over a local port.
 */
import { createServer, type AddressInfo, type Server } from "node:net"
import { startPostgres, type PostgresServer } from "./startPostgres.js"
import { askVariable, urlVariable, type Answer } from "./testDatabase.js"

let asked: Server | null = null
let starting: Promise<PostgresServer> | null = null

const answer = async (): Promise<Answer> => {
  try {
    starting ??= startPostgres()
    return { url: (await starting).url }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

export const setup = async (): Promise<void> => {
  // The server that is named there is used, and none is started.
  if (process.env[urlVariable] !== undefined) return
  const server = createServer((socket) => {
    // A test process that is killed while it waits takes nobody with it.
    socket.on("error", () => socket.destroy())
    void answer().then((given) => socket.end(JSON.stringify(given)))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  process.env[askVariable] = String((server.address() as AddressInfo).port)
  asked = server
}

export const teardown = async (): Promise<void> => {
  asked?.close()
  const server = await starting?.catch(() => null)
  await server?.stop()
}
