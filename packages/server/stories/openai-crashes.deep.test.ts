/**
 * Whichever server answers a completion, and whichever dies, it is one turn, and its log can be read.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { contentsOf, countOf, quietLog } from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import {
  atResponse,
  newModel,
  outputText,
  responseEvents,
  sendCompletion,
  sendResponse
} from "../testing/openai-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, newStory, scripted, storyIn } from "../testing/platform.ts"

/** Adds a task, and then takes its time to say so. */
const adding = scripted([
  { when: "step == 0", calls: [{ tool: "add_task", arguments: { title: "{{ message }}" } }] },
  { say: "Task #{{ turn }} is added.", latencyMs: 1_500 }
])

const keyed = { "idempotency-key": "only" }
const body = { model: "clerk", messages: [{ role: "user", content: "Milk" }] }
const contextOf = (answer: Json): string => answer.headers.get("x-tropism-conversation")

describe("A completion on many servers", () => {
  it.live(
    "one is killed in the middle of the answer: the log can be read, and the client's retry is the same turn",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          // A database that is not a program's own may have other programs on it.
          const access = { ...(yield* freshDatabase), embedded: false }
          const first = yield* startMortal(access)
          const here = yield* newProject(first, access)
          yield* newModel(here, "clerk", adding, { tools: ["tasks.*"] })
          const cut = yield* Effect.forkChild(
            Effect.exit(sendCompletion(here, { ...body, stream: true }, keyed))
          )
          yield* eventually(
            Effect.sync(() => first.passed()),
            (passed) => passed.includes("tool.afterCommit")
          )
          yield* first.kill
          yield* first.died
          yield* Fiber.join(cut)
          const second = yield* startMortal(access)
          const there = storyIn(second, access, here.projectId)
          const [run] = (yield* there.get("/runs")).items
          const log = (yield* there.get(`/contexts/${run.contextName}/events`)).items
          expect(contentsOf(log, "UserMessageEvent")).toEqual(["Milk"])
          expect(countOf(log, "ToolCallCompletedEvent")).toBe(1)
          // The time passes in which nobody is heard of whoever holds the run.
          yield* ask(
            access,
            "update kb.agent_runs set lease_expires_at = now() where project_id = $1 and status = 'running'",
            [here.projectId]
          )
          const again = yield* sendCompletion(there, body, keyed)
          expect([again.status, again.body.choices[0].message.content]).toEqual([200, "Task #1 is added."])
          expect(contextOf(again)).toBe(run.contextName)
          expect(again.body.x_tropism).toMatchObject({ run_id: run.id, tool_calls: [{ tool: "add_task" }] })
          const whole = yield* quietLog(there, run.contextName)
          expect(contentsOf(whole, "UserMessageEvent")).toEqual(["Milk"])
          expect(countOf(whole, "AgentTurnCompletedEvent")).toBe(1)
          expect((yield* there.get("/runs")).items).toHaveLength(1)
          expect((yield* there.get("/tasks")).items).toHaveLength(1)
          expect((yield* there.get("/verify")).differences).toEqual([])
        })
      )
  )

  it.live("two answer one request under one key with the same turn, and go on in it by turns", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const servers = yield* Effect.all([startMortal(access), startMortal(access)], { concurrency: 2 })
        const here = yield* newProject(servers[0], access)
        const there = storyIn(servers[1], access, here.projectId)
        yield* newModel(here, "clerk", adding, { tools: ["tasks.*"] })
        const answers = yield* Effect.forEach(
          [here, there, here, there],
          (story) => sendCompletion(story, body, keyed),
          { concurrency: 4 }
        )
        const [one] = answers
        for (const answer of answers)
          expect([answer.status, answer.body.id, answer.body.choices, contextOf(answer)]).toEqual([
            200,
            one?.body.id,
            one?.body.choices,
            contextOf(one)
          ])
        const goOn = yield* sendCompletion(
          there,
          { model: "clerk", messages: [{ role: "user", content: "Bread" }] },
          { "x-tropism-conversation": contextOf(one) }
        )
        expect(goOn.body.choices[0].message.content).toBe("Task #2 is added.")
        const log = yield* quietLog(here, contextOf(one))
        expect(contentsOf(log, "UserMessageEvent")).toEqual(["Milk", "Bread"])
        expect(countOf(log, "AgentTurnCompletedEvent")).toBe(2)
        expect((yield* here.get("/tasks")).items).toHaveLength(2)
      })
    )
  )
})

