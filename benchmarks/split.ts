/**
 * What a pure step costs by part: the engine alone, over the memory store, as a sampling profiler sees it.
 *
 * Run it from the root, on built code: `npx tsc -b && node --import tsx benchmarks/split.ts [runs] [steps]`. Runs are started eight
 * at a time; a part is what its own lines take, not what they call. The whole is the process's CPU time.
 */
import { Schema } from "effect"
import { Session } from "node:inspector/promises"
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
  ["deciding what comes next", /runtime\/internal\/(decide|planIndex|frames|records|program|windowStates|paths)\.js/],
  ["the attempt: function, context", /runtime\/internal\/(attempt|context|lookedAt|places|asynchrony|beginning|window|paid|dataReads|emitting|operationState)\.js/],
  ["the gate: validate, encode, decode", /runtime\/internal\/gate\.js|core\/dist\/model\/|effect\/.*\/(ParseResult|Schema|SchemaAST)\.js/],
  ["the commit: what is written", /runtime\/internal\/(session|attemptEnds|leave|joining|completion|course|crew|loop)\.js/],
  ["the write-behind buffer", /runtime\/WriteBehind\.js/],
  ["the memory store", /core\/dist\/store\//],
  ["the rest of the worker", /core\/dist\//],
  ["Effect's fibers", /effect\/dist\//],
]

interface Node {
  readonly id: number
  readonly callFrame: { readonly url: string; readonly functionName: string }
}

const partOf = ({ callFrame: { functionName, url } }: Node): string => {
  if (functionName === "(garbage collector)") return "collecting garbage"
  if (functionName === "(idle)") return "idle"
  return parts.find(([, files]) => files.test(url))?.[0] ?? "Node and what is built in"
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
