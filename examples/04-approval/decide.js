/** `node decide.js <run> approve|reject`: runs `src/decide.ts` from source. */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const script = fileURLToPath(new URL("src/decide.ts", import.meta.url))
const tsx = import.meta.resolve("tsx")
const args = ["--conditions=@cairn/source", "--import", tsx, script, ...process.argv.slice(2)]
process.exit(spawnSync(process.execPath, args, { stdio: "inherit" }).status ?? 1)
