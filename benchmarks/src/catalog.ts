/** Every engine that is measured, and the file that it is in: a child process loads no other. */
import type { Subject } from "./Subject.js"

export const engines = ["limit", "cairn", "dbos", "openworkflow", "langgraph", "effect", "absurd"] as const

/** What can be measured of an engine here: nothing, where a part is missing that no package brings. */
export const load = async (engine: string): Promise<ReadonlyArray<Subject>> => {
  const module = (await import(`./subjects/${engine}.js`)) as { readonly subjects: ReadonlyArray<Subject> }
  return module.subjects
}
