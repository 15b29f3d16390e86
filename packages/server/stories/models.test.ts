/**
 * Which models can be asked here, and agents whose models answer over the network.
 */
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect, Logger } from "effect"
import { chatChunk, chatEnd, events, serveAnswers, streaming } from "../testing/fake-model-server.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Json, newProject, startServer } from "../testing/platform.ts"
import { openaiChat } from "../testing/providers/openai-chat.ts"

const key = "secret-key-abcdef-0123456789"

/** A project on a server with this environment; what the server logs is gathered. */
const storyIn = (env: Record<string, string>, logged: Array<unknown> = []) =>
  Effect.gen(function* () {
    const access = yield* freshDatabase
    const keep = Logger.make<unknown, void>(({ cause, message }) => void logged.push(message, cause))
    const doors = yield* startServer(access, [keep]).pipe(
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
    )
    return yield* newProject(doors, access)
  })

const worker = (model: Json) => ({
  name: "worker",
  prompt: "Go on.",
  triggerType: "manual",
  tools: ["graph.*"],
  model
})

describe("GET /models", () => {
  it.live(
    "says which providers can be used, what is missing, what is asked by default and what it costs",
    () =>
      Effect.gen(function* () {
        const story = yield* storyIn({ OPENAI_API_KEY: key, OPENAI_BASE_URL: "http://127.0.0.1:1/v1" })
        const { body } = yield* story.ask("GET", "/models")
        const price = { inputPerMillion: 2.5, outputPerMillion: 15, cachedInputPerMillion: 0.25 }
        expect(body.default).toEqual({ provider: "openai", name: "gpt-5.4", price })
        expect(body.defaultMissing).toBeNull()
        expect(body.providers).toContainEqual({ provider: "openai", defaultModel: "gpt-5.4", missing: null })
        expect(body.providers).toContainEqual({
          provider: "anthropic",
          defaultModel: "claude-sonnet-5-5",
          missing: "set ANTHROPIC_API_KEY"
        })
        expect(body.prices).toContainEqual({
          provider: "openai",
          name: "gpt-5.4",
          price,
          source: expect.stringContaining("openai"),
          asOf: "2026-06"
        })
        expect(JSON.stringify(body)).not.toContain(key)
        expect(JSON.stringify(body)).not.toContain("127.0.0.1")
      }).pipe(Effect.scoped)
  )

  it.live("says what to set where no model can be asked, and tells a stranger nothing", () =>
    Effect.gen(function* () {
      const story = yield* storyIn({})
      const { body } = yield* story.ask("GET", "/models")
      expect(body).toMatchObject({
        default: null,
        defaultMissing: expect.stringContaining("OPENAI_API_KEY")
      })
      const path = `/api/projects/${story.projectId}/models`
      expect((yield* story.send("GET", path, undefined, { authorization: "Bearer nobody" })).status).toBe(401)
      const other = "/api/projects/01900000-0000-7000-8000-000000000000/models"
      expect((yield* story.send("GET", other)).status).toBe(404)
    }).pipe(Effect.scoped)
  )
})

