/**
 * Writes `docs/guarantees.md`: `node --conditions=@cairn/source --import tsx packages/testing/scripts/table.ts`. It takes
 * some minutes, and starts a Postgres of its own.
 */
import { makeTestDatabase, startPostgres } from "@cairn/postgres-server"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { memorySample, page, postgresSample, runSample, sqliteSample } from "./publish.js"

const seed = 20_261
const target = join(import.meta.dirname, "../../../docs/guarantees.md")
const directory = await mkdtemp(join(tmpdir(), "cairn-table-"))
const server = await startPostgres()
const database = await makeTestDatabase(server.url)
try {
  const samples = [
    memorySample(840),
    sqliteSample(22, join(directory, "runs.sqlite")),
    postgresSample(14, database.url),
  ]
  const done = []
  for (const sample of samples) {
    const reports = await runSample(sample, seed, ({ workflow, durability, schedules, breaches, timing }) => {
      console.log(sample.store, workflow, durability, `${schedules} schedules`, `${breaches.length} breaches`, timing)
      for (const { problem, shown } of breaches) console.log(`  ${problem} <- ${shown}`)
    })
    done.push({ store: sample.store, reports })
  }
  await writeFile(target, page(seed, done))
} finally {
  await database.drop()
  await server.stop()
  await rm(directory, { recursive: true, force: true })
}
