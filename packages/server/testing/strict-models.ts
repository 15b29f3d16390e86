/**
 * Model servers that refuse what real ones refuse, by the name of the model: each asks for a tool twice, then says "Done."
 *
 * The rules, as their providers state them:
 * - `deepseek`: "reasoning_content … must be passed back to the API" within a turn that calls tools (api-docs.deepseek.com, thinking mode).
 * - `vllm`: the same for a server that names the field `reasoning` (docs.vllm.ai, reasoning outputs).
 * - `gemini-chat`: "Function call is missing a thought_signature" through OpenAI's wire (ai.google.dev, thought signatures).
 * - `mistral`: ids of nine letters and digits; no user after a tool's result (docs.mistral.ai, function calling).
 * - `gemma`: "Conversation roles must alternate user/assistant", and no system but at the beginning (the chat template of Gemma 2 and 3).
 * - `claude`: with thinking, an answer with tool calls begins with its signed thinking (docs.anthropic.com, extended thinking).
 * - `gemini`: the signature of a function call comes back with it (ai.google.dev, thought signatures).
 * - `qwen-vl`, `gpt-4o`: a tool's message is text, and follows its call (platform.openai.com, function calling); pictures come from the user.
 * - `llama`: takes no pictures at all (docs.vllm.ai, "is not a multimodal model").
 * - `crowded`: "Invalid 'tools': array too long. Expected an array with maximum length 128" (platform.openai.com, function calling).
 * - `openai`: encrypted reasoning comes back before the calls that it led to (platform.openai.com, reasoning items).
 */
import { createServer, type ServerResponse } from "node:http"
import { ConfigProvider, Effect, Layer } from "effect"
import { SharedServer } from "./shared-server.ts"
import type { Json } from "./platform.ts"

const signature = "c2lnbmVkIGJ5IGl0cyBwcm92aWRlcg=="

/** The tool that a request is answered with calls of: one that answers pictures, where there is one. */
const toolIn = ({ model, tools = [] }: Json, step: number): string => {
  const names: ReadonlyArray<string> = tools.map((each: Json) => each.function?.name ?? each.name)
  // It looks for a tool, and calls what was found.
  if (model === "crowded")
    return step === 0 ? "find_tools" : (names.find((name) => name.includes("__")) ?? "none")
  return /"name":"(\w+__screen)"/.exec(JSON.stringify(tools))?.[1] ?? "search_objects"
}

/** What a request may not be, by the model that is asked; undefined where it is right. */
const refusals: Readonly<Record<string, (body: Json) => string | undefined>> = {
  deepseek: ({ messages }) =>
    callers(messages).some((each) => each.reasoning_content !== "I think.")
      ? "The `reasoning_content` in the thinking mode must be passed back to the API."
      : undefined,
  vllm: ({ messages }) =>
    callers(messages).some((each) => each.reasoning !== "I think.") ? "missing reasoning" : undefined,
  "gemini-chat": ({ messages }) =>
    callers(messages).some(
      (each) => each.tool_calls[0].extra_content?.google?.thought_signature !== signature
    )
      ? "Function call is missing a thought_signature in functionCall parts."
      : undefined,
  mistral: ({ messages }) => {
    const ids: ReadonlyArray<string> = callers(messages).flatMap((each) =>
      each.tool_calls.map(({ id }: Json) => id)
    )
    if (ids.some((id) => !/^[a-zA-Z0-9]{9}$/.test(id)))
      return "Tool call id must be a-z, A-Z, 0-9, with a length of 9."
    return new Set(ids).size < ids.length ? "Duplicate tool call id in assistant messages." : undefined
  },
  gemma: ({ messages }) =>
    messages.some(
      (each: Json, index: number) =>
        index > 0 &&
        (each.role === "system" || (each.role !== "tool" && each.role === messages[index - 1].role))
    )
      ? "Conversation roles must alternate user/assistant/user/assistant/..."
      : undefined,
  claude: ({ messages }) =>
    turnOf(messages).some(
      ({ content, role }: Json) =>
        role === "assistant" &&
        content.some(({ type }: Json) => type === "tool_use") &&
        !(content[0].type === "thinking" && content[0].signature === signature)
    )
      ? "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
      : undefined,
  gemini: ({ contents }) =>
    contents
      .flatMap(({ parts }: Json) => parts)
      .some((part: Json) => part.functionCall && part.thoughtSignature !== signature)
      ? "Function call is missing a thought_signature in functionCall parts."
      : undefined,
  crowded: ({ tools }) =>
    tools.length > 128
      ? `Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length ${tools.length} instead.`
      : undefined,
  "qwen-vl": ({ messages }) => misplaced(messages),
  "gpt-4o": ({ messages }) => misplaced(messages),
  llama: ({ messages }) =>
    JSON.stringify(messages).includes('"image_url"')
      ? "llama is not a multimodal model"
      : misplaced(messages),
  openai: ({ input }) =>
    input.some(
      (item: Json, index: number) =>
        item.type === "function_call" &&
        !(input[index - 1]?.type === "reasoning" && input[index - 1].encrypted_content === signature)
    )
      ? "Item 'function_call' was provided without its required 'reasoning' item."
      : undefined
}

