/**
 * Forks: a context that begins at an event of another.
 *
 * The scripted model repeats what it was asked and counts the user's messages, so
 * what a fork answers shows what it knows.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addEvent,
  contentsOf,
  countOf,
  logOf,
  logWith,
  newContext,
  quietLog,
  quietness,
  slowEcho,
  turnsOf,
  typesOf
} from "../testing/context-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** A conversation of two questions with their answers. */
const talked = Effect.fn("talked")(function* (overrides: Record<string, unknown> = {}) {
  const story = yield* newStoryHere
  const agent = yield* newContext(story, "main", undefined, overrides)
  yield* addEvent(story, "main", "One")
  yield* quietLog(story, "main")
  yield* addEvent(story, "main", "Two")
  const log = yield* quietLog(story, "main")
  return { story, agent, log }
})

const fork = (story: Story, from: string, body: Json) => story.ask("POST", `/contexts/${from}/fork`, body)

/** The number of the event that says a text. */
const numberOf = (log: ReadonlyArray<Json>, content: string): number =>
  log.findIndex((event) => event.content === content) + 1

const answered = (story: Story, name: string, content: string) =>
  Effect.andThen(addEvent(story, name, content), quietLog(story, name))

layer(SharedServer.layer)((it) => {
  describe("Agent Forking", () => {
    it.effect("S004-F11 a new context begins at a specific event of another's", () =>
      Effect.gen(function* () {
        const { agent, log, story } = yield* talked()
        const at = numberOf(log, "Answer 1: One")
        const answer = yield* fork(story, "main", { name: "other", at })
        expect(answer.status).toBe(201)
        expect(answer.body).toMatchObject({
          name: "other",
          agentId: agent.id,
          forkedFrom: { name: "main", at }
        })
        const forked = yield* logOf(story, "other")
        expect(forked).toHaveLength(answer.body.eventCount)
        expect(forked[at]).toMatchObject({
          type: "ContextForkedEvent",
          id: `other:${at + 1}`,
          agentName: "other",
          parentEventId: `main:${at}`,
          from: "main",
          at
        })
        expect(yield* story.get("/contexts/other")).toEqual(answer.body)
        expect((yield* story.get("/contexts/main")).forkedFrom).toBeNull()
      })
    )

    it.effect("S004-F11 a fork with a message is made with it or not at all", () =>
      Effect.gen(function* () {
        const { agent, log, story } = yield* talked()
        const at = numberOf(log, "Answer 1: One")
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        const body = { name: "other", at, message: "Two again" }
        const refused = yield* fork(story, "main", body)
        expectProblem(refused, 409)
        expect(refused.body.reason).toBe("agentDisabled")
        expectProblem(yield* story.ask("GET", "/contexts/other"), 404)
        yield* story.patch(`/agents/${agent.id}`, { enabled: true })
        const made = yield* fork(story, "main", body)
        expect(made.status).toBe(201)
        expect(made.body).toMatchObject({ name: "other", forkedFrom: { name: "main", at } })
        yield* quietness
        const forked = yield* quietLog(story, "other")
        expect(contentsOf(forked, "UserMessageEvent")).toEqual(["One", "Two again"])
        expect(numberOf(forked, "Answer 2: Two again")).toBeGreaterThan(at)
        expectProblem(yield* fork(story, "main", { name: "third", at, message: "" }), 422)
        expectProblem(yield* story.ask("GET", "/contexts/third"), 404)
      })
    )

    it.effect("S004-F12 both share the history up to the fork point, and nothing is copied", () =>
      Effect.gen(function* () {
        const { log, story } = yield* talked()
        const at = numberOf(log, "Answer 1: One")
        yield* fork(story, "main", { name: "other", at })
        expect((yield* logOf(story, "other")).slice(0, at)).toEqual(log.slice(0, at))
        const [own] = yield* ask(
          story.access,
          "select count(*)::int, min(number) from kb.context_events where project_id = $1 and context_name = 'other'",
          [story.projectId]
        )
        expect(own?.[1]).toBe(at + 1)
        const forked = yield* answered(story, "other", "Instead of two")
        // The first question is the shared one; what was said in `main` after the fork is unknown here.
        expect(contentsOf(forked, "UserMessageEvent")).toEqual(["One", "Instead of two"])
        expect(contentsOf(forked, "AssistantMessageEvent").at(-1)).toBe("Answer 2: Instead of two")
        const state = yield* story.get("/contexts/other/state")
        expect(JSON.stringify(state.messages)).not.toContain("Two")
        expect(state.nextEventNumber).toBe(forked.length + 1)
      })
    )

    it.effect("S004-F13 each continues independently with its own log", () =>
      Effect.gen(function* () {
        const { log, story } = yield* talked()
        const at = numberOf(log, "Answer 1: One")
        yield* fork(story, "main", { name: "other", at })
        const main = yield* answered(story, "main", "Three")
        const other = yield* answered(story, "other", "Two and a half")
        expect(yield* logOf(story, "main")).toEqual(main)
        expect(contentsOf(main, "AssistantMessageEvent").at(-1)).toBe("Answer 3: Three")
        expect(contentsOf(other, "AssistantMessageEvent").at(-1)).toBe("Answer 2: Two and a half")
        expect(main.map((event) => event.id)).toEqual(main.map((_, index) => `main:${index + 1}`))
        expect(other.map((event) => event.id)).toEqual(
          other.map((_, index) => `${index < at ? "main" : "other"}:${index + 1}`)
        )
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("a fork of a fork shares with both, and a fork at a shared event only with the first", () =>
      Effect.gen(function* () {
        const { log, story } = yield* talked()
        const first = numberOf(log, "Answer 1: One")
        yield* fork(story, "main", { name: "child", at: first })
        const child = yield* answered(story, "child", "Child")
        yield* fork(story, "child", { name: "grandchild" })
        const grandchild = yield* answered(story, "grandchild", "Grandchild")
        expect(grandchild.slice(0, child.length)).toEqual(child)
        expect(contentsOf(grandchild, "AssistantMessageEvent").at(-1)).toBe("Answer 3: Grandchild")
        yield* fork(story, "grandchild", { name: "sibling", at: first - 1 })
        const sibling = yield* logOf(story, "sibling")
        expect(sibling.slice(0, first - 1)).toEqual(log.slice(0, first - 1))
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("what was open at the fork point is closed in the fork, and goes on in the other", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "main", slowEcho)
        yield* addEvent(story, "main", "Slowly")
        const open = yield* logWith(story, "main", "AgentTurnStartedEvent")
        const forkedAt = numberOf(open, "Slowly") + 1
        yield* fork(story, "main", { name: "other", at: open.length })
        const forked = yield* logOf(story, "other")
        expect(typesOf(forked).slice(open.length)).toEqual([
          "ContextForkedEvent",
          "AgentTurnInterruptedEvent",
          "SessionEndedEvent",
          "SessionStartedEvent"
        ])
        const start = open.find((event) => event.type === "AgentTurnStartedEvent")
        expect(forked[open.length + 1]).toMatchObject({
          reason: "forked",
          turnNumber: 1,
          parentEventId: start?.id
        })
        expect(forkedAt).toBeLessThanOrEqual(open.length)
        yield* asTimePasses(1_000, story.get("/runs"), (runs) =>
          runs.items.every((run: Json) => run.completedAt !== null)
        )
        expect(turnsOf(yield* logOf(story, "main"))).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnCompletedEvent", 1]
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("another agent may go on, with its own model and system prompt: two prompts side by side", () =>
      Effect.gen(function* () {
        const { story } = yield* talked({ systemPrompt: "Be brief." })
        const other = yield* story.post("/agents", {
          name: "poet",
          prompt: "Answer.",
          systemPrompt: "Rhyme.",
          triggerType: "manual",
          model: scripted([{ say: "{{ system }}" }])
        })
        yield* fork(story, "main", { name: "rhymes", agentId: other.id })
        const forked = yield* answered(story, "rhymes", "And you?")
        expect(contentsOf(forked, "SystemPromptEvent")).toEqual(["Be brief.", "Rhyme."])
        expect(contentsOf(forked, "AssistantMessageEvent").at(-1)).toContain("Rhyme.")
        expect(countOf(yield* logOf(story, "main"), "SystemPromptEvent")).toBe(1)
      })
    )

    it.effect("a wrong place, name or agent is refused and nothing is made", () =>
      Effect.gen(function* () {
        const { log, story } = yield* talked()
        expectProblem(yield* fork(story, "main", { name: "other", at: log.length + 1 }), 422, "/at")
        expectProblem(yield* fork(story, "main", { name: "other", at: 0 }), 422, "/at")
        expectProblem(yield* fork(story, "main", { name: "a:b" }), 422, "/name")
        expectProblem(
          yield* fork(story, "main", { name: "other", agentId: "01990000-0000-7000-8000-000000000000" }),
          422,
          "/agentId"
        )
        expect((yield* fork(story, "nowhere", { name: "other" })).status).toBe(404)
        expect((yield* fork(story, "main", { name: "main" })).status).toBe(409)
        expect((yield* story.ask("GET", "/contexts/other")).status).toBe(404)
      })
    )
  })
})
