/**
 * What a pure step costs by part: the engine alone, over the memory store, as a sampling profiler sees it.
 *
 * Run it from the root, on built code: `npx -y pnpm@10 build && node --import tsx benchmarks/split.ts [runs] [steps]`. Runs are
 * started eight at a time; a part is what its own lines take, not what they call. The whole is the process's CPU time.
 */
import { Schema } from "effect"
import { existsSync, readFileSync } from "node:fs"
import { Session } from "node:inspector/promises"
import { SourceMap } from "node:module"
import { fileURLToPath } from "node:url"
import { Cairn, MemoryStore, Workflow } from "../packages/core/dist/index.js"

const [runs = 400, steps = 100] = process.argv.slice(2).map(Number)

const flow = (name: string, count: number) => {
  let built: any = Workflow.make(name, { version: 1, input: Schema.Null })
  for (let n = 0; n < count; n++) {
    built = built.step(`step${n}`, { effects: [], output: Schema.String }, () => "twenty characters ..")
  }
  return built.compile()
}

const parts: ReadonlyArray<readonly [part: string, files: RegExp]> = [
  ["deciding what comes next", /runtime\/internal\/(decide|planIndex|frames|records|program|windowStates|paths)\.ts/],
  ["the attempt: function, context", /runtime\/internal\/(attempt|context|lookedAt|places|asynchrony|beginning|window|paid|dataReads|emitting|operationState)\.ts/],
  ["the gate: validate, encode, decode", /runtime\/internal\/gate\.ts|core\/src\/model\/|effect\/.*\/(ParseResult|Schema|SchemaAST)\.js/],
  ["the commit: what is written", /runtime\/internal\/(session|attemptEnds|leave|joining|completion|course|crew|loop)\.ts/],
  ["the write-behind buffer", /runtime\/WriteBehind\.ts/],
  ["the memory store", /core\/src\/store\//],
  ["the rest of the worker", /core\/src\//],
  ["Effect's fibers", /effect\/dist\//],
]

interface Node {
  readonly id: number
  readonly callFrame: {
    readonly url: string
    readonly functionName: string
    readonly lineNumber: number
    readonly columnNumber: number
  }
}

const maps = new Map<string, SourceMap | null>()

/** The map beside a file that was built; null for all others. */
const mapOf = (url: string): SourceMap | null => {
  let map = maps.get(url)
  if (map === undefined) {
    const file = url.startsWith("file:") ? `${fileURLToPath(url)}.map` : ""
    map = file.includes("/packages/") && existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, "utf8"))) : null
    maps.set(url, map)
  }
  return map
}

/** Where a function was written: built code is one file a package. */
const placeOf = ({ columnNumber, lineNumber, url }: Node["callFrame"]): string => {
  const entry = mapOf(url)?.findEntry(lineNumber, columnNumber)
  return entry !== undefined && "originalSource" in entry ? new URL(entry.originalSource, url).href : url
}

const partOf = ({ callFrame }: Node): string => {
  if (callFrame.functionName === "(garbage collector)") return "collecting garbage"
  if (callFrame.functionName === "(idle)") return "idle"
  const place = placeOf(callFrame)
  return parts.find(([, files]) => files.test(place))?.[0] ?? "Node and what is built in"
}

const work = async (count: number) => {
  const workflow = flow(`w${count}`, steps)
  const cairn = await Cairn.open({ store: MemoryStore.layer, workflows: [workflow] })
  for (let n = 0; n < count; n += 8) {
    const handles = await Promise.all(
      Array.from({ length: 8 }, (_, of) => cairn.start(workflow, null, { runId: `${count}-${n + of}` })),
    )
    await Promise.all(handles.map((handle) => handle.result()))
  }
  await cairn.close()
}

await work(80)
const session = new Session()
session.connect()
await session.post("Profiler.enable")
await session.post("Profiler.setSamplingInterval", { interval: 200 })
await session.post("Profiler.start")
const before = process.cpuUsage()
await work(runs)
const { system, user } = process.cpuUsage(before)
const { profile } = await session.post("Profiler.stop")

const nodes = new Map((profile.nodes as ReadonlyArray<Node>).map((node) => [node.id, node]))
const times = new Map<string, number>()
for (const [index, id] of profile.samples!.entries()) {
  const part = partOf(nodes.get(id)!)
  times.set(part, (times.get(part) ?? 0) + profile.timeDeltas![index]!)
}
times.delete("idle")
const seen = [...times.values()].reduce((sum, time) => sum + time, 0)
const total = runs * steps
const line = (part: string, us: number) => console.log(`${part.padEnd(40)} ${(us / total).toFixed(2).padStart(7)} us a step`)
for (const [part, us] of [...times].sort(([, a], [, b]) => b - a)) line(part, us)
line("all of it, by the profiler", seen)
line("the process's CPU, profiler included", user + system)
