/**
 * Model servers that refuse what real ones refuse, by the name of the model: each asks for a tool twice, then says "Done."
 *
 * The rules, as their providers state them:
 * - `deepseek`: "reasoning_content … must be passed back to the API" within a turn that calls tools (api-docs.deepseek.com, thinking mode).
 * - `vllm`: the same for a server that names the field `reasoning` (docs.vllm.ai, reasoning outputs).
 * - `gemini-chat`: "Function call is missing a thought_signature" through OpenAI's wire; calls of another model have the placeholder instead (ai.google.dev, thought signatures).
 * - `mistral`: ids of nine letters and digits; no user after a tool's result (docs.mistral.ai, function calling).
 * - `gemma`: "Conversation roles must alternate user/assistant", and no system but at the beginning (the chat template of Gemma 2 and 3).
 * - `claude`: with thinking, an answer with tool calls begins with its signed thinking; its own calls always come with it (docs.anthropic.com, extended thinking).
 * - `gemini`: the signature of a function call comes back with it (ai.google.dev, thought signatures).
 * - `openai` and `deployment` (Azure): encrypted reasoning comes back before the calls that it led to (platform.openai.com, reasoning items).
 * - `ministral` (Mistral's own API): as `mistral`, and "Unexpected role 'user' after role 'tool'" (mistral-common, `_validate_message_order`).
 * - `anthropic.claude` (Bedrock): as `claude`; each `toolUse` has its `toolResult` in the next message, and tools are declared (docs.aws.amazon.com, Converse).
 * - `routed` (OpenRouter): `reasoning_details` come back unchanged with the calls (openrouter.ai/docs, reasoning tokens).
 * - `qwen-vl`, `gpt-4o`: a tool's message is text, and follows its call (platform.openai.com, function calling); pictures come from the user.
 * - `llama`: takes no pictures at all (docs.vllm.ai, "is not a multimodal model").
 * - `weary`: calls a tool and refuses whatever comes after it.
 * - `crowded`: "Invalid 'tools': array too long. Expected an array with maximum length 128" (platform.openai.com, function calling).
 *
 * A conversation with the word "overdrawn" is refused by all, as its provider refuses.
 */
import { createServer, type ServerResponse } from "node:http"
import { ConfigProvider, Effect, Layer } from "effect"
import { SharedServer } from "./shared-server.ts"
import type { Json } from "./platform.ts"
import { event as frameOf } from "./providers/bedrock.ts"

const signature = "c2lnbmVkIGJ5IGl0cyBwcm92aWRlcg=="

