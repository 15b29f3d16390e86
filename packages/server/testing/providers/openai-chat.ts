/**
 * OpenAI's chat completions, and the servers that speak the same.
 *
 * Published examples: the streaming example of OpenAI's API reference
 * (`chatcmpl-123`), and a streamed answer of gpt-4o-mini with a tool call as it
 * stands in the tests of dotnet/extensions (`chatcmpl-ADymNiWWeqCJqHNFXiI1QtRcLuXcl`),
 * both shortened. A streamed error has the shape of OpenAI's error object.
 */
import type { ModelConfig } from "@tropism/domain/model-config"
import { dataEvents, finish, type StreamedCall, type WireFormat } from "./wire-format.ts"

const model: ModelConfig = { provider: "openai", name: "gpt-4o", temperature: 0.5, maxOutputTokens: 99 }

const chunk = (delta: unknown, finishReason: string | null = null, usage: unknown = null) => ({
  id: "chatcmpl-123",
  object: "chat.completion.chunk",
  created: 1694268190,
  model: "gpt-4o-mini",
  system_fingerprint: "fp_44709d6fcb",
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
  usage
})

/** Comes last and alone where `include_usage` was asked for. */
const usageChunk = (prompt: number, completion: number) => ({
  ...chunk({}),
  choices: [],
  usage: {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 }
  }
})

const opening = chunk({ role: "assistant", content: "", refusal: null })
const words = (texts: ReadonlyArray<string>) => texts.map((content) => chunk({ content }))

const callStart = ({ id, name }: StreamedCall, index: number) =>
  chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] })
const callPiece = (piece: string, index: number) =>
  chunk({ tool_calls: [{ index, function: { arguments: piece } }] })

/** The pieces of parallel calls come one call after the other. */
const streamed = (calls: ReadonlyArray<StreamedCall>) =>
  calls.flatMap((call, index) => [
    callStart(call, index),
    ...call.pieces.map((piece) => callPiece(piece, index))
  ])

const ends = { length: "length", filter: "content_filter" } as const

/** OpenAI is told of a failed call as an error, other servers as text. */
const messages = (failure: string) => [
  { role: "system", content: "You are a helpful assistant." },
  { role: "user", content: "Compare Paris and Rome." },
  {
    role: "assistant",
    content: "Looking.",
    tool_calls: [
      {
        id: "call_paris",
        type: "function",
        function: { name: "get_weather", arguments: '{"location":"Paris"}' }
      },
      {
        id: "call_rome",
        type: "function",
        function: { name: "get_weather", arguments: '{"location":"Rome"}' }
      }
    ]
  },
  { role: "tool", tool_call_id: "call_paris", content: '{"celsius":18}' },
  { role: "tool", tool_call_id: "call_rome", content: failure }
]

const request = {
  stream: true,
  stream_options: { include_usage: true },
  temperature: 0.5,
  max_tokens: 99,
  tool_choice: "auto",
  tools: [
    {
      type: "function",
      function: {
        name: "get_weather",
        description: "Get the current weather in a given location",
        parameters: { type: "object", required: ["location"] }
      }
    }
  ]
}

export const openaiChat: WireFormat = {
  title: "OpenAI chat completions",
  model,
  env: (url, key) => ({ OPENAI_API_KEY: key, OPENAI_BASE_URL: `${url}/v1` }),
  path: "/v1/chat/completions",
  keyHeader: "authorization",
  published: [
    {
      what: "text",
      chunks: dataEvents(opening, chunk({ content: "Hello" }), chunk({}, "stop"), usageChunk(9, 1), "[DONE]"),
      parts: [{ type: "text", delta: "Hello" }, finish(model, "stop", 9, 1)]
    },
    {
      what: "a tool call",
      chunks: dataEvents(
        chunk({
          role: "assistant",
          content: null,
          tool_calls: [
            {
              index: 0,
              id: "call_F9ZaqPWo69u0urxAhVt8meDW",
              type: "function",
              function: { name: "GetPersonAge", arguments: "" }
            }
          ],
          refusal: null
        }),
        callPiece('{"', 0),
        callPiece("person", 0),
        callPiece("Name", 0),
        callPiece('":"', 0),
        callPiece("Alice", 0),
        callPiece('"}', 0),
        chunk({}, "tool_calls"),
        usageChunk(61, 16),
        "[DONE]"
      ),
      parts: [
        {
          type: "toolCall",
          id: "call_F9ZaqPWo69u0urxAhVt8meDW",
          name: "GetPersonAge",
          arguments: { personName: "Alice" },
          fault: null
        },
        finish(model, "tool-calls", 61, 16)
      ]
    }
  ],
  begin: (...texts) => dataEvents(opening, ...words(texts)),
  answer: ({ calls = [], stop, words: texts = [] }) =>
    dataEvents(
      opening,
      ...words(texts),
      ...streamed(calls),
      chunk({}, stop ? ends[stop] : calls.length === 0 ? "stop" : "tool_calls"),
      usageChunk(11, 7),
      "[DONE]"
    ),
  cutInArguments: (call) => dataEvents(opening, ...streamed([call])),
  streamedError: (message) =>
    dataEvents({ error: { message, type: "server_error", param: null, code: "server_error" } }),
  refusal: (_status, message) => ({
    error: { message, type: "invalid_request_error", param: null, code: null }
  }),
  request: {
    model: "gpt-4o",
    ...request,
    messages: [...messages('{"error":"No such city"}'), { role: "system", content: "Finish now." }]
  },
  hasTextArguments: true
}