describe("A response on many servers", () => {
  it.live(
    "is cut off by a kill in the middle of its stream: it is read elsewhere, is completed once, and goes on",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = { ...(yield* freshDatabase), embedded: false }
          const first = yield* startMortal(access)
          const here = yield* newProject(first, access)
          yield* newModel(here, "clerk", adding, { tools: ["tasks.*"] })
          const begun = yield* sendResponse(here, { model: "clerk", input: "Bread" })
          const previous = { model: "clerk", input: "Milk", previous_response_id: begun.body.id }
          const cut = yield* Effect.forkChild(
            Effect.exit(sendResponse(here, { ...previous, stream: true }, keyed))
          )
          yield* eventually(
            Effect.sync(() => first.passed()),
            (passed) => passed.filter((point) => point === "tool.afterCommit").length === 2
          )
          yield* first.kill
          yield* first.died
          yield* Fiber.join(cut)
          const second = yield* startMortal(access)
          const there = storyIn(second, access, here.projectId)
          const [row] = yield* ask(
            access,
            "select id from kb.responses where project_id = $1 order by number desc limit 1",
            [here.projectId]
          )
          const id = `resp_${String(row?.[0]).replaceAll("-", "")}`
          const soFar = yield* atResponse(there, "GET", id)
          expect(soFar.body).toMatchObject({
            status: "in_progress",
            previous_response_id: begun.body.id,
            output: [{ type: "mcp_call", name: "add_task", status: "completed" }]
          })
          // The time passes in which nobody is heard of whoever holds the run.
          yield* ask(
            access,
            "update kb.agent_runs set lease_expires_at = now() where project_id = $1 and status = 'running'",
            [here.projectId]
          )
          const streamed = responseEvents(yield* atResponse(there, "GET", `${id}?stream=true`))
          const { response } = streamed.at(-1)
          expect([response.id, response.status, outputText(response)]).toEqual([
            id,
            "completed",
            "Task #2 is added."
          ])
          // The client's retry is the same response, and nothing was done twice.
          const again = yield* sendResponse(there, previous, keyed)
          expect(again.body).toEqual(response)
          expect((yield* atResponse(there, "GET", id)).body).toEqual(response)
          expect((yield* there.get("/tasks")).items).toHaveLength(2)
          const next = yield* sendResponse(there, { ...previous, previous_response_id: id, input: "Eggs" })
          expect(outputText(next.body)).toBe("Task #3 is added.")
          expect((yield* there.get("/verify")).differences).toEqual([])
        })
      )
  )
})

describe("A completion that the database goes away from while it keeps it", () => {
  it.live("is sent again by itself only under a key: else it might be said twice", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        yield* newModel(story, "clerk", adding, { tools: ["tasks.*"] })
        for (const statement of [
          `create function kb.goes_away() returns trigger language plpgsql as $$
           begin raise exception 'terminating connection due to administrator command' using errcode = '57P01'; end $$`,
          `create constraint trigger goes_away after insert on kb.context_events deferrable initially deferred
           for each row execute function kb.goes_away()`
        ])
          yield* ask(story.access, statement)
        const unkept = { error: { type: "server_error", code: "unavailable" } }
        expect(yield* sendCompletion(story, body, keyed)).toMatchObject({ status: 503, body: unkept })
        expect(yield* sendCompletion(story, body)).toMatchObject({ status: 422, body: unkept })
        yield* ask(story.access, "drop trigger goes_away on kb.context_events")
        const answer = yield* sendCompletion(story, body, keyed)
        expect([answer.status, answer.body.choices[0].message.content]).toEqual([200, "Task #1 is added."])
        expect((yield* story.get("/tasks")).items).toHaveLength(1)
      })
    )
  )
})
