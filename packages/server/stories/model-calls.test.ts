/**
 * What models were asked, on record: every try, word for word, at a size that does not follow the conversation's.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  asChat,
  calls,
  modelKey,
  receivedChat,
  receivedTools,
  refuses,
  says,
  wiredStory,
  wireModel
} from "../testing/model-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Json, newStory, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { ended } from "../testing/question-words.ts"

const allOf = (story: Story, path: string): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`${path}?limit=200`), (page) => page.items)

const exchangesOf = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.flatMap(allOf(story, `/runs/${run.id}/model-calls`), (list) =>
    Effect.forEach(list, ({ number }) => story.get(`/runs/${run.id}/model-calls/${number}`))
  )

const trigger = (story: Story, agent: Json, input?: Json) =>
  story.post(`/agents/${agent.id}/trigger`, input === undefined ? {} : { input })

describe("Model calls on record", () => {
  it.live(
    "a prompt beyond the model's window is asked again with less, and the record is what the model was shown",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { models, story } = yield* wiredStory([
            says("One."),
            says("Two."),
            refuses(400, "prompt is too long: 9000 tokens > 4000 maximum"),
            says("Three."),
            says("Four.")
          ])
          const agent = yield* story.post("/agents", {
            name: "talker",
            prompt: "Talk.",
            systemPrompt: "Be brief.",
            triggerType: "manual",
            tools: [],
            model: wireModel
          })
          const { conversationId } = yield* story.post("/chat", {
            agentId: agent.id,
            message: `First. ${"word ".repeat(2_000)}`
          })
          const chat = (message: string) => story.post("/chat", { conversationId, message })
          yield* chat("Second.")
          expect(yield* chat("Third.")).toMatchObject({ status: "completed", response: "Three." })
          expect(yield* chat("Fourth.")).toMatchObject({ status: "completed", response: "Four." })
          // The refusal is met once; the next prompt fits at once.
          expect(models.requests).toHaveLength(5)
          const runs = yield* allOf(story, "/runs")
          const [third] = runs.filter(({ summary }) => summary === "Three.")
          const exchanges = yield* exchangesOf(story, third)
          expect(exchanges.map(({ error, status }) => [status, error?.split(":")[0]])).toEqual([
            ["failed", "tooLong"],
            ["answered", undefined]
          ])
          for (const [index, exchange] of exchanges.entries())
            expect(asChat(exchange.request.messages)).toEqual(receivedChat(models.requests[2 + index]?.body))
          const sent = JSON.stringify(models.requests[3]?.body)
          expect(sent).toContain("Third.")
          expect(sent).not.toContain("First.")
          const { leftOut } = exchanges[1]?.request.parameters ?? {}
          expect(leftOut).toMatchObject({ messages: 2, texts: 0 })
          const log = yield* allOf(story, `/runs/${third.id}/events`)
          expect(log.flatMap((event) => event.leftOut ?? [])).toContainEqual(leftOut)
          // Nothing of it reaches who chats, and the log keeps every word.
          expect(JSON.stringify(yield* allOf(story, `/conversations/${conversationId}/messages`))).toContain(
            "First."
          )
        })
      )
  )

  it.live(
    "are exactly what the model was shown and what it answered, step by step, through flows and soft stop",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { models, story } = yield* wiredStory([
            refuses(503, `Overloaded; your key ${modelKey} is fine`),
            calls(
              {
                id: "a",
                tool: "create_object",
                arguments: { type: "Note", key: "n1", properties: { b: 1, a: [2, { z: "é" }] } }
              },
              { id: "b", tool: "get_object", arguments: { objectId: "no-uuid" } }
            ),
            says("A draft."),
            calls({ id: "a", tool: "search_objects", arguments: { type: "Note" } }),
            calls({ id: "a", tool: "search_objects", arguments: { type: "Nothing" } }),
            says("So far: one note.")
          ])
          const agent = yield* story.post("/agents", {
            name: "writer",
            prompt: "You write about {{ input.topic }}.",
            systemPrompt: "Be brief.",
            triggerType: "manual",
            executionMode: "execute",
            tools: ["graph.*"],
            flowType: "sequential",
            steps: [
              { name: "draft", prompt: "Draft it." },
              { name: "check", prompt: "Check this: {{ steps.draft.output }}" }
            ],
            maxSteps: 4,
            model: wireModel
          })
          const run = yield* trigger(story, agent, { topic: "tea" })
          expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit", stepCount: 5 })
          const exchanges = yield* exchangesOf(story, run)
          expect(exchanges).toHaveLength(models.requests.length)
          for (const [index, exchange] of exchanges.entries()) {
            const body = models.requests[index]?.body as Json
            expect(asChat(exchange.request.messages)).toEqual(receivedChat(body))
            expect(exchange.request.tools).toEqual(receivedTools(body))
            expect(exchange.request.parameters).toEqual({
              temperature: body.temperature,
              maxOutputTokens: body.max_tokens,
              toolChoice: body.tool_choice
            })
          }
          expect(
            exchanges.map((each) => [each.number, each.step, each.try, each.status, each.finishReason])
          ).toEqual([
            [1, 1, 1, "failed", null],
            [2, 1, 2, "answered", "tool-calls"],
            [3, 2, 1, "answered", "stop"],
            [4, 3, 1, "answered", "tool-calls"],
            [5, 4, 1, "answered", "tool-calls"],
            [6, 5, 1, "answered", "stop"]
          ])
          const flowSteps = (records: ReadonlyArray<Json>) => records.map(({ flowStep }) => flowStep)
          const [draft, check] = ["draft", "check"].map((name) => ({ name, iteration: 1 }))
          expect(flowSteps(exchanges)).toEqual([draft, draft, draft, check, check, check])
          expect(flowSteps(yield* allOf(story, `/runs/${run.id}/steps`))).toEqual([
            draft,
            draft,
            check,
            check,
            check
          ])
          expect(exchanges[0]).toMatchObject({
            response: null,
            error: expect.stringMatching(/^unavailable: .*Overloaded; your key <redacted>/)
          })
          expect(exchanges[1]?.response).toEqual({
            text: "",
            toolCalls: [
              {
                id: "a",
                name: "create_object",
                arguments: { type: "Note", key: "n1", properties: { b: 1, a: [2, { z: "é" }] } }
              },
              { id: "b", name: "get_object", arguments: { objectId: "no-uuid" } }
            ]
          })
          // The provider counts its ids anew; the record has those that the log has.
          expect(exchanges[3]?.response.toolCalls[0].id).toMatch(/^[A-Za-z0-9]{9}$/)
          expect(exchanges[5]).toMatchObject({
            usage: { inputTokens: 11, outputTokens: 7 },
            response: { text: "So far: one note.", toolCalls: [] }
          })
          expect(exchanges.map(({ request }) => request.parameters.toolChoice)).toEqual([
            ...Array.from({ length: 5 }, () => "auto"),
            "none"
          ])
          expect(exchanges[5]?.request.messages.at(-1).role).toBe("system")
          expect(JSON.stringify(exchanges)).not.toContain(modelKey)
        })
      )
  )

  it.live("tell of a request that nobody answered, with each try and the fallback's", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { story } = yield* wiredStory([refuses(400, "No such thing")])
        const agent = yield* story.post("/agents", {
          name: "unlucky",
          prompt: "Go.",
          triggerType: "manual",
          model: { ...wireModel, fallback: { provider: "openai-compatible", name: "wire-2" } }
        })
        const run = yield* trigger(story, agent)
        expect(run.status).toBe("failed")
        const list = yield* allOf(story, `/runs/${run.id}/model-calls`)
        expect(list).toMatchObject([
          {
            number: 1,
            step: 1,
            flowStep: null,
            try: 1,
            model: "wire-1",
            status: "failed",
            answerEvent: null,
            costUsd: null
          },
          {
            number: 2,
            step: 1,
            try: 2,
            model: "wire-2",
            status: "failed",
            error: expect.stringContaining("No such thing")
          }
        ])
        expect(yield* allOf(story, `/runs/${run.id}/steps`)).toMatchObject([
          {
            number: 1,
            model: "openai-compatible:wire-2",
            modelCalls: [1, 2],
            status: "failed",
            toolCalls: []
          }
        ])
      })
    )
  )
})

describe("The steps of a run", () => {
  it.live("say of each who was asked, what it cost and what came of its calls", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const price = { inputPerMillion: 1_000, outputPerMillion: 10_000 }
        const { story } = yield* wiredStory([
          calls(
            { id: "a", tool: "create_object", arguments: { type: "Note", properties: {} } },
            { id: "b", tool: "drop_table", arguments: {} }
          ),
          calls({ id: "c", tool: "get_object", arguments: { objectId: "no-uuid" } }),
          says("Done.")
        ])
        const agent = yield* story.post("/agents", {
          name: "stepper",
          prompt: "Go.",
          triggerType: "manual",
          executionMode: "execute",
          tools: ["graph.*"],
          model: { ...wireModel, price }
        })
        const run = yield* trigger(story, agent)
        const steps = yield* allOf(story, `/runs/${run.id}/steps`)
        const costUsd = (11 * 1_000 + 7 * 10_000) / 1_000_000
        expect(steps).toMatchObject([
          {
            number: 1,
            model: "openai-compatible:wire-1",
            status: "answered",
            usage: { inputTokens: 11, outputTokens: 7 },
            costUsd,
            toolCalls: [
              { callId: "a", tool: "create_object", status: "completed", durationMs: expect.any(Number) },
              { callId: "b", tool: "drop_table", status: "refused" }
            ]
          },
          { number: 2, toolCalls: [{ callId: "c", status: "failed" }] },
          { number: 3, text: "Done.", toolCalls: [] }
        ])
        expect(steps.reduce((sum, step) => sum + step.costUsd, 0)).toBeCloseTo(run.costUsd, 9)
        const [call] = (yield* story.get(`/runs/${run.id}/tool-calls`)).items.toReversed()
        expect(call.completedAt >= call.createdAt).toBe(true)
        expect(call.durationMs).toBe(steps[0].toolCalls[0].durationMs)
        const first = yield* story.get(`/runs/${run.id}/steps?limit=2`)
        expect([first.items.length, first.nextCursor]).toEqual([2, expect.stringMatching(/^2~/)])
        const rest = yield* story.get(`/runs/${run.id}/steps?limit=2&cursor=${first.nextCursor}`)
        expect([rest.items.map((step: Json) => step.number), rest.nextCursor]).toEqual([[3], null])
      })
    )
  )

  it.live("say of a call that was refused before it was made that it was", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const agent = yield* story.post("/agents", {
          name: "stubborn",
          prompt: "Go.",
          triggerType: "manual",
          tools: ["graph.*"],
          model: scripted([
            { when: "step < 3", calls: [{ tool: "search_objects", arguments: { type: "Note" } }] },
            { say: "I give in." }
          ])
        })
        const run = yield* trigger(story, agent)
        expect(run.status).toBe("completed")
        const steps = yield* allOf(story, `/runs/${run.id}/steps`)
        expect(steps.map((step) => step.toolCalls.map((call: Json) => call.status))).toEqual([
          ["completed"],
          ["completed"],
          ["refused"],
          []
        ])
      })
    )
  )

  it.live("cost little to keep: the record of a call does not grow with the conversation", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const note = yield* story.post("/objects", { type: "Note", properties: { text: "x".repeat(20_000) } })
        const agent = yield* story.post("/agents", {
          name: "reader",
          prompt: "Go.",
          triggerType: "manual",
          tools: ["graph.get_object"],
          repeatableTools: ["graph.*"],
          // Summaries would be requests, too.
          reducer: { type: "truncating", maxMessages: null, maxTokens: 100_000 },
          model: scripted([
            { when: "step < 100", calls: [{ tool: "get_object", arguments: { objectId: note.id } }] },
            { say: "Read." }
          ])
        })
        // So many steps may take longer than whoever triggers an agent is kept waiting.
        const run = yield* ended(story, yield* trigger(story, agent))
        expect(run).toMatchObject({ status: "completed", stepCount: 101 })
        const [[rows, bytes, largest, lists, log] = []] = yield* ask(
          story.access,
          `select count(*)::int, sum(pg_column_size(call))::int, max(pg_column_size(call))::int,
             (select count(*)::int from kb.tool_lists where project_id = $1),
             (select sum(length(payload::text))::int from kb.context_events where project_id = $1)
           from kb.model_calls call where project_id = $1`,
          [story.projectId]
        )
        expect([rows, lists]).toEqual([101, 1])
        expect(largest).toBeLessThan(600)
        // Two megabytes were said, and each of the later requests had as much of them as a window holds.
        expect(Number(log)).toBeGreaterThan(2_000_000)
        expect(Number(bytes)).toBeLessThan(Number(log) / 30)
        const last = yield* story.get(`/runs/${run.id}/model-calls/101`)
        expect(JSON.stringify(last.request.messages).length).toBeGreaterThan(250_000)
      })
    )
  )

  it.live("are refused with a problem where there is no such run, call or page", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const agent = yield* story.post("/agents", {
          name: "short",
          prompt: "Go.",
          triggerType: "manual",
          model: scripted([{ say: "Done." }])
        })
        const run = yield* trigger(story, agent)
        const nobody = "00000000-0000-7000-8000-000000000000"
        for (const path of ["steps", "model-calls", "model-calls/1"])
          expectProblem(yield* story.ask("GET", `/runs/${nobody}/${path}`), 404)
        expectProblem(yield* story.ask("GET", `/runs/${run.id}/model-calls/2`), 404)
        for (const number of ["0", "-1", "1.5", "first", "99999999999"])
          expectProblem(yield* story.ask("GET", `/runs/${run.id}/model-calls/${number}`), 404)
        expectProblem(yield* story.ask("GET", `/runs/${run.id}/steps?cursor=x`), 422)
        expect((yield* story.get(`/runs/${run.id}/steps`)).items).toHaveLength(1)
      })
    )
  )
})
