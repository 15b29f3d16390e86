/**
 * A person ends a turn that waits: for an answer of a person, for sub-agents, or for a foreign tool.
 *
 * The decider's rules stand in `domain`; these stories show that whoever rests is
 * woken in the transaction that keeps the wish, that a foreign call is aborted at
 * once, and that nothing is left behind it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answerTool, pickColour, picking } from "../testing/client-tool-words.ts"
import {
  countOf,
  firstOf,
  logOf,
  logWith,
  newContext,
  quietLog,
  quietness,
  say,
  turnsOf,
  typesOf
} from "../testing/context-words.ts"
import { defineTool } from "../testing/define-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { answer, asked, asking, ended, logOfRun, questionsOf } from "../testing/question-words.ts"
import { addServer, newDiary, program } from "../testing/mcp-words.ts"
import { ofType } from "../testing/run-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, runsOf, type ScriptedCall, silentFor } from "../testing/story-words.ts"
import {
  childrenOf,
  childrenWhen,
  isRunning,
  saysAfter,
  spawning,
  worker
} from "../testing/sub-agent-words.ts"

const interrupt = (story: Story, name = "talk") => story.ask("POST", `/contexts/${name}/interrupt`)

const turnSwitch = (story: Story, stopped: boolean) =>
  story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, {
    stopped,
    ...(stopped ? { reason: "An audit" } : {})
  })

/** A model that makes these calls in its first turn, and answers what it is told later. */
const callingFirst = (...calls: ReadonlyArray<ScriptedCall>) =>
  scripted([{ when: "turn == 1 and step == 0", calls }, { say: "Heard: {{ message }}" }])

/** A conversation whose run rests because its first answer made these calls. */
const resting = Effect.fnUntraced(function* (
  story: Story,
  reason: string,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
) {
  yield* newContext(story, "talk", callingFirst(...calls), { tools: ["run.*"], ...overrides })
  yield* say(story, "talk", "Begin")
  yield* quietness
  return yield* eventually(
    Effect.map(story.get("/runs"), (page): Json =>
      page.items.find(({ parentRunId }: Json) => parentRunId === null)
    ),
    (run) => run?.pauseReason === reason
  )
})

const lastOf = (log: ReadonlyArray<Json>, count: number) => typesOf(log).slice(-count)

/** A conversation whose first answer made these calls, of which one of a foreign tool hangs. */
const hanging = Effect.fnUntraced(function* (...calls: ReadonlyArray<ScriptedCall>) {
  const story = yield* newStoryHere
  const diary = yield* newDiary
  yield* addServer(story, program(diary), { callTimeoutMs: 600_000 })
  yield* newContext(story, "talk", callingFirst(...calls), { tools: ["shop.*"] })
  yield* defineTool(story, "talk", pickColour)
  yield* say(story, "talk", "Begin")
  yield* eventually(diary.called, ({ length }) => length === 1)
  return { diary, story }
})

