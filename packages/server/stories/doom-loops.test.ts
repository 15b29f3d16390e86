/**
 * Agents that ask for the same again and again: warned, then stopped.
 */
import { describe, expect, it as alone, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { serveUntil } from "../testing/frozen-servers.ts"
import { eventually, type Json, newProject, scripted, type Story } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import { logOfRun, ofType, outcomesOf } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const create = (type: string, properties: Record<string, unknown> = {}) => ({
  tool: "create_object",
  arguments: { type, properties }
})

/** A model that makes these calls, one in each answer, and then says that it is done. */
const making = (...calls: ReadonlyArray<Json>) =>
  scripted([
    ...calls.map((call, index) => ({ when: `step == ${index}`, say: `Try ${index + 1}.`, calls: [call] })),
    { say: "Done." }
  ])

const agentWith = (story: Story, model: Json, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name: "worker",
    prompt: "Work.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["graph.*"],
    model,
    ...overrides
  })

/** Triggers an agent with the model and answers its run at rest. */
const runWith = Effect.fnUntraced(function* (
  story: Story,
  model: Json,
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* agentWith(story, model, overrides)
  return yield* story.post(`/agents/${agent.id}/trigger`)
})

/** The reason of the last failure in a run's log. */
const failureOf = (story: Story, run: Json) =>
  Effect.map(logOfRun(story, run), (log) => ofType(log, "AgentTurnFailedEvent").at(-1)?.reason)

const countOf = (story: Story, type: string) =>
  Effect.map(story.get(`/objects?type=${type}`), (page) => page.items.length)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Doom Loop Detection", () => {
    it.effect(
      "S002-R33 S002-R34 Detection threshold: the third identical call in a row is not made, and the model is told to try a different approach",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const same = create("Same", { a: 1, b: { c: 2, d: 3 } })
          const reordered = create("Same", { b: { d: 3, c: 2 }, a: 1 })
          const run = yield* runWith(story, making(same, reordered, same))
          expect(run).toMatchObject({ status: "completed", summary: "Done." })
          expect(yield* countOf(story, "Same")).toBe(2)
          expect(yield* callsOf(story, run)).toMatchObject([
            { status: "completed", decision: "execute" },
            { status: "completed", decision: "execute" },
            {
              tool: "create_object",
              arguments: same.arguments,
              status: "refused",
              decision: "refuse",
              agentId: run.agentId,
              result: { reason: "doomLoop", error: expect.any(String) }
            }
          ])
          const log = yield* logOfRun(story, run)
          expect(ofType(log, "ToolCallFailedEvent")).toMatchObject([
            { error: { reason: "doomLoop", error: expect.any(String) } }
          ])
          expect(ofType(log, "ToolCallStartedEvent")).toHaveLength(2)
        })
    )

    it.effect(
      "S002-R35 S002-R36 S002-R37 Hard stop after continued looping: the fifth ends the run as failed, with a doom loop as the reason",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const same = create("Same")
          const run = yield* runWith(story, making(same, same, same, same, same, create("Other")))
          expect(run).toMatchObject({
            status: "failed",
            errorMessage: naming("create_object", 5),
            stepCount: 5,
            completedAt: expect.any(String),
            durationMs: expect.any(Number)
          })
          expect(yield* failureOf(story, run)).toBe("doomLoop")
          expect(yield* countOf(story, "Same")).toBe(2)
          expect(yield* countOf(story, "Other")).toBe(0)
          expect(yield* outcomesOf(story, run)).toEqual([
            "completed",
            "completed",
            "refused",
            "refused",
            "refused"
          ])
          const log = yield* logOfRun(story, run)
          expect(ofType(log, "AgentTurnFailedEvent")).toMatchObject([{ error: run.errorMessage }])
          expect(ofType(log, "AssistantMessageEvent")).toHaveLength(5)
        })
    )

    it.effect(
      "S002-R38 S002-R39 Non-identical calls reset counter: after another call the same is made again, and execution continues normally",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [same, other] = [create("Same"), create("Other")]
          const run = yield* runWith(
            story,
            making(same, same, same, same, other, same, same, same, other, same)
          )
          expect(run).toMatchObject({ status: "completed", summary: "Done.", stepCount: 11 })
          expect(yield* outcomesOf(story, run)).toEqual([
            "completed",
            "completed",
            "refused",
            "refused",
            "completed",
            "completed",
            "completed",
            "refused",
            "completed",
            "completed"
          ])
          expect(yield* countOf(story, "Same")).toBe(5)
        })
    )

    it.effect("S002-R33 the calls of one message are counted in the order in which it asks", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [same, other] = [create("Same"), create("Other")]
        const calls = [same, same, other, same, same, same]
        const run = yield* runWith(
          story,
          scripted([{ when: "step == 0", calls }, { when: "step == 1", calls: [same] }, { say: "Done." }])
        )
        expect(run.status).toBe("completed")
        expect(yield* outcomesOf(story, run)).toEqual([
          "completed",
          "completed",
          "completed",
          "completed",
          "completed",
          "refused",
          "refused"
        ])
      })
    )

    it.effect(
      "S002-R35 what else a message asks for is not made once the run has failed, and is on record",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const same = create("Same")
          const calls = [same, same, same, same, same, create("Other")]
          const run = yield* runWith(story, scripted([{ when: "step == 0", calls }, { say: "Done." }]))
          expect([run.status, yield* failureOf(story, run)]).toEqual(["failed", "doomLoop"])
          expect(yield* countOf(story, "Other")).toBe(0)
          expect(yield* callsOf(story, run)).toMatchObject([
            { status: "completed" },
            { status: "completed" },
            { status: "refused", result: { reason: "doomLoop" } },
            { status: "refused", result: { reason: "doomLoop" } },
            { status: "refused", result: { reason: "runEnded" } },
            { status: "refused", arguments: create("Other").arguments, result: { reason: "runEnded" } }
          ])
        })
    )

    it.effect("S002-R33 a tool that may be repeated is made as often as the agent wants", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const poll = { tool: "search_objects", arguments: { type: "Same" } }
        const run = yield* runWith(story, making(...Array.from({ length: 8 }, () => poll)), {
          repeatableTools: ["graph.search_*"]
        })
        expect(run).toMatchObject({ status: "completed", summary: "Done." })
        expect(yield* outcomesOf(story, run)).toEqual(Array.from({ length: 8 }, () => "completed"))
        expect(ofType(yield* logOfRun(story, run), "LoopWarningEvent")).toEqual([])
      })
    )

    it.effect("S002-R33 a call that is refused for want of a tool counts as well", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const unknown = { tool: "no_such_tool", arguments: {} }
        const run = yield* runWith(story, making(...Array.from({ length: 5 }, () => unknown)))
        expect([run.status, yield* failureOf(story, run)]).toEqual(["failed", "doomLoop"])
      })
    )
  })

  describe("Requirement: An agent that goes round in circles is told so", () => {
    it.effect("a short cycle is pointed out once, and the calls are still made", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [one, other] = [create("One"), create("Other")]
        const run = yield* runWith(story, making(one, other, one, other, one))
        expect(run).toMatchObject({ status: "completed", summary: "Done." })
        expect(yield* outcomesOf(story, run)).toEqual(Array.from({ length: 5 }, () => "completed"))
        const log = yield* logOfRun(story, run)
        expect(ofType(log, "LoopWarningEvent")).toMatchObject([
          { reason: "cycle", content: expect.any(String) }
        ])
        // Before the model is asked for the fifth time, and not again.
        const at = log.findIndex((event) => event.type === "LoopWarningEvent")
        expect(ofType(log.slice(0, at), "AssistantMessageEvent")).toHaveLength(4)
      })
    )

    it.effect("three calls that fail alike are pointed out, whatever they asked for", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const denied = ["A", "B", "C", "D"].map((type) => create(type))
        const run = yield* runWith(story, making(...denied), {
          capabilities: { canCreateObjects: false }
        })
        expect(run.status).toBe("completed")
        const log = yield* logOfRun(story, run)
        expect(ofType(log, "ToolCallFailedEvent")).toHaveLength(4)
        expect(ofType(log, "LoopWarningEvent")).toMatchObject([
          { reason: "errorStreak", content: expect.any(String) }
        ])
      })
    )
  })
})

