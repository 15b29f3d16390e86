/**
 * An agent asks a person: the run rests until somebody answers, and goes on with what was said.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import {
  answer,
  asked,
  asker,
  asking,
  askingModel,
  ended,
  logOfRun,
  questionsOf
} from "../testing/question-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { approve, reject } from "../testing/suggestion-words.ts"
import { callsOf, entriesOf, entriesWhen, make, runsOf, silentFor, watcher } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const creating = (key: string) => ({
  tool: "create_object",
  arguments: { type: "Thing", key, properties: {} }
})

/** The results that the model is shown, in the order in which it reads them. */
const summaryOf = (...results: ReadonlyArray<readonly [string, unknown]>) =>
  results.map(([tool, result]) => `${tool}: ${JSON.stringify(result)}; `).join("")

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: A run asks a person", () => {
    it.effect("S002-R45 a run that asks rests with all it needs, and goes on with the answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, question, run } = yield* asked(story, asking("Which licence is it?"))
        expect(run).toMatchObject({
          status: "paused",
          pauseReason: "question",
          completedAt: null,
          stepCount: 1
        })
        expect(question).toMatchObject({
          type: "question",
          status: "pending",
          title: "Which licence is it?",
          agentId: agent.id,
          agentName: "asker",
          runId: run.id,
          payload: { agentId: agent.id, agentRunId: run.id, question: "Which licence is it?" },
          resolvedBy: null
        })
        expect(yield* callsOf(story, run)).toMatchObject([
          { tool: "ask_user", status: "started", result: { status: "asked", taskId: question.id } }
        ])
        const answered = yield* answer(story, run, "MIT")
        expect([answered.status, answered.body.id]).toEqual([200, run.id])
        expect(yield* ended(story, run)).toMatchObject({
          status: "completed",
          pauseReason: null,
          summary: summaryOf(["ask_user", { answer: "MIT" }]),
          stepCount: 2
        })
        expect(yield* story.get(`/tasks/${question.id}`)).toMatchObject({
          status: "completed",
          resolvedBy: "admin",
          resolvedAt: expect.any(String),
          payload: { question: "Which licence is it?", answer: "MIT" }
        })
        expect(yield* callsOf(story, run)).toMatchObject([
          { tool: "ask_user", status: "completed", result: { answer: "MIT" } }
        ])
        const log = yield* logOfRun(story, run)
        expect(log.filter(({ type }) => type.startsWith("ToolCall"))).toMatchObject([
          { type: "ToolCallStartedEvent", waitsFor: "person" },
          { type: "ToolCallCompletedEvent", result: { answer: "MIT" } }
        ])
        expect(log.filter(({ type }) => type === "AgentTurnStartedEvent")).toHaveLength(1)
      })
    )

    it.effect("of a hundred simultaneous answers one is taken", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, asking("How many?"))
        const answers = yield* Effect.forEach(
          Array.from({ length: 100 }, (_, index) => `answer ${index}`),
          (text, index) => answer(story, run, text, index % 2 === 0 ? question : undefined),
          { concurrency: "unbounded" }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([
          200,
          ...Array.from({ length: 99 }, () => 409)
        ])
        const taken = answers.findIndex(({ status }) => status === 200)
        expect((yield* ended(story, run)).summary).toBe(
          summaryOf(["ask_user", { answer: `answer ${taken}` }])
        )
        expect((yield* story.get(`/tasks/${question.id}`)).payload.answer).toBe(`answer ${taken}`)
        const log = yield* logOfRun(story, run)
        expect(log.filter(({ type }) => type === "ToolCallCompletedEvent")).toHaveLength(1)
      })
    )

    it.effect("an answer that does not fit is refused with its place, and the question waits on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, asking("Keep it?", ["yes", "no"]))
        const elsewhere = yield* newStoryHere
        const other = yield* asked(elsewhere, asking("Else?"))
        for (const [body, pointer] of [
          [{ answer: "maybe" }, "/answer"],
          [{}, "/answer"],
          [{ answer: "yes", taskId: other.question.id }, "/taskId"],
          [{ answer: "yes", taskId: "none" }, "/taskId"],
          [{ answer: "yes", extra: 1 }, "/extra"]
        ] as const)
          expectProblem(yield* story.ask("POST", `/runs/${run.id}/answer`, body), 422, pointer)
        // Where anything may be answered, it is the text itself that does not fit.
        for (const text of [" ", "", "x".repeat(20_001), 3, "\u0000yes"])
          expectProblem(yield* answer(elsewhere, other.run, text), 422, "/answer")
        expect(yield* questionsOf(elsewhere)).toEqual([other.question])
        expectProblem(yield* answer(story, other.run, "yes"), 404)
        expect(yield* questionsOf(story)).toEqual([question])
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
        expect((yield* answer(story, run, "yes")).status).toBe(200)
        expectProblem(yield* answer(story, yield* ended(story, run), "no"), 409)
      })
    )

    it.effect("a question is no suggestion: the doors that decide say where it is answered", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, asking("Why?"))
        for (const decide of [approve, reject]) {
          const refused = yield* decide(story, question)
          expectProblem(refused, 409)
          expect(refused.body.detail).toContain(`/runs/${run.id}/answer`)
        }
        expect(yield* questionsOf(story)).toEqual([question])
        expect((yield* story.get("/tasks?type=object_update_suggestion")).items).toEqual([])
      })
    )

    it.effect("a run that is cancelled, or fails, has no open question", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, asking("Shall I?"))
        yield* story.post(`/runs/${run.id}/cancel`)
        expect(yield* story.get(`/tasks/${question.id}`)).toMatchObject({
          status: "expired",
          resolvedBy: null
        })
        expect(yield* callsOf(story, run)).toMatchObject([{ status: "abandoned" }])
        for (const task of [question, undefined]) expectProblem(yield* answer(story, run, "yes", task), 409)
        // Five times the same in one message ends a run as failed, while its question waits.
        const agent = yield* asker(
          story,
          askingModel(asking("And now?"), ...Array.from({ length: 5 }, () => creating("one"))),
          { name: "failing" }
        )
        const failed = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(failed.status).toBe("failed")
        const [, other] = yield* questionsOf(story, "expired")
        expect(other).toMatchObject({ runId: failed.id, status: "expired" })
        const [waited] = yield* callsOf(story, failed)
        expect(waited).toMatchObject({ tool: "ask_user", status: "abandoned" })
      })
    )

    it.effect("beside other calls it is asked with them, and the run waits when those are made", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, asking("Which?"), creating("one"), creating("two"))
        expect(run).toMatchObject({ status: "paused", pauseReason: "question", stepCount: 1 })
        expect((yield* story.get("/objects?type=Thing")).items).toHaveLength(2)
        yield* answer(story, run, "the first", question)
        expect((yield* ended(story, run)).stepCount).toBe(2)
        // The model reads the results in the order in which it made the calls.
        const log = yield* logOfRun(story, run)
        expect(log.filter(({ type }) => type === "ToolCallCompletedEvent").map(({ tool }) => tool)).toEqual([
          "create_object",
          "create_object",
          "ask_user"
        ])
        expect((yield* story.get(`/runs/${run.id}`)).summary).toMatch(
          /^ask_user: .*"the first".*; create_object: .*"one".*; create_object: .*"two".*; $/
        )
      })
    )

    it.effect("several questions are answered one by one, each by its id, in any order", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { questions, run } = yield* asked(story, asking("A?"), asking("B?"), asking("C?"))
        const [first, second, third] = questions
        const unclear = yield* answer(story, run, "which?")
        expectProblem(unclear, 422, "/taskId")
        expect(unclear.body.detail).toContain(second.id)
        for (const [task, text] of [
          [third, "c"],
          [first, "a"]
        ]) {
          expect((yield* answer(story, run, text, task)).body).toMatchObject({
            status: "paused",
            pauseReason: "question"
          })
          expectProblem(yield* answer(story, run, text, task), 409)
        }
        expect((yield* answer(story, run, "b")).status).toBe(200)
        expect((yield* ended(story, run)).summary).toBe(
          summaryOf(
            ["ask_user", { answer: "a" }],
            ["ask_user", { answer: "b" }],
            ["ask_user", { answer: "c" }]
          )
        )
      })
    )

    it.effect("a question that nobody could answer is the model's to mend", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* asked(
          story,
          asking("  "),
          asking("Which?", ["same", "same"]),
          asking("Which?", []),
          asking("Which?", [" "])
        )
        expect(run.status).toBe("completed")
        expect(yield* callsOf(story, run)).toMatchObject([
          { status: "failed", result: { pointer: "/question" } },
          { status: "failed", result: { pointer: "/options" } },
          { status: "failed", result: { reason: "invalid" } },
          { status: "failed", result: { pointer: "/options" } }
        ])
        expect(yield* questionsOf(story)).toEqual([])
      })
    )

    it.effect("an agent asks only when its tools name it, and no more at once than anybody answers", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const mute = yield* asker(story, askingModel(asking("May I?")), { name: "mute", tools: ["graph.*"] })
        const refused = yield* story.post(`/agents/${mute.id}/trigger`)
        expect([refused.status, (yield* callsOf(story, refused)).map(({ status }) => status)]).toEqual([
          "completed",
          ["refused"]
        ])
        const { questions, run } = yield* asked(
          story,
          ...Array.from({ length: 11 }, (_, index) => asking(`Question ${index}?`))
        )
        expect([run.status, questions.length]).toEqual(["paused", 10])
        const [last] = (yield* callsOf(story, run)).slice(-1)
        expect(last).toMatchObject({
          status: "failed",
          result: { error: expect.stringMatching(/\b10\b/) }
        })
      })
    )

    it.effect("a viewer reads a question and may not answer it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { question, run } = yield* asked(story, asking("May I?"))
        const viewer = yield* asUser(story, "viewer")
        expect((yield* viewer.ask("GET", `/tasks/${question.id}`)).status).toBe(200)
        expectProblem(yield* viewer.ask("POST", `/runs/${run.id}/answer`, { answer: "yes" }), 403)
        expect(yield* questionsOf(story)).toEqual([question])
      })
    )

    it.effect("an agent that asks in a conversation hears the answer before what was said meanwhile", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* asker(
          story,
          scripted([
            { when: 'step == 0 and message == "Begin"', calls: [asking("Which?")] },
            { say: "{{ message }} {{ results | json }}" }
          ])
        )
        yield* story.post("/contexts", { name: "talk", agentId: agent.id })
        const say = (content: string) =>
          story.ask("POST", "/contexts/talk/events", { type: "UserMessageEvent", content })
        yield* say("Begin")
        const [run] = yield* eventually(runsOf(story, agent), ([first]) => first?.status === "paused")
        yield* say("Are you there?")
        expect((yield* answer(story, run, "this")).status).toBe(200)
        const log = yield* eventually(logOfRun(story, run), (events) =>
          events.some(({ content }) => content?.startsWith("Are you there?") && content !== "Are you there?")
        )
        expect(
          log.filter(({ type }) => type === "AssistantMessageEvent").map(({ content }) => content)
        ).toEqual(["", "Are you there? []"])
        // One turn for both: the model reads the answer where it asked, and then what was said.
        const { messages } = yield* story.get("/contexts/talk/state")
        expect(messages.map(({ role }: Json) => role).slice(0, 4)).toEqual([
          "user",
          "assistant",
          "tool",
          "user"
        ])
        expect(JSON.stringify(messages[2])).toContain('"this"')
      })
    )
  })
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: A run asks a person", () => {
    it.effect("S002-R45 the work that woke it stays in processing, however long nobody answers", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ tools: ["run.ask_user"], model: askingModel(asking("Is it you?", ["yes", "no"])) })
        )
        const dead = yield* story.post("/agents", watcher({ name: "dead", model: silentFor(600_000) }))
        yield* make(story, "Person")
        const [question] = yield* eventually(questionsOf(story), ({ length }) => length === 1)
        const [run] = yield* eventually(runsOf(story, agent), ([first]) => first?.status === "paused")
        yield* ask(story.access, "update kb.agent_processing_log set started_at = now() - interval '2 days'")
        yield* ask(
          story.access,
          "update kb.agent_runs set lease_expires_at = now() - interval '2 days', attempt = 3 where id = $1",
          [run.id]
        )
        const [lost] = yield* eventually(runsOf(story, dead), ([first]) => first?.status === "running")
        yield* ask(
          story.access,
          "update kb.agent_runs set status = 'cancelled', attempt_token = null where id = $1",
          [lost.id]
        )
        // Whoever looks for the stuck has found the other one.
        yield* asTimePasses(1_000, entriesOf(story, dead), ([entry]) => entry.status === "abandoned")
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "processing", runId: run.id }])
        expect((yield* answer(story, run, "yes", question)).status).toBe(200)
        expect(yield* entriesWhen(story, agent, 1)).toMatchObject([{ status: "completed" }])
      })
    )
  })
})
