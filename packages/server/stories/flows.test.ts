/**
 * Flows of several steps: in order, again and again, and through the end of servers.
 *
 * What the model of each step is shown is in `agent-pipelines.test.ts`.
 */
import { describe, expect, it as alone, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { serveUntil } from "../testing/frozen-servers.ts"
import {
  eventually,
  type Json,
  newProject,
  promptWithObject,
  scripted,
  type Story
} from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import { logOfRun, ofType, outcomesOf, stepsOf } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, endedRuns, make, watcher } from "../testing/story-words.ts"

const worker = (overrides: Record<string, unknown>) => ({
  name: "worker",
  prompt: "Work.",
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.*"],
  ...overrides
})

const runOf = Effect.fnUntraced(function* (story: Story, definition: Json, input: Json = {}) {
  const agent = yield* story.post("/agents", worker(definition))
  return yield* story.post(`/agents/${agent.id}/trigger`, { input })
})

/** A model that says back, in capitals, what it was asked last. */
const loud = scripted([{ say: "{{ message | upcase }}" }])

const turnsIn = (log: ReadonlyArray<Json>) =>
  ofType(log, "AgentTurnStartedEvent").map(({ turnNumber }) => turnNumber)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Agent Pipeline Construction", () => {
    it.effect(
      "S002-R06 Sequential-flow agent execution: the steps are processed in order, each a turn that sees the earlier outputs",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const run = yield* runOf(
            story,
            {
              flowType: "sequential",
              model: loud,
              steps: [
                { name: "first", prompt: "a {{ input.word }}" },
                { name: "second", prompt: "b {{ steps.first.output }}" },
                { name: "third", prompt: "c {{ steps.first.output }} {{ steps.second.output }}" }
              ]
            },
            { word: "x" }
          )
          expect(run).toMatchObject({ status: "completed", summary: "C A X B A X", stepCount: 3 })
          const log = yield* logOfRun(story, run)
          expect(stepsOf(log)).toEqual([
            ["first", 1, "a x"],
            ["second", 1, "b A X"],
            ["third", 1, "c A X B A X"]
          ])
          expect(turnsIn(log)).toEqual([1, 2, 3])
          expect(ofType(log, "AgentTurnCompletedEvent")).toHaveLength(3)
        })
    )

    it.effect("S002-R06 a step sees the event and the object that woke the agent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            flowType: "sequential",
            model: loud,
            steps: [
              { name: "greet", prompt: "hello {{ object.properties.name }}" },
              { name: "tell", prompt: "{{ event.type }}: {{ steps.greet.output }}" }
            ]
          })
        )
        yield* make(story, "Person", { name: "Ada" })
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run).toMatchObject({ status: "completed", summary: "CREATED: HELLO ADA" })
      })
    )

    it.effect("S002-R06 a step that fails ends the run, and no later step begins", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const broken = scripted([
          { say: "Half an ans", fault: { kind: "cut", message: "The line went dead" } }
        ])
        const run = yield* runOf(story, {
          flowType: "sequential",
          model: loud,
          steps: [
            { name: "a", prompt: "one" },
            { name: "b", prompt: "two", model: broken },
            { name: "c", prompt: "three" }
          ]
        })
        expect(run).toMatchObject({ status: "failed", errorMessage: expect.stringContaining("went dead") })
        const log = yield* logOfRun(story, run)
        expect(stepsOf(log).map(([name]) => name)).toEqual(["a", "b"])
      })
    )

    it.effect(
      "S002-R07 Loop-flow agent execution: the prompt is said in each iteration, as often as is configured",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const run = yield* runOf(story, {
            flowType: "loop",
            maxIterations: 3,
            prompt: "round {{ iteration }} after {{ steps.prompt.output }}",
            model: loud
          })
          expect(run).toMatchObject({
            status: "completed",
            summary: "ROUND 3 AFTER ROUND 2 AFTER ROUND 1 AFTER ",
            stepCount: 3
          })
          expect(stepsOf(yield* logOfRun(story, run))).toEqual([
            ["prompt", 1, "round 1 after "],
            ["prompt", 2, "round 2 after ROUND 1 AFTER "],
            ["prompt", 3, "round 3 after ROUND 2 AFTER ROUND 1 AFTER "]
          ])
        })
    )

    it.effect("S002-R07 a loop of steps goes through all of them, and ends where the agent ends it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const judge = scripted([
          { when: 'message contains "round 2"', calls: [{ tool: "exit_loop", arguments: {} }], say: "Good." },
          { say: "Not yet." }
        ])
        const run = yield* runOf(story, {
          flowType: "loop",
          maxIterations: 9,
          model: loud,
          steps: [
            { name: "write", prompt: "{{ iteration }} {{ steps.judge.output }}" },
            { name: "judge", prompt: "round {{ iteration }}: {{ steps.write.output }}", model: judge },
            { name: "polish", prompt: "polish {{ iteration }}" }
          ]
        })
        expect(run).toMatchObject({ status: "completed", summary: "Good.", stepCount: 5 })
        expect(stepsOf(yield* logOfRun(story, run))).toEqual([
          ["write", 1, "1 "],
          ["judge", 1, "round 1: 1 "],
          ["polish", 1, "polish 1"],
          ["write", 2, "2 Not yet."],
          ["judge", 2, "round 2: 2 NOT YET."]
        ])
      })
    )

    it.effect("S002-R07 exit_loop says with what the loop ends, and calls beside it are made", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          {
            say: "Enough.",
            calls: [
              { tool: "exit_loop", arguments: { output: "Forty-two." } },
              { tool: "create_object", arguments: { type: "Answer", properties: {} } }
            ]
          }
        ])
        const run = yield* runOf(story, { flowType: "loop", model })
        expect(run).toMatchObject({ status: "completed", summary: "Forty-two.", stepCount: 1 })
        expect(yield* callsOf(story, run)).toMatchObject([
          { tool: "exit_loop", status: "completed", result: { status: "ended", output: "Forty-two." } },
          { tool: "create_object", status: "completed" }
        ])
        expect((yield* story.get("/objects?type=Answer")).items).toHaveLength(1)
      })
    )

    it.effect(
      "S002-R07 each iteration may make the same call: what an iteration asks for is not a doom loop",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const poll = { tool: "search_objects", arguments: { type: "Job" } }
          const model = scripted([{ when: "step == 0", calls: [poll] }, { say: "Nothing yet." }])
          const run = yield* runOf(story, { flowType: "loop", maxIterations: 6, model })
          expect(run).toMatchObject({ status: "completed", stepCount: 12 })
          expect(yield* outcomesOf(story, run)).toEqual(Array.from({ length: 6 }, () => "completed"))
        })
    )
  })

  describe("Requirement: A conversation with an agent of a flow is one turn for each message", () => {
    it.effect("it is answered with the agent's own model and tools, and no step begins", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          worker({
            systemPrompt: "Be loud.",
            flowType: "loop",
            maxIterations: 4,
            model: scripted([{ say: "{{ message | upcase }} {{ tools | join: ' ' }}" }]),
            tools: ["graph.get_object"],
            steps: [{ name: "quiet", prompt: "whisper", model: scripted([{ say: "..." }]) }]
          })
        )
        yield* story.post("/contexts", { name: "talk", agentId: agent.id })
        yield* story.post("/contexts/talk/events", {
          type: "UserMessageEvent",
          content: "hello",
          triggersAgentTurn: true
        })
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run).toMatchObject({ status: "completed", summary: "HELLO get_object", stepCount: 1 })
        const log = (yield* story.get("/contexts/talk/events?limit=200")).items
        expect(log[1]).toMatchObject({ type: "SystemPromptEvent", content: "Be loud." })
        expect(ofType(log, "FlowStepStartedEvent")).toEqual([])
      })
    )
  })
})

