/**
 * Tools with a schema of their own: a client that watches the context answers their calls.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  answerTool,
  clientConversation,
  pickColour,
  picking,
  summaryNow,
  untilWaiting,
  waitingCalls
} from "../testing/client-tool-words.ts"
import { addEvent, countOf, logOf, quietLog } from "../testing/context-words.ts"
import { defineTool, newestRun, talk } from "../testing/define-words.ts"
import { openStream } from "../testing/event-stream.ts"
import { shownTo } from "../testing/mcp-runs.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { ofType } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("S004-F02 DefineToolEvent: a tool with its own schema that a client answers", () => {
    it.effect("S004-F02 its call waits, and the model reads the result that a client sends", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { defined } = yield* clientConversation(story)
        expect(defined.status).toBe(204)
        const stream = yield* openStream(story, `/api/projects/${story.projectId}/contexts/talk/events`)
        const { callId, run } = yield* untilWaiting(story)
        expect(run).toMatchObject({ status: "paused", pauseReason: "toolResult", completedAt: null })
        expect(yield* shownTo(story, run)).toContainEqual(pickColour)
        const heard = yield* stream.until((all) => all.some(({ name }) => name === "ToolCallStartedEvent"))
        expect(heard.find(({ name }) => name === "ToolCallStartedEvent")?.json).toMatchObject({
          callId,
          tool: "pick_colour",
          arguments: { prompt: "Which one?" },
          waitsFor: "client"
        })
        expect(yield* callsOf(story, run)).toMatchObject([{ tool: "pick_colour", status: "started" }])
        expect((yield* answerTool(story, callId, { result: { colour: "green" } })).status).toBe(204)
        const log = yield* quietLog(story, "talk")
        expect(ofType(log, "ToolCallCompletedEvent")).toMatchObject([
          { callId, tool: "pick_colour", result: { colour: "green" }, userId: "admin" }
        ])
        expect(yield* newestRun(story)).toMatchObject({
          id: run.id,
          status: "completed",
          summary: 'pick_colour: {"colour":"green"}; '
        })
        expect(yield* callsOf(story, run)).toMatchObject([
          { status: "completed", result: { colour: "green" } }
        ])
        expect(countOf(log, "AgentTurnStartedEvent")).toBe(1)
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("S004-F02 arguments that do not fit its schema never reach a client", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [
          picking({ prompt: 7 }),
          picking({}),
          picking({ prompt: "?", size: 1 })
        ])
        const log = yield* talk(story, "talk", "Go")
        expect(ofType(log, "ToolCallStartedEvent").filter((event) => "waitsFor" in event)).toEqual([])
        const calls = yield* callsOf(story, yield* newestRun(story))
        expect(calls.map(({ result, status }) => [status, result.reason, result.pointer])).toEqual([
          ["failed", "invalid", "/prompt"],
          ["failed", "invalid", "/prompt"],
          ["failed", "invalid", "/size"]
        ])
      })
    )

    it.effect(
      "S004-F02 patterns in its schema are left to the client: an expression could hold the server",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const properties = { prompt: { type: "string", pattern: "^(a|aa)$" } }
          const inputSchema = { type: "object", properties, patternProperties: { "^x": { type: "integer" } } }
          yield* clientConversation(story, [picking({ prompt: "b", x: "y" })], { inputSchema })
          const { calls } = yield* untilWaiting(story)
          expect(calls).toMatchObject([{ arguments: { prompt: "b", x: "y" } }])
          expect((yield* story.get("/contexts/talk/state")).config.tools).toMatchObject([{ inputSchema }])
        })
    )

    it.effect("S004-F02 of fifty clients that answer at once the first counts", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story)
        const { callId } = yield* untilWaiting(story)
        const answers = yield* Effect.forEach(
          Array.from({ length: 50 }, (_, index) => index),
          (index) => answerTool(story, callId, { result: index }),
          { concurrency: "unbounded" }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([
          204,
          ...Array.from({ length: 49 }, () => 409)
        ])
        const refused = answers.filter(({ status }) => status === 409)
        expect(new Set(refused.map(({ body }) => body.reason))).toEqual(new Set(["answered"]))
        const taken = answers.findIndex(({ status }) => status === 204)
        const log = yield* quietLog(story, "talk")
        expect(ofType(log, "ToolCallCompletedEvent")).toMatchObject([{ result: taken }])
        expect(yield* summaryNow(story)).toBe(`pick_colour: ${taken}; `)
      })
    )

    it.effect("S004-F02 an error that a client sends is what the model reads", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [picking(), picking({ prompt: "Another?" })])
        const { calls } = yield* untilWaiting(story, 2)
        const [first, second] = calls.map(({ callId }) => callId as string)
        yield* answerTool(story, first ?? "", { error: "The dialogue was closed" })
        yield* answerTool(story, second ?? "", { error: { code: 7, error: "No screen" } })
        const log = yield* quietLog(story, "talk")
        expect(ofType(log, "ToolCallFailedEvent")).toMatchObject([
          { callId: first, error: "The dialogue was closed", userId: "admin" },
          { callId: second, error: { code: 7, error: "No screen" } }
        ])
        expect(yield* summaryNow(story)).toBe(
          'pick_colour: "The dialogue was closed"; pick_colour: {"code":7,"error":"No screen"}; '
        )
        const run = yield* newestRun(story)
        expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual(["failed", "failed"])
      })
    )

    it.effect("S004-F02 a call without an answer in time fails, and the run goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [picking()], { timeoutMs: 1_000 })
        const { callId, run } = yield* untilWaiting(story)
        const log = yield* quietLog(story, "talk")
        expect(ofType(log, "ToolCallFailedEvent")).toMatchObject([
          { callId, error: { error: expect.any(String), reason: "timeout" } }
        ])
        expect(yield* summaryNow(story)).toContain('"reason":"timeout"')
        expect(yield* newestRun(story)).toMatchObject({ id: run.id, status: "completed" })
        const late = yield* answerTool(story, callId, { result: "green" })
        expectProblem(late, 409)
        expect(late.body.reason).toBe("notWaiting")
        expect(countOf(yield* logOf(story, "talk"), "ToolCallCompletedEvent")).toBe(0)
      })
    )

    it.effect("S004-F02 the time that a run waits for a client is not its own", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [picking()], {}, { defaultTimeoutMs: 60_000 })
        const { run } = yield* untilWaiting(story)
        const rows = yield* ask(
          story.access,
          "select deadline_at, time_left_ms > 0 as has_time, attempt_token from kb.agent_runs where id = $1",
          [run.id]
        )
        expect(rows).toEqual([[null, true, null]])
      })
    )

    it.effect("S004-F02 two calls of one answer both wait, and the run goes on with the second result", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [picking({ prompt: "A?" }), picking({ prompt: "B?" })])
        const { calls, run } = yield* untilWaiting(story, 2)
        const [first, second] = calls.map(({ callId }) => callId as string)
        yield* answerTool(story, second ?? "", { result: "B" })
        expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({
          status: "paused",
          pauseReason: "toolResult"
        })
        yield* answerTool(story, first ?? "", { result: "A" })
        yield* quietLog(story, "talk")
        // The model reads the results in the order of its calls.
        expect(yield* summaryNow(story)).toBe('pick_colour: "A"; pick_colour: "B"; ')
        expect((yield* newestRun(story)).stepCount).toBe(2)
      })
    )

    it.effect("S004-F02 a cancelled run wants no answer, and an interrupted turn neither", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story)
        const { callId, run } = yield* untilWaiting(story)
        yield* story.post(`/runs/${run.id}/cancel`)
        expect(yield* callsOf(story, run)).toMatchObject([{ status: "abandoned" }])
        const late = yield* answerTool(story, callId, { result: 1 })
        expectProblem(late, 409)
        expect(late.body.reason).toBe("notWaiting")
        yield* addEvent(story, "talk", "Again")
        const calls = yield* waitingCalls(story, 2)
        yield* eventually(newestRun(story), ({ status }) => status === "paused")
        expect((yield* story.ask("POST", "/contexts/talk/interrupt")).status).toBe(204)
        const log = yield* quietLog(story, "talk")
        expect(log.findLast(({ type }) => type === "AgentTurnInterruptedEvent")).toMatchObject({
          reason: "user"
        })
        const after = yield* answerTool(story, calls[1]?.callId as string, { result: 1 })
        expect([after.status, after.body.reason]).toEqual([409, "notWaiting"])
        expect(countOf(yield* logOf(story, "talk"), "ToolCallCompletedEvent")).toBe(0)
      })
    )

    it.effect("S004-F02 a message meanwhile is kept, and answered when the call has its result", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story)
        const { callId, run } = yield* untilWaiting(story)
        expect((yield* addEvent(story, "talk", "Still there?")).status).toBe(204)
        expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({ pauseReason: "toolResult" })
        expect((yield* answerTool(story, callId, { result: "green" })).status).toBe(204)
        // The next turn begins with both messages, and its model calls the tool again.
        const [, again] = yield* waitingCalls(story, 2)
        yield* answerTool(story, again?.callId as string, { result: "red" })
        const log = yield* quietLog(story, "talk")
        expect(log.find(({ type }) => type === "AgentTurnInterruptedEvent")).toMatchObject({
          reason: "message"
        })
        expect(countOf(log, "AgentTurnStartedEvent")).toBe(2)
        expect(yield* summaryNow(story)).toContain('"red"')
        expect((yield* story.get("/runs")).items).toHaveLength(1)
      })
    )

    it.effect("S004-F02 an answer that does not fit is refused with its place, and the call waits on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story)
        const { callId, run } = yield* untilWaiting(story)
        for (const [outcome, pointer] of [
          [{}, "/result"],
          [{ result: 1, error: "x" }, "/error"],
          [{ error: 7 }, "/error"],
          [{ error: "" }, "/error"],
          [{ result: 1, extra: 1 }, "/extra"],
          [{ result: "\u0000" }, "/result"]
        ] as const)
          expectProblem(yield* answerTool(story, callId, outcome), 422, pointer)
        expectProblem(yield* answerTool(story, "", { result: 1 }), 422, "/callId")
        const unknown = yield* answerTool(story, "no-such-call", { result: 1 })
        expect([unknown.status, unknown.body.reason]).toEqual([409, "unknown"])
        const viewer = yield* asUser(story, "viewer")
        expectProblem(yield* answerTool(viewer, callId, { result: 1 }), 403)
        expectProblem(yield* answerTool(story, callId, { result: 1 }, "elsewhere"), 404)
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
        expect((yield* answerTool(story, callId, { result: null })).status).toBe(204)
        yield* quietLog(story, "talk")
        expect(yield* summaryNow(story)).toBe("pick_colour: null; ")
      })
    )

    it.effect("S004-F02 a repeat under the same key is the same answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story)
        const { callId } = yield* untilWaiting(story)
        const body = { type: "ToolResultEvent", callId, result: 1 }
        const path = `/api/projects/${story.projectId}/contexts/talk/events`
        const send = story.send("POST", path, body, { "idempotency-key": "once" })
        expect([(yield* send).status, (yield* send).status]).toEqual([204, 204])
        const log = yield* quietLog(story, "talk")
        expect(ofType(log, "ToolCallCompletedEvent")).toHaveLength(1)
      })
    )

    it.effect(
      "S004-F02 an untrusted result taints the context: from there on its agent may only suggest",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* clientConversation(story)
          const { callId } = yield* untilWaiting(story)
          yield* answerTool(story, callId, { result: "read on a page", untrusted: true })
          yield* quietLog(story, "talk")
          expect((yield* story.get("/contexts/talk")).taintedBy).toMatchObject([
            { kind: "clientTool", id: "pick_colour" }
          ])
        })
    )

    it.effect("S004-F02 a result that is too long is cut and marked", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story)
        const { callId } = yield* untilWaiting(story)
        yield* answerTool(story, callId, { result: { text: "x".repeat(150_000), colour: "green" } })
        const log = yield* quietLog(story, "talk")
        const [completed] = ofType(log, "ToolCallCompletedEvent")
        expect(completed?.result).toMatchObject({ isTruncated: true, colour: "green" })
      })
    )

    it.effect(
      "S004-F02 a name that is taken back is offered no longer; a call that waits still takes its answer",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* clientConversation(story)
          const { callId } = yield* untilWaiting(story)
          const { config } = yield* story.get("/contexts/talk/state")
          expect(config.tools).toMatchObject([
            { name: "pick_colour", tool: null, inputSchema: pickColour.inputSchema, timeoutMs: 300_000 }
          ])
          yield* defineTool(story, "talk", { name: "pick_colour", tool: null })
          expect((yield* story.get("/contexts/talk/state")).config.tools).toEqual([])
          yield* answerTool(story, callId, { result: "green" })
          yield* quietLog(story, "talk")
          const run = yield* newestRun(story)
          expect(run.summary).toBe('pick_colour: "green"; ')
          yield* talk(story, "talk", "Again")
          const again = yield* newestRun(story)
          expect((yield* callsOf(story, again)).map(({ status }: Json) => status)).toEqual(["refused"])
        })
    )

    it.effect("S004-F02 variants of a comparison call it for themselves, so they need allowWrites", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* clientConversation(story, [], {}, { tools: ["graph.get_*"] })
        const variants = [{ label: "a" }, { label: "b" }]
        const compared = yield* story.ask("POST", "/contexts/talk/comparisons", {
          content: "Which?",
          variants
        })
        expectProblem(compared, 422, "/allowWrites")
        expect(compared.body.detail).toContain("pick_colour")
      })
    )

    it.effect(
      "S004-F02 a fork has the tool, and its own calls: what waits in the origin does not wait there",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* clientConversation(story)
          const { callId } = yield* untilWaiting(story)
          yield* story.post("/contexts/talk/fork", { name: "other" })
          expect((yield* story.get("/contexts/other/state")).config.tools).toHaveLength(1)
          const elsewhere = yield* answerTool(story, callId, { result: 1 }, "other")
          expect([elsewhere.status, elsewhere.body.reason]).toEqual([409, "unknown"])
          expect((yield* answerTool(story, callId, { result: 2 })).status).toBe(204)
          yield* quietLog(story, "talk")
          expect(yield* summaryNow(story)).toBe("pick_colour: 2; ")
        })
    )
  })
})
