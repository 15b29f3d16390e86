/**
 * Contexts read back: which there are, and whether their logs are what the engine would write again.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addEvent,
  contentsOf,
  logOf,
  logWith,
  newContext,
  quietLog,
  slowEcho
} from "../testing/context-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, make, watcher } from "../testing/story-words.ts"

/** A model that writes one note for each message and then says so. */
const noting = scripted([
  {
    when: "step == 0",
    calls: [{ tool: "create_object", arguments: { type: "Note", properties: { of: "{{ message }}" } } }]
  },
  { say: "Noted {{ message }}" }
])

/** A conversation of two messages, each with a call of a tool. */
const noted = Effect.gen(function* () {
  const story = yield* newStoryHere
  yield* newContext(story, "talk", noting)
  yield* addEvent(story, "talk", "one")
  yield* quietLog(story, "talk")
  yield* addEvent(story, "talk", "two")
  const log = yield* quietLog(story, "talk")
  return { story, log }
})

const replayOf = (story: Story, name: string): Effect.Effect<Json> => story.get(`/contexts/${name}/replay`)

const namesOf = (page: Json): ReadonlyArray<string> => page.items.map(({ name }: Json) => name)

layer(SharedServer.layer)((it) => {
  describe("Full event-sourcing replay", () => {
    it.effect(
      "S004-F19 a context is folded from its beginning, with no model and no tool, and is equal",
      () =>
        Effect.gen(function* () {
          const { log, story } = yield* noted
          const before = [yield* story.get("/objects"), yield* story.get("/runs")]
          expect(yield* replayOf(story, "talk")).toEqual({
            events: log.length,
            engineEvents: log.filter(({ type }) => type !== "UserMessageEvent").length,
            isEqual: true
          })
          expect([yield* story.get("/objects"), yield* story.get("/runs")]).toEqual(before)
          expect(yield* logOf(story, "talk")).toEqual(log)
        })
    )

    it.effect(
      "S004-F19 a fork is replayed with what it shares, and so is one made in the middle of a turn",
      () =>
        Effect.gen(function* () {
          const { log, story } = yield* noted
          for (const at of [2, 5, 6, 7, log.length]) {
            const fork = yield* story.post("/contexts/talk/fork", { name: `fork-${at}`, at })
            expect(yield* replayOf(story, fork.name), `fork at ${at}`).toMatchObject({
              isEqual: true,
              events: fork.eventCount
            })
          }
          yield* addEvent(story, "fork-6", "three")
          yield* quietLog(story, "fork-6")
          const again = yield* story.post("/contexts/fork-6/fork", { name: "again" })
          expect(yield* replayOf(story, "again")).toMatchObject({ isEqual: true, events: again.eventCount })
        })
    )

    it.effect("S004-F19 the log of a run is replayed by the run's id", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: noting }))
        yield* make(story, "Person")
        const [run] = yield* endedRuns(story, agent, 1)
        const replay = yield* story.get(`/runs/${run.id}/replay`)
        expect(replay).toEqual(yield* replayOf(story, run.contextName))
        expect(replay.isEqual).toBe(true)
        expect(replay.events).toBeGreaterThan(8)
      })
    )

    it.effect("S004-F19 a replay says which event is not what it was, and what it should be", () =>
      Effect.gen(function* () {
        const { log, story } = yield* noted
        const started = log.find(({ type }) => type === "ToolCallStartedEvent")
        yield* ask(
          story.access,
          `update kb.context_events set payload = jsonb_set(payload, '{arguments,type}', '"Person"')
            where context_name = 'talk' and project_id = '${story.projectId}' and number = ${started.id.slice(5)}`
        )
        const { firstDifference, ...found } = yield* replayOf(story, "talk")
        expect(found).toMatchObject({ events: log.length, isEqual: false })
        expect(firstDifference).toEqual({
          eventId: started.id,
          detail: expect.stringContaining("arguments"),
          expected: started,
          found: { ...started, arguments: { ...started.arguments, type: "Person" } }
        })
      })
    )

    it.effect("S004-F19 there is nothing to replay where there is no context", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        expectProblem(yield* story.ask("GET", "/contexts/nowhere/replay"), 404)
        const run = "01990000-0000-7000-8000-00000000000a"
        expectProblem(yield* story.ask("GET", `/runs/${run}/replay`), 404)
      })
    )
  })

  describe("The list of contexts", () => {
    it.effect("names them all, the newest first, page by page", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const names = ["a", "b.c", "d", "e"]
        for (const name of names) yield* newContext(story, name)
        const newest = names.toReversed()
        expect(namesOf(yield* story.get("/contexts"))).toEqual(newest)
        const first = yield* story.get("/contexts?limit=3")
        expect(namesOf(first)).toEqual(newest.slice(0, 3))
        const rest = yield* story.get(`/contexts?limit=3&cursor=${first.nextCursor}`)
        expect(namesOf(rest)).toEqual(["a"])
        expect(rest.nextCursor).toBeNull()
        expectProblem(yield* story.ask("GET", "/contexts?cursor=nonsense"), 422)
      })
    )

    it.effect(
      "tells of each its agent, its events, where it was forked, and whether its agent is at work",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newContext(story, "talk", slowEcho)
          yield* newContext(story, "other")
          yield* addEvent(story, "talk", "One")
          yield* asTimePasses(100, logWith(story, "talk", "AgentTurnStartedEvent"), (log) => log.length > 0)
          yield* story.post("/contexts/talk/fork", { name: "fork", at: 1 })
          const list = () => story.get(`/contexts?agentId=${agent.id}`)
          expect((yield* list()).items).toMatchObject([
            { name: "fork", agentId: agent.id, forkedFrom: { name: "talk", at: 1 }, isTurnOpen: false },
            { name: "talk", agentId: agent.id, forkedFrom: null, isTurnOpen: true }
          ])
          const log = yield* asTimePasses(1_000, logOf(story, "talk"), (events) =>
            events.some(({ type }) => type === "SessionEndedEvent")
          )
          const [, talk] = (yield* eventually(list(), ({ items }) => !items[1].isTurnOpen)).items
          expect(talk.eventCount).toBe(log.length)
          expect(talk).toEqual(yield* story.get("/contexts/talk"))
        })
    )
  })

  describe("A context for which nobody names an agent", () => {
    it.effect("is answered by the project's TodoAssistant, and refused in words where that was deleted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const assistant = (yield* story.get("/agents?limit=200")).items.find(
          ({ name }: Json) => name === "TodoAssistant"
        )
        for (const body of [{ name: "silent" }, { name: "nobody", agentId: null }]) {
          const made = yield* story.post("/contexts", body)
          expect(made).toMatchObject({ name: body.name, agentId: assistant.id })
          expect(yield* story.get(`/contexts/${body.name}`)).toEqual(made)
        }
        yield* addEvent(story, "silent", "Add buy milk")
        expect(contentsOf(yield* quietLog(story, "silent"), "AssistantMessageEvent").join()).toContain("milk")

        expect((yield* story.ask("DELETE", `/agents/${assistant.id}`)).status).toBeLessThan(300)
        const refused = yield* story.ask("POST", "/contexts", { name: "late" })
        expectProblem(refused, 422, "/agentId")
        expect(refused.body.detail).toContain("TodoAssistant")
        expect((yield* story.ask("GET", "/contexts/late")).status).toBe(404)
      })
    )
  })
})
