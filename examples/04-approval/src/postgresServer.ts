/**
 * A Postgres as a process of its own: a database on the server that `CAIRN_TEST_POSTGRES_URL` names, or a server that
 * is started for it. It announces the url as one line of JSON, and removes what it made when whoever started it closes
 * its standard input, or dies.
 *
 * Not in the demo's own process: the embedded server hooks that one's end, and would make its exit code 0.
 */
import { makeTestDatabase, startPostgres } from "@cairn/postgres-server"
import type { AnnouncedPostgres } from "./processes.js"

const open = async (): Promise<AnnouncedPostgres & { readonly close: () => Promise<void> }> => {
  const given = process.env["CAIRN_TEST_POSTGRES_URL"]
  if (given !== undefined && given !== "") {
    const { url, drop } = await makeTestDatabase(given)
    return { url, started: false, close: drop }
  }
  const { url, stop } = await startPostgres()
  return { url, started: true, close: stop }
}

const starterIsGone = new Promise((resolve) => process.stdin.once("end", resolve).resume())
// The starter may be gone before it is told the url; what was made is removed all the same.
process.stdout.on("error", () => undefined)

try {
  const { close, ...announced } = await open()
  process.stdout.write(`${JSON.stringify(announced)}\n`)
  await starterIsGone
  await close()
  process.exit(0)
} catch (error) {
  // A refused connection to `localhost` has a code and no message. The error itself may hold the url with its password.
  const { message, code } = error as NodeJS.ErrnoException
  console.error(`Postgres: ${message || code}`)
  process.exit(1)
}
