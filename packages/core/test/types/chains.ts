/** Generated workflows for the type-cost tests. */

const head = `import { Effect, Schema } from "effect"
import { OnUnknown, Operation, Workflow } from "../../src/index.js"
const onUnknown = OnUnknown.retryWithKey({ keyWindow: "24 hours" })
`

const operation = (suffix: string): string => `
const Send${suffix} = Operation.make("mail.send", {
  payload: Schema.Struct({ to: Schema.String }), success: Schema.Struct({ id: Schema.String }), onUnknown })
`

const structStep = (i: number): string =>
  `  .step("s${i}", { effects: [], output: Schema.Struct({ a${i}: Schema.String, b: Schema.Number }) }, () => Effect.succeed({ a${i}: "x", b: ${i} }))`

const textStep = (i: number): string =>
  `  .step("s${i}", { effects: [], output: Schema.String }, () => Effect.succeed("x"))`

const performStep = (i: number, suffix: string): string =>
  `  .perform("s${i}", Send${suffix}, { payload: ({ results }) => ({ to: results.s${i - 1}.a${i - 1} }) })`

export type ChainKind = "mixed" | "struct" | "text"

const stepOf = (kind: ChainKind, i: number, suffix: string): string =>
  kind === "text" ? textStep(i) : kind === "mixed" && i % 4 === 3 ? performStep(i, suffix) : structStep(i)

/** One workflow of `length` steps, without its imports. `show` is appended as a last step of that body. */
const workflow = (kind: ChainKind, length: number, suffix: string): string =>
  [
    operation(suffix),
    `export const flow${suffix} = Workflow.make("chain${suffix}", { version: 1, input: Schema.Struct({ n: Schema.Number }) })`,
    ...Array.from({ length }, (_, i) => stepOf(kind, i, suffix)),
  ].join("\n")

/** A file with one chain; its last step stands in `last` with the exact type of its `results`. */
export const chainFile = (kind: ChainKind, length: number): string => `${head}${workflow(kind, length, "")}
  .step("last", { effects: [], output: Schema.Void }, ({ results }) => {
    type Results = typeof results
    const exact: Same<Results, Expected> = true
    void exact
  })
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
interface Expected {
${Array.from({ length }, (_, i) => `  readonly s${i}: ${expectedType(kind, i)}`).join("\n")}
}
`

const expectedType = (kind: ChainKind, i: number): string =>
  kind === "text"
    ? "string"
    : kind === "mixed" && i % 4 === 3
      ? "{ readonly id: string }"
      : `{ readonly a${i}: string; readonly b: number }`

// ---- what steers a run -----------------------------------------------------------------------------------------

const child = `
const child = Workflow.make("child", { version: 1, input: Schema.Struct({ n: Schema.Number }) })
  .output(Schema.Struct({ id: Schema.String }), () => ({ id: "" }))
  .compile()
`

/** A node of each kind in turn, with the type of its result; null for none. */
const controls: ReadonlyArray<(i: number) => readonly [node: string, result: string | null]> = [
  (i) => [structStep(i).trim(), expectedType("struct", i)],
  (i) => [
    `.branch("s${i}", ({ input }) => (input.n > 1 ? "a" : "b"), { a: (f) => f${textStep(1).trim()}, b: (f) => f })`,
    `{ readonly case: "a"; readonly results: { readonly s1: string } } | { readonly case: "b"; readonly results: {} }`,
  ],
  (i) => [
    `.loop("s${i}", { state: Schema.Number, initial: ({ input }) => input.n, maxIterations: 9 },
      (f) => f${structStep(1).trim()}, ({ state, results }) => ({ done: state > results.s1.b, state }))`,
    "number",
  ],
  (i) => [
    `.forEach("s${i}", { items: () => ["a"], key: (item) => item, onFailure: "collect" },
      (f) => f.perform("send", Send, { payload: ({ item }) => ({ to: item }) }))`,
    `Items<{ readonly send: { readonly id: string } }, ItemError>`,
  ],
  (i) => [
    `.parallel("s${i}", { a: (f) => f${structStep(1).trim()}, b: (f) => f${textStep(1).trim()} })`,
    `{ readonly a: { readonly s1: ${expectedType("struct", 1)} }; readonly b: { readonly s1: string } }`,
  ],
  (i) => [`.sleep("s${i}", "1 day")`, null],
  (i) => [
    `.signal("s${i}", { schema: Schema.Struct({ a${i}: Schema.String }), timeout: "1 day", onTimeout: "continue" })`,
    `Outcome<{ readonly a${i}: string }, "timeout">`,
  ],
  (i) => [
    `.review("s${i}", { decision: Schema.String, show: ({ input }) => input, deadline: "1 day", onReject: "continue", onTimeout: "fail" })`,
    "Approved<string> | Rejected",
  ],
  (i) => [`.child("s${i}", child, { input: ({ input }) => input })`, "{ readonly id: string }"],
  (i) => [
    `.match("s${i}", "t", () => ({ t: "x", n: 1 }) as const, { x: (f) => f.step("s1", { effects: [], output: Schema.Number }, ({ value }) => value.n) })`,
    `{ readonly case: "x"; readonly results: { readonly s1: number } }`,
  ],
]