/** What chat completions refuse of the results of calls. */
const misplaced = (messages: ReadonlyArray<Json>): string | undefined => {
  if (messages.some(({ content, role }) => role === "tool" && typeof content !== "string"))
    return "Invalid type for 'messages.content': tool messages are text."
  return messages.some(
    ({ role }, index) => role === "tool" && !["assistant", "tool"].includes(messages[index - 1].role)
  )
    ? "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
    : undefined
}

/** The messages after the last text of the user. */
const turnOf = (messages: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  messages.slice(
    1 +
      messages.findLastIndex(
        ({ content, role }) => role === "user" && content.some(({ type }: Json) => type === "text")
      )
  )

const callers = (messages: Json): ReadonlyArray<Json> =>
  messages.filter(({ role, tool_calls }: Json) => role === "assistant" && tool_calls)

/** The requests so far, by the model that was asked. */
export const strictRequests = new Map<string, Array<Json>>()

/** A server of one's own whose providers are all as strict as that. */
const strictServerWith = (openaiApi: "chat" | "responses") =>
  Layer.unwrap(
    Effect.gen(function* () {
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const body: Json = JSON.parse(Buffer.concat(chunks).toString("utf8"))
          const model = body.model ?? /models\/([^:]+):/.exec(request.url ?? "")?.[1]
          strictRequests.set(model, [...(strictRequests.get(model) ?? []), body])
          const message = refusals[model]?.(body)
          if (message !== undefined)
            return void response
              .writeHead(400, { "content-type": "application/json" })
              .end(JSON.stringify({ error: { message, type: "invalid_request_error" } }))
          response.writeHead(200, { "content-type": "text/event-stream" })
          const step = stepOf(body)
          const tool = toolIn(body, step)
          if (body.contents) sendGemini(response, step, tool)
          else if (body.input) sendResponses(response, step, tool)
          else if (request.url?.endsWith("/messages")) sendClaude(response, step, tool)
          else sendChat(response, model, step, tool)
          response.end()
        })
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => void (server.closeAllConnections(), server.close()))
      )
      const address = server.address()
      const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`
      return Layer.provide(
        SharedServer.own,
        ConfigProvider.layer(
          ConfigProvider.fromUnknown({
            OPENAI_COMPATIBLE_BASE_URL: `${url}/v1`,
            ANTHROPIC_API_KEY: "key",
            ANTHROPIC_BASE_URL: `${url}/v1`,
            GOOGLE_GENERATIVE_AI_API_KEY: "key",
            GOOGLE_GENERATIVE_AI_BASE_URL: `${url}/v1beta`,
            OPENAI_API_KEY: "key",
            OPENAI_BASE_URL: `${url}/v1`,
            TROPISM_OPENAI_API: openaiApi
          })
        )
      )
    })
  )

export const strictServer = strictServerWith("responses")

/** The same where OpenAI is asked for chat completions. */
export const strictChatServer = strictServerWith("chat")

/** How many tool results a request carries. */
const stepOf = ({ contents, input, messages }: Json): number =>
  JSON.stringify(messages ?? contents ?? input).match(
    /"role":"tool"|"type":"tool_result"|"functionResponse":|"type":"function_call_output"/g
  )?.length ?? 0

const write = (response: ServerResponse, value: Json) =>
  response.write(`${value.type ? `event: ${value.type}\n` : ""}data: ${JSON.stringify(value)}\n\n`)

const sendChat = (response: ServerResponse, model: string, step: number, tool: string) => {
  const say = (delta: Json, finish_reason: string | null = null) =>
    write(response, {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model,
      choices: [{ index: 0, delta, finish_reason }]
    })
  if (model === "watchman") say({ role: "assistant", content: "SAFE" })
  else if (step >= 2) say({ role: "assistant", content: "Done." })
  else {
    say({ role: "assistant", [model === "vllm" ? "reasoning" : "reasoning_content"]: "I think." })
    say({
      tool_calls: [
        {
          index: 0,
          // Each answer counts from the start, as some servers do.
          id: model === "mistral" ? "Ab3dE6gH9" : `functions.${tool}:0`,
          type: "function",
          function: { name: tool, arguments: `{"query":"step ${step}"}` },
          ...(model === "gemini-chat" ? { extra_content: { google: { thought_signature: signature } } } : {})
        },
        // Two results come before anybody else speaks.
        ...(!tool.endsWith("__screen")
          ? []
          : [
              {
                index: 1,
                id: `functions.${tool}:1`,
                type: "function",
                function: { name: tool, arguments: "{}" }
              }
            ])
      ]
    })
  }
  say({}, step >= 2 || model === "watchman" ? "stop" : "tool_calls")
  response.write("data: [DONE]\n\n")
}

const sendClaude = (response: ServerResponse, step: number, tool: string) => {
  const block = (index: number, content_block: Json, ...deltas: ReadonlyArray<Json>) => {
    write(response, { type: "content_block_start", index, content_block })
    for (const delta of deltas) write(response, { type: "content_block_delta", index, delta })
    write(response, { type: "content_block_stop", index })
  }
  const usage = { input_tokens: 10, output_tokens: 5 }
  write(response, {
    type: "message_start",
    message: {
      id: "m",
      type: "message",
      role: "assistant",
      content: [],
      model: "claude",
      stop_reason: null,
      usage
    }
  })
  if (step >= 2) block(0, { type: "text", text: "" }, { type: "text_delta", text: "Done." })
  else {
    block(
      0,
      { type: "thinking", thinking: "" },
      { type: "thinking_delta", thinking: "I think." },
      { type: "signature_delta", signature }
    )
    block(
      1,
      { type: "tool_use", id: `toolu_${step}`, name: tool, input: {} },
      { type: "input_json_delta", partial_json: `{"query":"step ${step}"}` }
    )
  }
  write(response, {
    type: "message_delta",
    delta: { stop_reason: step >= 2 ? "end_turn" : "tool_use", stop_sequence: null },
    usage
  })
  write(response, { type: "message_stop" })
}

const sendGemini = (response: ServerResponse, step: number, tool: string) =>
  write(response, {
    candidates: [
      {
        content: {
          role: "model",
          parts:
            step >= 2
              ? [{ text: "Done." }]
              : [
                  {
                    functionCall: { name: tool, args: { query: `step ${step}` } },
                    thoughtSignature: signature
                  }
                ]
        },
        finishReason: "STOP"
      }
    ],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
  })

const sendResponses = (response: ServerResponse, step: number, tool: string) => {
  const item = (output_index: number, before: Json, after: Json) => {
    write(response, { type: "response.output_item.added", output_index, item: before })
    write(response, { type: "response.output_item.done", output_index, item: after })
  }
  write(response, { type: "response.created", response: { id: "r", created_at: 1, model: "openai" } })
  if (step >= 2) {
    const message = { type: "message", id: "msg_1", role: "assistant", content: [] }
    write(response, { type: "response.output_item.added", output_index: 0, item: message })
    write(response, {
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta: "Done."
    })
    write(response, { type: "response.output_item.done", output_index: 0, item: message })
  } else {
    const reasoning = { type: "reasoning", id: `rs_${step}`, summary: [] }
    item(0, { ...reasoning, encrypted_content: null }, { ...reasoning, encrypted_content: signature })
    const call = { type: "function_call", id: `fc_${step}`, call_id: `call_${step}`, name: tool }
    const args = `{"query":"step ${step}"}`
    item(1, { ...call, arguments: "" }, { ...call, arguments: args, status: "completed" })
  }
  write(response, {
    type: "response.completed",
    response: { usage: { input_tokens: 10, output_tokens: 5 } }
  })
}
