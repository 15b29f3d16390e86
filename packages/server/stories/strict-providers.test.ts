/**
 * Model servers that refuse what real ones refuse, and agents that get through to them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, type Story } from "../testing/platform.ts"
import { newStoryHere } from "../testing/shared-server.ts"
import { strictRequests, strictServer } from "../testing/strict-models.ts"

const agentOf = (story: Story, model: Json, more: Json = {}) =>
  story.post("/agents", {
    name: "seeker",
    role: "Seeks.",
    prompt: "Look twice.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["graph.search_objects"],
    model,
    ...more
  })

const providerOf: Readonly<Record<string, string>> = {
  claude: "anthropic",
  gemini: "google",
  openai: "openai",
  deployment: "azure",
  "anthropic.claude": "amazon-bedrock",
  ministral: "mistral",
  routed: "openrouter"
}

/** Azure's package cannot see from a deployment's name that it reasons. */
const modelOf = (name: string) => ({ provider: providerOf[name] ?? "openai-compatible", name })

/** The models of providers with packages of their own. */
const ownApis = ["deployment", "anthropic.claude", "ministral", "routed"]

layer(strictServer, { excludeTestServices: true })((it) => {
  describe("A model that wants its reasoning, signatures and ids back", () => {
    it.effect.each([
      "deepseek",
      "vllm",
      "gemini-chat",
      "mistral",
      "gemma",
      "claude",
      "gemini",
      "openai",
      ...ownApis
    ])("%s: a run with an input and two steps of tools gets through", (name) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* agentOf(story, modelOf(name))
        const run = yield* story.post(`/agents/${agent.id}/trigger`, { input: { topic: "tea" } })
        expect(run).toMatchObject({
          status: "completed",
          errorMessage: null,
          summary: "Done.",
          stepCount: 3,
          usage: { inputTokens: 30, outputTokens: 15 }
        })
        const calls = yield* story.get(`/runs/${run.id}/tool-calls`)
        expect(calls.items.map(({ status }: Json) => status)).toEqual(["completed", "completed"])
      })
    )

    it.effect.each([
      ["deepseek", "system"],
      ["vllm", "system"],
      ["openai", "system"],
      ["gemma", "user"],
      ["claude", "user"],
      ["gemini", "user"],
      ["deployment", "system"],
      ["anthropic.claude", "user"],
      ["ministral", "user"],
      ["routed", "user"]
    ] as const)("S002-R20 %s: is told that the steps are used as the %s, and its run rests", ([name, role]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* agentOf(story, modelOf(name), { maxSteps: 2 })
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit", summary: "Done." })
        const { contents, input, messages } = strictRequests.get(name)?.at(-1) ?? {}
        const last = (messages ?? contents ?? input).at(-1)
        expect(last.role).toBe(role)
        expect(JSON.stringify(last).includes("<system>")).toBe(role === "user")
      })
    )

    it.effect.each([...ownApis, "openai", "claude", "gemini"])(
      "%s: a refusal is shown in the provider's words",
      (name) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* agentOf(story, modelOf(name), { prompt: "Is it overdrawn?" })
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          expect([run.status, run.errorMessage]).toEqual(["failed", "HTTP 400: The account is overdrawn."])
        })
    )

    it.effect("keeps reasoning with the run and out of what a chat client is told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* agentOf(story, modelOf("deepseek"))
        const answer = yield* story.post("/chat", { agentId: agent.id, message: "Look." })
        expect(JSON.stringify(answer)).not.toContain("I think.")
        const conversation = yield* story.get(`/conversations/${answer.conversationId}/messages`)
        expect(JSON.stringify(conversation)).not.toContain("I think.")
        const [run] = (yield* story.get("/runs")).items
        const events = yield* story.get(`/runs/${run.id}/events`)
        const answers = events.items.filter(({ type }: Json) => type === "AssistantMessageEvent")
        expect(answers.map(({ parts }: Json) => parts?.[0])).toEqual([
          { type: "reasoning", text: "I think." },
          { type: "reasoning", text: "I think." },
          undefined
        ])
      })
    )

    it.effect("Claude is asked to cache each prompt", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* agentOf(story, modelOf("claude"))
        yield* story.post(`/agents/${agent.id}/trigger`, { input: { topic: "cached" } })
        expect(strictRequests.get("claude")?.at(-1)).toMatchObject({ cache_control: { type: "ephemeral" } })
      })
    )

    it.effect(
      "Claude is asked to think as much as the agent's definition says, with its options, and each version keeps both",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const providerOptions = { metadata: { userId: "team-7" } }
          const model = { ...modelOf("claude"), reasoning: "high", providerOptions }
          const agent = yield* agentOf(story, model)
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          expect(run).toMatchObject({ status: "completed", summary: "Done." })
          expect(strictRequests.get("claude")?.at(-1)).toMatchObject({
            thinking: { type: expect.stringMatching(/enabled|adaptive/) },
            metadata: { user_id: "team-7" },
            cache_control: { type: "ephemeral" }
          })
          const call = yield* story.get(`/runs/${run.id}/model-calls/1`)
          expect(call.request.parameters).toMatchObject({ reasoning: "high" })
          yield* story.patch(`/agents/${agent.id}`, { model: { ...model, reasoning: "none" } })
          const versions = [
            yield* story.get(`/agents/${agent.id}/versions/1`),
            yield* story.get(`/agents/${agent.id}/versions/2`)
          ]
          expect(versions.map(({ definition }) => definition.model)).toMatchObject([
            { reasoning: "high", providerOptions },
            { reasoning: "none", providerOptions }
          ])
          yield* story.post(`/agents/${agent.id}/trigger`)
          expect(strictRequests.get("claude")?.at(-1)).not.toMatchObject({
            thinking: { type: expect.stringMatching(/enabled|adaptive/) }
          })
        })
    )

    it.effect("Mistral is sent what it thought before its calls", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* agentOf(story, modelOf("ministral"))
        yield* story.post(`/agents/${agent.id}/trigger`)
        const { messages } = strictRequests.get("ministral")?.at(-1) ?? {}
        const calling = messages.filter(({ tool_calls }: Json) => tool_calls)
        expect(calling.map(({ content }: Json) => content)).toMatchObject([
          [{ type: "thinking", thinking: [{ text: "I think." }] }],
          [{ type: "thinking", thinking: [{ text: "I think." }] }]
        ])
      })
    )

    it.effect("Claude is named the tools of earlier calls where none is offered", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* agentOf(story, modelOf("claude"))
        const { conversationId } = yield* story.post("/chat", { agentId: agent.id, message: "Look." })
        yield* story.patch(`/agents/${agent.id}`, { tools: [] })
        yield* story.post("/chat", { conversationId, message: "Again." })
        expect(strictRequests.get("claude")?.at(-1)).toMatchObject({
          tools: [{ name: "search_objects" }],
          tool_choice: { type: "none" }
        })
      })
    )

    it.effect("a fallback is sent no reasoning of another model, and ids that it takes", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* agentOf(story, modelOf("deepseek"))
        const { conversationId } = yield* story.post("/chat", { agentId: agent.id, message: "Look." })
        for (const name of ["mistral", "claude", ...ownApis]) {
          yield* story.patch(`/agents/${agent.id}`, { model: modelOf(name) })
          const next = yield* story.post("/chat", { conversationId, message: "Again." })
          expect([name, next.status, next.response]).toEqual([name, "completed", "Done."])
          const body = JSON.stringify(strictRequests.get(name)?.at(-1))
          expect(body).not.toContain("functions.search_objects")
        }
      })
    )

    it.effect.each(["claude", "gemini-chat"])(
      "%s: finishes as a fallback a turn in which another model has called a tool",
      (name) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const model = { ...modelOf("weary"), reasoning: "low", fallback: modelOf(name) }
          const agent = yield* agentOf(story, model)
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          expect(run).toMatchObject({
            status: "completed",
            errorMessage: null,
            summary: "Done.",
            stepCount: 3
          })
          const calls = yield* story.get(`/runs/${run.id}/tool-calls`)
          expect(calls.items.map(({ status }: Json) => status)).toEqual(["completed", "completed"])
        })
    )
  })
})
