/**
 * Workflows that an event sets: what people say in a conversation is worked through in steps.
 *
 * The model says back in capitals what it was asked last, so an answer shows
 * which prompt it was given, and with what.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addEvent,
  contentsOf,
  countOf,
  logOf,
  logWith,
  newContext,
  say,
  turnsOf
} from "../testing/context-words.ts"
import {
  defineTool,
  defineWorkflow,
  draftAndCheck,
  loud,
  loudUnlessSlow,
  newestRun,
  setting,
  talk
} from "../testing/define-words.ts"
import { shownTo } from "../testing/mcp-runs.ts"
import { holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { answer } from "../testing/question-words.ts"
import { ofType, stepsOf } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** A conversation that is worked through with a workflow. */
const conversation = Effect.fnUntraced(function* (
  workflow: Record<string, unknown> = draftAndCheck,
  overrides: Record<string, unknown> = {}
) {
  const story = yield* newStoryHere
  const agent = yield* newContext(story, "talk", loud, overrides)
  const { body, status } = yield* defineWorkflow(story, "talk", workflow)
  expect([status, body]).toEqual([204, null])
  return { story, agent }
})

const said = (log: ReadonlyArray<Json>) => contentsOf(log, "AssistantMessageEvent")

/** The names of the tools that each request of a run was shown. */
const toolsIn = (story: Story, run: Json) =>
  Effect.forEach(
    Array.from({ length: run.stepCount }, (_, index) => index + 1),
    (number) =>
      Effect.map(story.get(`/runs/${run.id}/model-calls/${number}`), ({ request }) =>
        request.tools.map(({ name }: Json) => name)
      )
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("S004-F03 DefineWorkflowEvent: multi-step workflows", () => {
    it.effect("each message is worked through in the steps, with the message as their input", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation()
        const first = yield* talk(story, "talk", "one")
        expect(stepsOf(first)).toEqual([
          ["draft", 1, "draft one"],
          ["check", 1, "check DRAFT ONE"]
        ])
        expect(yield* newestRun(story)).toMatchObject({ summary: "CHECK DRAFT ONE", stepCount: 2 })
        const log = yield* talk(story, "talk", "two")
        expect(stepsOf(log).slice(2)).toEqual([
          ["draft", 1, "draft two"],
          ["check", 1, "check DRAFT TWO"]
        ])
        expect(said(log)).toEqual(["DRAFT ONE", "CHECK DRAFT ONE", "DRAFT TWO", "CHECK DRAFT TWO"])
        expect(turnsOf(log).map(([type, turn]) => [type.slice("AgentTurn".length), turn])).toEqual(
          [1, 2, 3, 4].flatMap((turn) => [
            ["StartedEvent", turn],
            ["CompletedEvent", turn]
          ])
        )
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("a step reads what was said, and what the steps before it said", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation()
        yield* talk(story, "talk", "one")
        const { config, flow, messages } = yield* story.get("/contexts/talk/state")
        const words = messages.map(({ content, role }: Json) => [role, content[0].text ?? content])
        expect(words).toEqual([
          ["user", "one"],
          ["user", "draft one"],
          ["assistant", "DRAFT ONE"],
          ["user", "check DRAFT ONE"],
          ["assistant", "CHECK DRAFT ONE"]
        ])
        expect(flow).toBeNull()
        expect(config.workflow).toMatchObject({ flowType: "sequential", maxIterations: null })
      })
    )

    it.effect("a loop goes round until the agent ends it, for each message anew", () =>
      Effect.gen(function* () {
        const judge = scripted([
          { when: "message contains 'round 2'", say: "Good.", calls: [{ tool: "exit_loop", arguments: {} }] },
          { say: "Not yet." }
        ])
        const { story } = yield* conversation({
          flowType: "loop",
          steps: [
            { name: "write", prompt: "write {{ input }} {{ steps.judge.output }}" },
            { name: "judge", prompt: "round {{ iteration }}", model: judge }
          ]
        })
        const once = [
          ["write", 1, "write one "],
          ["judge", 1, "round 1"],
          ["write", 2, "write one Not yet."],
          ["judge", 2, "round 2"]
        ]
        expect(stepsOf(yield* talk(story, "talk", "one"))).toEqual(once)
        const run = yield* newestRun(story)
        expect(run).toMatchObject({ summary: "Good.", stepCount: 4 })
        expect((yield* toolsIn(story, run))[0]).toContain("exit_loop")
        // What the last message came to is no part of the next one's flow.
        expect(stepsOf(yield* talk(story, "talk", "two")).slice(4)[0]).toEqual(["write", 1, "write two "])
        const { config } = yield* story.get("/contexts/talk/state")
        expect(config.workflow.maxIterations).toBe(10)
      })
    )

    it.effect("a loop without steps says the agent's prompt, as often as is set", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation({ flowType: "loop", maxIterations: 2 }, { prompt: "again" })
        const log = yield* talk(story, "talk", "one")
        expect(stepsOf(log)).toEqual([
          ["prompt", 1, "again"],
          ["prompt", 2, "again"]
        ])
      })
    )

    it.effect("single takes it back: a message is one turn, and no loop can be ended", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation({ flowType: "loop", maxIterations: 2 })
        yield* talk(story, "talk", "one")
        expect((yield* defineWorkflow(story, "talk", { flowType: "single" })).status).toBe(204)
        const log = yield* talk(story, "talk", "two")
        expect(countOf(log, "FlowStepStartedEvent")).toBe(2)
        const run = yield* newestRun(story)
        expect(run).toMatchObject({ summary: "TWO", stepCount: 1 })
        expect((yield* toolsIn(story, run))[0]).not.toContain("exit_loop")
        expect((yield* story.get("/contexts/talk/state")).config.workflow).toBeNull()
      })
    )

    it.effect(
      "a step has fewer tools or another model where it says so, and defined tools as far as it has theirs",
      () =>
        Effect.gen(function* () {
          const other = {
            provider: "scripted",
            name: "other",
            script: { rules: [{ say: "Other: {{ message }}" }] }
          }
          const { story } = yield* conversation({
            flowType: "sequential",
            steps: [
              { name: "all", prompt: "all" },
              { name: "few", prompt: "few", tools: ["graph.create_*"] },
              { name: "none", prompt: "none", tools: [], model: other }
            ]
          })
          const own = { role: "primary", provider: "scripted", name: "story" }
          expect((yield* setting(story, "talk", "SetLlmConfigEvent", own)).status).toBe(204)
          yield* defineTool(story, "talk", { name: "look", tool: "get_object" })
          yield* defineTool(story, "talk", {
            name: "note",
            tool: "create_object",
            arguments: { type: "Note" }
          })
          const log = yield* talk(story, "talk", "one")
          const [all, few, none] = yield* toolsIn(story, yield* newestRun(story))
          expect(all).toEqual(expect.arrayContaining(["delete_object", "look", "note"]))
          expect(few).toEqual(["create_object", "create_relationship", "note"])
          expect(none).toEqual([])
          expect(said(log)).toEqual(["ALL", "FEW", "Other: none"])
          const models = ofType(log, "AssistantMessageEvent").map(({ model }) => model)
          expect(models).toEqual(["scripted:story", "scripted:story", "scripted:other"])
          // What a step asks says nothing of what the conversation asks from then on.
          expect(countOf(log, "SetLlmConfigEvent")).toBe(1)
          yield* defineWorkflow(story, "talk", { flowType: "single" })
          expect(said(yield* talk(story, "talk", "two")).at(-1)).toBe("TWO")
        })
    )

    it.effect("an agent that has lost tools since takes them along from its steps", () =>
      Effect.gen(function* () {
        const { agent, story } = yield* conversation(
          { flowType: "sequential", steps: [{ name: "a", prompt: "a", tools: ["graph.*"] }] },
          { tools: ["graph.*"] }
        )
        yield* story.patch(`/agents/${agent.id}`, { tools: ["graph.get_object", "run.ask_user"] })
        yield* talk(story, "talk", "one")
        const tools = yield* Effect.flatMap(newestRun(story), (run) => shownTo(story, run))
        expect(tools.map(({ name }) => name)).toEqual(["get_object"])
      })
    )

    it.effect(
      "messages that come together are one input, and one that comes in between begins the flow anew",
      () =>
        Effect.gen(function* () {
          const { story } = yield* conversation(
            {
              flowType: "sequential",
              steps: [
                { name: "draft", prompt: "draft {{ input | replace: '\n\n', ' + ' }}" },
                { name: "check", prompt: "{% if input contains 'three' %}check{% else %}slow{% endif %}" }
              ]
            },
            { model: loudUnlessSlow }
          )
          // No worker takes the run before both are kept, however far apart they come.
          const claims = yield* holding(story.access, lockOf("claims"))
          yield* Effect.all([say(story, "talk", "one"), say(story, "talk", "two")], { concurrency: 2 })
          yield* claims.query("commit")
          yield* logWith(story, "talk", "AgentTurnStartedEvent", 2)
          const log = yield* talk(story, "talk", "three")
          const together = expect.stringMatching(/^draft (?:one \+ two|two \+ one)$/)
          expect(stepsOf(log)).toEqual([
            ["draft", 1, together],
            ["check", 1, "slow"],
            ["draft", 1, expect.stringMatching(/^draft (?:one \+ two|two \+ one) \+ three$/)],
            ["check", 1, "check"]
          ])
          expect(ofType(log, "AgentTurnInterruptedEvent")).toMatchObject([{ reason: "message" }])
          expect(yield* newestRun(story)).toMatchObject({ status: "completed", summary: "CHECK" })
          // All of it is worked through now: the next flow is about the next message alone.
          const next = yield* talk(story, "talk", "four three")
          expect(stepsOf(next)[4]).toEqual(["draft", 1, "draft four three"])
        })
    )

    it.effect("whoever interrupts ends the flow, and is not asked about it again", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation(
          {
            flowType: "sequential",
            steps: [
              { name: "a", prompt: "{% if input contains 'one' %}slow{% endif %} a {{ input }}" },
              { name: "b", prompt: "b" }
            ]
          },
          { model: loudUnlessSlow }
        )
        yield* addEvent(story, "talk", "one")
        yield* logWith(story, "talk", "AgentTurnStartedEvent")
        expect((yield* story.ask("POST", "/contexts/talk/interrupt")).status).toBe(204)
        const run = yield* eventually(newestRun(story), ({ completedAt }) => completedAt !== null)
        expect(run.status).toBe("completed")
        const log = yield* talk(story, "talk", "two")
        expect(stepsOf(log)).toEqual([
          ["a", 1, "slow a one"],
          ["a", 1, " a two"],
          ["b", 1, "b"]
        ])
      })
    )

    it.effect(
      "a flow at work goes on as it began when another is set, and the next message has that one",
      () =>
        Effect.gen(function* () {
          const { story } = yield* conversation({
            flowType: "sequential",
            steps: [
              { name: "a", prompt: "a", model: scripted([{ say: "Slowly.", latencyMs: 700 }]) },
              { name: "b", prompt: "b {{ input }}" }
            ]
          })
          yield* addEvent(story, "talk", "one")
          yield* logWith(story, "talk", "AgentTurnStartedEvent")
          yield* defineWorkflow(story, "talk", {
            flowType: "sequential",
            steps: [{ name: "only", prompt: "only" }]
          })
          const log = yield* eventually(
            logOf(story, "talk"),
            (events) => countOf(events, "AgentTurnCompletedEvent") === 2
          )
          expect(stepsOf(log).map(([name]) => name)).toEqual(["a", "b"])
          expect(stepsOf(yield* talk(story, "talk", "two")).map(([name]) => name)).toEqual(["a", "b", "only"])
        })
    )

    it.effect("a step that fails ends the run, and the next message begins at the first step", () =>
      Effect.gen(function* () {
        const broken = scripted([
          { when: "turn < 4", say: "Half an ans", fault: { kind: "cut", message: "The line went dead" } },
          { say: "Whole." }
        ])
        const { story } = yield* conversation({
          flowType: "sequential",
          steps: [
            { name: "a", prompt: "a {{ input }}" },
            { name: "b", prompt: "b", model: broken }
          ]
        })
        yield* talk(story, "talk", "one")
        expect(yield* newestRun(story)).toMatchObject({ status: "failed" })
        const log = yield* talk(story, "talk", "two")
        expect(stepsOf(log).map(([, , content]) => content)).toEqual(["a one", "b", "a two", "b"])
        expect(yield* newestRun(story)).toMatchObject({ status: "completed", summary: "Whole." })
      })
    )

    it.effect(
      "maxSteps counts the requests of all steps of the run, and a resumed one goes on at its step",
      () =>
        Effect.gen(function* () {
          const steps = ["a", "b", "c"].map((name) => ({ name, prompt: name }))
          const { story } = yield* conversation({ flowType: "sequential", steps }, { maxSteps: 2 })
          yield* addEvent(story, "talk", "one")
          const run = yield* eventually(newestRun(story), (newest) => newest?.status === "paused")
          expect(run).toMatchObject({ pauseReason: "stepLimit", stepCount: 3 })
          yield* story.post(`/runs/${run.id}/resume`, { message: "Go on." })
          const done = yield* eventually(newestRun(story), ({ status }) => status === "completed")
          expect(done).toMatchObject({ id: run.id, stepCount: 4 })
          expect(stepsOf(yield* logOf(story, "talk")).map(([name]) => name)).toEqual(["a", "b", "c"])
          expect((yield* story.get("/verify")).differences).toEqual([])
        })
    )

    it.effect("a fork in the middle of a flow begins it anew with what is said there", () =>
      Effect.gen(function* () {
        const { story } = yield* conversation()
        const log = yield* talk(story, "talk", "one")
        const at = log.findIndex(({ type }) => type === "AssistantMessageEvent") + 1
        yield* story.post("/contexts/talk/fork", { name: "other", at })
        const forked = yield* talk(story, "other", "two")
        expect(stepsOf(forked).map(([, , content]) => content)).toEqual([
          "draft one",
          "draft two",
          "check DRAFT TWO"
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("a person's answer to a step lets the flow go on", () =>
      Effect.gen(function* () {
        const asker = scripted([
          { when: "step == 0", calls: [{ tool: "ask_user", arguments: { question: "Sure?" } }] },
          { say: "{{ results[0].result.answer }}" }
        ])
        const { story } = yield* conversation(
          {
            flowType: "sequential",
            steps: [
              { name: "ask", prompt: "ask", model: asker },
              { name: "tell", prompt: "tell {{ steps.ask.output }}" }
            ]
          },
          { tools: ["run.ask_user"] }
        )
        yield* addEvent(story, "talk", "one")
        const run = yield* eventually(newestRun(story), (newest) => newest?.status === "paused")
        expect((yield* answer(story, run, "yes")).status).toBe(200)
        const done = yield* eventually(newestRun(story), ({ status }) => status === "completed")
        expect(done).toMatchObject({ id: run.id, summary: "TELL YES" })
      })
    )
  })
})
