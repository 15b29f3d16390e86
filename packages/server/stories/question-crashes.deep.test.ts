/**
 * A server dies when a question is answered: nothing is lost, and nothing is asked or answered twice.
 *
 * The first server stops for ever at a place between two durable steps, as a
 * frozen or killed one does; a second on the same database goes on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { eventually, newProject, startServer, storyIn } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import {
  answer,
  asker,
  asking,
  askingModel,
  ended,
  logOfRun,
  questionsOf
} from "../testing/question-words.ts"
import { callsOf } from "../testing/story-words.ts"

/** A server that stops for ever where it passes a place for the n-th time, and a run of it that asks. */
const stoppingAt = Effect.fnUntraced(function* (place: CrashPointName, passing: number) {
  const access = yield* freshDatabase
  let passed = 0
  const hit = (name: CrashPointName) =>
    Effect.suspend(() => (name === place && ++passed === passing ? Effect.never : Effect.void))
  const doors = yield* Effect.provideService(startServer(access), CrashPoint, { hit })
  const story = yield* newProject(doors, access)
  const agent = yield* asker(story, askingModel(asking("Which?")))
  const run = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
  const [question] = yield* eventually(questionsOf(story), ({ length }) => length === 1)
  return { access, story, run, question, hasStopped: () => passed >= passing }
})

const other = (access: Parameters<typeof startServer>[0], projectId: string) =>
  Effect.map(startServer(access), (doors) => storyIn(doors, access, projectId))

/** What must be true of a run that asked one question, whoever died on the way. */
const expectOnce = Effect.fnUntraced(function* (story: Parameters<typeof ended>[0], run: { id: string }) {
  expect(yield* ended(story, run)).toMatchObject({
    status: "completed",
    summary: 'ask_user: {"answer":"this"}; ',
    stepCount: 2
  })
  expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual(["completed"])
  expect(yield* questionsOf(story, "completed")).toHaveLength(1)
  const log = yield* logOfRun(story, run)
  expect(log.filter(({ type }) => type === "ToolCallCompletedEvent")).toHaveLength(1)
})

describe("A server that dies around a question", () => {
  it.live("between the answer and the first step after it", () =>
    Effect.gen(function* () {
      const { access, hasStopped, question, run, story } = yield* stoppingAt("run.afterClaim", 2)
      yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "paused")
      expect((yield* answer(story, run, "this", question)).status).toBe(200)
      yield* eventually(Effect.sync(hasStopped), (stopped) => stopped)
      yield* expectOnce(yield* other(access, story.projectId), run)
    })
  )

  it.live.each([
    ["before the run does what it was woken for", "run.afterClaim", 2, true],
    ["after the turn's end", "run.beforeComplete", 1, false]
  ] as const)(
    "S004-R38 an interrupt of a run that waits is not lost with its server: %s",
    ([, place, passing, isOpen]) =>
      Effect.gen(function* () {
        const { access, hasStopped, run, story } = yield* stoppingAt(place, passing)
        yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "paused")
        expect((yield* story.ask("POST", `/contexts/${run.contextName}/interrupt`)).status).toBe(204)
        yield* eventually(Effect.sync(hasStopped), (stopped) => stopped)
        const again = yield* story.ask("POST", `/contexts/${run.contextName}/interrupt`)
        expectProblem(again, 409)
        const state = yield* story.get(`/contexts/${run.contextName}/state`)
        expect(state.agentTurnStartedAtEventId !== null).toBe(isOpen)
        const there = yield* other(access, story.projectId)
        expect(yield* ended(there, run)).toMatchObject({ status: "completed", stepCount: 1 })
        const log = yield* logOfRun(there, run)
        const ends = log.filter(({ type }) => type.startsWith("AgentTurn") || type.startsWith("Session"))
        expect(ends.map(({ reason, type }) => [type, reason ?? null])).toEqual([
          ["SessionStartedEvent", null],
          ["AgentTurnStartedEvent", null],
          ["AgentTurnInterruptedEvent", "user"],
          ["SessionEndedEvent", "crash"],
          ["SessionStartedEvent", null],
          ["SessionEndedEvent", null]
        ])
        expect((yield* callsOf(there, run)).map(({ status }) => status)).toEqual(["abandoned"])
        expect(yield* questionsOf(there, "expired")).toHaveLength(1)
      })
  )
})
