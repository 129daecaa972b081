/** What takes a performed step back, as a step of its own: durable, keyed and resumable like any other. */
import type { PerformNode } from "../Definition.js"

/** Only a scope (`route:large`, `agent[3]`) has steps under it, so that this path collides with no other. */
export const compensationPath = (path: string): string => `${path}/compensate`

/** A step named `compensate` inside a scope is none: what stands before it has a case, a turn or a key. */
export const isCompensationPath = (path: string): boolean => /(?:^|\/)[^/:[\]]+\/compensate$/.test(path)

/** A refund that fails for a while is worth some patience: the run has nothing else left to do. */
const retry = { times: 5 } as const

const nodes = new WeakMap<PerformNode, PerformNode>()

/** The payload function sees what the step saw, and `result`, what the step gave. */
const make = (node: PerformNode, compensate: NonNullable<PerformNode["compensate"]>): PerformNode => ({
  kind: "perform",
  name: `${node.name}/compensate`,
  operation: compensate.operation,
  payload: (context: { readonly results: Readonly<Record<string, unknown>> }) => {
    const output = context.results[node.name]
    const result = node.settle ? (output as { readonly value: unknown }).value : output
    return compensate.payload(Object.defineProperty(Object.create(context), "result", { value: result }))
  },
  optional: false,
  settle: false,
  compensate: null,
  options: { retry: compensate.retry ?? retry },
})

export const compensationNode = (node: PerformNode): PerformNode | null => {
  if (node.compensate === null) return null
  const known = nodes.get(node) ?? make(node, node.compensate)
  nodes.set(node, known)
  return known
}
