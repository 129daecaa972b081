/** Versions of Node and better-sqlite3 that do not go together. */
import { createRequire } from "node:module"
import * as Effect from "effect/Effect"

const numbers = (version: string): readonly [number, number] => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return [major, minor]
}

/**
 * What is wrong with a pair of versions, and what to do; null if nothing is known.
 *
 * better-sqlite3 12 built against the headers of Node 24.19 and later can abort the process at garbage collection
 * (nodejs/node#65446); 13 does not, but needs Node 22.
 */
export const runtimeProblem = (node: string, betterSqlite3: string): string | null => {
  const [nodeMajor, nodeMinor] = numbers(node)
  const [sqliteMajor] = numbers(betterSqlite3)
  const affected = nodeMajor > 24 || (nodeMajor === 24 && nodeMinor >= 19)
  if (affected && sqliteMajor <= 12) {
    return (
      `better-sqlite3 ${betterSqlite3} can abort the process on Node ${node}: ` +
      `override better-sqlite3 to version 13 in package.json, or use Node 22 or 24 up to 24.18`
    )
  }
  return nodeMajor < 22 && sqliteMajor >= 13
    ? `better-sqlite3 ${betterSqlite3} crashes on Node ${node}: use Node 22 or later, or better-sqlite3 12`
    : null
}

/** The version that is loaded; null where it cannot be found out (a bundle). */
const installedBetterSqlite3 = (): string | null => {
  try {
    const ours = createRequire(import.meta.url)
    return (ours("better-sqlite3/package.json") as { readonly version: string }).version
  } catch {
    // Nothing depends on it but a warning: opening the file says what is really wrong.
    return null
  }
}

/** Warns, and does not refuse: whether the addon was built against those headers is not to be seen from here. */
export const warnOfRuntime: Effect.Effect<void> = Effect.suspend(() => {
  const version = installedBetterSqlite3()
  const problem = version === null ? null : runtimeProblem(process.versions.node, version)
  return problem === null ? Effect.void : Effect.logWarning(problem)
})
