/**
 * The words in which stories speak with agents as programs do that know OpenAI's API.
 *
 * The clients are the real ones, over HTTP. They do not try again by themselves:
 * a story says how often something is sent.
 */
import { createOpenAI } from "@ai-sdk/openai"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { Effect } from "effect"
import OpenAI from "openai"
import type { Answer, Json, Story } from "./platform.ts"

/** Where a project's agents are models. */
export const projectUrl = ({ projectId, url }: Story): string => `${url}/api/projects/${projectId}/v1`

/** OpenAI's own client. */
export const openAiClient = (story: Story, baseURL = projectUrl(story)): OpenAI =>
  new OpenAI({ apiKey: story.token, baseURL, maxRetries: 0 })

/** The AI SDK's provider for servers that are like OpenAI's. */
export const compatibleProvider = (story: Story) =>
  createOpenAICompatible({
    name: "tropism",
    apiKey: story.token,
    baseURL: projectUrl(story),
    includeUsage: true
  })

/** The AI SDK's provider for OpenAI itself. */
export const openAiProvider = (story: Story) =>
  createOpenAI({ apiKey: story.token, baseURL: projectUrl(story) })

/** Sends a request as it is, with no client between. */
export const sendCompletion = (story: Story, body: unknown, headers: Record<string, string> = {}) =>
  story.send("POST", `/api/projects/${story.projectId}/v1/chat/completions`, body, headers)

/** Sends a request for a response as it is, with no client between. */
export const sendResponse = (story: Story, body: unknown, headers: Record<string, string> = {}) =>
  story.send("POST", `/api/projects/${story.projectId}/v1/responses`, body, headers)

/** Asks for a response by its id, or does something to it. */
export const atResponse = (story: Story, method: string, path: string, body?: unknown) =>
  story.send(method, `/api/projects/${story.projectId}/v1/responses/${path}`, body)

/** The text of a whole response, its items one after another. */
export const outputText = (response: Json): string =>
  response.output
    .filter(({ type }: Json) => type === "message")
    .flatMap(({ content }: Json) => content.map(({ text }: Json) => text))
    .join("")

/** The events of a streamed response; each is named as its data says. */
export const responseEvents = (answer: Answer | undefined): ReadonlyArray<Json> =>
  String(answer?.body)
    .split("\n\n")
    .filter((frame) => frame !== "" && !frame.startsWith(":"))
    .map((frame) => {
      const [name = "", data = ""] = frame.split("\n")
      const event: Json = JSON.parse(data.slice("data: ".length))
      if (name !== `event: ${event.type}`) throw new Error(`${name} has the data of ${event.type}`)
      return event
    })

/** Makes an agent that can be spoken to. */
export const newModel = (story: Story, name: string, model: Json, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name,
    prompt: "Answer.",
    triggerType: "manual",
    tools: ["graph.*"],
    executionMode: "execute",
    model,
    ...overrides
  })

/** What a client's promise brings, or what it throws. */
export const outcomeOf = <A>(act: () => PromiseLike<A>): Effect.Effect<A, Json> =>
  Effect.tryPromise({ try: act, catch: (error): Json => error })

/** What a client throws. */
export const failureOf = (act: () => PromiseLike<unknown>): Effect.Effect<Json, unknown> =>
  Effect.flip(outcomeOf(act))

/** The chunks of a streamed answer, and its words. */
export const chunksOf = (stream: AsyncIterable<Json>) =>
  Effect.promise((): Promise<ReadonlyArray<Json>> => Array.fromAsync(stream)).pipe(
    Effect.map((chunks) => ({
      chunks,
      words: chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")
    }))
  )

/** The words of a streamed answer that was sent for with no client between. */
export const streamedWords = (answer: Answer | undefined): string =>
  String(answer?.body)
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line): Json => JSON.parse(line.slice("data: ".length)))
    .map(({ choices }) => choices?.[0]?.delta.content ?? "")
    .join("")
