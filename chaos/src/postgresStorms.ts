/** What can happen to a database server while a fleet works. */
import type { PostgresServer } from "@cairn/postgres-server"
import pg from "pg"
import type { Storm } from "./storm.js"

/** The server ends as in a power failure, and comes back half a second later. */
export const restarts = (forMs: number, server: PostgresServer): Storm => ({
  name: "Postgres restarted in immediate mode",
  strike: async () => {
    await server.crash()
    await new Promise((resolve) => setTimeout(resolve, 500))
    await server.start()
  },
  everyMs: Math.max(2_000, forMs / 4),
  forMs,
})

/** Every other connection to the server is ended, in whatever it does. */
export const connectionsEnd = (forMs: number, server: PostgresServer): Storm => ({
  name: "all connections ended by pg_terminate_backend every second",
  strike: async () => {
    const client = new pg.Client({ connectionString: server.url })
    client.on("error", () => {})
    await client.connect()
    await client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and datname is not null",
    )
    await client.end()
  },
  everyMs: 1_000,
  forMs,
})
