/** What a Standard Schema says of its output as JSON, in its own library's words. */
import type { StandardSchemaV1 } from "@standard-schema/spec"

interface WithJsonSchema {
  readonly jsonSchema?: {
    readonly output?: (options: { readonly target: string; readonly libraryOptions: object }) => object
  }
}

/** The kinds of Zod's schemas whose values have no JSON form, or whose form nobody has said. */
const zodKindsWithoutJson = new Set([
  "any",
  "unknown",
  "bigint",
  "date",
  "symbol",
  "map",
  "set",
  "nan",
  "function",
  "promise",
  "file",
])

interface ZodNode {
  readonly zodSchema?: { readonly _zod?: { readonly def?: { readonly type?: string } } }
  readonly path?: ReadonlyArray<string | number>
}

/**
 * The JSON Schema of the output, `{}` where the library offers none, and what in it is known to be no JSON.
 *
 * A library that gives up is no problem by itself: a transform has no JSON Schema either, and its output may well be
 * JSON. So Zod is asked to go on, and shows every node as it goes; other libraries are believed where they answer.
 */
export const standardJsonSchema = (
  standard: StandardSchemaV1.Props,
): { readonly schema: object; readonly problem: string | null } => {
  let problem: string | null = null
  const override = ({ zodSchema, path }: ZodNode): void => {
    const kind = zodSchema?._zod?.def?.type
    if (kind === undefined || !zodKindsWithoutJson.has(kind)) return
    problem = `${kind} at ${path === undefined || path.length === 0 ? "the top" : path.join("/")}`
  }
  try {
    const libraryOptions = standard.vendor === "zod" ? { unrepresentable: "any", override } : {}
    const schema = (standard as WithJsonSchema).jsonSchema?.output?.({ target: "draft-2020-12", libraryOptions })
    return { schema: schema ?? {}, problem }
  } catch {
    return { schema: {}, problem }
  }
}
