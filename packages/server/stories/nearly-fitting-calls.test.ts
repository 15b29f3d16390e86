/**
 * Tool calls whose arguments nearly fit are made, and the record says what was put right; any other is refused as before.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  answerTool,
  clientConversation,
  repeatingResults,
  untilWaiting
} from "../testing/client-tool-words.ts"
import { newContext, quietLog } from "../testing/context-words.ts"
import { defineTool, newestRun, talk } from "../testing/define-words.ts"
import { addServer } from "../testing/mcp-words.ts"
import { oddServer, oddTool } from "../testing/mcp-odd-server.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { asker, logOfRun } from "../testing/question-words.ts"
import { ofType } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"

/** A run of a model that makes these calls at once. */
const calling = Effect.fnUntraced(function* (story: Story, calls: ReadonlyArray<Json>, more: Json = {}) {
  const agent = yield* asker(story, scripted([{ when: "step == 0", calls }, { say: "Done." }]), more)
  const run = yield* story.post(`/agents/${agent.id}/trigger`)
  return { run, calls: yield* callsOf(story, run) }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Arguments that nearly fit", () => {
    it.effect("of a built-in tool are put right, and the call is recorded with what was sent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const object = yield* story.post("/objects", { type: "Ticket", key: "t", properties: { size: "5" } })
        const sent = { object_id: object.id, properties: '{"open":"true"}', confidence: "0.9" }
        const { calls, run } = yield* calling(story, [
          { tool: "update_object", arguments: sent },
          { tool: "search_objects", arguments: { arguments: { type: "Ticket", limit: "5", foo: 1 } } }
        ])
        expect(run.status).toBe("completed")
        expect(calls).toMatchObject([
          {
            status: "completed",
            arguments: { objectId: object.id, properties: { open: "true" }, confidence: 0.9 },
            coerced: {
              sent,
              changes: expect.arrayContaining([
                { pointer: "/object_id", change: "renamed", to: "objectId" },
                { pointer: "/properties", change: "parsed" },
                { pointer: "/confidence", change: "parsed" }
              ])
            }
          },
          { status: "completed", arguments: { type: "Ticket", limit: 5 }, result: { total: 1 } }
        ])
        const now = yield* story.get(`/objects/${object.id}`)
        expect(now.properties).toEqual({ size: "5", open: "true" })
        const started = ofType(yield* logOfRun(story, run), "ToolCallStartedEvent")
        expect(started[0]).toMatchObject({ arguments: calls[0].arguments, coerced: calls[0].coerced })
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("that fit are recorded as they are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { calls, run } = yield* calling(story, [{ tool: "search_objects", arguments: { query: "5" } }])
        expect(calls).toMatchObject([{ status: "completed", arguments: { query: "5" }, coerced: null }])
        const [started] = ofType(yield* logOfRun(story, run), "ToolCallStartedEvent")
        expect(started).not.toHaveProperty("coerced")
      })
    )

    it.effect("and may mean something else are refused as they were sent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const wrong: ReadonlyArray<Json> = [
          { type: "Person", properties: {}, name: "Ada" },
          { type: "Person", properties: {}, user_id: "somebody" },
          { type: "Person", properties: "none" }
        ]
        const { calls } = yield* calling(
          story,
          wrong.map((args) => ({ tool: "create_object", arguments: args }))
        )
        expect(calls).toMatchObject(
          wrong.map((args) => ({
            status: "failed",
            arguments: args,
            coerced: null,
            result: { reason: "invalid" }
          }))
        )
        expect((yield* story.get("/objects")).items).toEqual([])
      })
    )

    it.effect("of a foreign tool are put right by its own schema", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const inputSchema = {
          type: "object",
          properties: { repoName: { type: "string" }, limit: { type: "integer" }, labels: { type: "array" } },
          required: ["repoName"],
          additionalProperties: false
        }
        const annotations = { readOnlyHint: true }
        const odd = yield* oddServer(() => undefined, { tools: [oddTool({ inputSchema, annotations })] })
        yield* addServer(story, { type: "http", url: odd.url })
        const sent = { repo_name: "7", limit: "3", labels: '["a"]', verbose: true }
        const { calls } = yield* calling(story, [{ tool: "shop__lookup", arguments: sent }], {
          tools: ["shop.*"],
          executionMode: "execute"
        })
        const fitting = { repoName: "7", limit: 3, labels: ["a"] }
        expect(calls).toMatchObject([{ status: "completed", arguments: fitting, coerced: { sent } }])
        expect(odd.of("tools/call").map(({ message }) => message.params.arguments)).toEqual([fitting])
      })
    )

    it.effect("of a tool that the context defines are put right beside what is given", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(
          story,
          "talk",
          repeatingResults({ tool: "find_books", arguments: { limit: "2", foo: 1 } })
        )
        yield* defineTool(story, "talk", {
          name: "find_books",
          tool: "search_objects",
          arguments: { type: "Book" }
        })
        const log = yield* talk(story, "talk", "Go")
        const [call] = yield* callsOf(story, yield* newestRun(story))
        expect(call).toMatchObject({
          tool: "search_objects",
          status: "completed",
          arguments: { type: "Book", limit: 2 },
          coerced: { sent: { limit: "2", foo: 1 } }
        })
        expect(ofType(log, "ToolCallStartedEvent")).toMatchObject([
          {
            tool: "find_books",
            arguments: { limit: 2 },
            standsFor: { arguments: { type: "Book", limit: 2 } }
          }
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("of a client's tool reach the client put right", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const sent = { arguments: { prompt: "5", Count: "5" } }
        yield* clientConversation(story, [{ tool: "pick_colour", arguments: sent }])
        const { callId, calls } = yield* untilWaiting(story)
        expect(calls).toMatchObject([{ arguments: { prompt: "5", count: 5 }, coerced: { sent } }])
        yield* answerTool(story, callId, { result: "green" })
        yield* quietLog(story, "talk")
        expect(yield* callsOf(story, yield* newestRun(story))).toMatchObject([
          { status: "completed", arguments: { prompt: "5", count: 5 }, coerced: { sent } }
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )
  })
})
