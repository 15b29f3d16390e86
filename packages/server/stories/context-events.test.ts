/**
 * What every event of a context carries, and what an actor derives from the log alone.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addEvent,
  contentsOf,
  countOf,
  echo,
  firstOf,
  idsUpTo,
  isQuiet,
  keptOf,
  logOf,
  logWith,
  newContext,
  passingOf,
  quietLog,
  slowEcho,
  turnsOf,
  typesOf
} from "../testing/context-words.ts"
import { openStream } from "../testing/event-stream.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, startServer, storyIn } from "../testing/platform.ts"
import { countRows, expectProblem, problemOf } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Small, so that whatever else waits, such as a new connection to the database, is not rushed past its own bound. */
const stepMs = 1_000

/** Looks for objects, makes one, and answers: every kind of event that a turn with tools has. */
const searching = scripted([
  { when: "step == 0", calls: [{ tool: "search_objects", arguments: { type: "Person" } }] },
  { when: "step == 1", calls: [{ tool: "get_object", arguments: { objectId: "no id" } }] },
  { say: "Found nobody." }
])

const sentence = "Every word of this answer is shown while it is being written."

/** Four characters a second: each word takes its time. */
const typing = scripted([{ say: sentence, tokensPerSecond: 1 }])

layer(SharedServer.layer)((it) => {
  describe("Event Types: base fields", () => {
    it.effect("S004-R14 ids are {agentName}:{counter}, unique and contiguous from 1, whoever writes", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "with-tools", searching)
        yield* addEvent(story, "with-tools", "Who is there?")
        yield* addEvent(story, "with-tools", "And who else?", false)
        const log = yield* quietLog(story, "with-tools")
        expect(new Set(typesOf(log))).toEqual(
          new Set([
            "UserMessageEvent",
            "SessionStartedEvent",
            "AgentTurnStartedEvent",
            "AssistantMessageEvent",
            "ToolCallStartedEvent",
            "ToolCallCompletedEvent",
            "ToolCallFailedEvent",
            "AgentTurnCompletedEvent"
          ])
        )
        expect(log.map((event) => event.id)).toEqual(idsUpTo("with-tools", log.length))
        expect((yield* story.get("/contexts/with-tools")).eventCount).toBe(log.length)
        // A log of the same name in another project counts for itself.
        const other = yield* newStoryHere
        yield* newContext(other, "with-tools")
        yield* addEvent(other, "with-tools", "Hello", false)
        expect((yield* logOf(other, "with-tools")).map((event) => event.id)).toEqual(idsUpTo("with-tools", 2))
      })
    )

    it.effect(
      "S004-R15, R16, R17, R21 every event has its time, its context, its parent and its trigger",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "with-tools", searching)
          yield* addEvent(story, "with-tools", "Who is there?")
          const log = yield* quietLog(story, "with-tools")
          expect(log.length).toBeGreaterThan(8)
          for (const event of log) {
            expect(event.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
            expect(event.agentName).toBe("with-tools")
            expect(event).toHaveProperty("parentEventId")
            expect(typeof event.triggersAgentTurn).toBe("boolean")
          }
          const times = log.map((event) => event.timestamp)
          expect(times).toEqual(times.toSorted())
          expect(log.filter((event) => event.triggersAgentTurn).map((event) => event.id)).toEqual([
            "with-tools:2"
          ])
        })
    )

    it.effect("S004-R15 an event's time is the moment at which it was kept", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk", slowEcho)
        yield* addEvent(story, "talk", "Hello")
        yield* logWith(story, "talk", "AgentTurnStartedEvent")
        yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
        const log = yield* logOf(story, "talk")
        const timeOf = (type: string): number => new Date(firstOf(log, type).timestamp).getTime()
        expect(timeOf("AssistantMessageEvent") - timeOf("UserMessageEvent")).toBeGreaterThanOrEqual(5_000)
      })
    )

    it.effect(
      "S004-R18, R19, R20 the first event has no parent; the others have the turn's start, else the last event",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk", slowEcho)
          yield* addEvent(story, "talk", "For later", false)
          yield* addEvent(story, "talk", "One")
          yield* logWith(story, "talk", "AgentTurnStartedEvent")
          yield* addEvent(story, "talk", "Said during the turn", false)
          yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
          yield* addEvent(story, "talk", "Said after it", false)
          const log = yield* logOf(story, "talk")
          expect(log.map((event) => [event.type, event.parentEventId])).toEqual([
            ["SessionStartedEvent", null],
            ["UserMessageEvent", "talk:1"],
            ["UserMessageEvent", "talk:2"],
            ["AgentTurnStartedEvent", "talk:3"],
            ["UserMessageEvent", "talk:4"],
            ["AssistantMessageEvent", "talk:4"],
            ["AgentTurnCompletedEvent", "talk:4"],
            ["UserMessageEvent", "talk:7"]
          ])
        })
    )

    it.effect("S004-R17 an event has the parent that it names, where the log has that one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const add = (content: string, parentEventId: string | null, name = "talk") =>
          story.ask("POST", `/contexts/${name}/events`, {
            type: "UserMessageEvent",
            content,
            triggersAgentTurn: false,
            parentEventId
          })
        yield* addEvent(story, "talk", "One", false)
        const one = (yield* logOf(story, "talk")).at(-1)
        expect((yield* add("Two", null)).status).toBe(204)
        const two = (yield* logOf(story, "talk")).at(-1)
        expect(two.parentEventId).toBe(one.id)
        expect((yield* add("Three", one.id)).status).toBe(204)
        expect((yield* logOf(story, "talk")).at(-1)).toMatchObject({
          content: "Three",
          parentEventId: one.id
        })
        // A fork's log begins with the events that it shares, which keep their ids.
        yield* story.post("/contexts/talk/fork", { name: "other" })
        expect((yield* add("Four", one.id, "other")).status).toBe(204)
        expect((yield* logOf(story, "other")).at(-1)).toMatchObject({
          content: "Four",
          parentEventId: one.id
        })
        const before = yield* countRows(story)
        for (const parent of ["talk:999", "nowhere:1", "talk:2147483648", "other:1"])
          expect(yield* problemOf(add("Five", parent, "other"), 422, "/parentEventId")).toMatchObject({
            reason: "unknownParent"
          })
        expectProblem(yield* add("Five", "rubbish"), 422, "/parentEventId")
        expect(yield* countRows(story)).toEqual(before)
        // Nothing of it is different when the log is written again from what was sent.
        for (const name of ["talk", "other"])
          expect((yield* story.get(`/contexts/${name}/replay`)).isEqual).toBe(true)
      })
    )

    it.effect("S004-R21 the event and not its type decides whether an answer follows", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        yield* addEvent(story, "talk", "One", false)
        yield* addEvent(story, "talk", "Two", false)
        // What would wake the agent is decided together with the event, so nothing can still be on its way.
        expect((yield* story.get("/runs")).items).toEqual([])
        yield* addEvent(story, "talk", "Three", true)
        const log = yield* quietLog(story, "talk")
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 3: Three"])
      })
    )
  })

  describe("Event Types: TextDeltaEvent", () => {
    it.effect("S004-R26 pieces of an answer are shown live, are not kept and not counted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk", typing)
        const path = `/api/projects/${story.projectId}/contexts/talk/events?after=start`
        const live = yield* openStream(story, path)
        yield* addEvent(story, "talk", "Speak")
        // Some pieces are there before the answer is: they are shown while it is being written.
        yield* asTimePasses(
          250,
          Effect.sync(() => passingOf(live).length),
          (count) => count >= 3
        )
        expect(countOf(yield* logOf(story, "talk"), "AssistantMessageEvent")).toBe(0)
        yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
        const log = yield* logOf(story, "talk")
        yield* live.until(() => keptOf(live).length >= log.length)

        const pieces = passingOf(live).map((heard) => heard.json)
        expect(pieces.map((piece) => piece.delta).join("")).toBe(sentence)
        const turn = firstOf(log, "AgentTurnStartedEvent").id
        expect(pieces).toEqual(
          pieces.map((piece, index) => ({
            type: "TextDeltaEvent",
            id: `${turn}.d${index + 1}`,
            timestamp: piece.timestamp,
            agentName: "talk",
            parentEventId: turn,
            triggersAgentTurn: false,
            delta: piece.delta
          }))
        )
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual([sentence])
        expect(log.map((event) => event.id)).toEqual(idsUpTo("talk", log.length))
        expect(keptOf(live).map((heard) => heard.json)).toEqual(log)
        expect((yield* story.get("/contexts/talk")).eventCount).toBe(log.length)
        const rows = yield* ask(
          story.access,
          "select count(*)::int from kb.context_events where project_id = $1 and type = 'TextDeltaEvent'",
          [story.projectId]
        )
        expect(rows).toEqual([[0]])
        // Who comes later finds the answer and none of its pieces.
        const late = yield* openStream(story, path)
        yield* late.until((heard) => heard.length >= log.length)
        expect(late.heard.map((heard) => heard.json)).toEqual(log)
      })
    )
  })

  describe("ReducedContext (Derived State)", () => {
    it.effect(
      "S004-R06, R07, R09, R10, R12 another server goes on with a conversation, knowing only its log",
      () =>
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const first = yield* Effect.scoped(
            Effect.gen(function* () {
              const story = yield* newProject(yield* startServer(access), access)
              yield* newContext(story, "talk")
              yield* addEvent(story, "talk", "One")
              yield* quietLog(story, "talk")
              yield* addEvent(story, "talk", "Two", false)
              return { projectId: story.projectId, log: yield* logOf(story, "talk") }
            })
          )
          const story = storyIn(yield* startServer(access), access, first.projectId)
          expect(yield* logOf(story, "talk")).toEqual(first.log)
          yield* addEvent(story, "talk", "Three")
          const log = yield* quietLog(story, "talk")
          expect(log.slice(0, first.log.length)).toEqual(first.log)
          expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 1: One", "Answer 3: Three"])
          expect(turnsOf(log).at(-1)).toEqual(["AgentTurnCompletedEvent", 2])
          expect(log.map((event) => event.id)).toEqual(idsUpTo("talk", log.length))
        })
    )

    it.effect(
      "S004-R06, R11, R12 a server that stops in a turn leaves its actor nothing: the next one folds the log and answers",
      () =>
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const projectId = yield* Effect.scoped(
            Effect.gen(function* () {
              const story = yield* newProject(yield* startServer(access), access)
              const agent = yield* newContext(story, "talk", slowEcho)
              yield* addEvent(story, "talk", "One")
              yield* logWith(story, "talk", "AgentTurnStartedEvent")
              yield* story.patch(`/agents/${agent.id}`, { model: echo })
              return story.projectId
            })
          )
          const story = storyIn(yield* startServer(access), access, projectId)
          yield* logWith(story, "talk", "AgentTurnInterruptedEvent")
          yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
          const log = yield* logOf(story, "talk")
          expect(turnsOf(log)).toEqual([
            ["AgentTurnStartedEvent", 1],
            ["AgentTurnInterruptedEvent", 1],
            ["AgentTurnStartedEvent", 2],
            ["AgentTurnCompletedEvent", 2]
          ])
          expect(firstOf(log, "AgentTurnInterruptedEvent")).toMatchObject({
            reason: "crash",
            parentEventId: firstOf(log, "AgentTurnStartedEvent").id
          })
          expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 1: One"])
          const runs: ReadonlyArray<Json> = (yield* story.get("/runs")).items
          // A server that stops gives its runs back, and the attempt that it could not end does not count.
          expect(runs.map((run) => [run.status, run.attempt])).toEqual([["completed", 1]])
        })
    )
  })

  describe("A run's own context", () => {
    it.effect(
      "is read as pages and as a stream that ends with the run, and goes on after Last-Event-ID",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newContext(story, "unused", slowEcho)
          const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
          const path = `/api/projects/${story.projectId}/runs/${run.id}/events?after=start`
          const live = yield* openStream(story, path)
          yield* live.until((heard) => heard.some((one) => one.name === "AgentTurnStartedEvent"))
          yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
          yield* live.ended
          const log: ReadonlyArray<Json> = (yield* story.get(`/runs/${run.id}/events`)).items
          expect(keptOf(live).map((heard) => heard.json)).toEqual(log)
          expect(log.map((event) => event.id)).toEqual(idsUpTo(run.contextName, log.length))
          expect(typesOf(log)).toEqual([
            "SessionStartedEvent",
            "SetLlmConfigEvent",
            "UserMessageEvent",
            "AgentTurnStartedEvent",
            "AssistantMessageEvent",
            "AgentTurnCompletedEvent",
            "SessionEndedEvent"
          ])
          const rest = yield* openStream(story, path, "4")
          yield* rest.ended
          expect(rest.heard.map((heard) => heard.json)).toEqual(log.slice(4))
          // The whole log was read already: there is nothing to say and nothing to wait for.
          const nothing = yield* openStream(story, path, String(log.length))
          yield* nothing.ended
          expect(nothing.heard).toEqual([])

          const page = yield* story.get(`/runs/${run.id}/events?limit=3`)
          const next = yield* story.get(`/runs/${run.id}/events?limit=200&cursor=${page.nextCursor}`)
          expect([...page.items, ...next.items]).toEqual(log)
          expect(next.nextCursor).toBeNull()
          const after = yield* story.get(`/runs/${run.id}/events?after=5`)
          expect(after.items).toEqual(log.slice(5))
          yield* eventually(story.get(`/runs/${run.id}`), (now) => now.status === "completed")
        })
    )
  })
})
