/** The most that a call through the AI SDK can use. */
import type { UsageAmounts } from "@cairn/core"
import { asSchema, type ToolSet } from "ai"
import { atMost } from "../../internal/atMost.js"
import type { TextOptions } from "../VercelModel.js"

const text = new Set(["text", "reasoning", "tool-call"])
const textResults = new Set(["text", "json", "error-text", "error-json", "execution-denied"])

interface Part {
  readonly type: string
  readonly output?: { readonly type: string }
}

/** Whether its bytes bound its tokens. */
const isText = (part: Part): boolean =>
  text.has(part.type) || (part.type === "tool-result" && textResults.has(part.output?.type ?? ""))

const partsOf = ({ prompt, messages }: TextOptions<ToolSet>): ReadonlyArray<Part> =>
  [messages ?? prompt ?? []]
    .flatMap((said) => (typeof said === "string" ? [] : said))
    .flatMap(({ content }) => (typeof content === "string" ? [] : (content as ReadonlyArray<Part>)))

const toolsOf = (tools: ToolSet): Promise<ReadonlyArray<unknown>> =>
  Promise.all(
    Object.entries(tools).map(async ([name, { description, inputSchema }]) => ({
      name,
      description,
      schema: await asSchema(inputSchema).jsonSchema,
    })),
  )

/** The client for Claude adds it to what the answer may have. */
const thinkingTokens = ({ providerOptions }: TextOptions<ToolSet>): number => {
  const thinking = providerOptions?.["anthropic"]?.["thinking"] as { readonly budgetTokens?: number } | undefined
  return thinking?.budgetTokens ?? 0
}

/** Undefined where nothing bounds it. */
export const boundOf = async (options: TextOptions<ToolSet>, schema?: unknown): Promise<UsageAmounts | undefined> => {
  const { system, prompt, messages, maxOutputTokens, tools } = options
  if (maxOutputTokens === undefined || !partsOf(options).every(isText)) return undefined
  const said = {
    prompt: { system, prompt, messages },
    ...(tools === undefined ? {} : { tools: await toolsOf(tools) }),
    ...(schema === undefined ? {} : { schema }),
  }
  return atMost(said, maxOutputTokens + thinkingTokens(options))
}
