/**
 * Comparisons: one question put to variants of a context, the answers side by side.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addEvent,
  contentsOf,
  firstOf,
  isQuiet,
  logOf,
  newContext,
  quietLog
} from "../testing/context-words.ts"
import { ModelsOnTheWire, wordsOf } from "../testing/model-on-the-wire.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"

const reader = { tools: ["graph.search_objects"], executionMode: "suggest" }

const compare = (story: Story, name: string, body: Json) =>
  story.ask("POST", `/contexts/${name}/comparisons`, body)

/** The comparison, once every variant has ended. */
const finished = (story: Story, name: string, id: string): Effect.Effect<Json> =>
  Effect.andThen(
    eventually(story.get("/runs?limit=200"), isQuiet),
    story.get(`/contexts/${name}/comparisons/${id}`)
  )

layer(ModelsOnTheWire.layer, { excludeTestServices: true })((it) => {
  describe("Parallel LLM: A/B prompts", () => {
    it.effect("S004-F08 variants of a context are asked the same, and their answers stand side by side", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "Hello." }, { say: "Brief." }])
        const other = yield* model([
          { calls: [{ tool: "search_objects", arguments: {} }] },
          { say: "There was a rose." }
        ])
        yield* newContext(story, "main", own.config, { ...reader, systemPrompt: "Be plain." })
        yield* addEvent(story, "main", "Hello?")
        const before = yield* quietLog(story, "main")
        const answer = yield* compare(story, "main", {
          content: "What is a tulip?",
          variants: [
            { label: "brief", systemPrompt: "Be brief." },
            { label: "rhyme", content: "Rhyme on roses.", model: { ...other.config, temperature: 1.5 } }
          ]
        })
        expect(answer.status).toBe(201)
        expect(answer.body).toMatchObject({ context: "main", content: "What is a tulip?" })
        const compared = yield* finished(story, "main", answer.body.id)
        expect(compared).toEqual({
          id: answer.body.id,
          context: "main",
          content: "What is a tulip?",
          createdAt: answer.body.createdAt,
          variants: [
            {
              label: "brief",
              context: expect.stringMatching(/^main\.[0-9a-f]{8}\.brief$/),
              runId: expect.any(String),
              status: "completed",
              answer: "Brief.",
              errorMessage: null,
              usage: { inputTokens: 11, outputTokens: 7 },
              costUsd: 0,
              durationMs: expect.any(Number),
              model: `openai-compatible:${own.config.name}`,
              stepCount: 1,
              toolCalls: []
            },
            {
              label: "rhyme",
              context: expect.stringMatching(/^main\.[0-9a-f]{8}\.rhyme$/),
              runId: expect.any(String),
              status: "completed",
              answer: "There was a rose.",
              errorMessage: null,
              usage: { inputTokens: 22, outputTokens: 14 },
              costUsd: 0,
              durationMs: expect.any(Number),
              model: `openai-compatible:${other.config.name}`,
              stepCount: 2,
              toolCalls: [{ tool: "search_objects", status: "completed" }]
            }
          ]
        })
        expect(wordsOf(own.requests[1])).toEqual([
          ["system", "Be brief."],
          ["user", "Hello?"],
          ["assistant", "Hello."],
          ["user", "What is a tulip?"]
        ])
        expect(wordsOf(other.requests[0])).toEqual([
          ["system", "Be plain."],
          ["user", "Hello?"],
          ["assistant", "Hello."],
          ["user", "Rhyme on roses."]
        ])
        expect(other.requests[0].temperature).toBe(1.5)
        // The context itself has been told, and nothing else has happened in it.
        const after = yield* logOf(story, "main")
        expect(after).toHaveLength(before.length + 1)
        expect(after.at(-1)).toMatchObject({
          type: "ComparisonStartedEvent",
          comparison: answer.body.id,
          triggersAgentTurn: false
        })
        expect((yield* story.get("/verify")).differences).toEqual([])
        // One goes on in a variant as in any context.
        yield* addEvent(story, compared.variants[0].context, "And a tulip?")
        yield* quietLog(story, compared.variants[0].context)
        expect((yield* story.get(`/contexts/main/comparisons/${answer.body.id}`)).variants).toEqual(
          compared.variants
        )
      })
    )

    it.effect(
      "S004-F08 a context without any event, and an earlier event, can be compared from as well",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const own = yield* model([{ say: "Yes." }])
          yield* newContext(story, "empty", own.config, reader)
          const variants = [{ label: "a", systemPrompt: "Be A." }, { label: "b" }]
          const { body } = yield* compare(story, "empty", { content: "One?", variants })
          const compared = yield* finished(story, "empty", body.id)
          expect(compared.variants.map((each: Json) => [each.status, each.answer])).toEqual([
            ["completed", "Yes."],
            ["completed", "Yes."]
          ])
          expect(own.requests.map(wordsOf).toSorted((a, b) => a.length - b.length)).toEqual([
            [["user", "One?"]],
            [
              ["system", "Be A."],
              ["user", "One?"]
            ]
          ])
          yield* addEvent(story, "empty", "Two?")
          yield* quietLog(story, "empty")
          const at = 1
          const early = yield* compare(story, "empty", { content: "Three?", variants, at })
          expect(early.status).toBe(201)
          const again = yield* finished(story, "empty", early.body.id)
          expect((yield* story.get(`/contexts/${again.variants[0].context}`)).forkedFrom).toEqual({
            name: "empty",
            at
          })
          expect(contentsOf(yield* logOf(story, again.variants[1].context), "UserMessageEvent")).toEqual([
            "Three?"
          ])
          expectProblem(yield* compare(story, "empty", { content: "Four?", variants, at: 99 }), 422, "/at")
        })
    )

    it.effect("S004-F08 a variant that fails says why, beside the others", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "Well." }])
        const broken = yield* model([{ status: 401 }])
        yield* newContext(story, "main", own.config, reader)
        const { body } = yield* compare(story, "main", {
          content: "How are you?",
          variants: [{ label: "well" }, { label: "ill", model: broken.config }]
        })
        const { variants } = yield* finished(story, "main", body.id)
        expect(variants.map((each: Json) => [each.label, each.status, each.answer])).toEqual([
          ["well", "completed", "Well."],
          ["ill", "failed", null]
        ])
        expect(variants[1].errorMessage).toContain("Refused with 401")
      })
    )

    it.effect("S004-F08 an agent that may act is compared only where somebody says so", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([
          { calls: [{ tool: "create_object", arguments: { type: "Rose", properties: {} } }] },
          { calls: [{ tool: "create_object", arguments: { type: "Rose", properties: {} } }] },
          { say: "Done." }
        ])
        yield* newContext(story, "main", own.config)
        const body = { content: "Plant one.", variants: [{ label: "a" }, { label: "b" }] }
        const refused = yield* compare(story, "main", body)
        expectProblem(refused, 422, "/allowWrites")
        expect(refused.body.detail).toContain("graph.*")
        expect(yield* logOf(story, "main")).toEqual([])
        const allowed = yield* compare(story, "main", { ...body, allowWrites: true })
        yield* finished(story, "main", allowed.body.id)
        expect((yield* story.get("/objects?type=Rose")).items).toHaveLength(2)
      })
    )

    it.effect("S004-F08 all variants begin or none does", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "Yes." }])
        const agent = yield* newContext(story, "main", own.config, { ...reader, maxPendingRuns: 1 })
        const two = [{ label: "a" }, { label: "b" }]
        const ask = (overrides: Json) =>
          compare(story, "main", { content: "Now?", variants: two, ...overrides })
        expect((yield* ask({})).status).toBe(429)
        expectProblem(yield* ask({ variants: [{ label: "a" }] }), 422, "/variants")
        expectProblem(yield* ask({ variants: [{ label: "a" }, { label: "A" }] }), 422, "/variants/1/label")
        expectProblem(yield* ask({ variants: [{ label: "a" }, { label: "b.c" }] }), 422, "/variants/1/label")
        const keyless = { provider: "anthropic", name: "claude-x" }
        expectProblem(
          yield* ask({ variants: [{ label: "a" }, { label: "b", model: keyless }] }),
          422,
          "/variants/1/model/provider"
        )
        expect((yield* compare(story, "nowhere", { content: "Now?", variants: two })).status).toBe(404)
        expect((yield* story.ask("GET", "/contexts/main/comparisons/1-0123abcd")).status).toBe(404)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false, maxPendingRuns: 10 })
        expect((yield* ask({})).status).toBe(409)
        expect(yield* logOf(story, "main")).toEqual([])
        expect((yield* story.get("/runs")).items).toEqual([])
        yield* story.patch(`/agents/${agent.id}`, { enabled: true })
        const { body } = yield* ask({})
        yield* finished(story, "main", body.id)
        // Another context's comparison is none of this one.
        yield* story.post("/contexts", { name: "other", agentId: agent.id })
        expect((yield* story.ask("GET", `/contexts/other/comparisons/${body.id}`)).status).toBe(404)
        expect(firstOf(yield* logOf(story, "main"), "ComparisonStartedEvent").comparison).toBe(body.id)
      })
    )
  })
})
