/**
 * Answers that are not whole: cut at a limit, paused, withheld by a filter, or empty.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ModelsOnTheWire, wordsOf, type WireAnswer, type WireOptions } from "../testing/model-on-the-wire.ts"
import { newModel, sendCompletion, streamedWords } from "../testing/openai-words.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { claudeSays, geminiSays, responseSays } from "../testing/provider-answers.ts"
import { ofType } from "../testing/run-words.ts"
import { callsOf, entriesOf, isOver, make, watcher } from "../testing/story-words.ts"

type Answers = readonly [WireAnswer, ...ReadonlyArray<WireAnswer>]

/** An agent of a model that gives these answers, and what a run of it comes to. */
const runWith = Effect.fnUntraced(function* (answers: Answers, options: WireOptions = {}, more: Json = {}) {
  const models = yield* ModelsOnTheWire
  const story = yield* models.newStory
  const model = yield* models.model(answers, options)
  const agent = yield* newModel(story, "speaker", model.config, more)
  const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
  return { agent, model, run, story }
})

const eventsOf = Effect.fnUntraced(function* (story: Story, run: Json) {
  return (yield* story.get(`/runs/${run.id}/events`)).items as ReadonlyArray<Json>
})

const cut = { say: "First: one, ", finish: "length" }
const filtered = { say: "Half an ans", finish: "content_filter" }
const hello = { role: "user", content: "Hello" }

