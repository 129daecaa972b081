/** A store that goes away under a fleet that works, stays away for a while, and comes back (laws W4 to W6). */
import type { PostgresServer } from "@cairn/postgres-server"
import { execFileSync, spawnSync } from "node:child_process"
import { mkdir, rm } from "node:fs/promises"
import { createRequire } from "node:module"
import path from "node:path"
import type { CuttingProxy } from "../../packages/postgres/test/internal/cuttingProxy.js"
import { Fleet, judge, type FleetOptions, type Verdict } from "./fleet.js"
import { readTrace } from "./trace.js"

export interface Outage {
  readonly name: string
  readonly begin: () => void | Promise<void>
  readonly end: () => void | Promise<void>
}

export interface OutageFigures extends Verdict {
  /** Runs that had ended when the store went away, and that ended by a few seconds after it was back. */
  readonly endedBefore: number
  readonly endedSoonAfter: number
  readonly settledMs: number
  readonly rssMbBefore: number
  /** The most that one worker held while the store was away, and at any time. */
  readonly rssMbAway: number
  readonly rssMbPeak: number
  readonly workersAlive: number
  /** What workers have written to their standard error: an unheard rejection or exception among it. */
  readonly complaints: string
  readonly recoveries: number
  readonly accepted: number
  readonly repeated: ReadonlyArray<string>
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const soonMs = 5_000
const settleMs = 240_000
const sampleMs = 100

/** Runs a fleet through one outage. */
export const throughOutage = async (
  options: FleetOptions & { readonly trace: string },
  outage: Outage,
  awayMs: number,
): Promise<OutageFigures> => {
  const fleet = new Fleet(options)
  let away = false
  let rssMbAway = 0
  let rssMbPeak = 0
  const sampling = setInterval(() => {
    rssMbPeak = Math.max(rssMbPeak, ...fleet.rssMb())
    if (away) rssMbAway = Math.max(rssMbAway, ...fleet.rssMb())
  }, sampleMs)
  try {
    await fleet.startRuns()
    fleet.start()
    // The runs that were claimed first are in the midst of their steps, and no other has begun.
    while (!fleet.sent().some(({ operation }) => operation === "mail.send")) await pause(20)
    const rssMbBefore = Math.max(...fleet.rssMb())
    const endedBefore = await fleet.ended()
    away = true
    await outage.begin()
    await pause(awayMs)
    await outage.end()
    away = false
    const back = Date.now()
    const soon = pause(soonMs).then(() => fleet.ended())
    const states = await fleet.settled(settleMs)
    return {
      ...judge(states, fleet.sent()),
      ...readTrace(options.trace),
      endedBefore,
      endedSoonAfter: await soon,
      settledMs: Date.now() - back,
      rssMbBefore,
      rssMbAway,
      rssMbPeak,
      workersAlive: fleet.rssMb().length,
      complaints: fleet.complaints.join(""),
      recoveries: states.reduce((sum, { run }) => sum + run.recoveries, 0),
    }
  } finally {
    clearInterval(sampling)
    await fleet.end()
  }
}

export const stopped = (server: PostgresServer): Outage => ({
  name: "the server is stopped",
  begin: () => server.crash(),
  end: () => server.start(),
})

export const swallowed = (proxy: CuttingProxy): Outage => ({
  name: "nothing passes between worker and server, and no connection ends",
  begin: () => proxy.swallow(true),
  end: () => proxy.swallow(false),
})

/** Another process' transaction: every write waits for it. */
export const locked = (filename: string): Outage => {
  const require = createRequire(createRequire(import.meta.url).resolve("@cairn/sqlite/package.json"))
  const Database = require("better-sqlite3") as new (file: string) => { exec: (sql: string) => void; close: () => void }
  let other: InstanceType<typeof Database> | null = null
  return {
    name: "the file is locked by another connection",
    begin: () => {
      other = new Database(filename)
      other.exec("pragma busy_timeout = 5000; begin immediate")
    },
    end: () => {
      other!.exec("rollback")
      other!.close()
    },
  }
}

/** A file system of its own in memory, so large; it is there until `remove`. Needs the rights to mount one. */
export const smallDisk = async (folder: string, megabytes: number) => {
  const disk = path.join(folder, "disk")
  await mkdir(disk)
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", disk])
  const filler = path.join(disk, "filler")
  const outage: Outage = {
    name: "the disk is full",
    // By dd, which writes until there is no room, and then fails.
    begin: () => void spawnSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=4k"]),
    end: () => rm(filler),
  }
  return { disk, outage, remove: () => void execFileSync("umount", [disk]) }
}
