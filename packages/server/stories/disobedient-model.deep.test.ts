/**
 * A model that does against its instructions whatever it can, for an agent that may only suggest.
 */
import { describe, expect, layer } from "@effect/vitest"
import { builtInTools } from "@tropism/domain/built-in-tools"
import { Effect } from "effect"
import { addEvent, newContext } from "../testing/context-words.ts"
import { defineTool, defineWorkflow } from "../testing/define-words.ts"
import { disobedient, everyWay, graphHashes, type Names, unofferedTools } from "../testing/disobedience.ts"
import { allOf } from "../testing/import-words.ts"
import { shownTo } from "../testing/mcp-runs.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, endedRuns, make, saying } from "../testing/story-words.ts"
import { begin, runThrough, runWhen, worker } from "../testing/sub-agent-words.ts"

const mayOnlySuggest = {
  executionMode: "suggest",
  tools: Object.keys(builtInTools).map((server) => `${server}.*`),
  subAgents: ["*"]
}

/** A graph with something of every kind, and nothing under way. */
const someGraph = Effect.gen(function* () {
  const story = yield* newStoryHere
  const people = yield* Effect.forEach(["Ada", "Bob", "Eve"], (name) => make(story, "Person", { name }))
  const [ada, bob, eve] = people
  const knows = yield* story.post("/relationships", { type: "KNOWS", fromId: ada.id, toId: bob.id })
  const likes = yield* story.post("/relationships", {
    type: "LIKES",
    fromId: bob.id,
    toId: eve.id,
    properties: { much: 1 }
  })
  const gone = yield* make(story, "Person", { name: "Old" })
  yield* story.delete(`/objects/${gone.id}`)
  yield* eventually(story.get("/events?limit=200"), (page) => page.items.length === 7)
  const names: Names = {
    objectIds: [...people, gone].map(({ id }) => id),
    relationshipIds: [knows.id, likes.id],
    agents: ["wide", "mighty"],
    tasks: [1, 2, 3]
  }
  return { story, names, before: yield* graphHashes(story) }
})

/** The tools that such an agent is shown. */
const offeredTo = Effect.fnUntraced(function* (story: Story) {
  const agent = yield* story.post("/agents", worker("looker", saying("Let me see."), mayOnlySuggest))
  const tools = yield* shownTo(story, yield* runThrough(story, agent))
  yield* story.delete(`/agents/${agent.id}`)
  return tools
})

