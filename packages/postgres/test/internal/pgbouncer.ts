/** A PgBouncer in transaction mode before the test server. Where its program is missing it is installed, or the test fails. */
import { Effect } from "effect"
import { execFile, spawn, spawnSync } from "node:child_process"
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer, connect, type AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"

const run = promisify(execFile)

const isInstalled = (): boolean => spawnSync("pgbouncer", ["--version"]).status === 0

const install = async (): Promise<void> => {
  if (isInstalled()) return
  await run("apt-get", ["update"])
  await run("apt-get", ["install", "--yes", "--no-install-recommends", "pgbouncer"], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  })
  if (!isInstalled()) throw new Error("PgBouncer could not be installed; these tests need it")
}

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.on("connect", () => {
      socket.destroy()
      resolve(true)
    })
    socket.on("error", () => resolve(false))
  })

const start = async (url: string, poolSize: number) => {
  await install()
  const target = new URL(url)
  const port = await freePort()
  const folder = await mkdtemp(path.join(tmpdir(), "cairn-pgbouncer-"))
  await chmod(folder, 0o755)
  const database = target.pathname.slice(1)
  const settings = [
    "[databases]",
    `${database} = host=${target.hostname} port=${target.port} dbname=${database} user=${target.username} password=${target.password}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = any",
    "pool_mode = transaction",
    `default_pool_size = ${poolSize}`,
    "max_client_conn = 200",
  ]
  const file = path.join(folder, "pgbouncer.ini")
  await writeFile(file, `${settings.join("\n")}\n`)
  // It refuses to run as root.
  const as = process.getuid?.() === 0 ? ["-u", "postgres"] : []
  const child = spawn("pgbouncer", ["-q", ...as, file], { stdio: ["ignore", "pipe", "pipe"] })
  let said = ""
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()))
  const stop = async (): Promise<void> => {
    child.kill("SIGKILL")
    await rm(folder, { recursive: true, force: true })
  }
  const deadline = Date.now() + 10_000
  while (!(await answers(port))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop()
      throw new Error(`PgBouncer did not start: ${said}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const pooled = new URL(url)
  pooled.hostname = "127.0.0.1"
  pooled.port = String(port)
  return { url: pooled.href, stop }
}

/** The url of the same database through a pooler whose pool has so many connections. */
export const pgBouncer = (url: string, poolSize: number) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => start(url, poolSize)),
      ({ stop }) => Effect.promise(stop),
    ),
    ({ url }) => url,
  )
