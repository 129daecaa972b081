/** A schema as providers take it. */
import * as JSONSchema from "effect/JSONSchema"
import type * as Schema from "effect/Schema"

/** Of the encoded side, with the object itself at the top: providers refuse a reference there. Throws for what JSON cannot say. */
export const jsonSchemaOf = (schema: Schema.Schema.All): JSONSchema.JsonSchema7 & { readonly $defs?: object } => {
  const definitions: Record<string, JSONSchema.JsonSchema7> = {}
  const top = JSONSchema.fromAST(schema.ast, { definitions, topLevelReferenceStrategy: "skip" })
  return Object.keys(definitions).length === 0 ? top : { ...top, $defs: definitions }
}
