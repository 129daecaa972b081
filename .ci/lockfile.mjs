/** The lock file names packages and their hashes, never a host: it must install from any registry. */
import { readFileSync } from "node:fs"
import { resolve } from "node:path"

const lines = readFileSync(resolve(import.meta.dirname, "../pnpm-lock.yaml"), "utf8").split("\n")
const bad = lines.flatMap((line, index) => (/https?:\/\/|tarball:/.test(line) ? [`${index + 1}: ${line.trim()}`] : []))
const hashes = lines.filter((line) => line.includes("integrity: sha512-")).length

for (const line of bad) console.error(`pnpm-lock.yaml:${line}`)
console.log(`${hashes} packages, ${bad.length} bound to a host`)
process.exitCode = bad.length > 0 || hashes === 0 ? 1 : 0
