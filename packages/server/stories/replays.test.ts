/**
 * An agent that answers as a recorded run was answered: the same words, the same calls, no model asked.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addEvent, isQuiet, newContext, quietLog, quietness } from "../testing/context-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, make } from "../testing/story-words.ts"
import { runThrough } from "../testing/sub-agent-words.ts"
import { acting, aLetter, contextOf, getting, noting, readOf } from "../testing/taint-words.ts"
import { naming } from "../testing/naming.ts"

const worker = (story: Story, name: string, model: Json, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name,
    prompt: "Go on.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["graph.*"],
    model,
    ...overrides
  })

const replaying = (run: Json) => ({ provider: "replay", name: run.id })

/** A recorded run of two requests: it looks for people, then says a sentence. */
const recorded = (story: Story) =>
  Effect.gen(function* () {
    yield* make(story, "Person", { name: "Ada" })
    const agent = yield* worker(
      story,
      "recorder",
      scripted([
        {
          when: "step == 0",
          say: "Looking.",
          calls: [{ tool: "search_objects", arguments: { type: "Person" } }]
        },
        { say: "There is one." }
      ])
    )
    return yield* story.post(`/agents/${agent.id}/trigger`, {})
  })

const answersOf = (story: Story, run: Json) =>
  Effect.map(story.get(`/runs/${run.id}/events?limit=200`), (page) =>
    page.items.flatMap((event: Json) =>
      event.type === "AssistantMessageEvent"
        ? [
            [
              event.model,
              event.content,
              event.toolCalls.map((call: Json) => [call.name, call.arguments]),
              event.usage.inputTokens
            ]
          ]
        : []
    )
  )

layer(SharedServer.layer)((it) => {
  describe("A run that replays another", () => {
    it.effect("gets its answers in their order, makes its calls anew and spends nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const record = yield* recorded(story)
        // The graph has changed since: the call is made, not its old outcome repeated.
        yield* make(story, "Person", { name: "Grace" })
        const agent = yield* worker(story, "replayer", replaying(record))
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(run).toMatchObject({ status: "completed", summary: "There is one.", stepCount: 2, costUsd: 0 })
        expect(run.usage).toEqual({ inputTokens: 0, outputTokens: 0 })
        const by = `replay:${record.id}`
        expect(yield* answersOf(story, run)).toEqual([
          [by, "Looking.", [["search_objects", { type: "Person" }]], 0],
          [by, "There is one.", [], 0]
        ])
        const [call] = yield* callsOf(story, run)
        expect(JSON.stringify(call.result)).toContain("Grace")
      })
    )

    it.effect("fails with a sentence where the record is used up", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const record = yield* recorded(story)
        const agent = yield* worker(story, "looper", replaying(record), {
          flowType: "loop",
          maxIterations: 3
        })
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(run).toMatchObject({
          status: "failed",
          errorMessage: naming(record.id, 2, 3)
        })
      })
    )

    it.effect(
      "fails before its first word where there is no such run, not here and not of another project",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const elsewhere = yield* newStoryHere
          const foreign = yield* recorded(elsewhere)
          for (const [name, id] of [
            ["unknown", "01900000-0000-7000-8000-000000000000"],
            ["foreign", foreign.id],
            ["nonsense", "yesterday's run"]
          ] as const) {
            const agent = yield* worker(story, name, { provider: "replay", name: id })
            const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
            expect(run).toMatchObject({
              status: "failed",
              errorMessage: expect.stringContaining(id),
              stepCount: 0
            })
          }
        })
    )

    it.effect("can stand in for a model that cannot answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const record = yield* recorded(story)
        // A rule that cannot be followed is refused at once.
        const broken = scripted([{ when: "message" }])
        const agent = yield* worker(story, "patient", { ...broken, fallback: replaying(record) })
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(run).toMatchObject({ status: "completed", summary: "There is one." })
        expect(run.model).toBe(`replay:${record.id}`)
      })
    )
  })

  describe("A record of a run that read something untrusted", () => {
    /** A recorded run that read a letter, then made a note. */
    const misled = Effect.fnUntraced(function* (story: Story) {
      const letter = yield* aLetter(story)
      const agent = yield* acting(story, "recorder", [[getting(letter)], [noting("obeyed")]])
      const run = yield* runThrough(story, agent)
      expect(run.taintedBy).toMatchObject([readOf("object", letter.id, "text")])
      return run
    })

    /** An agent that is answered by a record and may not read what that run read. */
    const replayer = (story: Story, name: string, run: Json) =>
      worker(story, name, replaying(run), { tools: ["graph.create_object"] })

    /** What a run's calls that would write came to. */
    const decisions = (story: Story, run: Json) =>
      Effect.map(callsOf(story, run), (calls) =>
        calls.flatMap(({ decision, tool }) => (tool === "create_object" ? [decision] : []))
      )

    it.effect(
      "taints whoever is answered by it, before its first call, and so on from record to record",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const record = yield* misled(story)
          const first = yield* runThrough(story, yield* replayer(story, "first", record))
          expect(first.taintedBy).toMatchObject([readOf("context", record.contextName)])
          expect(yield* decisions(story, first)).toEqual(["suggest"])
          const second = yield* runThrough(story, yield* replayer(story, "second", first))
          expect(second.taintedBy).toContainEqual({
            ...readOf("context", first.contextName),
            at: expect.any(Number)
          })
          expect(yield* decisions(story, second)).toEqual(["suggest"])
          expect((yield* story.get("/objects?type=Note")).items).toEqual([])
        })
    )

    it.effect("taints a conversation, and the variant of a comparison that it answers", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const record = yield* misled(story)
        yield* newContext(story, "desk", replaying(record), { tools: ["graph.create_object"] })
        yield* addEvent(story, "desk", "Go on")
        yield* quietLog(story, "desk")
        const source = readOf("context", record.contextName)
        expect((yield* contextOf(story, "desk")).taintedBy).toMatchObject([source])
        yield* newContext(story, "table", undefined, { tools: ["graph.create_object"] })
        const { body } = yield* story.ask("POST", "/contexts/table/comparisons", {
          content: "Go on",
          allowWrites: true,
          variants: [{ label: "plain" }, { label: "record", model: replaying(record) }]
        })
        yield* quietness
        yield* eventually(story.get("/runs?limit=200"), isQuiet)
        const { variants } = yield* story.get(`/contexts/table/comparisons/${body.id}`)
        const taints = yield* Effect.forEach(variants, ({ context }: Json) => contextOf(story, context))
        expect(taints.map(({ taintedBy }) => taintedBy)).toMatchObject([[], [source]])
      })
    )

    it.effect("an untainted record taints nobody", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const record = yield* runThrough(story, yield* acting(story, "recorder", [[noting("sincere")]]))
        const run = yield* runThrough(story, yield* replayer(story, "replayer", record))
        expect([run.taintedBy, yield* decisions(story, run)]).toEqual([[], ["execute"]])
        expect((yield* contextOf(story, run.contextName)).taintedBy).toEqual([])
      })
    )
  })
})
