/**
 * Pictures that tools answer, as each provider's API takes them.
 *
 * A picture is kept once under its digest; the log names it. A model that cannot see reads the sentence.
 */
import { createHash } from "node:crypto"
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { callEventsOf } from "../testing/mcp-runs.ts"
import { answering, oddServer, oddTool } from "../testing/mcp-odd-server.ts"
import { addServer } from "../testing/mcp-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere } from "../testing/shared-server.ts"
import { strictChatServer, strictRequests, strictServer } from "../testing/strict-models.ts"

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==",
  "base64"
)
const digest = createHash("sha256").update(png).digest("hex")
const picture = { type: "image", mimeType: "image/png", data: png.toString("base64") }
const sentence = `The screen:\n[picture 1: image/png, ${png.length} bytes]`

/** A project with a server whose tool answers this, and a run of a model that calls it. */
const looking = (
  model: Json,
  content: ReadonlyArray<Json> = [{ type: "text", text: "The screen:" }, picture]
) =>
  Effect.gen(function* () {
    const story: Story = yield* newStoryHere
    const { url } = yield* oddServer(
      ({ message }) =>
        message?.method === "tools/call"
          ? answering(message, { resultType: "complete", content })
          : undefined,
      {
        tools: [
          oddTool({ name: "screen", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } })
        ]
      }
    )
    yield* addServer(story, { type: "http", url })
    const agent = yield* story.post("/agents", {
      name: "seer",
      prompt: "Look.",
      triggerType: "manual",
      executionMode: "execute",
      tools: ["shop.*"],
      model
    })
    const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
    expect(run).toMatchObject({ status: "completed", errorMessage: null })
    return { story, run, body: strictRequests.get(model.name)?.at(-1) }
  })

const base64 = png.toString("base64")
const dataUrl = `data:image/png;base64,${base64}`

