/** Processor time of a Postgres server with all its backends, so far. */
import { readdirSync, readFileSync } from "node:fs"

// The unit of /proc, the same on every Linux that Node runs on.
const tickUs = 10_000

/** Fields of /proc/<pid>/stat from the fourth on; the name before them may hold anything. */
const statOf = (pid: number | string): ReadonlyArray<string> | null => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    return text.slice(text.lastIndexOf(")") + 4).split(" ")
  } catch {
    // It has ended meanwhile, or this is no Linux.
    return null
  }
}

/** In microseconds, to ten milliseconds; null where it cannot be told. Backends that ended are in it. */
export const serverCpuUs = (pid: number | null): number | null => {
  const postmaster = pid === null ? null : statOf(pid)
  if (postmaster === null) return null
  const sum = (stat: ReadonlyArray<string>, from: number, to: number) =>
    stat.slice(from, to).reduce((total, ticks) => total + Number(ticks), 0)
  // utime, stime, and those of children that were waited for, are the 14th to 17th field.
  let ticks = sum(postmaster, 10, 14)
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue
    const stat = statOf(name)
    if (stat !== null && stat[0] === String(pid)) ticks += sum(stat, 10, 12)
  }
  return ticks * tickUs
}
