/**
 * Paths as they are stored: `agent[3]/think`, `each[key]/charge`, `route:large/approve`. Names and keys are escaped, so that
 * brackets, slashes and colons are those of the syntax.
 */

/** The same path in the plan, with empty brackets: `agent[3]/think` is `agent[]/think` there. */
export const templateOf = (path: string): string => (path.includes("[") ? path.replace(/\[[^\]]*\]/g, "[]") : path)

/** What stands before a path's own segment, its slash included; the empty text for the workflow's own nodes. */
export const prefixOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1)

/** A path's own segment. */
export const segmentOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1)

/** The turn or item in which something stands: what a resume reads as a whole or not at all (X7). */
export const scopeOf = (prefix: string): string => prefix.slice(0, prefix.lastIndexOf("]") + 1)

/** The scope of the turns of a loop, or of the ends of items. */
export const listScope = (path: string): string => `${path}[`

/** Whether a record is none of a step, but of what the runtime keeps beside them: no name of a user begins with a colon. */
export const isBeside = ({ path }: { readonly path: string }): boolean => path.startsWith(":")

/** The path, and the scope, of the list of a `forEach`'s items. */
export const itemsPath = (path: string): string => `${path}[]`

/** A turn of a loop, or an item: its path, and the scope of what stands in it. */
export const instancePath = (path: string, of: string | number): string => `${path}[${of}]`

/** The container whose instance a path is, and which one; null where it is none. */
export const instanceOf = (path: string): { readonly container: string; readonly key: string } | null => {
  if (!path.endsWith("]")) return null
  const open = path.lastIndexOf("[")
  return { container: path.slice(0, open), key: path.slice(open + 1, -1) }
}

/** What a case or an arm stands under. */
export const casePrefix = (path: string, label: string): string => `${path}:${label}/`

export const turnPrefix = (path: string, of: string | number): string => `${path}[${of}]/`