layer(strictServer, { excludeTestServices: true })((it) => {
  describe("A picture in a tool's result", () => {
    it.effect("is shown to Claude within the result", () =>
      Effect.gen(function* () {
        const { body } = yield* looking({ provider: "anthropic", name: "claude" })
        const results = body.messages.flatMap(({ content }: Json) =>
          content.filter(({ type }: Json) => type === "tool_result")
        )
        expect(results[0].content).toMatchObject([
          { type: "text", text: sentence },
          { type: "image", source: { type: "base64", media_type: "image/png", data: base64 } }
        ])
      })
    )

    it.effect("is shown to Gemini 3 within the response of the function, and to an older one beside it", () =>
      Effect.gen(function* () {
        const partsOf = ({ contents }: Json) =>
          contents.findLast(({ parts }: Json) => parts.some((part: Json) => part.functionResponse)).parts
        const { body } = yield* looking({ provider: "google", name: "gemini-3-pro-preview" })
        expect(partsOf(body)).toMatchObject([
          {
            functionResponse: {
              response: { content: sentence },
              parts: [{ inlineData: { mimeType: "image/png", data: base64 } }]
            }
          }
        ])
        const { body: older } = yield* looking({ provider: "google", name: "gemini-2.5-pro" })
        expect(partsOf(older)).toMatchObject([
          { functionResponse: { response: { content: sentence } } },
          { inlineData: { mimeType: "image/png", data: base64 } },
          { text: expect.any(String) }
        ])
      })
    )

    it.effect("is shown to OpenAI within the function's output", () =>
      Effect.gen(function* () {
        const { body } = yield* looking({ provider: "openai", name: "openai" })
        const { output } = body.input.find(({ type }: Json) => type === "function_call_output")
        expect(output).toMatchObject([
          { type: "input_text", text: sentence },
          { type: "input_image", image_url: dataUrl }
        ])
      })
    )

    it.effect("is shown to a deployment at Azure within the function's output", () =>
      Effect.gen(function* () {
        const model = { provider: "azure", name: "deployment", reasoning: "low" }
        const { body } = yield* looking(model)
        const { output } = body.input.find(({ type }: Json) => type === "function_call_output")
        expect(output).toMatchObject([{ type: "input_text" }, { type: "input_image", image_url: dataUrl }])
      })
    )

    it.effect("is shown at Bedrock within the result", () =>
      Effect.gen(function* () {
        const { body } = yield* looking({ provider: "amazon-bedrock", name: "anthropic.claude" })
        const [result] = body.messages.flatMap(({ content }: Json) =>
          content.flatMap(({ toolResult }: Json) => toolResult ?? [])
        )
        expect(result.content).toEqual([
          { text: sentence },
          { image: { format: "png", source: { bytes: base64 } } }
        ])
      })
    )

    it.effect("is shown through OpenRouter within the tool's message", () =>
      Effect.gen(function* () {
        const { body } = yield* looking({ provider: "openrouter", name: "routed" })
        expect(body.messages.at(-1)).toMatchObject({
          role: "tool",
          content: [
            { type: "text", text: sentence },
            { type: "image_url", image_url: { url: dataUrl } }
          ]
        })
      })
    )

    it.effect("is shown to Mistral by the user, after the assistant's turn that follows all results", () =>
      Effect.gen(function* () {
        const before = strictRequests.get("ministral")?.length ?? 0
        const { body } = yield* looking({ provider: "mistral", name: "ministral" })
        expect(body.messages.slice(-4).map(({ role }: Json) => role)).toEqual([
          "tool",
          "tool",
          "assistant",
          "user"
        ])
        expect(JSON.stringify(body.messages.at(-1)).split(dataUrl)).toHaveLength(3)
        expect((strictRequests.get("ministral")?.length ?? 0) - before).toBe(2)
      })
    )

    it.effect("is shown by the user, after all results, where chat completions are spoken", () =>
      Effect.gen(function* () {
        const { body } = yield* looking({ provider: "openai-compatible", name: "qwen-vl" })
        const [first, second, shown] = body.messages.slice(-3)
        expect([first.content, second.content]).toEqual([sentence, sentence])
        expect(shown).toMatchObject({
          role: "user",
          content: [
            { type: "text", text: expect.stringContaining("shop__screen") },
            { type: "image_url", image_url: { url: dataUrl } },
            { type: "text" },
            { type: "image_url" }
          ]
        })
      })
    )

    it.effect("is a sentence for a model that takes none, which is asked once more and then as it can", () =>
      Effect.gen(function* () {
        const { body } = yield* looking({ provider: "openai-compatible", name: "llama" })
        expect(body.messages.at(-1)).toMatchObject({
          role: "tool",
          content: expect.stringContaining(sentence)
        })
        const before = strictRequests.get("llama")?.length ?? 0
        yield* looking({ provider: "openai-compatible", name: "llama" })
        expect((strictRequests.get("llama")?.length ?? 0) - before).toBe(2)
      })
    )

    it.effect("is kept once under its digest, and named by the log", () =>
      Effect.gen(function* () {
        const { run, story } = yield* looking({ provider: "openai-compatible", name: "qwen-vl" })
        const ended = (yield* callEventsOf(story, run)).filter(
          ({ type }) => type === "ToolCallCompletedEvent"
        )
        const pictures = [{ digest, mimeType: "image/png", sizeBytes: png.length }]
        expect(ended).toMatchObject([
          { result: sentence, pictures },
          { result: sentence, pictures }
        ])
        expect(JSON.stringify(ended)).not.toContain(base64)
        expect(yield* story.get(`/attachments/${digest}`)).toContain("PNG")
        expect((yield* story.get(`/contexts/${run.contextName}/replay`)).isEqual).toBe(true)
      })
    )

    it.effect("is judged by a guard before the model is shown it", () =>
      Effect.gen(function* () {
        const guard = { provider: "openai-compatible", name: "watchman" }
        yield* looking({ provider: "openai-compatible", name: "qwen-vl", guard })
        expect(JSON.stringify(strictRequests.get("watchman")?.at(-1)).split(dataUrl)).toHaveLength(3)
      })
    )

    it.effect("is only named where it is none, of an unknown kind, or one too many", () =>
      Effect.gen(function* () {
        const { body, run, story } = yield* looking({ provider: "openai-compatible", name: "qwen-vl" }, [
          { ...picture, data: Buffer.from("no picture").toString("base64") },
          { ...picture, mimeType: "image/tiff" },
          ...Array.from({ length: 9 }, () => picture)
        ])
        const [ended] = (yield* callEventsOf(story, run)).filter(
          ({ type }) => type === "ToolCallCompletedEvent"
        )
        expect(ended.pictures).toHaveLength(8)
        expect(ended.result.split("\n").map((line: string) => line.includes("not shown"))).toEqual([
          true,
          true,
          ...Array.from({ length: 8 }, () => false),
          true
        ])
        expect(JSON.stringify(body).split(dataUrl)).toHaveLength(17)
      })
    )
  })
})

layer(strictChatServer, { excludeTestServices: true })((it) => {
  describe("A picture in a tool's result", () => {
    it.effect("is shown by the user where OpenAI is asked for chat completions", () =>
      Effect.gen(function* () {
        const { body } = yield* looking({ provider: "openai", name: "gpt-4o" })
        expect(body.messages.at(-1)).toMatchObject({ role: "user" })
        expect(JSON.stringify(body.messages.at(-1))).toContain(dataUrl)
      })
    )
  })
})
