/**
 * Programs that know OpenAI's API speak with agents, by OpenAI's own client and by the AI SDK.
 */
import { describe, expect, layer } from "@effect/vitest"
import { generateText, streamText } from "ai"
import { Effect } from "effect"
import { echo, logOf } from "../testing/context-words.ts"
import {
  chunksOf,
  compatibleProvider,
  newModel,
  openAiClient,
  openAiProvider,
  outcomeOf
} from "../testing/openai-words.ts"
import { type Json, scripted } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns } from "../testing/story-words.ts"
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

const hello = { role: "user", content: "Hello" } as const

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("OpenAI's client", () => {
    it.effect("lists the agents of a project as models, and tells one of them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", echo)
        yield* newModel(story, "asleep", echo, { enabled: false })
        const client = openAiClient(story)
        const { data } = yield* outcomeOf(() => client.models.list())
        expect(data.map(({ id }) => id)).toContain("clerk")
        expect(data.map(({ id }) => id)).not.toContain("asleep")
        const one = yield* outcomeOf(() => client.models.retrieve("clerk"))
        expect(one).toEqual({
          id: "clerk",
          object: "model",
          created: Math.floor(new Date(clerk.createdAt).getTime() / 1_000),
          owned_by: "tropism"
        })
      })
    )

    it.effect("is answered whole, with what it cost, who answered and where to go on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", echo)
        const { data, request_id, response } = yield* outcomeOf(() =>
          openAiClient(story)
            .chat.completions.create({ model: "clerk", messages: [hello] })
            .withResponse()
        )
        const answer: Json = data
        expect(answer).toMatchObject({
          id: expect.stringMatching(/^chatcmpl-completion-[0-9a-f-]{36}-\d+$/),
          object: "chat.completion",
          created: expect.any(Number),
          model: "clerk",
          choices: [
            {
              index: 0,
              message: { role: "assistant", content: "Answer 1: Hello", refusal: null },
              finish_reason: "stop"
            }
          ],
          x_tropism: { status: "completed", run_id: expect.any(String), tool_calls: [] }
        })
        const [run] = (yield* story.get(`/runs?agentId=${clerk.id}`)).items
        expect(answer.x_tropism.run_id).toBe(run.id)
        expect(answer.usage).toMatchObject({
          prompt_tokens: run.usage.inputTokens,
          completion_tokens: run.usage.outputTokens,
          total_tokens: run.usage.inputTokens + run.usage.outputTokens
        })
        expect(request_id).toMatch(/^[0-9a-f-]{36}$/)
        expect(response.headers.get("x-tropism-conversation")).toBe(answer.x_tropism.conversation)
        // An id names an agent as well as its name does.
        const byId = yield* outcomeOf(() =>
          openAiClient(story).chat.completions.create({ model: clerk.id, messages: [hello] })
        )
        expect([byId.model, byId.choices[0]?.message.content]).toEqual([clerk.id, "Answer 1: Hello"])
      })
    )

    it.effect("is answered word by word, and told at the end what it cost", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", slowly)
        const text = "alpha beta gamma delta epsilon zeta eta theta iota kappa ∑ 🙂 ﷽"
        const stream = yield* outcomeOf(() =>
          openAiClient(story).chat.completions.create({
            model: "clerk",
            messages: [{ role: "user", content: text }],
            stream: true,
            stream_options: { include_usage: true }
          })
        )
        const { chunks, words } = yield* chunksOf(stream)
        expect(words).toBe(`Answer 1: ${text}`)
        expect(chunks.filter((chunk) => chunk.choices[0]?.delta.content).length).toBeGreaterThan(3)
        expect(chunks[0].choices[0].delta).toEqual({ role: "assistant", content: "" })
        expect(new Set(chunks.map(({ id, model, object }) => [id, model, object].join()))).toHaveLength(1)
        expect(chunks.map(({ choices }) => choices[0]?.finish_reason).filter(Boolean)).toEqual(["stop"])
        expect(chunks.slice(0, -1).every(({ usage }) => usage === null)).toBe(true)
        expect(chunks.at(-1)).toMatchObject({
          choices: [],
          usage: { prompt_tokens: expect.any(Number), completion_tokens: expect.any(Number) }
        })
        expect(chunks.at(-2).x_tropism).toMatchObject({ status: "completed", tool_calls: [] })
      })
    )

    it.effect("is told of what the agent's own tools did, and of no call to make", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "maker", maker)
        const ask = { model: "maker", messages: [{ role: "user", content: "Make Ada." }] } as const
        const whole: Json = yield* outcomeOf(() =>
          openAiClient(story).chat.completions.create({ ...ask, messages: [...ask.messages] })
        )
        expect(whole.choices[0]).toMatchObject({
          message: { content: "I make it.\n\nMade." },
          finish_reason: "stop"
        })
        expect(whole.choices[0].message).not.toHaveProperty("tool_calls")
        expect(whole.x_tropism.tool_calls).toEqual([
          {
            tool: "create_object",
            arguments: { type: "Person", key: "ada", properties: { name: "Ada" } },
            result: expect.objectContaining({ status: "applied" }),
            timestamp: expect.any(String)
          }
        ])
        expect((yield* story.get("/objects?type=Person")).items).toHaveLength(1)
        // Streamed, the words are the same.
        yield* newModel(
          story,
          "talker",
          scripted([
            { when: "step == 0", say: "One.", calls: [{ tool: "search_objects", arguments: {} }] },
            { say: "Two." }
          ])
        )
        const streamed = yield* outcomeOf(() =>
          openAiClient(story).chat.completions.create({ model: "talker", messages: [hello], stream: true })
        )
        expect((yield* chunksOf(streamed)).words).toBe("One.\n\nTwo.")
      })
    )

    it.effect("twenty requests at once are twenty answers, each to its own question", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const client = openAiClient(story)
        const answers = yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => `Question ${index}`),
          (content) =>
            outcomeOf(() =>
              client.chat.completions.create({ model: "clerk", messages: [{ role: "user", content }] })
            ),
          { concurrency: 20 }
        )
        expect(answers.map(({ choices }) => choices[0]?.message.content)).toEqual(
          Array.from({ length: 20 }, (_, index) => `Answer 1: Question ${index}`)
        )
      })
    )

    it.effect("who leaves cancels nothing: the agent goes on to its end", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", scripted([{ say: "Done.", latencyMs: 600 }]))
        const leaving = new AbortController()
        const stream = yield* outcomeOf(() =>
          openAiClient(story).chat.completions.create(
            { model: "clerk", messages: [hello], stream: true },
            { signal: leaving.signal }
          )
        )
        const first = yield* Effect.promise(() => stream[Symbol.asyncIterator]().next())
        expect(first.done).toBe(false)
        leaving.abort()
        const [run] = yield* endedRuns(story, clerk, 1)
        expect(run.status).toBe("completed")
        expect((yield* logOf(story, run.contextName)).at(-1)?.type).toBe("AgentTurnCompletedEvent")
      })
    )

    it.effect("at the root it is the door of a token that reaches one project", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const visitor = yield* asUser(story, "editor", [story.projectId])
        const client = openAiClient(visitor, `${story.url}/v1`)
        const { data } = yield* outcomeOf(() => client.models.list())
        expect(data.map(({ id }) => id)).toContain("clerk")
        expect((yield* outcomeOf(() => client.models.retrieve("clerk"))).id).toBe("clerk")
        const answer = yield* outcomeOf(() =>
          client.chat.completions.create({ model: "clerk", messages: [hello] })
        )
        expect(answer.choices[0]?.message.content).toBe("Answer 1: Hello")
      })
    )
  })

  describe("The AI SDK", () => {
    for (const [name, modelOf] of [
      ["for servers like OpenAI's", (story: Json) => compatibleProvider(story)("clerk")],
      ["for OpenAI itself", (story: Json) => openAiProvider(story).chat("clerk")]
    ] as const)
      it.effect(`${name} speaks with an agent, whole and streamed`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newModel(story, "clerk", slowly)
          const messages = [
            { role: "user", content: "My name is Ada." },
            { role: "assistant", content: "Hello, Ada." },
            { role: "user", content: "And now?" }
          ] as const
          const whole = yield* outcomeOf(() =>
            generateText({
              model: modelOf(story),
              instructions: "Be brief.",
              messages: [...messages],
              maxRetries: 0
            })
          )
          expect([whole.text, whole.finishReason]).toEqual(["Answer 2: And now?", "stop"])
          expect(whole.usage.outputTokens).toBeGreaterThan(0)
          const streamed = streamText({ model: modelOf(story), messages: [...messages], maxRetries: 0 })
          expect(yield* outcomeOf(() => streamed.text)).toBe("Answer 2: And now?")
          expect(yield* outcomeOf(() => streamed.finishReason)).toBe("stop")
        })
      )
  })
})