/** What came of the only call of the only run. */
const outcomeIn = Effect.fnUntraced(function* (story: Story) {
  const [run] = (yield* story.get("/runs")).items
  const [call, ...others] = yield* callsOf(story, run)
  expect(others).toEqual([])
  return { status: call.status, reason: call.result.reason }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Request Interruption", () => {
    it.effect("S004-R35 a message interrupts a turn that waits for a foreign tool, within a second", () =>
      Effect.gen(function* () {
        const { diary, story } = yield* hanging({
          tool: "shop__charge",
          arguments: { amount: 3, wait: true }
        })
        yield* say(story, "talk", "Stop")
        const log = yield* quietLog(story, "talk")
        expect(lastOf(log, 7)).toEqual([
          "ToolCallStartedEvent",
          "UserMessageEvent",
          "ToolCallFailedEvent",
          "AgentTurnInterruptedEvent",
          "AgentTurnStartedEvent",
          "AssistantMessageEvent",
          "AgentTurnCompletedEvent"
        ])
        const broken = firstOf(log, "AgentTurnInterruptedEvent")
        const spoken = log.findLast(({ type }) => type === "UserMessageEvent")
        expect(broken.reason).toBe("message")
        expect(Date.parse(broken.timestamp) - Date.parse(spoken?.timestamp)).toBeLessThanOrEqual(1_000)
        expect(log.findLast(({ type }) => type === "AssistantMessageEvent")?.content).toBe("Heard: Stop")
        expect(yield* outcomeIn(story)).toEqual({ status: "unknown", reason: "unknownOutcome" })
        expect(yield* diary.called).toHaveLength(1)
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect.each([["a message"], ["a person"]] as const)(
      "S004-R35 every call of a turn that %s interrupts has its end before the turn has, and before the next turn",
      ([by]) =>
        Effect.gen(function* () {
          const { diary, story } = yield* hanging(
            picking(),
            { tool: "shop__charge", arguments: { amount: 3, wait: true } },
            { tool: "shop__charge", arguments: { amount: 4 } },
            picking({ prompt: "And this?" })
          )
          if (by === "a person") expect((yield* interrupt(story)).status).toBe(204)
          yield* say(story, "talk", "Stop")
          const log = yield* eventually(
            quietLog(story, "talk"),
            (events) => countOf(events, "AgentTurnCompletedEvent") === 1
          )
          const broken = log.findIndex(({ type }) => type === "AgentTurnInterruptedEvent")
          const ends = log.filter(({ type }) => type === "ToolCallFailedEvent")
          expect(ends).toHaveLength(4)
          expect(Math.max(...ends.map((end) => log.indexOf(end)))).toBeLessThan(broken)
          expect(new Set(ends.map(({ error }) => error.reason))).toEqual(
            new Set(["abandoned", "unknownOutcome"])
          )
          expect(log[broken]?.reason).toBe(by === "a person" ? "user" : "message")
          const [run] = (yield* story.get("/runs")).items.toReversed()
          expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual([
            "abandoned",
            "unknown",
            "refused",
            "refused"
          ])
          // What was not made is not made later, and what waited for a client takes no answer.
          expect(yield* diary.called).toHaveLength(1)
          const [first] = ofType(log, "ToolCallStartedEvent")
          const late = yield* answerTool(story, first?.callId, { result: "green" })
          expect([late.status, late.body.reason]).toEqual([409, "notWaiting"])
          expect((yield* story.get("/verify")).differences).toEqual([])
        })
    )

    it.effect(
      "S004-R35, R38 a person ends a turn that waits for a foreign tool: what may be repeated is abandoned",
      () =>
        Effect.gen(function* () {
          const { story } = yield* hanging({ tool: "shop__put", arguments: { key: "a", wait: true } })
          expect((yield* interrupt(story)).status).toBe(204)
          const log = yield* quietLog(story, "talk")
          expect(lastOf(log, 3)).toEqual([
            "InterruptRequestedEvent",
            "ToolCallFailedEvent",
            "AgentTurnInterruptedEvent"
          ])
          const [asked, ended] = [
            firstOf(log, "InterruptRequestedEvent"),
            firstOf(log, "AgentTurnInterruptedEvent")
          ]
          expect(ended.reason).toBe("user")
          expect(Date.parse(ended.timestamp) - Date.parse(asked.timestamp)).toBeLessThanOrEqual(1_000)
          expect(yield* outcomeIn(story)).toEqual({ status: "abandoned", reason: "aborted" })
          expect((yield* story.get("/verify")).differences).toEqual([])
        })
    )

    it.effect("S004-R38 a person ends a turn that waits for an answer: the question is withdrawn", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* resting(story, "question", [asking("Which one?"), asking("And how many?")])
        expect((yield* interrupt(story)).status).toBe(204)
        const log = yield* quietLog(story, "talk")
        expect(lastOf(log, 4)).toEqual([
          "InterruptRequestedEvent",
          "ToolCallFailedEvent",
          "ToolCallFailedEvent",
          "AgentTurnInterruptedEvent"
        ])
        expect(firstOf(log, "AgentTurnInterruptedEvent")).toMatchObject({ reason: "user", turnNumber: 1 })
        expect(yield* ended(story, run)).toMatchObject({
          status: "completed",
          pauseReason: null,
          stepCount: 1
        })
        expect(yield* questionsOf(story)).toEqual([])
        expect(yield* questionsOf(story, "expired")).toHaveLength(2)
        expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual(["abandoned", "abandoned"])
        expectProblem(yield* answer(story, run, "The first"), 409)
        expect(yield* interrupt(story)).toMatchObject({ status: 409, body: { reason: "state" } })
        // The conversation goes on with what is said next.
        yield* say(story, "talk", "Never mind")
        yield* eventually(logOf(story, "talk"), (events) => countOf(events, "AgentTurnCompletedEvent") === 1)
        expect(firstOf((yield* quietLog(story, "talk")).toReversed(), "AssistantMessageEvent").content).toBe(
          "Heard: Never mind"
        )
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("S004-R38 a person ends a turn that waits for sub-agents: those are cancelled", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", saysAfter(600_000)))
        const run = yield* resting(story, "subAgents", [spawning("helper"), spawning("helper")], {
          subAgents: ["*"]
        })
        yield* childrenWhen(story, run, 2, isRunning)
        expect((yield* interrupt(story)).status).toBe(204)
        const log = yield* quietLog(story, "talk")
        expect(firstOf(log, "AgentTurnInterruptedEvent").reason).toBe("user")
        expect((yield* childrenOf(story, run)).map(({ status }) => status)).toEqual([
          "cancelled",
          "cancelled"
        ])
        expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual(["abandoned", "abandoned"])
        expect(yield* ended(story, run)).toMatchObject({ status: "completed", pauseReason: null })
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("S004-R38 the log of a run that waits is interrupted like a conversation", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* asked(story, asking("Which licence is it?"))
        expect((yield* interrupt(story, run.contextName)).status).toBe(204)
        expect(yield* ended(story, run)).toMatchObject({ status: "completed", pauseReason: null })
        expect(firstOf(yield* logOfRun(story, run), "AgentTurnInterruptedEvent").reason).toBe("user")
        expect(yield* questionsOf(story, "expired")).toHaveLength(1)
      })
    )

    it.effect("S004-R38 S001-K04 a turn that a kill switch has stopped ends when the switch is off", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newContext(story, "talk", silentFor(600_000))
        const runs = () => runsOf(story, agent)
        yield* say(story, "talk", "Begin")
        yield* logWith(story, "talk", "AgentTurnStartedEvent")
        yield* turnSwitch(story, true)
        const answered = yield* interrupt(story)
        expect(answered).toMatchObject({ status: 202, body: { detail: expect.stringContaining("An audit") } })
        // It is still the switch that it waits for, and nobody is told otherwise.
        expect(yield* runs()).toMatchObject([{ status: "paused", pauseReason: "killSwitch" }])
        expect(yield* interrupt(story)).toMatchObject({ status: 409, body: { reason: "state" } })
        yield* turnSwitch(story, false)
        const log = yield* quietLog(story, "talk")
        expect(lastOf(log, 2)).toEqual(["InterruptRequestedEvent", "AgentTurnInterruptedEvent"])
        expect(firstOf(log, "AgentTurnInterruptedEvent").reason).toBe("user")
        expect(yield* runs()).toMatchObject([{ status: "completed", pauseReason: null, stepCount: 0 }])
      })
    )

    it.effect("S004-R38 S001-K04 and so does one that waits for a person meanwhile", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* resting(story, "question", [asking("Which one?")])
        yield* turnSwitch(story, true)
        expect((yield* interrupt(story)).status).toBe(202)
        yield* turnSwitch(story, false)
        expect(yield* ended(story, run)).toMatchObject({ status: "completed", stepCount: 1 })
        expect(firstOf(yield* quietLog(story, "talk"), "AgentTurnInterruptedEvent").reason).toBe("user")
        expect(yield* questionsOf(story, "expired")).toHaveLength(1)
      })
    )

    it.effect(
      "of many who interrupt a turn that waits one is heard, and an answer comes before or not at all",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const run = yield* resting(story, "question", [asking("Which one?")])
          const [answered, ...answers] = yield* Effect.all(
            [answer(story, run, "The first"), ...Array.from({ length: 20 }, () => interrupt(story))],
            { concurrency: "unbounded" }
          )
          const log = yield* quietLog(story, "talk")
          expect(answers.filter(({ status }) => status === 204).length).toBe(
            countOf(log, "InterruptRequestedEvent")
          )
          for (const refusal of answers.filter(({ status }) => status !== 204)) expectProblem(refusal, 409)
          const calls = yield* callsOf(story, run)
          expect(calls.map(({ status }) => status)).toEqual([
            answered?.status === 200 ? "completed" : "abandoned"
          ])
          expect(yield* ended(story, run)).toMatchObject({ status: "completed" })
          expect(turnsOf(log)).toHaveLength(2)
        })
    )

    it.effect("a message to a conversation that waits for a person is heard with the answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const run = yield* resting(story, "question", [asking("Which one?")])
        yield* say(story, "talk", "Be quick")
        expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({
          status: "paused",
          pauseReason: "question"
        })
        expect((yield* answer(story, run, "The first")).status).toBe(200)
        const log = yield* quietLog(story, "talk")
        expect(turnsOf(log).map(([type]) => type)).toEqual([
          "AgentTurnStartedEvent",
          "AgentTurnInterruptedEvent",
          "AgentTurnStartedEvent",
          "AgentTurnCompletedEvent"
        ])
      })
    )
  })
})
