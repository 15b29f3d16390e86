/**
 * Programs that know OpenAI's Responses API speak with agents: by OpenAI's own client, its Agents SDK and the AI SDK.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Agent, OpenAIResponsesModel, run, setTracingDisabled, user } from "@openai/agents"
import { generateText, streamText } from "ai"
import { Effect } from "effect"
import { NotFoundError, UnprocessableEntityError } from "openai"
import { contentsOf, echo, logOf } from "../testing/context-words.ts"
import {
  failureOf,
  newModel,
  openAiClient,
  openAiProvider,
  outcomeOf,
  outputText,
  projectUrl
} from "../testing/openai-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, runsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

/** Speaks word by word. */
const slowly = scripted([{ say: "Answer {{ turn }}: {{ message }}", tokensPerSecond: 40 }])

/** Makes an object, then says so. */
const maker = scripted([
  {
    when: "step == 0",
    say: "I make it.",
    calls: [{ tool: "create_object", arguments: { type: "Person", key: "ada", properties: { name: "Ada" } } }]
  },
  { say: "Made." }
])

const strike = scripted([{ fault: { kind: "error", message: "The model is on strike" } }])

setTracingDisabled(true)

/** An agent of the Agents SDK whose model is an agent here. */
const sdkAgent = (story: Story, model: string, instructions = "Be brief.") =>
  new Agent({
    name: "caller",
    instructions,
    // The SDK has a copy of the client's types.
    model: new OpenAIResponsesModel(openAiClient(story) as Json, model)
  })

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("OpenAI's client", () => {
    it.effect("gets a whole response, with its usage, and the id goes on in the conversation", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", echo)
        const client = openAiClient(story)
        const { data: first, response: http } = yield* outcomeOf(() =>
          client.responses
            .create({ model: "clerk", input: "Hello", metadata: { topic: "greeting" } })
            .withResponse()
        )
        expect(first.output_text).toBe("Answer 1: Hello")
        const [run] = yield* runsOf(story, clerk)
        const { inputTokens, outputTokens } = run.usage
        expect(first).toMatchObject({
          id: expect.stringMatching(/^resp_[0-9a-f]{32}$/),
          object: "response",
          created_at: expect.any(Number),
          status: "completed",
          error: null,
          incomplete_details: null,
          model: "clerk",
          metadata: { topic: "greeting" },
          previous_response_id: null,
          output: [
            {
              type: "message",
              role: "assistant",
              status: "completed",
              content: [{ type: "output_text", text: "Answer 1: Hello", annotations: [] }]
            }
          ],
          usage: {
            input_tokens: inputTokens,
            output_tokens: outputTokens,
            total_tokens: inputTokens + outputTokens,
            input_tokens_details: { cached_tokens: 0 },
            output_tokens_details: { reasoning_tokens: 0 }
          }
        })
        expect(http.headers.get("x-tropism-conversation")).toBe(run.contextName)
        const second = yield* outcomeOf(() =>
          client.responses.create({ model: "clerk", input: "And now?", previous_response_id: first.id })
        )
        expect([second.output_text, second.previous_response_id]).toEqual(["Answer 2: And now?", first.id])
        expect(contentsOf(yield* logOf(story, run.contextName), "UserMessageEvent")).toEqual([
          "Hello",
          "And now?"
        ])
        // Read again, it is the same.
        const { output_text: _text, ...again }: Json = yield* outcomeOf(() =>
          client.responses.retrieve(second.id)
        )
        expect(second).toMatchObject(again)
      })
    )

    it.effect("streams a response by its helper, and the snapshots are the final response", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", slowly)
        const text = "alpha beta gamma delta epsilon zeta eta theta iota kappa ∑ 🙂 ﷽"
        const client = openAiClient(story)
        const stream = client.responses.stream({ model: "clerk", input: text })
        const events: Array<Json> = yield* outcomeOf(() => Array.fromAsync(stream))
        const final = yield* outcomeOf(() => stream.finalResponse())
        expect(final.output_text).toBe(`Answer 1: ${text}`)
        const deltas = events.filter(({ type }) => type === "response.output_text.delta")
        expect(deltas.length).toBeGreaterThan(3)
        expect(deltas.map(({ delta }) => delta).join("")).toBe(`Answer 1: ${text}`)
        expect(final.usage?.output_tokens).toBeGreaterThan(0)
        // A response that is over is streamed again from the log.
        const again = yield* outcomeOf(() => client.responses.retrieve(final.id, { stream: true }))
        const told: ReadonlyArray<Json> = yield* outcomeOf(() => Array.fromAsync(again))
        expect(told.at(-1)).toMatchObject({ type: "response.completed", response: { id: final.id } })
        expect(outputText(told.at(-1).response)).toBe(`Answer 1: ${text}`)
      })
    )

    it.effect("sees what the agent did as calls that are done, and none to make", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "maker", maker)
        const response: Json = yield* outcomeOf(() =>
          openAiClient(story).responses.create({ model: "maker", input: "Make Ada." })
        )
        expect(response.output_text).toBe("I make it.\n\nMade.")
        expect(response.output.map(({ type }: Json) => type)).toEqual(["message", "mcp_call", "message"])
        expect(response.output[1]).toEqual({
          type: "mcp_call",
          id: expect.stringMatching(/^mcp_/),
          name: "create_object",
          server_label: "tropism",
          arguments: expect.any(String),
          output: expect.stringContaining('"status":"applied"'),
          error: null,
          approval_request_id: null,
          status: "completed"
        })
        expect(JSON.parse(response.output[1].arguments)).toEqual({
          type: "Person",
          key: "ada",
          properties: { name: "Ada" }
        })
        expect((yield* story.get("/objects?type=Person")).items).toHaveLength(1)
      })
    )

    it.effect("knows a turn that fails and a response that is not there by its own errors", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "broken", strike)
        const client = openAiClient(story)
        const failed = yield* failureOf(() => client.responses.create({ model: "broken", input: "Hello" }))
        expect(failed).toBeInstanceOf(UnprocessableEntityError)
        expect(failed).toMatchObject({ code: "turn_failed", type: "agent_error" })
        const stream = yield* outcomeOf(() =>
          client.responses.create({ model: "broken", input: "Hello", stream: true })
        )
        const events: ReadonlyArray<Json> = yield* outcomeOf(() => Array.fromAsync(stream))
        const last = events.at(-1)
        expect(last).toMatchObject({
          type: "response.failed",
          response: { status: "failed", error: { code: "server_error" } }
        })
        expect(`422 ${last.response.error.message}`).toBe(failed.message)
        expect(JSON.stringify(events)).not.toContain("on strike")
        expect((yield* outcomeOf(() => client.responses.retrieve(last.response.id))).status).toBe("failed")
        expect(yield* failureOf(() => client.responses.retrieve("resp_0"))).toBeInstanceOf(NotFoundError)
      })
    )

    it.effect("cancels a response in the background, and the run is cancelled", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", scripted([{ say: "Done.", latencyMs: 60_000 }]))
        const client = openAiClient(story)
        const begun = yield* outcomeOf(() =>
          client.responses.create({ model: "clerk", input: "Hello", background: true })
        )
        expect([begun.status, begun.background, begun.output]).toEqual(["in_progress", true, []])
        expect((yield* outcomeOf(() => client.responses.retrieve(begun.id))).status).toBe("in_progress")
        const cancelled = yield* outcomeOf(() => client.responses.cancel(begun.id))
        expect(cancelled.status).toBe("cancelled")
        // Once more is no other answer.
        expect((yield* outcomeOf(() => client.responses.cancel(begun.id))).status).toBe("cancelled")
        const [ended] = yield* endedRuns(story, clerk, 1)
        expect(ended.status).toBe("cancelled")
      })
    )

    it.effect(
      "polls a response in the background until it is completed; a completed one is not cancelled",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newModel(story, "clerk", scripted([{ say: "Done.", latencyMs: 300 }]))
          const client = openAiClient(story)
          const begun = yield* outcomeOf(() =>
            client.responses.create({ model: "clerk", input: "Hello", background: true })
          )
          const done: Json = yield* eventually(
            Effect.orDie(outcomeOf(() => client.responses.retrieve(begun.id))),
            ({ status }: Json) => status !== "in_progress"
          )
          expect([done.status, outputText(done)]).toEqual(["completed", "Done."])
          expect(yield* failureOf(() => client.responses.cancel(begun.id))).toMatchObject({ status: 400 })
        })
    )

    it.effect("at the root it is the door of a token that reaches one project", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const visitor = yield* asUser(story, "editor", [story.projectId])
        const client = openAiClient(visitor, `${story.url}/v1`)
        const { id, output_text: text } = yield* outcomeOf(() =>
          client.responses.create({ model: "clerk", input: "Hello" })
        )
        expect(text).toBe("Answer 1: Hello")
        expect((yield* outcomeOf(() => client.responses.retrieve(id))).id).toBe(id)
        yield* outcomeOf(() => client.responses.delete(id))
        expect(yield* failureOf(() => client.responses.retrieve(id))).toBeInstanceOf(NotFoundError)
      })
    )
  })

  describe("The AI SDK's default for OpenAI", () => {
    it.effect("speaks with an agent, whole and streamed, and brings what was said by reference", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", slowly)
        const model = openAiProvider(story)("clerk")
        const whole = yield* outcomeOf(() =>
          generateText({ model, instructions: "Be brief.", prompt: "My name is Ada.", maxRetries: 0 })
        )
        expect([whole.text, whole.finishReason]).toEqual(["Answer 1: My name is Ada.", "stop"])
        expect(whole.usage.outputTokens).toBeGreaterThan(0)
        // The SDK sends its answer as an item_reference.
        const streamed = streamText({
          model,
          instructions: "Be brief.",
          messages: [
            { role: "user", content: "My name is Ada." },
            ...whole.response.messages,
            { role: "user", content: "And now?" }
          ],
          maxRetries: 0
        })
        expect(yield* outcomeOf(() => streamed.text)).toBe("Answer 2: And now?")
        expect(yield* outcomeOf(() => streamed.finishReason)).toBe("stop")
        const [newest] = yield* runsOf(story, clerk)
        const { messages } = yield* story.get(`/contexts/${newest.contextName}/state`)
        expect(JSON.stringify(messages)).toContain("Answer 1: My name is Ada.")
      })
    )

    it.effect("reads the agent's calls as done by the provider, and goes on by previousResponseId", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "maker", maker)
        const model = openAiProvider(story)("maker")
        for (const isStreamed of [false, true]) {
          const ask = { model, prompt: "Make Ada.", maxRetries: 0 } as const
          const answer: Json = isStreamed ? streamText(ask) : yield* outcomeOf(() => generateText(ask))
          const text = yield* outcomeOf(async () => answer.text)
          const calls: ReadonlyArray<Json> = yield* outcomeOf(async () => answer.toolCalls)
          const results: ReadonlyArray<Json> = yield* outcomeOf(async () => answer.toolResults)
          expect(text).toBe("I make it.\n\nMade.")
          expect(calls).toMatchObject([{ toolName: "mcp.create_object", providerExecuted: true }])
          expect(results).toMatchObject([
            { output: { type: "call", name: "create_object", serverLabel: "tropism" } }
          ])
          const metadata = yield* outcomeOf(async () => answer.providerMetadata)
          const second = yield* outcomeOf(() =>
            generateText({
              model,
              prompt: "Again.",
              maxRetries: 0,
              providerOptions: { openai: { previousResponseId: metadata.openai.responseId } }
            })
          )
          expect(second.text).toBe("I make it.\n\nMade.")
        }
      })
    )

    it.effect("with store: false the history comes in the request", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "maker", maker)
        const model = openAiProvider(story)("maker")
        const providerOptions = { openai: { store: false } }
        const first = yield* outcomeOf(() =>
          generateText({ model, prompt: "Make Ada.", maxRetries: 0, providerOptions })
        )
        const second = yield* outcomeOf(() =>
          generateText({
            model,
            messages: [
              { role: "user", content: "Make Ada." },
              ...first.response.messages,
              { role: "user", content: "Again." }
            ],
            maxRetries: 0,
            providerOptions
          })
        )
        expect(second.text).toBe("I make it.\n\nMade.")
      })
    )
  })

  describe("The Agents SDK", () => {
    it.effect("runs an agent, streams one, and goes on by history and by previousResponseId", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", slowly)
        const caller = sdkAgent(story, "clerk")
        const first = yield* outcomeOf(() => run(caller, "My name is Ada."))
        expect(first.finalOutput).toBe("Answer 1: My name is Ada.")
        const second = yield* outcomeOf(() => run(caller, [...first.history, user("And now?")]))
        expect(second.finalOutput).toBe("Answer 2: And now?")
        const previousResponseId = second.lastResponseId ?? ""
        const streamed = yield* outcomeOf(() =>
          run(caller, "And then?", { stream: true, previousResponseId })
        )
        const events: ReadonlyArray<Json> = yield* outcomeOf(() => Array.fromAsync(streamed))
        expect(streamed.finalOutput).toBe("Answer 3: And then?")
        expect(events.filter(({ data }) => data?.type === "output_text_delta").length).toBeGreaterThan(1)
      })
    )

    it.effect("is shown the agent's calls and runs none of them itself", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newModel(story, "maker", maker)
        const first = yield* outcomeOf(() => run(sdkAgent(story, "maker"), "Make Ada."))
        expect(first.finalOutput).toBe("Made.")
        expect(first.newItems.map(({ type }) => type)).toEqual([
          "message_output_item",
          "tool_call_item",
          "message_output_item"
        ])
        expect(yield* runsOf(story, agent)).toHaveLength(1)
        // The items come back in the history of the next request.
        const again = yield* outcomeOf(() =>
          run(sdkAgent(story, "maker"), [...first.history, user("Again.")])
        )
        expect(again.finalOutput).toBe("Made.")
      })
    )
  })

  describe("A client that knows only the address", () => {
    it.effect("finds the Responses API named where nothing else is", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const unknown = yield* story.send("GET", `${projectUrl(story).slice(story.url.length)}/nothing`)
        expect(unknown.body.error.message).toContain("/v1/responses")
      })
    )
  })
})