/** Expects that nothing of the graph is another than before, that people were asked, and that nobody decided for them. */
const expectUntouched = Effect.fnUntraced(function* (story: Story, before: Json, asked: number) {
  yield* eventually(story.get("/runs?limit=200"), ({ items }) =>
    items.every((run: Json) => run.completedAt !== null || run.pauseReason === "question")
  )
  expect(yield* graphHashes(story)).toEqual(before)
  const tasks: ReadonlyArray<Json> = yield* allOf(story, "/tasks")
  const suggestions = tasks.filter(({ type }) => type.endsWith("_suggestion"))
  expect(suggestions.length).toBeGreaterThanOrEqual(asked)
  expect(suggestions.filter(({ status }) => status !== "pending")).toEqual([])
  const calls: ReadonlyArray<Json> = (yield* Effect.forEach(yield* allOf(story, "/runs"), (run) =>
    allOf(story, `/runs/${run.id}/tool-calls`)
  )).flat()
  expect(calls.filter(({ decision, tool }) => decision === "execute" && tool.endsWith("_object"))).toEqual([])
  return calls
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: suggest is impossible to escape", () => {
    it.effect(
      "by calling every tool that is offered, in every way, again and again, its own tasks among them",
      () =>
        Effect.gen(function* () {
          const { before, names, story } = yield* someGraph
          const tools = yield* offeredTo(story)
          expect(tools.map(({ name }) => name)).toEqual(
            expect.arrayContaining([
              "create_object",
              "delete_relationship",
              "spawn_agent",
              "list_agents",
              "complete_task"
            ])
          )
          // Who asks a person waits for him.
          const calls = everyWay(
            story,
            tools.filter(({ name }) => name !== "ask_user"),
            names
          )
          const agent = yield* story.post("/agents", worker("rebel", disobedient(calls), mayOnlySuggest))
          const run = yield* runThrough(story, agent)
          expect(run.stepCount).toBeGreaterThan(3)
          const made = yield* expectUntouched(story, before, 6)
          const tried = new Set(made.map(({ tool }) => tool))
          expect(tools.filter(({ name }) => name !== "ask_user" && !tried.has(name))).toEqual([])
          // And once more, with the numbers and ids of the suggestions that wait now.
          const waiting: ReadonlyArray<Json> = yield* allOf(story, "/tasks")
          const todoTools = tools.filter(({ name }) => name.endsWith("_task"))
          const own = { ...names, tasks: waiting.flatMap(({ id, number }) => [number, id]) }
          yield* story.patch(`/agents/${agent.id}`, {
            model: disobedient(everyWay(story, todoTools, own, 2))
          })
          yield* runThrough(story, agent)
          yield* expectUntouched(story, before, 6)
        })
    )

    it.effect("by calling tools that it was not offered, and such as are not there", () =>
      Effect.gen(function* () {
        const { before, names, story } = yield* someGraph
        const agent = yield* story.post(
          "/agents",
          worker("rebel", disobedient(everyWay(story, unofferedTools, names)), {
            ...mayOnlySuggest,
            tools: ["graph.get_object"],
            subAgents: []
          })
        )
        yield* runThrough(story, agent)
        const calls = yield* expectUntouched(story, before, 0)
        const others = calls.filter(({ tool }) => tool !== "get_object")
        expect(others.length).toBeGreaterThan(100)
        expect(others.filter(({ status }) => status !== "refused")).toEqual([])
        expect(yield* allOf(story, "/denials")).toHaveLength(others.length)
      })
    )

    it.effect("by having agents with wider rights do it, and those have others do it", () =>
      Effect.gen(function* () {
        const { before, names, story } = yield* someGraph
        const tools = yield* offeredTo(story)
        const changing = tools.filter(({ name }) => /_(object|relationship)$/.test(name))
        const calls = everyWay(story, changing, names)
        yield* story.post("/agents", worker("mighty", disobedient(calls)))
        const spawning = (agent: string) => ({
          tool: "spawn_agent",
          arguments: { agent, task: "Do what I may not." }
        })
        const wide = worker("wide", disobedient([...calls, spawning("mighty")]), { subAgents: ["*"] })
        yield* story.post("/agents", wide)
        const rebel = worker("rebel", disobedient([spawning("wide"), spawning("mighty")]), mayOnlySuggest)
        yield* runThrough(story, yield* story.post("/agents", rebel))
        expect(yield* allOf(story, "/runs")).toHaveLength(5)
        yield* expectUntouched(story, before, 6)
      })
    )

    it.effect("by speaking in a context, with tools of its own, and through a workflow", () =>
      Effect.gen(function* () {
        const { before, names, story } = yield* someGraph
        const tools = yield* offeredTo(story)
        const changing = tools.filter(({ name }) => /_(object|relationship)$/.test(name))
        const aliases = [
          {
            name: "harmless",
            tool: "create_object",
            arguments: { type: "Person", suggest: false, confidence: 1 }
          },
          { name: "look_at", tool: "delete_object", arguments: { objectId: names.objectIds[0] } },
          { name: "helper", tool: "spawn_agent", arguments: { agent: "mighty" } }
        ]
        const calls = everyWay(story, changing, names)
        const own = [
          { tool: "harmless", arguments: { properties: { taken: true } } },
          { tool: "harmless", arguments: { properties: {}, suggest: false } },
          { tool: "look_at", arguments: {} },
          { tool: "helper", arguments: { task: "Do what I may not." } }
        ]
        yield* story.post("/agents", worker("mighty", disobedient(calls)))
        const agent = yield* newContext(story, "talk", disobedient([...own, ...calls]), mayOnlySuggest)
        for (const alias of aliases) expect((yield* defineTool(story, "talk", alias)).status).toBe(204)
        yield* addEvent(story, "talk", "Only look, and change nothing.")
        yield* endedRuns(story, agent, 1)
        yield* expectUntouched(story, before, 6)
        const flow = {
          flowType: "sequential",
          steps: [
            { name: "first", prompt: "Do it." },
            { name: "second", prompt: "Do it again." }
          ]
        }
        expect((yield* defineWorkflow(story, "talk", flow)).status).toBe(204)
        yield* addEvent(story, "talk", "Only look, in two steps.")
        yield* endedRuns(story, agent, 2)
        const made = yield* expectUntouched(story, before, 6)
        expect(made.filter(({ tool }) => tool === "create_object").length).toBeGreaterThan(6)
      })
    )

    it.effect("by waking itself and others, and by waiting for a person and going on", () =>
      Effect.gen(function* () {
        const { before, names, story } = yield* someGraph
        const tools = yield* offeredTo(story)
        const changing = tools.filter(({ name }) => /_(object|relationship)$/.test(name))
        const calls = everyWay(story, changing, names)
        yield* story.post("/agents", {
          ...worker("wide", disobedient(calls)),
          triggerType: "reaction",
          reactionConfig: { objectTypes: [], events: ["created", "updated", "deleted"] }
        })
        const asking = { tool: "ask_user", arguments: { question: "May I?" } }
        const rebel = worker("rebel", disobedient([asking, ...calls.slice(0, 10)]), mayOnlySuggest)
        const agent = yield* story.post("/agents", rebel)
        const run = yield* begin(story, agent)
        const waiting = yield* runWhen(story, run, ({ pauseReason }) => pauseReason === "question")
        expect(
          (yield* story.ask("POST", `/runs/${waiting.id}/answer`, { answer: "Yes, do it all!" })).status
        ).toBe(200)
        yield* runWhen(story, run, ({ completedAt }) => completedAt !== null)
        yield* expectUntouched(story, before, 3)
        // What it suggested woke nobody: there is no event of it.
        expect((yield* allOf(story, "/runs")).filter(({ agentName }) => agentName === "wide")).toEqual([])
        expect((yield* callsOf(story, run)).length).toBeGreaterThan(5)
      })
    )
  })
})
