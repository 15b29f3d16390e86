/**
 * The core flow of a context: one actor, one log, and those who listen to it.
 *
 * The server has the test's clock: an answer that takes its time is held for as
 * long as a story wants, and meanwhile others speak.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addEvent,
  contentsOf,
  countOf,
  idsUpTo,
  isQuiet,
  keptOf,
  logOf,
  logWith,
  newContext,
  quietLog,
  slowEcho,
  turnsOf,
  typesOf
} from "../testing/context-words.ts"
import { openStream } from "../testing/event-stream.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Small, so that whatever else waits, such as a new connection to the database, is not rushed past its own bound. */
const stepMs = 1_000

layer(SharedServer.layer)((it) => {
  describe("Core Flow: actor per agent", () => {
    it.effect("S004-R02 each context has an actor of its own: two are answered side by side", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newContext(story, "first", slowEcho)
        yield* story.post("/contexts", { name: "second", agentId: agent.id })
        yield* addEvent(story, "first", "One")
        yield* addEvent(story, "second", "Two")
        // Both are in a turn and neither has answered: one does not wait for the other.
        const firstHeld = yield* logWith(story, "first", "AgentTurnStartedEvent")
        const secondHeld = yield* logWith(story, "second", "AgentTurnStartedEvent")
        expect(countOf([...firstHeld, ...secondHeld], "AssistantMessageEvent")).toBe(0)
        yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
        expect(contentsOf(yield* logOf(story, "first"), "AssistantMessageEvent")).toEqual(["Answer 1: One"])
        expect(contentsOf(yield* logOf(story, "second"), "AssistantMessageEvent")).toEqual(["Answer 1: Two"])
      })
    )

    it.effect(
      "S004-R02 messages that come during a turn are for the same actor, which answers them in the next",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk", slowEcho)
          yield* addEvent(story, "talk", "One")
          yield* logWith(story, "talk", "AgentTurnStartedEvent")
          yield* Effect.all([addEvent(story, "talk", "Two"), addEvent(story, "talk", "Three")], {
            concurrency: 2
          })
          expect((yield* story.get("/runs")).items.map((run: Json) => run.status)).toEqual(["running"])
          yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
          const log = yield* logOf(story, "talk")
          const turns = turnsOf(log)
          expect(turns.slice(0, 3)).toEqual([
            ["AgentTurnStartedEvent", 1],
            ["AgentTurnInterruptedEvent", 1],
            ["AgentTurnStartedEvent", 2]
          ])
          // The second of them may come so late that it breaks in once more.
          expect([
            turns.length <= 6,
            turns
              .map(([type]) => type)
              .filter((type) => type !== "AgentTurnStartedEvent")
              .slice(1)
          ]).toEqual([
            true,
            turns.length === 4
              ? ["AgentTurnCompletedEvent"]
              : ["AgentTurnInterruptedEvent", "AgentTurnCompletedEvent"]
          ])
          expect(contentsOf(log, "AssistantMessageEvent")).toEqual([
            expect.stringMatching(/^Answer 3: (?:Two|Three)$/)
          ])
          expect((yield* story.get("/runs")).items).toHaveLength(1)
        })
    )

    it.effect("S004-R02, R14 forty messages at once get the ids 1 to n, and one answer at a time", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "crowd")
        const contents = Array.from({ length: 40 }, (_, index) => `Message ${index}`)
        const answers = yield* Effect.forEach(
          contents,
          (content, index) => addEvent(story, "crowd", content, index % 2 === 0),
          { concurrency: 40 }
        )
        expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([204]))
        const log = yield* quietLog(story, "crowd")
        expect(log.map((event) => event.id)).toEqual(idsUpTo("crowd", log.length))
        expect(contentsOf(log, "UserMessageEvent").toSorted()).toEqual(contents.toSorted())
        const turns = turnsOf(log)
        expect(turns.length).toBeGreaterThan(0)
        expect(turns).toEqual(
          Array.from({ length: turns.length / 2 }, (_, index) => [
            ["AgentTurnStartedEvent", index + 1],
            [expect.stringMatching(/^AgentTurn(?:Completed|Interrupted)Event$/), index + 1]
          ]).flat()
        )
        expect(turns.at(-1)?.[0]).toBe("AgentTurnCompletedEvent")
        // Nobody who asked is left without an answer: the last turn began after the last question.
        const lastAsked = log.findLastIndex(
          (event) => event.type === "UserMessageEvent" && event.triggersAgentTurn
        )
        expect(log.findLastIndex((event) => event.type === "AgentTurnStartedEvent")).toBeGreaterThan(
          lastAsked
        )
      })
    )
  })

  describe("Core Flow: fire-and-forget input and immediate persistence", () => {
    it.effect(
      "S004-R01, R03, R05 a message is kept before its sender is answered with nothing; all the rest comes through the log",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk", slowEcho)
          const answer = yield* addEvent(story, "talk", "Hello")
          expect([answer.status, answer.body]).toEqual([204, null])
          expect((yield* logOf(story, "talk"))[1]).toMatchObject({
            type: "UserMessageEvent",
            id: "talk:2",
            content: "Hello",
            triggersAgentTurn: true
          })
          // The agent has the message and is silent: its sender was not kept waiting.
          const held = yield* logWith(story, "talk", "AgentTurnStartedEvent")
          expect(countOf(held, "AssistantMessageEvent")).toBe(0)
          yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
          const log = yield* logOf(story, "talk")
          expect(typesOf(log)).toEqual([
            "SessionStartedEvent",
            "UserMessageEvent",
            "AgentTurnStartedEvent",
            "AssistantMessageEvent",
            "AgentTurnCompletedEvent"
          ])
          expect(log[3].content).toBe("Answer 1: Hello")
        })
    )

    it.effect("S004-R05 an event that cannot be kept is an error to its sender and wakes nobody", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        expect((yield* addEvent(story, "talk", "no \u0000 here")).status).toBe(422)
        expect((yield* addEvent(story, "elsewhere", "Hello")).status).toBe(404)
        expect(yield* logOf(story, "talk")).toEqual([])
        expect((yield* story.get("/contexts/talk")).eventCount).toBe(0)
        expect((yield* story.get("/runs")).items).toEqual([])
      })
    )

    it.effect(
      "a message that nobody would answer is refused with the reason, and nothing of it is kept",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newContext(story, "talk")
          const message = { type: "UserMessageEvent", content: "Anybody?" }
          const before = yield* logOf(story, "talk")
          yield* story.patch(`/agents/${agent.id}`, { enabled: false })
          const disabled = yield* story.ask("POST", "/contexts/talk/events", message)
          expectProblem(disabled, 409)
          expect(disabled.body.reason).toBe("agentDisabled")
          yield* story.delete(`/agents/${agent.id}`)
          const gone = yield* story.ask("POST", "/contexts/talk/events", message)
          expectProblem(gone, 409)
          expect(gone.body.reason).toBe("agentDisabled")
          expect(yield* logOf(story, "talk")).toEqual(before)
          // What asks for no answer is kept.
          const note = yield* story.ask("POST", "/contexts/talk/events", {
            ...message,
            triggersAgentTurn: false
          })
          expect(note.status).toBe(204)
        })
    )
  })

  describe("Core Flow: live event stream", () => {
    it.effect("S004-R04 subscribers receive the events published after they subscribe", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        yield* addEvent(story, "talk", "Before")
        const past = yield* quietLog(story, "talk")
        const path = `/api/projects/${story.projectId}/contexts/talk/events?after=${past.length}`
        const subscribers = [yield* openStream(story, path), yield* openStream(story, path)]
        yield* addEvent(story, "talk", "After")
        const news = (yield* quietLog(story, "talk")).slice(past.length)
        expect(contentsOf(news, "UserMessageEvent")).toEqual(["After"])
        for (const subscriber of subscribers) {
          expect(subscriber.status).toBe(200)
          expect(subscriber.headers.get("content-type")).toMatch(/^text\/event-stream/)
          yield* subscriber.until(() => keptOf(subscriber).length >= news.length)
          expect(keptOf(subscriber)).toEqual(
            news.map((event, index) => ({
              id: String(past.length + index + 1),
              name: event.type,
              json: event
            }))
          )
        }
      })
    )

    it.effect(
      "S004-R04 every stream begins now where no place is named, and after=now and after=start say which",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newContext(story, "talk")
          yield* addEvent(story, "talk", "Before")
          yield* quietLog(story, "talk")
          const { id: runId } = yield* story.post(`/agents/${agent.id}/trigger`, {})
          yield* story.post("/objects", { type: "Note", properties: {} })
          yield* eventually(story.get("/events"), (page) => page.items.length === 1)
          for (const place of ["/contexts/talk/events", `/runs/${runId}/events`, "/events"]) {
            const path = `/api/projects/${story.projectId}${place}`
            const past = (yield* story.get(`${place}?limit=200`)).items
            expect(past.length).toBeGreaterThan(0)
            expect((yield* story.get(`${place}?after=start&limit=200`)).items).toEqual(past)
            expect((yield* story.get(`${place}?after=now`)).items).toEqual([])
            const whole = yield* openStream(story, `${path}?after=start`)
            yield* whole.until((heard) => heard.length >= past.length)
            expect(whole.heard.map((heard) => heard.json)).toEqual(past)
            const ends: Array<unknown> = []
            for (const query of ["", "?after=now"]) {
              const live = yield* openStream(story, path + query)
              yield* eventually(Effect.sync(live.lastEventId), (id) => id !== undefined)
              ends.push(live.lastEventId(), live.heard.length)
            }
            expect(ends).toEqual([String(past.length), 0, String(past.length), 0])
            // Whoever comes back goes on after what was heard, wherever the address begins.
            const back = yield* openStream(story, `${path}?after=now`, "1")
            yield* back.until((heard) => heard.length >= past.length - 1)
            expect(back.heard.map((heard) => heard.json)).toEqual(past.slice(1))
            expect((yield* story.ask("GET", `${place}?after=yesterday`)).status).toBe(422)
          }
          const live = yield* openStream(story, `/api/projects/${story.projectId}/contexts/talk/events`)
          yield* addEvent(story, "talk", "After", false)
          yield* live.until((heard) => heard.length >= 1)
          expect(live.heard.map((heard) => heard.json.content)).toEqual(["After"])
        })
    )

    it.effect("S004-R04 one who was cut off goes on after the last id, with no gap and nothing twice", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const path = `/api/projects/${story.projectId}/contexts/talk/events`
        const before = yield* openStream(story, path)
        yield* addEvent(story, "talk", "One", false)
        yield* addEvent(story, "talk", "Two", false)
        yield* before.until((heard) => heard.length === 3)
        yield* before.cut
        yield* addEvent(story, "talk", "Three", false)
        const after = yield* openStream(story, path, before.heard.at(-1)?.id)
        yield* addEvent(story, "talk", "Four", false)
        yield* after.until((heard) => heard.length >= 2)
        expect([...before.heard, ...after.heard].map((heard) => [heard.id, heard.json.content])).toEqual([
          ["1", undefined],
          ["2", "One"],
          ["3", "Two"],
          ["4", "Three"],
          ["5", "Four"]
        ])
      })
    )
  })
})