describe("Requirement: Doom Loop Detection", () => {
  alone.live("S002-R33 S002-R35 the counters survive the end of a server, wherever it ends", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const same = create("Same")
      const model = making(same, same, same, same, same, create("Other"))
      const { projectId, runId } = yield* serveUntil(access, "run.beforeModel", 1, (doors) =>
        Effect.gen(function* () {
          const story = yield* newProject(doors, access)
          const agent = yield* agentWith(story, model)
          const { body } = yield* story.ask("POST", `/agents/${agent.id}/trigger?wait=false`)
          return { projectId: story.projectId, runId: body.id }
        })
      )
      // Each server gets as far as one answer of the model.
      for (let answers = 0; answers < 4; answers++)
        yield* serveUntil(access, "run.beforeModel", 2, () => Effect.void)
      yield* whileServing(access, projectId, (story) =>
        Effect.gen(function* () {
          const run = yield* eventually(story.get(`/runs/${runId}`), ({ status }) => status === "failed")
          expect(yield* failureOf(story, run)).toBe("doomLoop")
          expect(run.stepCount).toBe(5)
          expect(yield* countOf(story, "Same")).toBe(2)
          expect(yield* outcomesOf(story, run)).toEqual([
            "completed",
            "completed",
            "refused",
            "refused",
            "refused"
          ])
          expect(ofType(yield* logOfRun(story, run), "AgentTurnInterruptedEvent").length).toBeGreaterThan(2)
        })
      )
    })
  )
})
