/** The builder without its types: a list of nodes that grows by copy. Nothing is checked here; the compiler does that. */
import * as Either from "effect/Either"
import { compile } from "../../compiler/Compiler.js"
import type { Definition, Node } from "../../dsl/Definition.js"
import { flowMarker } from "../../model/Codec.js"
import { notAFragment } from "../../model/DiagnosticCode.js"
import type { Workflow } from "../Workflow.js"

interface UntypedFlow {
  readonly step: (name: string, spec: any, run: any) => UntypedFlow
  readonly perform: (name: string, operation: any, spec: any) => UntypedFlow
  readonly use: (fragment: any) => UntypedFlow
  readonly output: (schema: any, select: any) => { readonly compile: () => Workflow<any, any, any, any> }
  readonly compile: () => Workflow<any, any, any, any>
}

const definitions = new WeakMap<object, Definition>()

export const stepNode = (name: string, spec: any, run: any): Node => {
  const { effects, output, ...options } = spec ?? {}
  return { kind: "step", name, effects, output, options, run }
}

export const performNode = (name: string, operation: any, spec: any): Node => {
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

export const close = (definition: Definition): Workflow<any, any, any, any> => {
  const plan = compile(definition)
  return {
    name: definition.name,
    version: definition.version,
    plan,
    diagnostics: Either.isLeft(plan) ? plan.left.diagnostics : [],
    definition,
  }
}

const flowOf = (definition: Definition): UntypedFlow => {
  const add = (...nodes: ReadonlyArray<Node>): UntypedFlow =>
    flowOf({ ...definition, nodes: [...definition.nodes, ...nodes] })
  const flow: UntypedFlow & { readonly [flowMarker]: true } = {
    [flowMarker]: true,
    step: (name, spec, run) => add(stepNode(name, spec, run)),
    perform: (name, operation, spec) => add(performNode(name, operation, spec)),
    use: (fragment) =>
      Array.isArray(fragment?.nodes)
        ? add(...(fragment.nodes as ReadonlyArray<Node>))
        : flowOf({
            ...definition,
            misuses: [...(definition.misuses ?? []), { code: "CRN107", step: null, message: notAFragment }],
          }),
    output: (schema, select) => ({ compile: () => close({ ...definition, output: { schema, select } }) }),
    compile: () => close(definition),
  }
  definitions.set(flow, definition)
  return flow
}

export const emptyDefinition = (name: string, options: any): Definition => ({
  name,
  version: options?.version,
  input: options?.input,
  failure: options?.failure ?? null,
  durability: options?.durability,
  nodes: [],
  output: null,
})

export const emptyFlow = (name: string, options: any): UntypedFlow => flowOf(emptyDefinition(name, options))

/** The nodes of a flow; null where the value is no flow. A misuse inside it makes the whole fragment unusable. */
export const nodesOf = (flow: object): ReadonlyArray<Node> | null => {
  const definition = definitions.get(flow)
  return definition === undefined || definition.misuses !== undefined ? null : definition.nodes
}
