/** A process that has started a server ends with its own exit code: a test runner's failures are not lost. */
import { expect, it } from "vitest"
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const module = fileURLToPath(new URL("../src/startPostgres.ts", import.meta.url))

it.each([0, 3])("a process that imports it ends with the code %d that it has set", (code) => {
  const program = `await import(${JSON.stringify(module)}); process.exitCode = ${code}`
  const args = ["--conditions=@cairn/source", "--import", "tsx", "--input-type=module", "-e", program]
  expect(spawnSync(process.execPath, args, { encoding: "utf8" })).toMatchObject({ status: code })
})
