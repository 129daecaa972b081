/** The most that a call through Effect's model can use. */
import type { UsageAmounts } from "@cairn/core"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import * as Prompt from "@effect/ai/Prompt"
import type * as Tool from "@effect/ai/Tool"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { atMost } from "../../internal/atMost.js"
import { jsonSchemaOf } from "../../internal/jsonSchema.js"

type Asked = LanguageModel.GenerateTextOptions<Record<string, Tool.Any>> & {
  readonly schema?: Schema.Schema.All
}

const isText = ({ content }: Prompt.Message): boolean =>
  typeof content === "string" || content.every(({ type }) => type !== "file")

const toolsOf = (tools: Record<string, Tool.Any>): ReadonlyArray<unknown> =>
  Object.values(tools).map((tool) => ({
    name: tool.name,
    description: tool.description,
    schema: jsonSchemaOf(tool.parametersSchema),
  }))

/** Undefined where nothing bounds it; a toolkit that has yet to be made is not looked into. */
export const boundOf = (asked: Asked, maxOutputTokens: number | undefined): UsageAmounts | undefined => {
  const { toolkit, schema } = asked
  if (maxOutputTokens === undefined || Effect.isEffect(toolkit)) return undefined
  const prompt = Prompt.make(asked.prompt)
  if (!prompt.content.every(isText)) return undefined
  return atMost(
    {
      prompt: prompt.content,
      ...(toolkit === undefined ? {} : { tools: toolsOf(toolkit.tools) }),
      ...(schema === undefined ? {} : { schema: jsonSchemaOf(schema) }),
    },
    maxOutputTokens,
  )
}
