/** The bodies of nodes that hold other nodes: each is built at once, by calling the user's function with an empty flow. */
import type { Node } from "../../dsl/Definition.js"
import { noBodies, notAFlow, type Diagnostic } from "../../model/DiagnosticCode.js"

/** What one function has added to an empty flow. */
export interface Added {
  readonly nodes: ReadonlyArray<Node>
  readonly misuses: ReadonlyArray<Diagnostic>
}

export interface Bodies<Made> {
  readonly made: Made
  readonly misuses: ReadonlyArray<Diagnostic>
}

type AddedBy = (build: (flow: any) => unknown) => Added | null

/** Names and cases of callers without types may be anything: they are shown, not trusted. */
const text = (name: unknown): string => (typeof name === "string" ? name : typeof name)

export const body = (step: unknown, which: string, build: unknown, addedBy: AddedBy): Bodies<ReadonlyArray<Node>> => {
  const added = typeof build === "function" ? addedBy(build as (flow: any) => unknown) : null
  return added === null
    ? { made: [], misuses: [{ code: "CRN107", step: text(step), message: notAFlow(text(step), which) }] }
    : { made: added.nodes, misuses: added.misuses }
}

export const bodies = (
  step: unknown,
  what: "case" | "arm",
  builds: unknown,
  addedBy: AddedBy,
): Bodies<Readonly<Record<string, ReadonlyArray<Node>>>> => {
  const entries = typeof builds === "object" && builds !== null ? Object.entries(builds) : []
  if (entries.length === 0) {
    return { made: {}, misuses: [{ code: "CRN107", step: text(step), message: noBodies(text(step), what) }] }
  }
  const all = entries.map(([name, build]) => [name, body(step, `${what} '${name}'`, build, addedBy)] as const)
  return {
    // Entries, not assignment: a case named __proto__ must stay a case.
    made: Object.fromEntries(all.map(([name, { made }]) => [name, made])),
    misuses: all.flatMap(([, { misuses }]) => misuses),
  }
}