// The names inside bodies must be free outside: the nodes are counted from 100.
const first = 100

/** A file with one chain of nodes of every kind; its last step checks the exact type of its results. */
export const controlFile = (length: number): string => {
  const nodes = Array.from({ length }, (_, i) => controls[i % controls.length]!(first + i))
  const expected = nodes.map(([, result], i) => (result === null ? "" : `  readonly s${first + i}: ${result}\n`))
  return `${head}import type { Approved, ItemError, Items, Outcome, Rejected } from "../../src/index.js"
${operation("")}${child}
export const flow = Workflow.make("chain", { version: 1, input: Schema.Struct({ n: Schema.Number }) })
${nodes.map(([node]) => `  ${node}`).join("\n")}
  .step("last", { effects: [], output: Schema.Void }, ({ results }) => {
    type Results = typeof results
    const exact: Same<Results, Expected> = true
    void exact
  })
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
interface Expected {
${expected.join("")}}
`
}

/** Each level is a loop of a list of a branch of a parallel, in turn; three steps stand at each. */
const nested = (depth: number, level: number): string => {
  if (level === depth) return `(f${level}) => f${level}${steps(level)}`
  const inner = nested(depth, level + 1)
  const kinds = [
    `.loop("n${level}", { state: Schema.Number, initial: () => 1, maxIterations: 9 }, ${inner}, ({ state }) => ({ done: true, state }))`,
    `.forEach("n${level}", { items: () => ["a"], key: (item) => item }, ${inner})`,
    `.branch("n${level}", ({ input }) => (input.n > 1 ? "a" : "b"), { a: ${inner}, b: (f) => f })`,
    `.parallel("n${level}", { a: ${inner}, b: (f) => f })`,
  ]
  return `(f${level}) => f${level}${steps(level)}${kinds[level % kinds.length]}`
}

const steps = (level: number): string =>
  [0, 1, 2]
    .map(
      (i) =>
        `.step("l${level}s${i}", { effects: [], output: Schema.Struct({ a: Schema.String }) }, ({ results }) => ({ a: ${
          level === 0 ? `""` : `results.l${level - 1}s${i}.a`
        } }))`,
    )
    .join("\n")

/** A file with bodies in bodies, `depth` deep; the innermost steps read results of the scope around them. */
export const nestedFile = (depth: number): string => `${head}
export const flow = (${nested(depth, 0)})(Workflow.make("nested", { version: 1, input: Schema.Struct({ n: Schema.Number }) }))
flow.compile()
`

/** A file that exports a fragment of branches in branches. */
export const fragmentFile = (depth: number): string => {
  const body = (level: number): string =>
    level === 0
      ? "(f) => f"
      : `(f) => f${textStep(level).trim()}
        .branch("n${level}", ({ input }) => (input.n > 1 ? "a" : "b"), { a: ${body(level - 1)}, b: (f) => f })`
  return `${head}
export const fragment = Workflow.fragment<{ input: { n: number }; results: {} }>()(${body(depth)})
`
}

/** A file with a small workflow, one of many. */
export const smallFile = (index: number): string => `${head}${workflow("mixed", 5, String(index))}
  .compile()
`

/** What the imports alone cost. */
export const emptyFile = `${head}export const used = [Effect, Schema, Operation, Workflow, onUnknown]
`