/** The tool that a request is answered with calls of: one that answers pictures, where there is one. */
const toolIn = ({ model, toolConfig, tools = toolConfig?.tools ?? [] }: Json, step: number): string => {
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
      ({ tool_calls: [first] }) =>
        first.extra_content?.google?.thought_signature !==
        (first.function.arguments.includes("weary") ? "skip_thought_signature_validator" : signature)
    )
      ? "Function call is missing a thought_signature in functionCall parts."
      : undefined,
  mistral: wrongIds,
  gemma: ({ messages }) =>
    messages.some(
      (each: Json, index: number) =>
        index > 0 &&
        (each.role === "system" || (each.role !== "tool" && each.role === messages[index - 1].role))
    )
      ? "Conversation roles must alternate user/assistant/user/assistant/..."
      : undefined,
  weary: ({ messages }) => (callers(messages).length > 0 ? "Too weary." : undefined),
  claude: ({ messages, thinking }) =>
    turnOf(messages).some(
      ({ content, role }: Json) =>
        role === "assistant" &&
        content.some(
          ({ id, type }: Json) =>
            type === "tool_use" && (thinking?.type === "enabled" || id.startsWith("toolu_"))
        ) &&
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
  openai: withoutEncrypted,
  deployment: (body) =>
    body.store === false && body.include?.includes("reasoning.encrypted_content")
      ? withoutEncrypted(body)
      : "Encrypted content was not asked for.",
  ministral: (body) =>
    body.messages.some(
      ({ role }: Json, index: number) => role === "user" && body.messages[index - 1]?.role === "tool"
    )
      ? "Unexpected role 'user' after role 'tool'"
      : (wrongIds(body) ?? misplaced(body.messages)),
  "anthropic.claude": ({ messages, toolConfig }) => {
    const calls = blocksOf(messages, "assistant").filter((blocks) => blocks.some(({ toolUse }) => toolUse))
    if (calls.length > 0 && !toolConfig)
      return "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    const own = calls.filter((blocks) => JSON.stringify(blocks).includes("tooluse_"))
    if (own.some(([first]) => first.reasoningContent?.reasoningText?.signature !== signature))
      return "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."
    return blocksOf(messages, "user")
      .flat()
      .filter(({ toolResult }) => toolResult).length < calls.length
      ? "Expected toolResult blocks at messages.2.content"
      : undefined
  },
  routed: ({ messages }) =>
    callers(messages).some(
      (each) => isOwnCall(each) && !each.reasoning_details?.[0]?.signature?.startsWith(signature)
    )
      ? "Provider returned error: reasoning_details must be passed back"
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

function wrongIds({ messages }: Json): string | undefined {
  const ids: ReadonlyArray<string> = callers(messages).flatMap((each) =>
    each.tool_calls.map(({ id }: Json) => id)
  )
  if (ids.some((id) => !/^[a-zA-Z0-9]{9}$/.test(id)))
    return "Tool call id must be a-z, A-Z, 0-9, with a length of 9."
  return new Set(ids).size < ids.length ? "Duplicate tool call id in assistant messages." : undefined
}

function withoutEncrypted({ input }: Json): string | undefined {
  return input.some(
    (item: Json, index: number) =>
      item.type === "function_call" &&
      item.call_id.startsWith("call_") &&
      !(input[index - 1]?.type === "reasoning" && input[index - 1].encrypted_content === signature)
  )
    ? "Item 'function_call' was provided without its required 'reasoning' item."
    : undefined
}

/** The blocks of the messages of one role at Bedrock. */
const blocksOf = (messages: ReadonlyArray<Json>, role: string): ReadonlyArray<ReadonlyArray<Json>> =>
  messages.filter((each) => each.role === role).map(({ content }) => content)

/** The messages after the last text of the user. */
const turnOf = (messages: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  messages.slice(
    1 +
      messages.findLastIndex(
        ({ content, role }) => role === "user" && content.some(({ type }: Json) => type === "text")
      )
  )

/** Whether a message calls what this server has called, and not another model. */
const isOwnCall = (message: Json): boolean => message.tool_calls[0].id.startsWith("routed")

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
          const model = body.model ?? /models?\/([^:/]+)[:/]/.exec(request.url ?? "")?.[1]
          strictRequests.set(model, [...(strictRequests.get(model) ?? []), body])
          const message = JSON.stringify(body).includes("overdrawn")
            ? "The account is overdrawn."
            : refusals[model]?.(body)
          if (message !== undefined)
            return void response
              .writeHead(400, { "content-type": "application/json" })
              .end(JSON.stringify(refusalOf(model, message)))
          response.writeHead(200, { "content-type": "text/event-stream" })
          const step = stepOf(body)
          const tool = toolIn(body, step)
          if (body.contents) sendGemini(response, step, tool)
          else if (body.input) sendResponses(response, step, tool)
          else if (request.url?.endsWith("/converse-stream")) sendBedrock(response, step, tool)
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
            TROPISM_OPENAI_API: openaiApi,
            AZURE_API_KEY: "key",
            AZURE_BASE_URL: `${url}/v1`,
            AWS_BEARER_TOKEN_BEDROCK: "key",
            AWS_REGION: "us-east-1",
            AWS_ENDPOINT_URL_BEDROCK_RUNTIME: url,
            MISTRAL_API_KEY: "key",
            MISTRAL_BASE_URL: `${url}/v1`,
            OPENROUTER_API_KEY: "key",
            OPENROUTER_BASE_URL: `${url}/v1`
          })
        )
      )
    })
  )

export const strictServer = strictServerWith("responses")

