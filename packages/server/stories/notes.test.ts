/**
 * The running summary that a context keeps for its agent's other contexts.
 */
import { describe, expect, it as alone, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import {
  addEvent,
  contentsOf,
  firstOf,
  newContext,
  quietLog,
  turnsOf,
  typesOf
} from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { freezingServer } from "../testing/frozen-attempts.ts"
import { ModelsOnTheWire, wordsOf } from "../testing/model-on-the-wire.ts"
import { eventually, type Json, newProject, scripted, type Story } from "../testing/platform.ts"

const keeping = { type: "SetMemoryConfigEvent", recallPassages: 3, keepsSummary: true }

/** A context that keeps notes, in which so much was said that they are due with the next answer. */
const talkative = Effect.fn("talkative")(function* (story: Story, model: Json, overrides: Json = {}) {
  const agent = yield* newContext(story, "talk", model, overrides)
  yield* story.ask("POST", "/contexts/talk/events", keeping)
  yield* chatter(story, 6)
  return agent
})

/** Says so much that asks for no answer. */
const chatter = (story: Story, count: number) =>
  Effect.forEach(Array.from({ length: count }), (_, index) =>
    addEvent(story, "talk", `The harvest has ${index + 1} baskets`, false)
  )

const answered = (story: Story, name: string, content: string) =>
  Effect.andThen(addEvent(story, name, content), quietLog(story, name))

const newestRun = (story: Story): Effect.Effect<Json> =>
  Effect.map(story.get("/runs?limit=1"), ({ items }) => items[0])

const notesIn = (log: ReadonlyArray<Json>): ReadonlyArray<Json> =>
  log.filter(({ type }) => type === "ContextNotedEvent")

const verified = (story: Story) => Effect.map(story.get("/verify"), ({ differences }: Json) => differences)

layer(ModelsOnTheWire.layer, { excludeTestServices: true })((it) => {
  describe("SetMemoryConfigEvent: running summaries", () => {
    it.effect(
      "S004-F04 when enough was said, the notes are renewed behind the turn, and other contexts recall the newest",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const own = yield* model([
            { say: "Good." },
            { say: "The orchard belongs to Eve." },
            { say: "Good." },
            { say: "The orchard was sold to Adam." },
            { say: "I see." }
          ])
          const agent = yield* talkative(story, own.config)
          const log = yield* answered(story, "talk", "How is the harvest?")
          expect(typesOf(log).slice(-4)).toEqual([
            "AgentTurnStartedEvent",
            "AssistantMessageEvent",
            "AgentTurnCompletedEvent",
            "ContextNotedEvent"
          ])
          expect(notesIn(log)[0]).toMatchObject({ content: "The orchard belongs to Eve.", messages: 8 })
          const run = yield* newestRun(story)
          expect(run).toMatchObject({
            status: "completed",
            summary: "Good.",
            stepCount: 1,
            usage: { inputTokens: 22, outputTokens: 14 }
          })
          const [step, noted] = (yield* story.get(`/runs/${run.id}/model-calls`)).items
          expect([step.purpose, noted.purpose]).toEqual(["step", "notes"])
          const [, asked] = own.requests
          expect(asked.tools).toBeUndefined()
          expect(wordsOf(asked)[1]?.[1]).toContain(
            "User: How is the harvest?\n\nAssistant: Good.\n</conversation>"
          )
          const exchange = yield* story.get(`/runs/${run.id}/model-calls/${noted.number}`)
          expect(exchange.request.messages.map(({ content }: Json) => content)).toEqual(
            wordsOf(asked).map(([, words]) => words)
          )
          expect(exchange.response).toEqual({ text: "The orchard belongs to Eve.", toolCalls: [] })

          yield* chatter(story, 6)
          const later = yield* answered(story, "talk", "And now?")
          expect(contentsOf(later, "ContextNotedEvent")).toEqual([
            "The orchard belongs to Eve.",
            "The orchard was sold to Adam."
          ])
          const [, renewed] = wordsOf(own.requests[3])[1] ?? []
          expect(renewed).toContain("<summary_so_far>\nThe orchard belongs to Eve.\n</summary_so_far>")
          expect(renewed).not.toContain("How is the harvest?")
          expect(wordsOf(own.requests[2]).join()).not.toContain("orchard")
          expect((yield* story.get("/contexts/talk/state")).notes).toBe("The orchard was sold to Adam.")

          yield* story.post("/contexts", { name: "other", agentId: agent.id })
          yield* story.ask("POST", "/contexts/other/events", keeping)
          const recalled = firstOf(
            yield* answered(story, "other", "Whose is the orchard?"),
            "MemoryRecalledEvent"
          )
          expect(recalled.passages).toEqual([{ context: "talk", eventId: notesIn(later)[1].id }])
          expect(recalled.content).toMatch(/\(talk:\d+\):\n> The orchard was sold to Adam\.$/)
          expect(yield* verified(story)).toEqual([])
        })
    )

    it.effect("S004-F04 S004-F10 what a window was summed up to is recalled by other contexts, too", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "They spoke of an ostrich." }, { say: "Yes." }])
        const agent = yield* newContext(story, "talk", own.config)
        const reducer = { type: "summarizing", maxTokens: 500, keepTokens: 100 }
        yield* story.ask("POST", "/contexts/talk/events", { type: "SetReducerEvent", reducer })
        for (const word of ["one", "two", "three"])
          yield* addEvent(story, "talk", `${word} `.repeat(200), false)
        const log = yield* answered(story, "talk", "Did you hear?")
        yield* story.post("/contexts", { name: "other", agentId: agent.id })
        yield* story.ask("POST", "/contexts/other/events", keeping)
        const [recalled] = (yield* answered(story, "other", "What about the ostrich?")).filter(
          ({ type }) => type === "MemoryRecalledEvent"
        )
        expect(recalled.passages).toEqual([
          { context: "talk", eventId: firstOf(log, "ContextSummarizedEvent").id }
        ])
      })
    )

    it.effect("S004-F04 notes that fail harm no turn, and are tried again when as much was said again", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([
          { say: "Good." },
          { status: 400 },
          { say: "Yes." },
          { say: "Fine." },
          { say: "Much was said." }
        ])
        yield* talkative(story, own.config)
        const log = yield* answered(story, "talk", "How is the harvest?")
        expect(notesIn(log)).toMatchObject([
          { content: null, messages: 8, error: expect.stringContaining("400") }
        ])
        expect(turnsOf(log).at(-1)).toEqual(["AgentTurnCompletedEvent", 1])
        expect(yield* newestRun(story)).toMatchObject({ status: "completed", summary: "Good." })
        expect(notesIn(yield* answered(story, "talk", "Is it?"))).toHaveLength(1)
        yield* chatter(story, 4)
        const later = yield* answered(story, "talk", "Really?")
        expect(notesIn(later).map(({ content }) => content)).toEqual([null, "Much was said."])
        // What the failed ones would have told is told now.
        expect(wordsOf(own.requests[4])[1]?.[1]).toContain("How is the harvest?")
        expect(yield* verified(story)).toEqual([])
      })
    )

    it.effect("S004-F04 whoever speaks while notes are made is answered first", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([
          { say: "Good." },
          { say: "It is", isEndless: true },
          { say: "Hello again." },
          { say: "All of it." }
        ])
        yield* talkative(story, own.config)
        yield* addEvent(story, "talk", "How is the harvest?")
        yield* eventually(
          Effect.sync(() => own.requests.length),
          (count) => count === 2
        )
        yield* addEvent(story, "talk", "Are you there?")
        yield* Deferred.await(own.hungUp)
        const log = yield* quietLog(story, "talk")
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Good.", "Hello again."])
        expect(notesIn(log)).toMatchObject([{ content: "All of it.", messages: 10 }])
        expect(turnsOf(log).filter(([type]) => type === "AgentTurnCompletedEvent")).toHaveLength(2)
      })
    )

    it.effect("S004-F04 where the budget is spent there are no notes, and the turn stands", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "Good." }])
        yield* talkative(story, own.config, { budget: { perRun: { maxTokens: 1 } } })
        const log = yield* answered(story, "talk", "How is the harvest?")
        expect(notesIn(log)).toMatchObject([{ content: null, error: expect.any(String) }])
        expect(yield* newestRun(story)).toMatchObject({ status: "completed", stepCount: 1 })
        expect(own.requests).toHaveLength(1)
      })
    )
  })
})

describe("SetMemoryConfigEvent: a worker that dies", () => {
  alone.live("S004-F04 notes that a dead worker had asked for are made once by the next", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { doors, freeze } = yield* freezingServer(access)
      const story = yield* newProject(doors, access)
      yield* talkative(story, scripted([{ say: "Said {{ turn }}." }]))
      const frozen = yield* Effect.forkScoped(freeze("run.afterNotes", 1))
      yield* addEvent(story, "talk", "How is the harvest?")
      yield* Fiber.join(frozen)
      const log = yield* quietLog(story, "talk")
      expect(notesIn(log)).toHaveLength(1)
      expect(turnsOf(log)).toEqual([
        ["AgentTurnStartedEvent", 1],
        ["AgentTurnCompletedEvent", 1]
      ])
      expect(yield* newestRun(story)).toMatchObject({ status: "completed" })
      expect(yield* verified(story)).toEqual([])
    })
  )
})
