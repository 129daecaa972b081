/**
 * The builder without its types: a list of nodes that grows by copy. Nothing is checked here but what could not become a
 * node; the compiler does the rest.
 */
import * as Either from "effect/Either"
import { compile } from "../../compiler/Compiler.js"
import type { Definition, Node } from "../../dsl/Definition.js"
import { windowDefinition } from "../../dsl/Window.js"
import { flowMarker } from "../../model/Codec.js"
import { notAFragment, type Diagnostic } from "../../model/DiagnosticCode.js"
import type { Workflow } from "../Workflow.js"
import { bodies, body, type Added, type Bodies } from "./bodies.js"
import * as nodes from "./nodes.js"

type Compiled = Workflow<any, any, any, any>

interface UntypedFlow {
  readonly step: (name: string, spec: any, run: any) => UntypedFlow
  readonly perform: (name: string, operation: any, spec: any) => UntypedFlow
  readonly branch: (name: string, on: any, cases: any) => UntypedFlow
  readonly match: (name: string, tag: any, value: any, cases: any) => UntypedFlow
  readonly loop: (name: string, spec: any, build: any, next: any) => UntypedFlow
  readonly forEach: (name: string, spec: any, build: any) => UntypedFlow
  readonly parallel: (name: string, arms: any) => UntypedFlow
  readonly sleep: (name: string, duration: any) => UntypedFlow
  readonly sleepUntil: (name: string, time: any) => UntypedFlow
  readonly signal: (name: string, spec: any) => UntypedFlow
  readonly review: (name: string, spec: any) => UntypedFlow
  readonly child: (name: string, workflow: any, spec: any) => UntypedFlow
  readonly fail: (name: string, failure: any) => UntypedFlow
  readonly end: (name: string, output: any) => UntypedFlow
  readonly use: (fragment: any) => UntypedFlow
  readonly output: (schema: any, select: any) => { readonly compile: () => Compiled }
  readonly compile: () => Compiled
}

/** `root` is the definition with which a flow began: a body must go on from the flow that it was given. */
interface Built {
  readonly definition: Definition
  readonly root: Definition
}

const built = new WeakMap<object, Built>()

export const close = (definition: Definition): Compiled => {
  const plan = compile(definition)
  return {
    name: definition.name,
    version: definition.version,
    plan,
    diagnostics: Either.isLeft(plan) ? plan.left.diagnostics : [],
    definition,
  }
}

const flowOf = (definition: Definition, root: Definition): UntypedFlow => {
  const grow = (more: ReadonlyArray<Node>, misuses: ReadonlyArray<Diagnostic> = []): UntypedFlow => {
    const grown = { ...definition, nodes: [...definition.nodes, ...more] }
    return flowOf(misuses.length === 0 ? grown : { ...grown, misuses: [...(grown.misuses ?? []), ...misuses] }, root)
  }
  /** Adds a node that has bodies, with what went wrong in them. */
  const nest = <B>({ made, misuses }: Bodies<B>, node: (made: B) => Node): UntypedFlow => grow([node(made)], misuses)
  const flow: UntypedFlow & { readonly [flowMarker]: true } = {
    [flowMarker]: true,
    step: (name, spec, run) => grow([nodes.step(name, spec, run)]),
    perform: (name, operation, spec) => grow([nodes.perform(name, operation, spec)]),
    branch: (name, on, cases) => nest(bodies(name, "case", cases, addedBy), (made) => nodes.branch(name, on, made)),
    match: (name, tag, value, cases) =>
      nest(bodies(name, "case", cases, addedBy), (made) => nodes.match(name, tag, value, made)),
    loop: (name, spec, build, next) =>
      nest(body(name, "the body", build, addedBy), (made) => nodes.loop(name, spec, made, next)),
    forEach: (name, spec, build) =>
      nest(body(name, "the body", build, addedBy), (made) => nodes.forEach(name, spec, made)),
    parallel: (name, arms) => nest(bodies(name, "arm", arms, addedBy), (made) => nodes.parallel(name, made)),
    sleep: (name, duration) => grow([nodes.sleep(name, "for", duration)]),
    sleepUntil: (name, time) => grow([nodes.sleep(name, "until", time)]),
    signal: (name, spec) => grow([nodes.signal(name, spec)], nodes.signalMisuses(name, spec)),
    review: (name, spec) => grow([nodes.review(name, spec)]),
    child: (name, workflow, spec) => grow([nodes.child(name, workflow, spec)]),
    fail: (name, failure) => grow([{ kind: "fail", name, failure }]),
    end: (name, output) => grow([{ kind: "end", name, output }]),
    use: (fragment) =>
      Array.isArray(fragment?.nodes)
        ? grow(fragment.nodes as ReadonlyArray<Node>, fragment.misuses as ReadonlyArray<Diagnostic> | undefined)
        : grow([], [{ code: "CRN107", step: null, message: notAFragment }]),
    output: (schema, select) => ({ compile: () => close({ ...definition, output: { schema, select } }) }),
    compile: () => close(definition),
  }
  built.set(flow, { definition, root })
  return flow
}

export const emptyDefinition = (name: string, options: any): Definition => ({
  name,
  version: options?.version,
  input: options?.input,
  failure: options?.failure ?? null,
  durability: options?.durability,
  limits: options?.limits,
  priority: options?.priority,
  budget: options?.budget,
  window: windowDefinition(options?.window),
  nodes: [],
  output: null,
})

export const emptyFlow = (name: string, options: any): UntypedFlow => {
  const root = emptyDefinition(name, options)
  return flowOf(root, root)
}

/** What a function adds to an empty flow; null where it gives no flow, or one that does not go on from that. */
const addedBy = (build: (flow: UntypedFlow) => unknown): Added | null => {
  const root = emptyDefinition("body", {})
  const given = build(flowOf(root, root))
  const flow = typeof given === "object" && given !== null ? built.get(given) : undefined
  return flow?.root === root ? { nodes: flow.definition.nodes, misuses: flow.definition.misuses ?? [] } : null
}

/** `nodes` is null where the function gives no flow: `.use` refuses that. */
export const fragmentOf = (build: (flow: any) => unknown): object => ({
  kind: "fragment",
  ...(addedBy(build) ?? { nodes: null }),
})
