/**
 * Calls of one answer that are made side by side, and those that wait for each other.
 *
 * The servers hold their answers until everything has arrived that must be there at once: no time is measured.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { callEventsOf, newCaller } from "../testing/mcp-runs.ts"
import { holdingServer, reading, resultsRead, writing } from "../testing/held-calls.ts"
import { newContext, quietness, say } from "../testing/context-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, type ScriptedCall } from "../testing/story-words.ts"
import { runLog, stopRule } from "../testing/time-words.ts"

const everything = { tools: ["shop.*", "bank.*", "graph.*", "run.*"] }

/** A run that makes calls in one answer, begun. */
const begun = (story: Story, calls: ReadonlyArray<ScriptedCall>, overrides: Record<string, unknown> = {}) =>
  Effect.flatMap(newCaller(story, calls, { ...everything, ...overrides }), (agent) =>
    story.post(`/agents/${agent.id}/trigger?wait=false`, {})
  )

const ended = (story: Story, run: Json, status = "completed") =>
  eventually(story.get(`/runs/${run.id}`), (now) => now.status === status)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Calls that only read", () => {
    it.effect("of one server are made side by side; their results come in the order of the calls", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const words = ["a", "b", "c", "d"]
        const run = yield* begun(
          story,
          words.map((word) => reading(word))
        )
        yield* shop.release(...words)
        expect(yield* ended(story, run)).toMatchObject({ stepCount: 2 })
        expect(shop.arrived).toHaveLength(4)
        const events = yield* callEventsOf(story, run)
        expect(events.map(({ type }) => type)).toEqual([
          ...words.map(() => "ToolCallStartedEvent"),
          ...words.map(() => "ToolCallCompletedEvent")
        ])
        expect(events.slice(0, 4).map((event) => event.arguments.word)).toEqual(words)
        expect(events.slice(4).map(({ result }) => result)).toEqual(["a.", "b.", "c.", "d."])
        expect(yield* resultsRead(story, run)).toEqual(["a.", "b.", "c.", "d."])
        expect((yield* story.get(`/contexts/${run.contextName}/replay`)).isEqual).toBe(true)
        expect(yield* callsOf(story, run)).toMatchObject(
          words.map((word) => ({ status: "completed", result: `${word}.` }))
        )
      })
    )

    it.effect("are no more at once than eight", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const words = Array.from({ length: 12 }, (_, index) => `w${index}`)
        const run = yield* begun(
          story,
          words.map((word) => reading(word))
        )
        yield* eventually(
          Effect.sync(() => shop.held.length),
          (count) => count === 8
        )
        expect(shop.arrived).toEqual(expect.arrayContaining(words.slice(0, 8)))
        for (const word of words) yield* shop.release(word)
        yield* ended(story, run)
        expect(shop.arrived).toHaveLength(12)
        expect(yield* resultsRead(story, run)).toEqual(words.map((word) => `${word}.`))
      })
    )

    it.effect("come too often in a row where they are the same, also in one answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const run = yield* begun(story, [reading("a"), reading("a"), reading("a"), reading("b")])
        yield* shop.release("a", "a")
        yield* shop.release("b")
        yield* ended(story, run)
        expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual([
          "completed",
          "completed",
          "refused",
          "completed"
        ])
      })
    )
  })

  describe("Calls that write", () => {
    it.effect("keep their order at one server, and what is read after a write sees it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const run = yield* begun(story, [reading("a"), writing("b"), writing("c"), reading("d")])
        for (const [index, word] of ["a", "b", "c", "d"].entries()) {
          yield* eventually(
            Effect.sync(() => shop.arrived.length),
            (count) => count === index + 1
          )
          yield* shop.release(word)
        }
        yield* ended(story, run)
        expect(shop.arrived).toEqual(["a", "b", "c", "d"])
        expect((yield* callEventsOf(story, run)).map(({ type }) => type)).toEqual(
          Array.from({ length: 4 }, () => ["ToolCallStartedEvent", "ToolCallCompletedEvent"]).flat()
        )
      })
    )

    it.effect("go beside those of another server, and each server has its own in order", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const bank = yield* holdingServer(story, "bank")
        const run = yield* begun(story, [
          writing("a"),
          writing("b"),
          writing("c", "bank"),
          writing("d", "bank"),
          reading("e", "bank")
        ])
        yield* eventually(
          Effect.sync(() => [...shop.arrived, ...bank.arrived]),
          (words) => words.length === 2
        )
        // The other server goes on while the first call of all has no answer.
        for (const word of ["c", "d", "e"]) yield* bank.release(word)
        expect(shop.arrived).toEqual(["a"])
        for (const word of ["a", "b"]) yield* shop.release(word)
        yield* ended(story, run)
        expect([shop.arrived, bank.arrived]).toEqual([
          ["a", "b"],
          ["c", "d", "e"]
        ])
        expect(yield* resultsRead(story, run)).toEqual(["a.", "b.", "c.", "d.", "e."])
      })
    )

    it.effect("to the graph, questions and reads of it go on between calls of servers", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const bank = yield* holdingServer(story, "bank")
        const run = yield* begun(story, [
          reading("a"),
          { tool: "create_object", arguments: { type: "Note", properties: { text: "beside" } } },
          { tool: "ask_user", arguments: { question: "Shall I go on?" } },
          reading("b", "bank")
        ])
        yield* eventually(
          Effect.sync(() => [...shop.arrived, ...bank.arrived].toSorted()),
          (words) => words.length === 2
        )
        expect((yield* story.get("/objects?type=Note")).items).toHaveLength(1)
        yield* bank.release("b")
        yield* shop.release("a")
        const waiting = yield* ended(story, run, "paused")
        expect(waiting).toMatchObject({ pauseReason: "question" })
        expect((yield* callsOf(story, run)).map(({ status, tool }) => `${tool} ${status}`)).toEqual([
          "shop__read completed",
          "create_object completed",
          "ask_user started",
          "bank__read completed"
        ])
        yield* story.post(`/runs/${run.id}/answer`, { answer: "Yes." })
        yield* ended(story, run)
        expect(
          (yield* resultsRead(story, run)).map((result: Json) => result.answer ?? result.type ?? result)
        ).toHaveLength(4)
      })
    )

    it.effect("only suggest after something untrusted was read, as if they had come alone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop", { untrusted: true, allowUntrusted: true })
        const bank = yield* holdingServer(story, "bank")
        const run = yield* begun(story, [
          reading("a"),
          reading("b"),
          { tool: "create_object", arguments: { type: "Note", properties: { text: "after" } } },
          writing("c", "bank")
        ])
        yield* shop.release("a", "b")
        yield* ended(story, run)
        expect((yield* callsOf(story, run)).map(({ decision, status }) => `${status} ${decision}`)).toEqual([
          "completed null",
          "completed null",
          "completed suggest",
          "refused refuse"
        ])
        expect(bank.arrived).toEqual([])
      })
    )
  })
})

