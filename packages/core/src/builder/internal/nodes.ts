/** Nodes from the arguments of the builder's methods, with every default filled in. Arguments may be anything. */
import type {
  BranchNode,
  ChildNode,
  ForEachNode,
  LoopNode,
  MatchNode,
  Node,
  ParallelNode,
  PerformNode,
  ReviewNode,
  SignalNode,
  SleepNode,
  StepNode,
} from "../../dsl/Definition.js"
import { missingPart, type Diagnostic } from "../../model/DiagnosticCode.js"

/** How many items of a list are under way at once, unless `concurrency` says otherwise. */
const defaultConcurrency = 10

type Nested = ReadonlyArray<Node>
type NestedByName = Readonly<Record<string, Nested>>

export const step = (name: string, spec: any, run: any): StepNode => {
  const { effects, output, ...options } = spec ?? {}
  return { kind: "step", name, effects, output, options, run }
}

export const perform = (name: string, operation: any, spec: any): PerformNode => {
  const { payload, optional, settle, compensate, ...options } = spec ?? {}
  return {
    kind: "perform",
    name,
    operation,
    payload,
    optional: optional === true,
    settle: settle === true,
    compensate: compensate ?? null,
    options,
  }
}

export const branch = (name: string, on: any, cases: NestedByName): BranchNode => ({ kind: "branch", name, on, cases })

export const match = (name: string, tag: any, value: any, cases: NestedByName): MatchNode => ({
  kind: "match",
  name,
  tag,
  value,
  cases,
})

export const loop = (name: string, spec: any, body: Nested, next: any): LoopNode => ({
  kind: "loop",
  name,
  state: spec?.state,
  initial: spec?.initial,
  maxIterations: spec?.maxIterations,
  onLimit: spec?.onLimit ?? "fail",
  body,
  next,
})

export const forEach = (name: string, spec: any, body: Nested): ForEachNode => ({
  kind: "forEach",
  name,
  item: spec?.item ?? null,
  items: spec?.items,
  key: spec?.key,
  concurrency: spec?.concurrency ?? defaultConcurrency,
  onFailure: spec?.onFailure ?? "stop",
  body,
})

export const parallel = (name: string, arms: NestedByName): ParallelNode => ({ kind: "parallel", name, arms })

export const sleep = (name: string, how: SleepNode["how"], value: unknown): SleepNode => ({
  kind: "sleep",
  name,
  how,
  value,
})

export const signal = (name: string, spec: any): SignalNode => ({
  kind: "signal",
  name,
  signal: spec?.signal ?? name,
  schema: spec?.schema,
  timeout: spec?.timeout ?? null,
  onTimeout: spec?.onTimeout ?? "fail",
})

/** A node has both or neither: afterwards nobody could tell which one was left out. */
export const signalMisuses = (name: unknown, spec: any): ReadonlyArray<Diagnostic> => {
  const timeout = (spec?.timeout ?? null) !== null
  if (timeout === ((spec?.onTimeout ?? null) !== null)) return []
  const step = typeof name === "string" ? name : typeof name
  const part = timeout
    ? `onTimeout, and has a timeout; say "fail" or "continue"`
    : `timeout, and has an onTimeout; give both or neither`
  return [{ code: "CRN107", step, message: missingPart(step, part) }]
}

export const review = (name: string, spec: any): ReviewNode => ({
  kind: "review",
  name,
  decision: spec?.decision,
  show: spec?.show,
  deadline: spec?.deadline,
  onReject: spec?.onReject,
  onTimeout: spec?.onTimeout,
  who: spec?.who ?? null,
  escalate: spec?.escalate ?? [],
  validFor: spec?.validFor ?? null,
})

export const child = (name: string, workflow: any, spec: any): ChildNode => ({
  kind: "child",
  name,
  workflow,
  input: spec?.input,
  settle: spec?.settle === true,
})
