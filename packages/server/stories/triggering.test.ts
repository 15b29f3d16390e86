/**
 * An agent that is told to run: with patience, without, and with a connection that breaks.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import {
  addEvent,
  contentsOf,
  echo,
  isQuiet,
  logOf,
  logWith,
  newContext,
  quietLog,
  slowEcho,
  turnsOf
} from "../testing/context-words.ts"
import { eventually, type Json, promptWithObject, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Small, so that whatever else waits, such as a new connection to the database, is not rushed past its own bound. */
const stepMs = 1_000

const newAgent = (story: Story, model: Json, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name: "worker",
    prompt: promptWithObject,
    triggerType: "manual",
    model,
    ...overrides
  })

const silentFor = (latencyMs: number) => scripted([{ say: "Done.", latencyMs }])

/** The project's runs, once so many have their status. */
const runsWith = (story: Story, status: string, count = 1) =>
  eventually(story.get(`/runs?status=${status}&limit=200`), (page) => page.items.length >= count)

layer(SharedServer.layer)((it) => {
  describe("A manual trigger", () => {
    it.effect("waits for the run and answers it finished, with what it was told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAgent(story, scripted([{ say: "You said {{ input.input.word }}." }]))
        const answer = yield* story.ask("POST", `/agents/${agent.id}/trigger`, { input: { word: "hello" } })
        expect(answer.status).toBe(200)
        expect(answer.body).toMatchObject({
          agentId: agent.id,
          status: "completed",
          summary: "You said hello.",
          trigger: { type: "manual", input: { word: "hello" } }
        })
        expect(yield* story.get(`/runs/${answer.body.id}`)).toEqual(answer.body)
        const bare = yield* story.ask("POST", `/agents/${agent.id}/trigger`)
        expect([bare.status, bare.body.trigger]).toEqual([200, { type: "manual" }])
      })
    )

    it.effect("with wait=false answers 202 with the run at once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAgent(story, silentFor(5_000))
        const answer = yield* story.ask("POST", `/agents/${agent.id}/trigger?wait=false`, {})
        expect(answer.status).toBe(202)
        expect(answer.body).toMatchObject({
          status: expect.stringMatching(/^(?:queued|running)$/),
          completedAt: null
        })
        yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
        expect((yield* story.get(`/runs/${answer.body.id}`)).status).toBe("completed")
      })
    )

    it.effect("answers 202 with the run as it is when it takes longer than anybody should wait", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAgent(story, silentFor(70_000))
        const waiting = yield* Effect.forkChild(story.ask("POST", `/agents/${agent.id}/trigger`, {}))
        yield* runsWith(story, "running")
        const answer = yield* asTimePasses(
          stepMs,
          Effect.sync(() => waiting.pollUnsafe()),
          (exit) => exit !== undefined
        ).pipe(Effect.andThen(Fiber.join(waiting)))
        expect([answer.status, answer.body.status]).toEqual([202, "running"])
        yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
        expect((yield* story.get(`/runs/${answer.body.id}`)).status).toBe("completed")
      })
    )

    it.effect("answers a run that a limit has paused, and waits on while a kill switch holds it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const turn = (stopped: boolean) =>
          story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped, reason: "An audit" })
        const agent = yield* newAgent(story, silentFor(5_000), { defaultTimeoutMs: 2_000 })
        const waiting = yield* Effect.forkChild(story.ask("POST", `/agents/${agent.id}/trigger`, {}))
        const { items } = yield* runsWith(story, "running")
        yield* turn(true)
        // Were this rest an answer, it would be one by the time the other is told of.
        yield* runsWith(story, "paused")
        yield* asTimePasses(
          stepMs,
          story.get(`/runs/${items[0].id}`),
          (run) => run.pauseReason === "killSwitch"
        )
        yield* turn(false)
        yield* asTimePasses(
          stepMs,
          Effect.sync(() => waiting.pollUnsafe()),
          (exit) => exit !== undefined
        )
        const answer = yield* Fiber.join(waiting)
        expect(answer).toMatchObject({ status: 200, body: { status: "paused", pauseReason: "timeout" } })
      })
    )

    it.effect("whose connection breaks does not take the run with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAgent(story, silentFor(5_000))
        const connection = new AbortController()
        const waiting = yield* Effect.forkChild(
          Effect.exit(
            Effect.tryPromise(() =>
              fetch(`${story.url}/api/projects/${story.projectId}/agents/${agent.id}/trigger`, {
                method: "POST",
                headers: { authorization: `Bearer ${story.token}` },
                signal: connection.signal
              })
            )
          )
        )
        const running = yield* runsWith(story, "running")
        connection.abort()
        expect((yield* Fiber.join(waiting))._tag).toBe("Failure")
        yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
        expect(yield* story.get(`/runs/${running.items[0].id}`)).toMatchObject({
          status: "completed",
          summary: "Done."
        })
      })
    )

    it.effect("of a disabled agent is refused and starts nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAgent(story, silentFor(0), { enabled: false })
        const answer = yield* story.ask("POST", `/agents/${agent.id}/trigger`, {})
        expectProblem(answer, 409)
        expect(answer.body.reason).toBe("agentDisabled")
        expect((yield* story.get("/runs")).items).toEqual([])
      })
    )
  })

  describe("A cancel", () => {
    it.effect(
      "of ten at once is decided once, and the run stays cancelled whatever its agent still says",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAgent(story, silentFor(5_000))
          const { body: run } = yield* story.ask("POST", `/agents/${agent.id}/trigger?wait=false`, {})
          yield* runsWith(story, "running")
          const answers = yield* Effect.forEach(
            Array.from({ length: 10 }),
            () => story.ask("POST", `/runs/${run.id}/cancel`),
            { concurrency: 10 }
          )
          const [won, ...others] = answers.filter((answer) => answer.status === 200)
          expect(others).toEqual([])
          expect(won?.body).toMatchObject({
            id: run.id,
            status: "cancelled",
            completedAt: expect.any(String)
          })
          const lost = answers.filter((answer) => answer.status !== 200)
          for (const answer of lost) {
            expectProblem(answer, 409)
            expect(answer.body.reason).toBe("state")
          }
          // The model's answer comes when nobody wants it any more. Another run shows that it has come.
          const path = `/runs/${run.id}/events`
          const log = (yield* story.get(path)).items
          const later = yield* newAgent(story, silentFor(5_000), { name: "later" })
          yield* story.post(`/agents/${later.id}/trigger?wait=false`, {})
          yield* asTimePasses(stepMs, story.get("/runs"), isQuiet)
          expect(yield* story.get(`/runs/${run.id}`)).toEqual(won?.body)
          expect((yield* story.get(path)).items).toEqual(log)
        })
    )

    it.effect("of a run that has ended is refused and changes nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAgent(story, silentFor(0))
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        const answer = yield* story.ask("POST", `/runs/${run.id}/cancel`)
        expectProblem(answer, 409)
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
      })
    )

    it.effect("of a turn in a conversation closes the turn, and the next message is answered", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newContext(story, "talk", slowEcho)
        yield* addEvent(story, "talk", "One")
        yield* logWith(story, "talk", "AgentTurnStartedEvent")
        const [run] = (yield* runsWith(story, "running")).items
        yield* story.post(`/runs/${run.id}/cancel`)
        yield* story.patch(`/agents/${agent.id}`, { model: echo })
        yield* addEvent(story, "talk", "Two")
        const log = yield* quietLog(story, "talk")
        expect(turnsOf(log)).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnInterruptedEvent", 1],
          ["AgentTurnStartedEvent", 2],
          ["AgentTurnCompletedEvent", 2]
        ])
        expect(log.find((event) => event.type === "AgentTurnInterruptedEvent").reason).toBe("cancelled")
        expect(contentsOf(yield* logOf(story, "talk"), "AssistantMessageEvent")).toEqual(["Answer 2: Two"])
      })
    )
  })
})
