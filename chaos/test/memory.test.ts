/** What a process holds of runs that have ended, that wait, or that are very wide (field cases P092, P105, P116). */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { usePlaces } from "./internal/places.js"

const places = usePlaces()

/** Runs one of the scripts that measure, and reads the lines of figures that it prints. */
const measured = (script: string, ...args: ReadonlyArray<string>) => measuredIn([], script, ...args)

/** The same, by a node that was told something. */
const measuredIn = (told: ReadonlyArray<string>, script: string, ...args: ReadonlyArray<string>) =>
  new Promise<{ readonly code: number | string; readonly lines: ReadonlyArray<any>; readonly problems: string }>(
    (resolve) => {
      const file = fileURLToPath(new URL(`../src/${script}.ts`, import.meta.url))
      const node = [...told, "--expose-gc", "--conditions=@cairn/source", "--import", "tsx", file, ...args]
      execFile(process.execPath, node, (error, output, problems) =>
        resolve({
          code: error === null ? 0 : (error.signal ?? error.code ?? "unknown"),
          lines: output
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line)),
          problems,
        }),
      )
    },
  )

describe("a process", () => {
  it("has a heap after 5,000 runs as after 2,000, whether they completed, failed, were canceled, lost or abandoned", async () => {
    const { code, lines, problems } = await measured("heap", "sqlite", "2000", "5000")
    expect(lines.at(-1), problems).toMatchObject({ which: "sqlite" })
    expect(lines.at(-1).grownBy).toBeLessThan(0.05)
    expect(code).toBe(0)
  })

  it("holds less than 2 kB of a run that waits, no timer, and nothing that its steps have opened", async () => {
    const { code, lines, problems } = await measured("suspended", "sqlite", "1000")
    expect(lines[0], problems).toMatchObject({ runs: 1_000, opened: 1_000, closed: 1_000 })
    expect(lines[0].bytesARun).toBeLessThan(2_000)
    expect(lines[0].timersDuring).toBeLessThanOrEqual(lines[0].timersBefore + 5)
    expect(code).toBe(0)
  })

  it("works through 10,000 items fifty at a time in a heap of 64 MB, and goes on after it was killed half way", async () => {
    const { address } = places.make("Postgres")
    // Without a bound V8 takes what the machine has, and how much that is says nothing of what is held.
    const narrow = ["--max-old-space-size=64"]
    const killed = await measuredIn(narrow, "wideFanOut", address, "10000", "5000")
    expect(killed.code, killed.problems).toBe("SIGKILL")
    const { code, lines, problems } = await measuredIn(narrow, "wideFanOut", address, "10000")
    expect(code, problems).toBe(0)
    const [{ calls, mostAtOnce, rssMbAtFirst, rssMbAtMost, succeeded }] = lines
    expect(succeeded).toBe(10_000)
    expect(mostAtOnce).toBe(50)
    // What was durable is not done again; what was on its way is.
    expect(calls).toBeGreaterThanOrEqual(5_000)
    expect(calls).toBeLessThan(6_000)
    // Most of it is the compiler of TypeScript, which loads the code.
    expect(rssMbAtMost).toBeLessThan(300)
    expect(rssMbAtMost - rssMbAtFirst).toBeLessThan(100)
  })
}, 180_000)
