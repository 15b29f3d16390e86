/**
 * Events by which somebody sets which models answer in a context, how long they are waited for, and how patiently.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import {
  addEvent,
  contentsOf,
  firstOf,
  logOf,
  newContext,
  quietLog,
  typesOf
} from "../testing/context-words.ts"
import { ModelsOnTheWire } from "../testing/model-on-the-wire.ts"
import type { Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"

/** Adds an event that sets something. */
const set = (story: Story, name: string, event: Json) => story.ask("POST", `/contexts/${name}/events`, event)

const setModel = (story: Story, name: string, role: "primary" | "fallback", model: Json) =>
  Effect.map(set(story, name, { type: "SetLlmConfigEvent", role, ...model }), ({ status }) =>
    expect(status).toBe(204)
  )

const answered = (story: Story, name: string, content: string) =>
  Effect.andThen(addEvent(story, name, content), quietLog(story, name))

const newestRun = (story: Story): Effect.Effect<Json> =>
  Effect.map(story.get("/runs"), (page) => page.items[0])

const triesOf = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/model-calls`), (page) =>
    page.items.map((call: Json) => [call.model, call.status, call.error?.split(":")[0] ?? null])
  )

layer(ModelsOnTheWire.layer, { excludeTestServices: true })((it) => {
  describe("Configuration events", () => {
    it.effect("S004-R27 the primary model that was set answers from the next request on", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "The agent's own." }])
        const other = yield* model([{ say: "The one that was set." }])
        yield* newContext(story, "main", { ...own.config, temperature: 0.25 })
        yield* answered(story, "main", "One")
        yield* setModel(story, "main", "primary", { ...other.config, temperature: 1.5, maxOutputTokens: 99 })
        yield* answered(story, "main", "Two")
        yield* setModel(story, "main", "primary", own.config)
        const log = yield* answered(story, "main", "Three")
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual([
          "The agent's own.",
          "The one that was set.",
          "The agent's own."
        ])
        expect(other.requests).toHaveLength(1)
        expect(other.requests[0]).toMatchObject({ temperature: 1.5, max_tokens: 99 })
        // What the definition says of its model holds wherever that model is named.
        expect(own.requests.map(({ temperature }) => temperature)).toEqual([0.25, 0.25])
        expect((yield* story.get("/contexts/main/state")).config.primary).toEqual(own.config)
      })
    )

    it.effect("S004-R27 … also in a turn that is open", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ calls: [{ tool: "search_objects", arguments: {} }] }], { isHeld: true })
        const other = yield* model([{ say: "I go on." }])
        yield* newContext(story, "main", own.config)
        yield* addEvent(story, "main", "Begin")
        yield* Deferred.await(own.asked)
        yield* setModel(story, "main", "primary", other.config)
        yield* own.letGo
        const log = yield* quietLog(story, "main")
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["", "I go on."])
        expect([own.requests.length, other.requests.length]).toEqual([1, 1])
        expect(typesOf(log).filter((type) => type.startsWith("AgentTurn"))).toHaveLength(2)
      })
    )

    it.effect(
      "S004-R27 S004-F01 the fallback that was set answers when the retries that were set are spent",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const own = yield* model([{ status: 503 }])
          const other = yield* model([{ say: "Instead." }])
          yield* newContext(story, "main", own.config)
          yield* setModel(story, "main", "fallback", other.config)
          expect(
            (yield* set(story, "main", { type: "SetRetryConfigEvent", maxRetries: 2, baseMs: 1, maxMs: 2 }))
              .status
          ).toBe(204)
          expect((yield* story.get("/contexts/main/state")).config).toMatchObject({
            primary: null,
            fallback: other.config,
            retry: { maxRetries: 2, baseMs: 1, maxMs: 2, factor: 2 },
            isRacing: false,
            guard: null
          })
          const log = yield* answered(story, "main", "One")
          expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Instead."])
          expect([own.requests.length, other.requests.length]).toEqual([3, 1])
          yield* set(story, "main", { type: "SetRetryConfigEvent", maxRetries: 0, baseMs: 1, maxMs: 2 })
          yield* answered(story, "main", "Two")
          expect([own.requests.length, other.requests.length]).toEqual([4, 2])
          expect(yield* triesOf(story, yield* newestRun(story))).toEqual([
            [own.config.name, "failed", "unavailable"],
            [other.config.name, "answered", null]
          ])
        })
    )

    it.effect("S004-F01 pauses that would begin above their bound are refused, and nothing is set", () =>
      Effect.gen(function* () {
        const { newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        yield* newContext(story, "main")
        const retry = { type: "SetRetryConfigEvent", maxRetries: 1, baseMs: 500, maxMs: 499 }
        expectProblem(yield* set(story, "main", retry), 422, "/maxMs")
        expect((yield* story.get("/contexts/main/state")).config.retry).toBeNull()
        expect((yield* set(story, "main", { ...retry, maxMs: 500 })).status).toBe(204)
      })
    )

    it.effect("S004-R28 a model that takes longer than was set is waited for no longer", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const slow = yield* model([{ say: "Too late." }], { isHeld: true })
        yield* newContext(story, "main", slow.config)
        yield* set(story, "main", { type: "SetTimeoutEvent", timeoutMs: 2_000 })
        const log = yield* answered(story, "main", "Quickly")
        expect(firstOf(log, "AgentTurnFailedEvent").error).toMatch(/\b2\b/)
        yield* Deferred.await(slow.hungUp)
      })
    )

    it.effect(
      "S004-R27 a model that cannot be asked here is refused, with the way out, and nothing is kept",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const own = yield* model([{ say: "Yes." }])
          yield* newContext(story, "main", own.config)
          const before = yield* logOf(story, "main")
          const refused = (name: string, provider: string) =>
            set(story, "main", { type: "SetLlmConfigEvent", role: "primary", provider, name })
          const keyless = yield* refused("claude-x", "anthropic")
          expectProblem(keyless, 422, "/provider")
          expect(JSON.stringify(keyless.body)).toContain("ANTHROPIC_API_KEY")
          expectProblem(yield* refused("nobody-wrote-it", "scripted"), 422, "/name")
          expectProblem(yield* refused("01990000-0000-7000-8000-000000000000", "replay"), 422, "/name")
          expectProblem(yield* refused("x", "http://somewhere"), 422, "/provider")
          expect(yield* logOf(story, "main")).toEqual(before)
          const foreign = yield* newStory
          yield* newContext(foreign, "main", own.config)
          yield* answered(foreign, "main", "One")
          // A run of another project is none.
          const run = yield* newestRun(foreign)
          expectProblem(yield* refused(run.id, "replay"), 422, "/name")
          expect(
            (yield* set(foreign, "main", {
              type: "SetLlmConfigEvent",
              role: "primary",
              provider: "replay",
              name: run.id
            })).status
          ).toBe(204)
        })
    )
  })

  describe("Parallel LLM: racing", () => {
    const racing = { type: "SetRacingEvent", isRacing: true }

    it.effect(
      "S004-F07 primary and fallback are asked at once, the first that speaks is heard, and the other is broken off",
      () =>
        Effect.gen(function* () {
          const { model, newStory } = yield* ModelsOnTheWire
          const story = yield* newStory
          const slow = yield* model([{ say: "Late." }], { isHeld: true })
          const quick = yield* model([{ say: "Here." }], { isHeld: true })
          yield* newContext(story, "main", slow.config)
          yield* setModel(story, "main", "fallback", quick.config)
          yield* set(story, "main", racing)
          yield* addEvent(story, "main", "Who is first?")
          yield* Effect.all([Deferred.await(slow.asked), Deferred.await(quick.asked)])
          yield* quick.letGo
          const log = yield* quietLog(story, "main")
          expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Here."])
          expect(firstOf(log, "AssistantMessageEvent").model).toBe(`openai-compatible:${quick.config.name}`)
          yield* Deferred.await(slow.hungUp)
          const run = yield* newestRun(story)
          expect(yield* triesOf(story, run)).toEqual([
            [slow.config.name, "failed", "aborted"],
            [quick.config.name, "answered", null]
          ])
          expect(run).toMatchObject({ stepCount: 1, usage: { inputTokens: 11, outputTokens: 7 } })
          expect(slow.requests[0].messages).toEqual(quick.requests[0].messages)
        })
    )

    it.effect("S004-F07 who has spoken is heard to the end, though the other is done before", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const talker = yield* model([{ say: "First, but", isEndless: true }], { isHeld: true })
        const other = yield* model([{ say: "Done." }], { isHeld: true })
        yield* newContext(story, "main", talker.config)
        yield* setModel(story, "main", "fallback", other.config)
        yield* set(story, "main", racing)
        yield* addEvent(story, "main", "Who is first?")
        yield* Effect.all([Deferred.await(talker.asked), Deferred.await(other.asked)])
        yield* talker.letGo
        yield* Deferred.await(other.hungUp)
        expect((yield* story.ask("POST", "/contexts/main/interrupt")).status).toBe(204)
        const log = yield* quietLog(story, "main")
        expect(firstOf(log, "AgentTurnInterruptedEvent")).toMatchObject({
          reason: "user",
          partialText: "First, but"
        })
        yield* Deferred.await(talker.hungUp)
      })
    )

    it.effect("S004-F07 one that fails leaves the race to the other, and where both fail both are told", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const broken = yield* model([{ status: 401 }])
        const other = yield* model([{ say: "I am left." }, { status: 400 }], { isHeld: true })
        yield* newContext(story, "main", broken.config)
        yield* set(story, "main", racing)
        yield* setModel(story, "main", "fallback", other.config)
        yield* addEvent(story, "main", "One")
        yield* Deferred.await(broken.asked)
        yield* Deferred.await(other.asked)
        yield* other.letGo
        expect(contentsOf(yield* quietLog(story, "main"), "AssistantMessageEvent")).toEqual(["I am left."])
        const log = yield* answered(story, "main", "Two")
        const { error } = firstOf(log, "AgentTurnFailedEvent")
        expect(error).toContain("Refused with 401")
        expect(error).toContain("Refused with 400")
        expect((yield* newestRun(story)).errorMessage).toBe(error)
      })
    )

    it.effect("S004-F07 without a fallback one is asked, and a race can be called off", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const own = yield* model([{ say: "Alone." }])
        const other = yield* model([{ say: "Beside." }], { isHeld: true })
        yield* newContext(story, "main", own.config)
        yield* set(story, "main", racing)
        yield* answered(story, "main", "One")
        yield* setModel(story, "main", "fallback", other.config)
        yield* set(story, "main", { ...racing, isRacing: false })
        yield* answered(story, "main", "Two")
        expect([own.requests.length, other.requests.length]).toEqual([2, 0])
      })
    )

    it.effect("S004-F07 an agent's definition may say that its model and its fallback race", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const slow = yield* model([{ say: "Late." }], { isHeld: true })
        const quick = yield* model([{ say: "Here." }], { isHeld: true })
        const agent = yield* newContext(story, "main", { ...slow.config, fallback: quick.config, race: true })
        const triggered = yield* Effect.forkChild(story.post(`/agents/${agent.id}/trigger`))
        yield* Effect.all([Deferred.await(slow.asked), Deferred.await(quick.asked)])
        yield* quick.letGo
        const run = yield* Fiber.join(triggered)
        expect(run).toMatchObject({ status: "completed", summary: "Here." })
        yield* Deferred.await(slow.hungUp)
        expect(firstOf(yield* logOf(story, run.contextName), "SetRacingEvent").isRacing).toBe(true)
        expect(firstOf(yield* logOf(story, "main"), "SetRacingEvent").isRacing).toBe(true)
      })
    )
  })
})