layer(ModelsOnTheWire.ofEveryProvider, { excludeTestServices: true })((it) => {
  describe("An answer that reaches the provider's limit of output tokens", () => {
    it.effect("is asked to go on, and the run has the whole", () =>
      Effect.gen(function* () {
        const { model, run, story } = yield* runWith([
          cut,
          { say: "two, ", finish: "length" },
          { say: "three." }
        ])
        expect(run).toMatchObject({
          status: "completed",
          summary: "First: one, two, three.",
          finishReason: "stop",
          stepCount: 3
        })
        expect(wordsOf(model.requests[2]).slice(-4)).toEqual([
          ["assistant", "First: one, "],
          ["system", expect.stringMatching(/cut off/)],
          ["assistant", "two, "],
          ["system", expect.stringMatching(/cut off/)]
        ])
        const calls = (yield* story.get(`/runs/${run.id}/model-calls`)).items
        expect(calls.map(({ finishReason }: Json) => finishReason).toSorted()).toEqual([
          "length",
          "length",
          "stop"
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("has no thinking in it that the model's chat template began", () =>
      Effect.gen(function* () {
        const { run, story } = yield* runWith([{ say: "I think.</think>\n\nThe answer." }])
        expect(run).toMatchObject({ status: "completed", summary: "The answer." })
        const [answer] = ofType(yield* eventsOf(story, run), "AssistantMessageEvent")
        expect(answer).toMatchObject({
          content: "The answer.",
          parts: [
            { type: "reasoning", text: "I think." },
            { type: "text", chars: 11 }
          ]
        })
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("is asked to go on at most three times; then the run is completed with the cut marked", () =>
      Effect.gen(function* () {
        const { model, run, story } = yield* runWith([{ say: "more ", finish: "length" }])
        expect(run).toMatchObject({
          status: "completed",
          summary: "more more more more ",
          finishReason: "length"
        })
        expect(model.requests).toHaveLength(4)
        const events = yield* eventsOf(story, run)
        expect(ofType(events, "AssistantMessageEvent").at(-1)).toMatchObject({
          finishReason: "length",
          continues: true
        })
      })
    )

    it.effect("ends there where somebody set the limit", () =>
      Effect.gen(function* () {
        const models = yield* ModelsOnTheWire
        const story = yield* models.newStory
        const model = yield* models.model([cut])
        const agent = yield* newModel(story, "brief", { ...model.config, maxOutputTokens: 20 })
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(run).toMatchObject({ status: "completed", summary: "First: one, ", finishReason: "length" })
        expect(model.requests).toHaveLength(1)
      })
    )

    it.effect("makes no call whose arguments were cut, and every call that was whole", () =>
      Effect.gen(function* () {
        const call = (args: Json) => ({ tool: "create_object", arguments: args })
        const whole = { type: "Person", key: "ada", properties: {} }
        const { model, run, story } = yield* runWith([
          { calls: [call(whole), call('{"type":"Person","key":"bo')], finish: "length" },
          { calls: [call(whole), call("")], finish: "length" },
          { say: "Done." }
        ])
        expect(run).toMatchObject({ status: "completed", summary: "Done." })
        expect((yield* callsOf(story, run)).map(({ status }: Json) => status).toSorted()).toEqual([
          "completed",
          "failed",
          "failed",
          "failed"
        ])
        expect((yield* story.get("/objects")).items).toHaveLength(1)
        const told = JSON.stringify(model.requests[2].messages)
        expect(told.match(/limit of output tokens/g)).toHaveLength(2)
      })
    )

    it.effect.each([
      [
        "anthropic",
        [{ raw: claudeSays("The list: 1, ", "max_tokens") }, { raw: claudeSays("2", "end_turn") }]
      ],
      [
        "anthropic",
        [
          { raw: claudeSays("The list: 1, ", "model_context_window_exceeded") },
          { raw: claudeSays("2", "end_turn") }
        ]
      ],
      ["google", [{ raw: geminiSays("The list: 1, ", "MAX_TOKENS") }, { raw: geminiSays("2", "STOP") }]],
      ["openai", [{ raw: responseSays("The list: 1, ", "max_output_tokens") }, { raw: responseSays("2") }]]
    ] as const)("%s: is asked to go on", ([provider, answers]) =>
      Effect.gen(function* () {
        const { run } = yield* runWith(answers as unknown as Answers, { provider })
        expect(run).toMatchObject({ status: "completed", summary: "The list: 1, 2", finishReason: "stop" })
      })
    )
  })

  describe("An answer that Anthropic paused", () => {
    it.effect("goes on: the model is shown what came, and nobody speaks between", () =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith(
          [
            { raw: claudeSays("I am searching", "pause_turn") },
            { raw: claudeSays(" and found it.", "end_turn") }
          ],
          { provider: "anthropic" }
        )
        expect(run).toMatchObject({
          status: "completed",
          summary: "I am searching and found it.",
          finishReason: "stop"
        })
        expect(model.requests[1].messages.at(-1)).toMatchObject({
          role: "assistant",
          content: [{ type: "text", text: "I am searching" }]
        })
      })
    )

    it.effect("is asked again at most five times", () =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith([{ raw: claudeSays("On. ", "pause_turn") }], {
          provider: "anthropic"
        })
        expect(run).toMatchObject({ status: "completed", finishReason: "pause" })
        expect(model.requests).toHaveLength(6)
      })
    )
  })

  describe("An empty answer", () => {
    it.effect("is asked again once", () =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith([{}, { say: "Here I am." }])
        expect(run).toMatchObject({ status: "completed", summary: "Here I am.", finishReason: "stop" })
        expect(model.requests[1].messages).toEqual(model.requests[0].messages)
      })
    )

    it.effect.each([
      ["no words and no calls", {}],
      ["white space", { say: " \n" }],
      ["reasoning alone", { reasoning: "I think." }],
      ["reasoning that used up the limit", { reasoning: "I think.", finish: "length" }]
    ] as const)("%s: the second in a row fails the run", ([, answer]) =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith([answer])
        expect(run).toMatchObject({ status: "failed", failureReason: "emptyAnswer" })
        expect(model.requests).toHaveLength(2)
      })
    )

    it.effect("Gemini without a part: the second in a row fails the run", () =>
      Effect.gen(function* () {
        const { run } = yield* runWith([{ raw: geminiSays("", "UNEXPECTED_TOOL_CALL") }], {
          provider: "google"
        })
        expect(run).toMatchObject({ status: "failed", failureReason: "emptyAnswer" })
      })
    )
  })

  describe("An answer that the provider's filter stopped", () => {
    it.effect.each([
      ["openai-compatible", [filtered]],
      ["anthropic", [{ raw: claudeSays("Half an ans", "refusal") }]],
      ["google", [{ raw: geminiSays("Half an ans", "SAFETY") }]],
      ["openai", [{ raw: responseSays("Half an ans", "content_filter") }]]
    ] as const)("%s: fails the run, which keeps the fragment", ([provider, answers]) =>
      Effect.gen(function* () {
        const { model, run } = yield* runWith(answers, { provider })
        expect(run).toMatchObject({
          status: "failed",
          failureReason: "contentFilter",
          finishReason: "content-filter",
          summary: "Half an ans",
          errorMessage: expect.stringContaining("content filter")
        })
        expect(model.requests).toHaveLength(1)
      })
    )

    it.effect("makes no call of such an answer", () =>
      Effect.gen(function* () {
        const call = { id: "toolu_1", name: "create_object", input: { type: "Person", properties: {} } }
        const { run, story } = yield* runWith([{ raw: claudeSays("Now I do it", "refusal", call) }], {
          provider: "anthropic"
        })
        expect(run).toMatchObject({
          status: "failed",
          failureReason: "contentFilter",
          summary: "Now I do it"
        })
        expect(yield* callsOf(story, run)).toEqual([])
      })
    )

    it.effect("is the same where no word came", () =>
      Effect.gen(function* () {
        const { run } = yield* runWith([{ finish: "content_filter" }])
        expect(run).toMatchObject({ status: "failed", failureReason: "contentFilter", summary: null })
      })
    )

    it.effect("is not tried again by the agent's retry policy", () =>
      Effect.gen(function* () {
        const models = yield* ModelsOnTheWire
        const story = yield* models.newStory
        const model = yield* models.model([filtered])
        const agent = yield* story.post(
          "/agents",
          watcher({ model: model.config, retryPolicy: { maxAttempts: 5, backoffMs: 0 } })
        )
        yield* make(story, "Person")
        const entries = yield* eventually(entriesOf(story, agent), (found) => found.some(isOver))
        expect(entries).toMatchObject([
          {
            attempt: 1,
            status: "failed",
            failureReason: "contentFilter",
            deadLetteredAt: expect.any(String)
          }
        ])
      })
    )
  })

  describe("A conversation whose answer is not whole", () => {
    it.effect("shows the words that a filter let through, marked, and says what happened", () =>
      Effect.gen(function* () {
        const models = yield* ModelsOnTheWire
        const story = yield* models.newStory
        const model = yield* models.model([filtered])
        const agent = yield* newModel(story, "speaker", model.config)
        const answer = yield* story.post("/chat", { agentId: agent.id, message: "Hello" })
        expect(answer).toMatchObject({ status: "failed", finishReason: "content-filter" })
        expect(answer.response).toMatch(/^Half an ans\n\n.*content filter/s)
        const { items } = yield* story.get(`/conversations/${answer.conversationId}/messages`)
        expect(items.map(({ content, finishReason, role }: Json) => [role, content, finishReason])).toEqual([
          ["user", "Hello", undefined],
          ["assistant", "Half an ans", "content-filter"],
          ["assistant", expect.stringMatching(/content filter/), undefined]
        ])
      })
    )

    it.effect("shows the pieces of an answer that went on as one message", () =>
      Effect.gen(function* () {
        const models = yield* ModelsOnTheWire
        const story = yield* models.newStory
        const model = yield* models.model([cut, { say: "two." }])
        const agent = yield* newModel(story, "speaker", model.config)
        const answer = yield* story.post("/chat", { agentId: agent.id, message: "Hello" })
        expect(answer).toMatchObject({ status: "completed", response: "First: one, two." })
        const { items } = yield* story.get(`/conversations/${answer.conversationId}/messages`)
        expect(items.map(({ content }: Json) => content)).toEqual(["Hello", "First: one, two."])
      })
    )

    it.effect.each([
      ["length", [{ say: "more ", finish: "length" }], "more more more more "],
      ["content_filter", [filtered], "Half an ans"],
      ["stop", [cut, { say: "two." }], "First: one, two."]
    ] as const)("tells OpenAI's clients %s", ([reason, answers, words]) =>
      Effect.gen(function* () {
        const models = yield* ModelsOnTheWire
        const story = yield* models.newStory
        const model = yield* models.model(answers)
        yield* newModel(story, "speaker", model.config)
        const whole = yield* sendCompletion(story, { model: "speaker", messages: [hello] })
        const [choice] = whole.body.choices
        expect([whole.status, choice.message.content, choice.finish_reason]).toEqual([200, words, reason])
        const again = yield* models.model(answers)
        yield* newModel(story, "streamer", again.config)
        const streamed = yield* sendCompletion(story, { model: "streamer", messages: [hello], stream: true })
        expect(streamed.body).toContain("data: [DONE]")
        expect(streamedWords(streamed)).toBe(words)
        expect(streamed.body).toContain(`"finish_reason":"${reason}"`)
      })
    )
  })
})
