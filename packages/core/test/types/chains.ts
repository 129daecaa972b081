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

/** A file with a small workflow, one of many. */
export const smallFile = (index: number): string => `${head}${workflow("mixed", 5, String(index))}
  .compile()
`

/** What the imports alone cost. */
export const emptyFile = `${head}export const used = [Effect, Schema, Operation, Workflow, onUnknown]
`