describe("Requirement: A flow goes on where a server left it", () => {
  /** A loop of two steps; the first makes an object in its first answer. */
  const writing = worker({
    flowType: "loop",
    maxIterations: 2,
    prompt: promptWithObject,
    model: loud,
    steps: [
      {
        name: "write",
        prompt: "{{ iteration }} {{ steps.read.output }}",
        model: scripted([
          {
            when: "step == 0",
            calls: [
              { tool: "create_object", arguments: { type: "Page", properties: { of: "{{ message }}" } } }
            ]
          },
          { say: "wrote {{ message }}" }
        ])
      },
      { name: "read", prompt: "read {{ steps.write.output }}" }
    ]
  })

  /** What the run says of itself that does not depend on who worked on it. */
  const told = Effect.fnUntraced(function* (story: Story, id: string) {
    const run = yield* eventually(story.get(`/runs/${id}`), ({ status }) => status === "completed")
    const log = yield* logOfRun(story, run)
    const pages = (yield* story.get("/objects?type=Page")).items
    return {
      summary: run.summary,
      stepCount: run.stepCount,
      steps: stepsOf(log),
      said: ofType(log, "AssistantMessageEvent").map(({ content }) => content),
      calls: yield* outcomesOf(story, run),
      pages: pages.map((page: Json) => page.properties.of).toSorted()
    }
  })

  const triggered = Effect.fnUntraced(function* (story: Story) {
    const agent = yield* story.post("/agents", writing)
    const { body } = yield* story.ask("POST", `/agents/${agent.id}/trigger?wait=false`)
    return { projectId: story.projectId, runId: body.id as string }
  })

  const undisturbed = {
    summary: "READ WROTE 2 READ WROTE 1 ",
    stepCount: 6,
    steps: [
      ["write", 1, "1 "],
      ["read", 1, "read wrote 1 "],
      ["write", 2, "2 READ WROTE 1 "],
      ["read", 2, "read wrote 2 READ WROTE 1 "]
    ],
    said: ["", "wrote 1 ", "READ WROTE 1 ", "", "wrote 2 READ WROTE 1 ", "READ WROTE 2 READ WROTE 1 "],
    calls: ["completed", "completed"],
    pages: ["1 ", "2 READ WROTE 1 "]
  }

  alone.live.each([
    ["before each request of its model", "run.beforeModel", 2],
    ["after each answer of its model", "run.afterStep", 1],
    ["after each beginning of a turn", "run.afterTurnStarted", 1]
  ] as const)("S002-R06 S002-R07 one that ends %s", ([, place, times]) =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { projectId, runId } = yield* serveUntil(access, place, 1, (doors) =>
        Effect.flatMap(newProject(doors, access), triggered)
      )
      for (let ended = 0; ended < 3; ended++) yield* serveUntil(access, place, times, () => Effect.void)
      yield* whileServing(access, projectId, (story) =>
        Effect.gen(function* () {
          expect(yield* told(story, runId)).toEqual(undisturbed)
          const log = yield* logOfRun(story, { id: runId })
          expect(ofType(log, "AgentTurnInterruptedEvent").length).toBeGreaterThan(1)
        })
      )
    })
  )
})