/** The same answer with another model's finish. */
const publishedBy = ({ name, provider }: ModelConfig) =>
  openaiChat.published.map((answer) => ({
    ...answer,
    parts: answer.parts.map((part) =>
      Object(part).type === "finish" ? { ...Object(part), provider, name } : part
    )
  }))

const localModel: ModelConfig = { ...model, provider: "openai-compatible", name: "llama3.1:8b" }

/** As Ollama, vLLM, llama.cpp and LM Studio speak it: late instructions come from the user, since chat templates refuse them elsewhere. */
export const openaiCompatible: WireFormat = {
  ...openaiChat,
  title: "an OpenAI-compatible server",
  model: localModel,
  env: (url, key) => ({ OPENAI_COMPATIBLE_API_KEY: key, OPENAI_COMPATIBLE_BASE_URL: `${url}/v1` }),
  published: publishedBy(localModel),
  request: {
    model: "llama3.1:8b",
    ...request,
    messages: [...messages("No such city"), { role: "system", content: "Finish now." }]
  }
}

const deployment: ModelConfig = { ...model, provider: "azure", name: "our-deployment" }

/** Azure's v1 API: a deployment is the model, and the key has a header of its own. */
export const azureChat: WireFormat = {
  ...openaiChat,
  title: "Azure chat completions",
  model: deployment,
  env: (url, key) => ({
    AZURE_API_KEY: key,
    AZURE_BASE_URL: `${url}/openai/v1`,
    TROPISM_OPENAI_API: "chat"
  }),
  path: "/openai/v1/chat/completions",
  keyHeader: "api-key",
  published: publishedBy(deployment),
  // Azure puts its own numbers where OpenAI has names (learn.microsoft.com, error responses).
  refusal: (status, message) => ({ error: { code: String(status), message } }),
  request: {
    model: "our-deployment",
    ...request,
    messages: [...messages("No such city"), { role: "system", content: "Finish now." }]
  }
}

const routed: ModelConfig = { ...model, provider: "openrouter", name: "anthropic/claude-sonnet-5" }

/** OpenRouter adds comments while it waits, and its errors have a number and the provider's own words (openrouter.ai/docs, errors). */
export const openrouterChat: WireFormat = {
  ...openaiChat,
  title: "OpenRouter chat completions",
  model: routed,
  env: (url, key) => ({ OPENROUTER_API_KEY: key, OPENROUTER_BASE_URL: `${url}/api/v1` }),
  path: "/api/v1/chat/completions",
  published: publishedBy(routed).map((answer) => ({
    ...answer,
    chunks: [": OPENROUTER PROCESSING\n\n", ...answer.chunks]
  })),
  streamedError: (message) =>
    dataEvents({
      id: "gen-1",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      error: { code: 503, message },
      choices: [{ index: 0, delta: { content: "" }, finish_reason: "error" }]
    }),
  refusal: (status, message) => ({ error: { code: status, message } }),
  request: {
    model: "anthropic/claude-sonnet-5",
    stream: true,
    usage: { include: true },
    cache_control: { type: "ephemeral" },
    temperature: 0.5,
    max_tokens: 99,
    tool_choice: "auto",
    tools: request.tools,
    messages: [
      { role: "system", content: [{ type: "text", text: "You are a helpful assistant." }] },
      ...messages("No such city").slice(1),
      { role: "user", content: "<system>\nFinish now.\n</system>" }
    ]
  }
}