describe("An agent whose model answers over the network", () => {
  it.live(
    "makes the calls that come in pieces, is told of broken ones, and is charged for each request",
    () =>
      Effect.gen(function* () {
        const server = yield* serveAnswers(
          streaming(
            openaiChat.answer({
              calls: [
                { id: "call_1", name: "search_objects", pieces: ['{"type"', ': "Person"}'] },
                { id: "call_2", name: "search_objects", pieces: ['{"type": ', "Person}"] },
                { id: "call_3", name: "invented", pieces: ["{}"] }
              ]
            })
          ),
          streaming(openaiChat.answer({ words: ["Nobody", " is here."] }))
        )
        const story = yield* storyIn(openaiChat.env(server.url, key))
        const agent = yield* story.post("/agents", worker({ provider: "openai", name: "gpt-4o" }))
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(run).toMatchObject({
          status: "completed",
          summary: "Nobody is here.",
          model: "openai:gpt-4o",
          usage: { inputTokens: 22, outputTokens: 14 },
          // 22 tokens at $2.5 and 14 at $10 the million, each request rounded up to a millionth.
          costUsd: 0.000196
        })
        const told = Object(server.requests[1]?.body).messages.filter(({ role }: Json) => role === "tool")
        expect(told.map(({ tool_call_id }: Json) => tool_call_id)).toEqual(["call_1", "call_2", "call_3"])
        expect(told[0].content).toContain("items")
        expect(told[1].content).not.toContain("items")
        expect(told[2].content).toContain("search_objects")
      }).pipe(Effect.scoped)
  )

  it.live(
    "is counted what its provider had in a cache, with its calls, its run, its day and the server's metrics",
    () =>
      Effect.gen(function* () {
        const usage = {
          prompt_tokens: 100,
          completion_tokens: 5,
          total_tokens: 105,
          prompt_tokens_details: { cached_tokens: 80 }
        }
        const call = {
          index: 0,
          id: "c",
          type: "function",
          function: { name: "search_objects", arguments: "{}" }
        }
        const server = yield* serveAnswers(
          events(
            chatChunk({ tool_calls: [call] }),
            chatChunk({}, "tool_calls"),
            { ...Object(chatChunk({})), choices: [], usage },
            "[DONE]"
          ),
          events(
            chatChunk({ content: "Done." }),
            chatChunk({}, "stop"),
            { ...Object(chatChunk({})), choices: [], usage },
            "[DONE]"
          ),
          events(chatChunk({ content: "Done." }), ...chatEnd("stop"))
        )
        const story = yield* storyIn(openaiChat.env(server.url, key))
        const agent = yield* story.post("/agents", worker({ provider: "openai", name: "gpt-4o" }))
        expect((yield* story.get(`/agents/${agent.id}/usage/models`)).items).toEqual([])
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        const total = { inputTokens: 200, outputTokens: 10, cachedInputTokens: 160 }
        // 40 tokens at $2.5, 160 at $1.25 and 10 at $10 the million.
        expect(run).toMatchObject({ status: "completed", usage: total, costUsd: 0.0004 })
        const calls = yield* story.get(`/runs/${run.id}/model-calls`)
        expect(calls.items.map(({ usage }: Json) => usage.cachedInputTokens)).toEqual([80, 80])
        const days = yield* story.get(`/agents/${agent.id}/usage`)
        expect(days.items).toMatchObject([{ runs: 1, usage: total }])
        const cached = { provider: "openai", model: "gpt-4o", requests: 2, usage: total }
        yield* story.patch(`/agents/${agent.id}`, { model: { provider: "openai", name: "ours" } })
        yield* story.post(`/agents/${agent.id}/trigger`, {})
        const byModel = yield* story.get(`/agents/${agent.id}/usage/models?days=1`)
        expect(byModel.items).toEqual([
          { ...cached, cacheHitRate: 0.8, costUsd: 0.0004, cachedInputCostUsd: 0.0002 },
          {
            provider: "openai",
            model: "ours",
            requests: 1,
            usage: { inputTokens: 11, outputTokens: 7 },
            cacheHitRate: 0,
            // No price is known.
            costUsd: null,
            cachedInputCostUsd: null
          }
        ])
        const refused = yield* story.ask("GET", `/agents/${agent.id}/usage/models?days=0`)
        expect([refused.status, refused.body.errors?.[0]?.pointer]).toEqual([422, "days"])
        const metrics = yield* story.send("GET", "/metrics")
        expect(JSON.stringify(metrics.body)).toMatch(
          /tropism_model_cached_input_tokens_total\{[^}]*gpt-4o[^}]*\} 160/
        )
      }).pipe(Effect.scoped)
  )

  it.live("fails with the provider's words, and its key stands nowhere", () =>
    Effect.gen(function* () {
      const server = yield* serveAnswers({
        kind: "json",
        status: 401,
        body: openaiChat.refusal(401, `Incorrect API key provided: ${key}`)
      })
      const logged: Array<unknown> = []
      const story = yield* storyIn(openaiChat.env(server.url, key), logged)
      const agent = yield* story.post("/agents", worker({ provider: "openai", name: "gpt-4o" }))
      const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
      expect(run).toMatchObject({
        status: "failed",
        errorMessage: "HTTP 401: Incorrect API key provided: <redacted>"
      })
      const seen = [
        run,
        yield* story.get(`/runs/${run.id}/events?limit=200`),
        yield* story.get(`/runs/${run.id}/model-calls`),
        yield* story.get("/models")
      ]
      expect(JSON.stringify(seen)).not.toContain(key)
      expect(Bun.inspect(logged, { depth: 20 })).not.toContain(key)
    }).pipe(Effect.scoped)
  )
})
