/**
 * Kill storms in every mode of durability, at length; one line of figures each.
 *
 *     node --conditions=@cairn/source --import tsx chaos/src/killReport.ts [sqlite|postgres] [kills] [runs] [mode]
 */
import { startPostgres } from "@cairn/postgres-server"
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { killStorm, modes } from "./killStorms.js"

const [which = "sqlite", kills = "200", runs = "1000", only] = process.argv.slice(2)

const root = await mkdtemp(path.join(tmpdir(), "cairn-kills-"))
const server = which === "postgres" ? await startPostgres() : null
let isWrong = false
try {
  for (const [index, mode] of modes.entries()) {
    if (only !== undefined && mode.name !== only) continue
    const folder = path.join(root, String(index))
    await mkdir(folder)
    const store = server === null ? path.join(folder, "runs.db") : `${server.url}#kills${index}`
    const began = Date.now()
    const { wrong, ...figures } = await killStorm({
      mode,
      store,
      folder,
      workers: 4,
      runs: Number(runs),
      kills: Number(kills),
    })
    const seconds = ((Date.now() - began) / 1_000).toFixed(0)
    process.stdout.write(`${which}, ${mode.name}: ${seconds} s ${JSON.stringify(figures)}\n`)
    for (const one of wrong.slice(0, 20)) process.stdout.write(`  WRONG ${one}\n`)
    isWrong ||= wrong.length > 0
  }
} finally {
  await server?.stop()
  await rm(root, { recursive: true, force: true })
}
process.exit(isWrong ? 1 : 0)
