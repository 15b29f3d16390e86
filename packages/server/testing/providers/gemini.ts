/**
 * Gemini's `streamGenerateContent`, at Google's own API and at Vertex AI.
 *
 * Published examples: answers of gemini-3-pro-preview as they were recorded in
 * the tests of vercel/ai (`google-text.chunks.txt`, `google-tool-call.chunks.txt`),
 * the thought signatures shortened. A call comes whole, never in pieces, and has
 * no id. The refusal with its `RetryInfo` is `google-429-retry-info.json` there.
 */
import { expect } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { finish, type StreamedCall, type WireFormat } from "./wire-format.ts"

const model: ModelConfig = {
  provider: "google",
  name: "gemini-3.5-flash",
  temperature: 0.5,
  maxOutputTokens: 99
}

/** Google ends its lines with a carriage return. */
const events = (...values: ReadonlyArray<unknown>): ReadonlyArray<string> =>
  values.map((value) => `data: ${JSON.stringify(value)}\r\n\r\n`)

const chunk = (
  parts: ReadonlyArray<unknown>,
  [prompt, candidates, thoughts]: readonly [number, number, number],
  finishReason?: string
) => ({
  candidates: [
    { content: { parts, role: "model" }, ...(finishReason === undefined ? {} : { finishReason }), index: 0 }
  ],
  usageMetadata: {
    promptTokenCount: prompt,
    candidatesTokenCount: candidates,
    totalTokenCount: prompt + candidates + thoughts,
    promptTokensDetails: [{ modality: "TEXT", tokenCount: prompt }],
    thoughtsTokenCount: thoughts
  },
  modelVersion: "gemini-3-pro-preview",
  responseId: "bH6LaZW8Fp_3nsEPqtaSwQ4"
})

const used = [11, 5, 2] as const

const words = (texts: ReadonlyArray<string>) => texts.map((text) => chunk([{ text }], used))
const callPart = ({ name, pieces }: StreamedCall) => ({
  functionCall: { name, args: JSON.parse(pieces.join("") || "{}") }
})

const ends = { length: "MAX_TOKENS", filter: "SAFETY" } as const

const statuses: Readonly<Record<number, string>> = {
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE"
}

const contents = [
  { role: "user", parts: [{ text: "Compare Paris and Rome." }] },
  {
    role: "model",
    parts: [
      { text: "Looking." },
      // The documented stand-in for a signature that was not kept: Gemini 3 refuses the first call without one.
      {
        functionCall: { name: "get_weather", args: { location: "Paris" } },
        thoughtSignature: "skip_thought_signature_validator"
      },
      { functionCall: { name: "get_weather", args: { location: "Rome" } } }
    ]
  },
  {
    role: "user",
    parts: [
      { functionResponse: { name: "get_weather", response: { content: { celsius: 18 } } } },
      { functionResponse: { name: "get_weather", response: { error: "No such city" } } }
    ]
  },
  { role: "user", parts: [{ text: "<system>\nFinish now.\n</system>" }] }
]

export const gemini: WireFormat = {
  title: "Gemini streamGenerateContent",
  model,
  env: (url, key) => ({
    GOOGLE_GENERATIVE_AI_API_KEY: key,
    GOOGLE_GENERATIVE_AI_BASE_URL: `${url}/v1beta`
  }),
  path: "/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
  keyHeader: "x-goog-api-key",
  published: [
    {
      what: "text",
      chunks: events(
        chunk([{ text: "There are **3**" }], [9, 5, 185]),
        chunk([{ text: ' "r"s in strawberry.\n\nst**r**awbe**rr**y' }], [9, 23, 185]),
        chunk([{ text: "", thoughtSignature: "EqsFCqgFAb4+9vvtAF5n87lB4OGDOoTRMOqp" }], [9, 23, 185], "STOP")
      ),
      parts: [
        { type: "text", delta: "There are **3**" },
        { type: "text", delta: ' "r"s in strawberry.\n\nst**r**awbe**rr**y' },
        finish(model, "stop", 9, 23 + 185)
      ]
    },
    {
      what: "a tool call",
      chunks: events(
        chunk(
          [
            {
              functionCall: { name: "weather", args: { location: "San Francisco" } },
              thoughtSignature: "EqUCCqICAb4+9vsh8Pd5taZVoPzSvjWWwzBrvhEQ"
            }
          ],
          [29, 15, 45]
        ),
        chunk([{ text: "" }], [29, 15, 45], "STOP")
      ),
      parts: [
        {
          type: "toolCall",
          // It is made here: Gemini sends none.
          id: expect.any(String),
          name: "weather",
          arguments: { location: "San Francisco" },
          fault: null
        },
        finish(model, "tool-calls", 29, 15 + 45)
      ]
    }
  ],
  begin: (...texts) => events(...words(texts)),
  answer: ({ calls = [], stop, words: texts = [] }) =>
    events(
      ...words(texts),
      ...(calls.length === 0 ? [] : [chunk(calls.map(callPart), used)]),
      chunk([{ text: "" }], used, stop ? ends[stop] : "STOP")
    ),
  cutInArguments: ({ name, pieces }) => [
    `data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"${name}","args":${pieces.join("")}`
  ],
  streamedError: (message) => events({ error: { code: 503, message, status: "UNAVAILABLE" } }),
  refusal: (status, message) => ({
    error: { code: status, message, status: statuses[status] ?? "INVALID_ARGUMENT" }
  }),
  request: {
    systemInstruction: { parts: [{ text: "You are a helpful assistant." }] },
    generationConfig: { temperature: 0.5, maxOutputTokens: 99 },
    contents,
    tools: [
      {
        functionDeclarations: [
          {
            name: "get_weather",
            description: "Get the current weather in a given location",
            parametersJsonSchema: { type: "object", required: ["location"] }
          }
        ]
      }
    ],
    toolConfig: { functionCallingConfig: { mode: "AUTO" } }
  },
  hasTextArguments: false
}

/** A limit of requests in a minute, which Google words like an account that is used up. */
export const geminiLimitByMinute = {
  error: {
    code: 429,
    message: "You exceeded your current quota, please check your plan.",
    status: "RESOURCE_EXHAUSTED",
    details: [
      {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        violations: [{ quotaId: "GenerateRequestsPerMinutePerProjectPerModel-FreeTier" }]
      },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.4s" }
    ]
  }
}

const vertexModel: ModelConfig = { ...model, provider: "google-vertex" }

/** The same at Vertex AI, whose addresses name the publisher. */
export const geminiOnVertex: WireFormat = {
  ...gemini,
  title: "Gemini on Vertex AI",
  model: vertexModel,
  env: (url, key) => ({
    GOOGLE_VERTEX_API_KEY: key,
    GOOGLE_VERTEX_BASE_URL: `${url}/v1/publishers/google`
  }),
  path: "/v1/publishers/google/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
  published: gemini.published.map((answer) => ({
    ...answer,
    parts: answer.parts.map((part) =>
      Object(part).type === "finish" ? { ...Object(part), provider: vertexModel.provider } : part
    )
  }))
}
