/**
 * Requirement: events of foreign MCP servers wake agents (issue 7), each of them once.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { eventSource } from "../testing/mcp-event-source.ts"
import { atTheDoor } from "../testing/person-words.ts"
import { eventually, type Json, newProject, storyToken } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  addSource,
  askNow,
  idsOf,
  listener,
  listening,
  newListener,
  sourcesOf
} from "../testing/source-words.ts"
import {
  calling,
  endedRuns,
  entriesWhen,
  explained,
  feedOf,
  make,
  runsOf,
  suggestionsOf
} from "../testing/story-words.ts"

const theirs = ConfigProvider.layer(
  ConfigProvider.fromEnv({
    env: { PATH: process.env["PATH"] ?? "", TROPISM_SECRET_OTHER: storyToken }
  })
)

layer(Layer.provide(SharedServer.own, theirs), { excludeTestServices: true })((it) => {
  describe("Requirement: Events of foreign MCP servers as reaction triggers", () => {
    it.effect("an object that is created in another Tropism project wakes an agent here, once, tainted", () =>
      Effect.gen(function* () {
        const here = yield* newStoryHere
        const there = yield* newProject(here, here.access)
        yield* make(there, "Order", { title: "before" })
        yield* feedOf(there, 1)
        yield* addSource(here, `${there.url}/api/projects/${there.projectId}/mcp`, {
          transport: {
            type: "http",
            url: `${there.url}/api/projects/${there.projectId}/mcp`,
            headers: { Authorization: { secret: "TROPISM_SECRET_OTHER", prefix: "Bearer " } }
          }
        })
        const agent = yield* here.post(
          "/agents",
          listener({
            prompt: "Note {{ event.payload.properties.title }} of {{ event.server }}",
            reactionConfig: {
              mcpEvents: [{ server: "orders", name: "object.created", arguments: { type: "Order" } }]
            },
            model: calling({
              tool: "create_object",
              arguments: { type: "Note", properties: { text: "{{ message }}" } }
            })
          })
        )
        yield* listening(here)
        yield* make(there, "Bag")
        const order = yield* make(there, "Order", { title: "shoes" })
        const [, , event] = yield* feedOf(there, 3)
        yield* askNow(here)
        const [run, ...others] = yield* endedRuns(here, agent, 1)
        expect(others).toEqual([])
        expect(run).toMatchObject({
          status: "completed",
          depth: 0,
          taintedBy: [{ kind: "mcpServer", id: "orders", at: 0 }],
          trigger: {
            type: "mcpEvent",
            mcpEvents: [
              { server: "orders", name: "object.created", eventId: event.id, timestamp: event.createdAt }
            ]
          }
        })
        expect(run.rootEventId).toBe(run.trigger.mcpEvents[0].id)
        expect(order.id).toBe(event.entityId)
        // What came from outside may only be suggested, whatever the agent may do otherwise.
        const [suggestion] = yield* suggestionsOf(here, 1)
        expect(suggestion.payload).toMatchObject({
          suggestedChanges: { objectType: "Note", data: { text: "Note shoes of orders" } }
        })
        expect((yield* here.get("/objects?type=Note")).items).toEqual([])
        const [server] = (yield* here.get("/mcp-servers")).items
        expect(server.eventSources).toMatchObject([
          {
            name: "object.created",
            arguments: { type: "Order" },
            status: "listening",
            agents: ["clerk"],
            lastFault: null,
            lastOccurrence: { eventId: event.id }
          }
        ])
        expect(yield* explained(here, agent, run.trigger.mcpEvents[0])).toMatchObject({
          outcome: "woke",
          run: { id: run.id }
        })
      })
    )

    it.effect("agents that name the same share a source, and each is woken by each occurrence", () =>
      Effect.gen(function* () {
        const { agent, source, story } = yield* newListener()
        const other = yield* story.post("/agents", listener({ name: "second" }))
        const deaf = yield* story.post(
          "/agents",
          listener({
            name: "deaf",
            reactionConfig: {
              mcpEvents: [{ server: "orders", name: "order.placed", arguments: { big: true } }]
            }
          })
        )
        yield* eventually(
          sourcesOf(story),
          (all) => all.length === 2 && all.every(({ status }) => status === "listening")
        )
        source.lie((params, truly) =>
          params.arguments.big ? { ...truly(params), events: [] } : truly(params)
        )
        source.happen("1", "2", "3")
        yield* askNow(story)
        for (const one of [agent, other]) {
          const runs = yield* endedRuns(story, one, 3)
          expect(idsOf(runs)).toEqual(["1", "2", "3"])
          expect(runs.map(({ summary }) => summary)[0]).toContain("Look at orders order.placed 1: 1")
          // Each occurrence begins a chain of its own.
          expect(new Set(runs.map(({ rootEventId }) => rootEventId)).size).toBe(3)
        }
        expect((yield* sourcesOf(story)).map(({ agents }) => agents)).toEqual(
          expect.arrayContaining([["clerk", "second"], ["deaf"]])
        )
        const occurrence = (yield* runsOf(story, agent))[0].trigger.mcpEvents[0]
        expect(yield* explained(story, deaf, occurrence)).toMatchObject({
          outcome: "refused",
          rule: "mcpEvent"
        })
        const all = yield* story.get(`/events/${occurrence.id}/explanations`)
        expect(all.items.map(({ agentName, outcome }: Json) => [agentName, outcome])).toEqual(
          expect.arrayContaining([
            ["clerk", "woke"],
            ["second", "woke"],
            ["deaf", "refused"]
          ])
        )
        // Whoever asks through MCP is told the same.
        const { call } = yield* atTheDoor(story)
        const { result: toMany } = yield* call("explain", { eventId: occurrence.id })
        expect(toMany.items).toMatchObject(all.items)
        const { result: toOne } = yield* call("explain", { eventId: occurrence.id, agent: "deaf" })
        expect(toOne).toMatchObject({ agentId: deaf.id, outcome: "refused", rule: "mcpEvent" })
        for (const args of [{ eventId: deaf.id }, { eventId: deaf.id, agent: "deaf" }])
          expect((yield* call("explain", args)).result).toMatchObject({
            error: expect.any(String),
            reason: "notFound"
          })
      })
    )

    it.effect("an agent is refused that names a server, an event or arguments that cannot be", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const source = yield* eventSource()
        yield* addSource(story, source.url, { allowedEvents: ["order.*"] })
        const refusal = (mcpEvents: Json, events: Json = []) =>
          Effect.map(
            story.ask("POST", "/agents", listener({ reactionConfig: { events, mcpEvents } })),
            ({ body, status }) => [status, body.errors?.[0]?.pointer ?? body.errors]
          )
        const one = { server: "orders", name: "order.placed" }
        const at = (place: string) => [422, `/reactionConfig/${place}`]
        expect(yield* refusal([{ ...one, server: "nobody" }])).toEqual(at("mcpEvents/0/server"))
        expect(yield* refusal([one, { ...one, name: "bill.paid" }])).toEqual(at("mcpEvents/1/name"))
        expect(yield* refusal([one, { ...one, arguments: {} }])).toEqual(at("mcpEvents/1"))
        expect(yield* refusal([{ ...one, arguments: { a: "x".repeat(5_000) } }])).toEqual(
          at("mcpEvents/0/arguments")
        )
        expect(yield* refusal([{ ...one, name: "two words" }])).toEqual(at("mcpEvents/0/name"))
        expect(yield* refusal(Array.from({ length: 21 }, (_, n) => ({ ...one, arguments: { n } })))).toEqual(
          at("mcpEvents")
        )
        expect(yield* refusal(null)).toEqual(at("events"))
        expect((yield* story.get("/agents")).items.map(({ name }: Json) => name)).not.toContain("clerk")
        expect(yield* sourcesOf(story)).toEqual([])
        // Without a list nothing is allowed; applying files says the place, too.
        const [server] = (yield* story.get("/mcp-servers")).items
        yield* story.patch(`/mcp-servers/${server.id}`, { allowedEvents: null })
        expect(yield* refusal([one])).toEqual(at("mcpEvents/0/name"))
        const applied = yield* story.ask("POST", "/agents/apply", { agents: [listener()] })
        expect([applied.status, applied.body.errors?.[0]?.pointer]).toEqual([
          422,
          "/agents/0/reactionConfig/mcpEvents/0/name"
        ])
      })
    )

    it.effect(
      "a source begins with now, and an agent that comes later or was away hears nothing from before",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const source = yield* eventSource()
          source.happen("long ago")
          yield* addSource(story, source.url)
          const agent = yield* story.post("/agents", listener())
          yield* listening(story)
          source.happen("1")
          yield* askNow(story)
          yield* endedRuns(story, agent, 1)
          yield* story.patch(`/agents/${agent.id}`, { enabled: false })
          yield* eventually(sourcesOf(story), (all) => all.length === 0)
          source.happen("while away")
          yield* story.patch(`/agents/${agent.id}`, { enabled: true })
          yield* listening(story)
          const later = yield* story.post("/agents", listener({ name: "later" }))
          source.happen("2")
          yield* askNow(story)
          expect(idsOf(yield* endedRuns(story, agent, 2))).toEqual(["1", "2"])
          expect(idsOf(yield* endedRuns(story, later, 1))).toEqual(["2"])
          const [first] = yield* runsOf(story, agent)
          expect(yield* explained(story, later, first.trigger.mcpEvents[0])).toMatchObject({
            outcome: "refused",
            rule: "madeLater"
          })
        })
    )

    it.effect("what comes while a kill switch is on waits, says so, and is worked on afterwards", () =>
      Effect.gen(function* () {
        const { agent, source, story } = yield* newListener()
        const turn = (stopped: boolean) =>
          story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, {
            stopped,
            ...(stopped ? { reason: "Wait" } : {})
          })
        // A question that is under way is answered all the same.
        source.hold()
        source.happen("1", "2")
        const asked = source.asked.length
        yield* askNow(story)
        yield* eventually(
          Effect.sync(() => source.asked.length),
          (count) => count > asked
        )
        yield* turn(true)
        source.letGo()
        const waiting = yield* entriesWhen(story, agent, 2, ({ status }) => status === "pending")
        expect(waiting).toMatchObject([
          { entityType: "mcpEvent", eventType: "occurred", runId: null },
          { entityType: "mcpEvent", eventType: "occurred", runId: null }
        ])
        expect(yield* explained(story, agent, { id: waiting[0].eventId })).toMatchObject({
          outcome: "waiting",
          reason: expect.any(String)
        })
        yield* turn(false)
        expect(idsOf(yield* endedRuns(story, agent, 2))).toEqual(["1", "2"])
      })
    )

    it.effect("a rule gathers, works on one after the other and retries as with events of the graph", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const source = yield* eventSource()
        yield* addSource(story, source.url)
        const rule = (name: string, reactionConfig: Json, overrides: Json = {}) =>
          story.post("/agents", listener({ name, reactionConfig, ...overrides }))
        const batch = yield* rule("batch", { batchSize: 3, maxWaitMs: 60_000 })
        const debounced = yield* rule("debounced", { debounceMs: 50 })
        const queue = yield* rule("queue", { concurrencyStrategy: "queue" })
        const skip = yield* rule("skip", { concurrencyStrategy: "skip", maxConcurrency: 1 })
        const failing = yield* rule(
          "failing",
          {},
          {
            retryPolicy: { maxAttempts: 2, backoffMs: 0 },
            model: {
              provider: "scripted",
              name: "story",
              script: { rules: [{ fault: { kind: "error", message: "Not there" } }] }
            }
          }
        )
        yield* listening(story)
        source.happen("1", "2", "3")
        yield* askNow(story)
        expect((yield* endedRuns(story, batch, 1)).map((run) => idsOf([run]))).toEqual([["1", "2", "3"]])
        expect((yield* endedRuns(story, debounced, 1)).map((run) => idsOf([run]))).toEqual([["1", "2", "3"]])
        const queued = yield* endedRuns(story, queue, 3)
        expect(idsOf(queued)).toEqual(["1", "2", "3"])
        for (const [index, run] of queued.entries())
          expect(index === 0 || run.startedAt >= queued[index - 1]?.completedAt).toBe(true)
        expect(idsOf(yield* endedRuns(story, skip, 3)).toSorted()).toEqual(["1", "2", "3"])
        const tried = yield* entriesWhen(story, failing, 6)
        expect(tried.map(({ attempt, status }) => `${attempt} ${status}`).toSorted()).toEqual([
          "1 failed",
          "1 failed",
          "1 failed",
          "2 failed",
          "2 failed",
          "2 failed"
        ])
        const again = yield* story.post(`/agents/${failing.id}/processing-log/${tried.at(-1)?.id}/retry`)
        expect(again).toMatchObject({ attempt: 3, entityType: "mcpEvent" })
      })
    )

    it.effect("what is told in one project is heard in no other", () =>
      Effect.gen(function* () {
        const one = yield* newListener()
        const other = yield* newListener()
        one.source.happen("1")
        yield* askNow(one.story)
        const [run] = yield* endedRuns(one.story, one.agent, 1)
        const occurrence = run.trigger.mcpEvents[0]
        other.source.happen("2")
        yield* askNow(other.story)
        expect(idsOf(yield* endedRuns(other.story, other.agent, 1))).toEqual(["2"])
        const foreign = yield* other.story.ask(
          "GET",
          `/agents/${other.agent.id}/explain?eventId=${occurrence.id}`
        )
        expect(foreign.status).toBe(404)
        expect((yield* other.story.ask("GET", `/events/${occurrence.id}/explanations`)).status).toBe(404)
        expect((yield* sourcesOf(other.story))[0]?.lastOccurrence.eventId).toBe("2")
      })
    )
  })
})
