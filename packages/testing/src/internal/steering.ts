/**
 * What steers is computed once: once its record is durable, nobody who owns the run may ask its function again (X1). The
 * functions of a definition are wrapped, so that each call is heard by the worker that makes it.
 */
import { escapeSegment, type AnyWorkflow, type Plan, type PlanNode } from "@cairn/core"
import * as FiberRef from "effect/FiberRef"
import * as Fiber from "effect/Fiber"
import * as HashMap from "effect/HashMap"
import * as Option from "effect/Option"

type Definition = AnyWorkflow["definition"]
type Node = Definition["nodes"][number]
type Look = (context: any) => unknown

/** A function that steers, as it is called: `path` is that of its node. */
export interface Steered {
  readonly runId: string
  readonly what: "on" | "initial" | "next" | "items" | "value" | "show" | "input"
  readonly path: string
}

/** Who hears of the calls that a fiber makes. */
export const steeredRef = FiberRef.unsafeMake<((of: Steered) => void) | null>(null)

/** The path of a node where a context stands: turns and keys from the inside out. */
export const pathIn = (template: string, context: any): string => {
  const parts = template.split("[]")
  let scope = context
  let path = parts.at(-1)!
  for (let at = parts.length - 2; at >= 0; at--) {
    const of = typeof scope?.turn === "number" ? String(scope.turn) : escapeSegment(String(scope?.key))
    path = `${parts[at]}[${of}]${path}`
    scope = scope?.outer
  }
  return path
}

const hear = (what: Steered["what"], template: string, context: unknown): void => {
  const fiber = Option.getOrNull(Fiber.getCurrentFiber())
  const listener = fiber?.getFiberRef(steeredRef) ?? null
  if (fiber === null || listener === null) return
  const runId = HashMap.get(fiber.getFiberRef(FiberRef.currentLogAnnotations), "runId")
  if (Option.isSome(runId)) listener({ runId: String(runId.value), what, path: pathIn(template, context) })
}

const heard =
  (what: Steered["what"], template: string, look: Look): Look =>
  (context) => {
    hear(what, template, context)
    return look(context)
  }

/** The watched copy of a workflow that is started by the watched one. */
export type Copies = (name: string) => AnyWorkflow | undefined

const bodies = (
  copies: Copies,
  made: Readonly<Record<string, ReadonlyArray<Node>>>,
  plans: Readonly<Record<string, ReadonlyArray<PlanNode>>>,
): Readonly<Record<string, ReadonlyArray<Node>>> =>
  Object.fromEntries(
    Object.entries(made).map(([name, nodes]) => [name, watchedNodes(copies, nodes, plans[name] ?? [])]),
  )

const watchedNode = (copies: Copies, node: Node, plan: PlanNode): Node => {
  const { path } = plan
  switch (node.kind) {
    case "branch":
      return plan.kind !== "branch"
        ? node
        : { ...node, on: heard("on", path, node.on), cases: bodies(copies, node.cases, plan.cases) }
    case "match":
      // Its value is computed again for whoever looks at it inside a case.
      return plan.kind !== "match" ? node : { ...node, cases: bodies(copies, node.cases, plan.cases) }
    case "parallel":
      return plan.kind !== "parallel" ? node : { ...node, arms: bodies(copies, node.arms, plan.arms) }
    case "loop":
      return plan.kind !== "loop"
        ? node
        : {
            ...node,
            initial: heard("initial", path, node.initial),
            next: heard("next", `${path}[]`, node.next),
            body: watchedNodes(copies, node.body, plan.body),
          }
    case "forEach":
      return plan.kind !== "forEach"
        ? node
        : { ...node, items: heard("items", path, node.items), body: watchedNodes(copies, node.body, plan.body) }
    case "sleep":
      return typeof node.value === "function" ? { ...node, value: heard("value", path, node.value as Look) } : node
    case "review":
      return { ...node, show: heard("show", path, node.show) }
    case "child":
      return {
        ...node,
        input: heard("input", path, node.input),
        workflow: (copies(node.workflow.name) as typeof node.workflow | undefined) ?? node.workflow,
      }
    default:
      return node
  }
}

const watchedNodes = (
  copies: Copies,
  nodes: ReadonlyArray<Node>,
  plans: ReadonlyArray<PlanNode>,
): ReadonlyArray<Node> =>
  nodes.map((node, index) => (plans[index] === undefined ? node : watchedNode(copies, node, plans[index])))

/** The same definition; whoever provides `steeredRef` hears what of it is computed. */
export const watchedDefinition = (definition: Definition, plan: Plan, copies: Copies): Definition => ({
  ...definition,
  nodes: watchedNodes(copies, definition.nodes, plan.nodes),
})