/** The same where OpenAI is asked for chat completions. */
export const strictChatServer = strictServerWith("chat")

/** A refusal in the provider's own form. */
const refusalOf = (model: string, message: string): Json => {
  if (model === "anthropic.claude") return { message }
  if (model === "ministral")
    return { object: "error", message, type: "invalid_request_error", param: null, code: "3280" }
  if (model === "claude") return { type: "error", error: { type: "invalid_request_error", message } }
  if (model === "gemini") return { error: { code: 400, message, status: "INVALID_ARGUMENT" } }
  return { error: { message, type: "invalid_request_error" } }
}

/** How many tool results a request carries. */
const stepOf = ({ contents, input, messages }: Json): number =>
  JSON.stringify(messages ?? contents ?? input).match(
    /"role":"tool"|"type":"tool_result"|"functionResponse":|"type":"function_call_output"|"toolResult":/g
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
    say(thoughtOf(model, step))
    say({
      tool_calls: [
        {
          index: 0,
          // Each answer counts from the start, as some servers do.
          id: idOf(model, step, tool),
          type: "function",
          function: { name: tool, arguments: `{"query":"${model === "weary" ? model : "step"} ${step}"}` },
          ...(model === "gemini-chat" ? { extra_content: { google: { thought_signature: signature } } } : {})
        },
        // Two results come before anybody else speaks.
        ...(!tool.endsWith("__screen")
          ? []
          : [
              {
                index: 1,
                id: idOf(model, step, tool, 1),
                type: "function",
                function: { name: tool, arguments: "{}" }
              }
            ])
      ]
    })
  }
  const isLast = step >= 2 || model === "watchman"
  say({}, isLast ? "stop" : "tool_calls")
  write(response, {
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model,
    choices: [{ index: 0, delta: {}, finish_reason: isLast ? "stop" : "tool_calls" }],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
  })
  response.write("data: [DONE]\n\n")
}

const idOf = (model: string, step: number, tool: string, index = 0): string => {
  if (model === "mistral" || model === "ministral") return ["Ab3dE6gH9", "Kl2mN5pQ8"][index] ?? ""
  return model === "routed" ? `routed-${step}-${index}` : `functions.${tool}:${index}`
}

/** How a model of OpenAI's format shows what it thinks. */
const thoughtOf = (model: string, step: number): Json => {
  if (model === "vllm") return { role: "assistant", reasoning: "I think." }
  if (model === "ministral")
    return {
      role: "assistant",
      content: [{ type: "thinking", thinking: [{ type: "text", text: "I think." }] }]
    }
  if (model !== "routed") return { role: "assistant", reasoning_content: "I think." }
  const detail = {
    type: "reasoning.text",
    // A model that begins each thought alike still wants each back.
    text: "I think.",
    signature: `${signature}${step}`,
    format: "anthropic-claude-v1",
    index: 0
  }
  return { role: "assistant", reasoning: "I think.", reasoning_details: [detail] }
}

const sendBedrock = (response: ServerResponse, step: number, tool: string) => {
  const delta = (contentBlockIndex: number, each: Json) =>
    response.write(frameOf("contentBlockDelta", { contentBlockIndex, delta: each }))
  const stop = (contentBlockIndex: number) =>
    response.write(frameOf("contentBlockStop", { contentBlockIndex }))
  response.write(frameOf("messageStart", { role: "assistant" }))
  if (step >= 2) delta(0, { text: "Done." })
  else {
    delta(0, { reasoningContent: { text: "I think." } })
    delta(0, { reasoningContent: { signature } })
    stop(0)
    const toolUse = { toolUseId: `tooluse_${step}`, name: tool }
    response.write(frameOf("contentBlockStart", { contentBlockIndex: 1, start: { toolUse } }))
    delta(1, { toolUse: { input: `{"query":"step ${step}"}` } })
  }
  stop(step >= 2 ? 0 : 1)
  response.write(frameOf("messageStop", { stopReason: step >= 2 ? "end_turn" : "tool_use" }))
  const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15 }
  response.write(frameOf("metadata", { metrics: { latencyMs: 1 }, usage }))
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