layer(SharedServer.layer)((it) => {
  describe("Calls at work", () => {
    const stopped = (story: Story, run: Json) =>
      Effect.map(callsOf(story, run), (calls) => calls.map(({ status, tool }) => `${tool} ${status}`))

    it.effect("are all aborted when the run's time is up; what had not begun is not made", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const bank = yield* holdingServer(story, "bank")
        const calls = [reading("a"), reading("b"), writing("c", "bank"), writing("d", "bank")]
        const run = yield* begun(story, [], {
          defaultTimeoutMs: 60_000,
          model: scripted([stopRule({ say: "I stopped." }), { when: "step == 0", calls }])
        })
        yield* eventually(
          Effect.sync(() => [...shop.held, ...bank.held]),
          (held) => held.length === 3
        )
        yield* asTimePasses(10_000, story.get(`/runs/${run.id}`), (now: Json) => now.status === "paused")
        expect(yield* stopped(story, run)).toEqual([
          "shop__read abandoned",
          "shop__read abandoned",
          "bank__write unknown",
          "bank__write refused"
        ])
        yield* eventually(
          Effect.sync(() => [...shop.held, ...bank.held].filter(({ isGone }) => isGone())),
          (gone) => gone.length === 3
        )
        expect((yield* runLog(story, run)).filter(({ type }) => type === "SoftStopEvent")).toHaveLength(1)
      })
    )

    it.effect("are all aborted when a person interrupts the turn", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shop = yield* holdingServer(story, "shop")
        const bank = yield* holdingServer(story, "bank")
        const calls = [reading("a"), writing("b", "bank"), reading("c")]
        yield* newContext(
          story,
          "talk",
          scripted([{ when: "turn == 1 and step == 0", calls }, { say: "Heard." }]),
          everything
        )
        yield* say(story, "talk", "Begin")
        yield* quietness
        yield* eventually(
          Effect.sync(() => [...shop.held, ...bank.held]),
          (held) => held.length === 3
        )
        yield* story.ask("POST", "/contexts/talk/interrupt")
        const { items } = yield* eventually(story.get("/runs"), (page) => page.items[0].completedAt !== null)
        expect(yield* stopped(story, items[0])).toEqual([
          "shop__read abandoned",
          "bank__write unknown",
          "shop__read abandoned"
        ])
        yield* eventually(
          Effect.sync(() => [...shop.held, ...bank.held].filter(({ isGone }) => isGone())),
          (gone) => gone.length === 3
        )
        expect((yield* story.get("/contexts/talk/replay")).isEqual).toBe(true)
      })
    )
  })
})
