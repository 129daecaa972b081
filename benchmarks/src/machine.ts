/** Where and with what it was measured. */
import { execFileSync } from "node:child_process"
import { readFileSync, realpathSync } from "node:fs"
import { cpus, release, totalmem, type } from "node:os"
import path from "node:path"
import type { Subject } from "./Subject.js"

const output = (root: string, command: string, ...args: ReadonlyArray<string>): string => {
  try {
    return execFileSync(command, args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim()
  } catch {
    // A tree without its history, or a machine without the command: the report says "unknown".
    return "unknown"
  }
}

export const describeMachine = (): Record<string, string> => ({
  node: process.version,
  cpu: `${cpus().length} x ${cpus()[0]?.model ?? "unknown"}`,
  memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
  system: `${type()} ${release()}`,
})

export const describeTree = (root: string) => ({
  commit: process.env["CAIRN_BENCH_COMMIT"] ?? output(root, "git", "rev-parse", "--short", "HEAD"),
  changed:
    process.env["CAIRN_BENCH_COMMIT"] === undefined &&
    output(root, "git", "status", "--porcelain", "../packages") !== "",
})

const versionOf = (root: string, name: string): string => {
  const manifest = path.join(realpathSync(path.join(root, "node_modules", name)), "package.json")
  return String((JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version)
}

export const versions = (root: string, subjects: ReadonlyArray<Subject>): Record<string, string> =>
  Object.fromEntries(
    [...new Set(subjects.flatMap(({ packages }) => packages))].sort().map((name) => [name, versionOf(root, name)]),
  )
