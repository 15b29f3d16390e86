/**
 * How many steps a run may take, and how it comes to rest when it has taken them.
 *
 * What its model reads of it is in `agent-pipelines.test.ts`.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { ended } from "../testing/question-words.ts"
import { logOfRun, ofType } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"

const create = (type: string, properties: Record<string, unknown> = {}) => ({
  tool: "create_object",
  arguments: { type, properties }
})

const runWith = Effect.fnUntraced(function* (story: Story, model: Json, overrides: Record<string, unknown>) {
  const agent = yield* story.post("/agents", {
    name: "worker",
    prompt: "Work.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["graph.*"],
    model,
    ...overrides
  })
  return yield* story.post(`/agents/${agent.id}/trigger`)
})

/** A model that makes another object in each answer, and never stops by itself. */
const tireless = scripted([{ say: "Answer {{ step }}.", calls: [create("Thing", { n: "{{ step }}" })] }])

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Step Limit Enforcement", () => {
    it.effect(
      "S002-R19 Top-level agent unlimited steps: with max_steps null a run goes on as long as it wants to",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const look = { tool: "search_objects", arguments: { query: "{{ step }}" } }
          const model = scripted([{ when: "step < 119", calls: [look] }, { say: "Looked {{ step }} times." }])
          // Whoever triggers it waits for a minute at most.
          const run = yield* ended(story, yield* runWith(story, model, { maxSteps: null }))
          expect(run).toMatchObject({
            status: "completed",
            summary: "Looked 119 times.",
            stepCount: 120,
            limits: { maxSteps: null }
          })
        })
    )

    it.effect(
      "S002-R23 S002-R24 S002-R25 Hard stop after soft stop ignored: a tool call is refused, the run is paused and its partial summary preserved",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const run = yield* runWith(story, tireless, { maxSteps: 2 })
          expect(run).toMatchObject({
            status: "paused",
            pauseReason: "stepLimit",
            summary: "Answer 2.",
            errorMessage: null,
            stepCount: 3,
            limits: { maxSteps: 2 },
            completedAt: null
          })
          expect(yield* callsOf(story, run)).toMatchObject([
            { status: "completed", arguments: { properties: { n: 0 } } },
            { status: "completed", arguments: { properties: { n: 1 } } },
            { status: "refused", arguments: { properties: { n: 2 } }, result: { reason: "softStop" } }
          ])
          const things = (yield* story.get("/objects?type=Thing")).items
          expect(things.map((thing: Json) => thing.properties.n).toSorted()).toEqual([0, 1])
          const log = yield* logOfRun(story, run)
          expect(ofType(log, "SoftStopEvent")).toMatchObject([{ reason: "stepLimit" }])
          expect(ofType(log, "AssistantMessageEvent")).toHaveLength(3)
          expect(ofType(log, "AgentTurnInterruptedEvent")).toMatchObject([{ reason: "stepLimit" }])
        })
    )

    it.effect("S002-R25 a last answer of calls alone leaves what was said before it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "step == 0", say: "I have begun.", calls: [create("Thing", { n: 0 })] },
          { calls: [create("Thing", { n: 1 }), create("Thing", { n: 2 })] }
        ])
        const run = yield* runWith(story, model, { maxSteps: 1 })
        expect(run).toMatchObject({ status: "paused", summary: "I have begun.", stepCount: 2 })
        expect((yield* callsOf(story, run)).map((call) => call.status)).toEqual([
          "completed",
          "refused",
          "refused"
        ])
      })
    )

    it.effect("S002-R20 an agent that is done in its last step is not stopped", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([{ when: "step == 0", calls: [create("Thing", { n: 0 })] }, { say: "Done." }])
        const run = yield* runWith(story, model, { maxSteps: 2 })
        expect(run).toMatchObject({ status: "completed", summary: "Done.", stepCount: 2 })
        expect(ofType(yield* logOfRun(story, run), "SoftStopEvent")).toEqual([])
      })
    )

    it.effect("S002-R20 the steps of all turns of a flow count together", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* runWith(story, scripted([{ say: "Round." }]), {
          flowType: "loop",
          maxIterations: 10,
          maxSteps: 3
        })
        expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit", stepCount: 4 })
      })
    )
  })
})
