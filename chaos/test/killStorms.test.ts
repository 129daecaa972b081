/** Short kill storms, with a log and without. `chaos/src/killReport.ts` runs the long ones, in every mode of durability. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { killStorm, modes } from "../src/killStorms.js"

describe("workers that are killed as soon as they work", () => {
  let folder: string
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), "cairn-kills-"))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  const tried = modes.filter(({ name }) => name === "barrier" || name === "barrier, log written")

  it.each(tried.map((mode) => [mode.name, mode] as const))(
    "lose nothing that was durable, and nothing that stood in a log (%s)",
    async (_, mode) => {
      const runs = 60
      const store = path.join(folder, "runs.db")
      const figures = await killStorm({ mode, store, folder, workers: 3, runs, kills: 6 })
      expect(figures.wrong).toEqual([])
      expect(figures.completed).toBe(runs * figures.rounds)
      expect(figures.kills).toBe(6)
      expect(figures.takeovers).toBeGreaterThan(0)
    },
    90_000,
  )
})
