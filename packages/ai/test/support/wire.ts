/** The formats that providers speak: the same answer as each of them says it, whole and in events. */

export interface Said {
  readonly text: string
  readonly inputTokens: number
  readonly cachedInputTokens: number
  /** Written to a cache; only Claude tells of that. */
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  /** Cut off where the limit of tokens was reached. */
  readonly isCut: boolean
}

export interface Wire {
  /** `tool`: what the model has to call, where the request says so. */
  readonly whole: (model: string, said: Said, tool: string | null) => unknown
  /** Server-sent events: name, or null for none, and data. The text comes in words; the last event is the end. */
  readonly events: (model: string, said: Said) => ReadonlyArray<readonly [name: string | null, data: unknown]>
  /** An error as the provider's body has it. */
  readonly error: (message: string) => unknown
}

const words = (text: string): ReadonlyArray<string> => text.match(/\S+\s*/g) ?? []

const seconds = 1_750_000_000

// ---- chat completions of OpenAI, and of the many that speak like it ------------------------------------------------

const chatUsage = ({ inputTokens, cachedInputTokens, outputTokens }: Said) => ({
  prompt_tokens: inputTokens,
  completion_tokens: outputTokens,
  total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: cachedInputTokens },
})

const chat: Wire = {
  whole: (model, said) => ({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: seconds,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: said.text },
        finish_reason: said.isCut ? "length" : "stop",
      },
    ],
    usage: chatUsage(said),
  }),
  events: (model, said) => {
    const chunk = (choices: ReadonlyArray<unknown>, rest: object = {}) =>
      [null, { id: "chatcmpl-1", object: "chat.completion.chunk", created: seconds, model, choices, ...rest }] as const
    return [
      chunk([{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }]),
      ...words(said.text).map((content) => chunk([{ index: 0, delta: { content }, finish_reason: null }])),
      chunk([{ index: 0, delta: {}, finish_reason: said.isCut ? "length" : "stop" }]),
      chunk([], { usage: chatUsage(said) }),
    ]
  },
  error: (message) => ({ error: { message, type: "invalid_request_error", param: null, code: null } }),
}

// ---- responses of OpenAI -----------------------------------------------------------------------------------------

const responseOf = (model: string, said: Said, status: string) => {
  const isDone = status !== "in_progress"
  return {
    id: "resp_1",
    object: "response",
    created_at: seconds,
    status,
    error: null,
    incomplete_details: isDone && said.isCut ? { reason: "max_output_tokens" } : null,
    instructions: null,
    max_output_tokens: null,
    model,
    output: isDone ? [messageOf(said.text, said.isCut ? "incomplete" : "completed")] : [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    store: false,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: 1,
    truncation: "disabled",
    usage: isDone
      ? {
          input_tokens: said.inputTokens,
          input_tokens_details: { cached_tokens: said.cachedInputTokens },
          output_tokens: said.outputTokens,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: said.inputTokens + said.outputTokens,
        }
      : null,
    user: null,
    metadata: {},
  }
}

const messageOf = (text: string, status: string) => ({
  type: "message",
  id: "msg_1",
  status,
  role: "assistant",
  content: [{ type: "output_text", text, annotations: [], logprobs: [] }],
})

const responses: Wire = {
  whole: (model, said) => responseOf(model, said, said.isCut ? "incomplete" : "completed"),
  events: (model, said) => {
    const at = { output_index: 0, content_index: 0, item_id: "msg_1" }
    const events: ReadonlyArray<readonly [string, object]> = [
      ["response.created", { response: responseOf(model, said, "in_progress") }],
      ["response.output_item.added", { output_index: 0, item: { ...messageOf("", "in_progress"), content: [] } }],
      [
        "response.content_part.added",
        { ...at, part: { type: "output_text", text: "", annotations: [], logprobs: [] } },
      ],
      ...words(said.text).map((delta) => ["response.output_text.delta", { ...at, delta, logprobs: [] }] as const),
      ["response.output_text.done", { ...at, text: said.text, logprobs: [] }],
      ["response.output_item.done", { output_index: 0, item: messageOf(said.text, "completed") }],
      said.isCut
        ? ["response.incomplete", { response: responseOf(model, said, "incomplete") }]
        : ["response.completed", { response: responseOf(model, said, "completed") }],
    ]
    return events.map(([type, data], index) => [type, { type, sequence_number: index, ...data }] as const)
  },
  error: chat.error,
}

// ---- messages of Anthropic ---------------------------------------------------------------------------------------

const messageUsage = ({ inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens }: Said) => ({
  // Here the cache's tokens are counted beside the others.
  input_tokens: inputTokens - cachedInputTokens - cacheWriteTokens,
  cache_creation_input_tokens: cacheWriteTokens,
  cache_read_input_tokens: cachedInputTokens,
  output_tokens: outputTokens,
})

/** Claude is asked for an object as the input of a tool; what it says instead is text. */
const contentOf = (text: string, tool: string | null): unknown => {
  try {
    if (tool !== null) return { type: "tool_use", id: "toolu_1", name: tool, input: JSON.parse(text) }
  } catch {
    // It talks.
  }
  return { type: "text", text }
}

const messages: Wire = {
  whole: (model, said, tool) => ({
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [contentOf(said.text, tool)],
    stop_reason: said.isCut ? "max_tokens" : "end_turn",
    stop_sequence: null,
    usage: messageUsage(said),
  }),
  events: (model, said) => {
    const started = {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { ...messageUsage(said), output_tokens: 1 },
    }
    const events: ReadonlyArray<readonly [string, object]> = [
      ["message_start", { message: started }],
      ["content_block_start", { index: 0, content_block: { type: "text", text: "" } }],
      ...words(said.text).map(
        (text) => ["content_block_delta", { index: 0, delta: { type: "text_delta", text } }] as const,
      ),
      ["content_block_stop", { index: 0 }],
      [
        "message_delta",
        {
          delta: { stop_reason: said.isCut ? "max_tokens" : "end_turn", stop_sequence: null },
          usage: { output_tokens: said.outputTokens },
        },
      ],
      ["message_stop", {}],
    ]
    return events.map(([type, data]) => [type, { type, ...data }] as const)
  },
  error: (message) => ({ type: "error", error: { type: "invalid_request_error", message } }),
}

/** By the end of the path that is posted to. */
export const wires: Readonly<Record<string, Wire>> = {
  "/chat/completions": chat,
  "/responses": responses,
  "/messages": messages,
}
