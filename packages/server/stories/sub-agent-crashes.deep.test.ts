/**
 * Wherever an attempt dies, of the run that hands over or of its sub-agent: the task is done once, and told once.
 */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { CrashPointName } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { freezingServer } from "../testing/frozen-attempts.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import {
  eventually,
  type Json,
  newProject,
  scripted,
  startServer,
  type Story,
  storyIn
} from "../testing/platform.ts"
import { logOfRun } from "../testing/run-words.ts"
import {
  begin,
  boss,
  childrenOf,
  childrenWhen,
  endedInTime,
  isEnded,
  reportsOf,
  runThrough,
  runWhen,
  saysAfter,
  spawning,
  spawnsOf,
  waitingFor,
  worker
} from "../testing/sub-agent-words.ts"
import { patientDatabase } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"

/** A helper that makes one Note and says so. */
const noteMaker = scripted([
  { when: "step == 0", calls: [{ tool: "create_object", arguments: { type: "Note", properties: {} } }] },
  { say: "Noted." }
])

/** Keeps every sub-agent in the queue for as long as the story holds the lock. */
const heldSubAgents = [
  `create function kb.wait_for_the_story() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(42); return new; end $$`,
  `create trigger wait_for_the_story before update on kb.agent_runs for each row
    when (old.status = 'queued' and new.status = 'running' and new.parent_run_id is not null) execute function kb.wait_for_the_story()`
]

/** Where an attempt dies: the place, and which passing of it while one run hands one task over. */
const deaths: ReadonlyArray<readonly [CrashPointName, number, string]> = [
  ["run.afterClaim", 1, "the parent"],
  ["run.beforeModel", 1, "the parent"],
  ["run.afterStep", 1, "the parent"],
  ["run.afterSpawn", 1, "the parent, before the spawn is committed"],
  ["tool.beforeCommit", 1, "the parent, before the spawn is committed"],
  ["tool.afterCommit", 1, "the parent, after the spawn is committed"],
  ["run.afterWait", 1, "the parent, at rest"],
  ["run.afterReport", 1, "the child, before its end and report are committed"],
  ["run.afterComplete", 1, "the child, after its end and report are committed"],
  ["run.afterModel", 4, "the parent, with the report read"]
]

/** Everything that must be so, once, after the task is through. */
const expectOnce = Effect.fnUntraced(function* (story: Story, run: Json) {
  expect(run).toMatchObject({ status: "completed", stepCount: 2 })
  const [child, ...others] = yield* childrenOf(story, run)
  expect(others).toEqual([])
  expect(child).toMatchObject({
    status: "completed",
    summary: expect.stringContaining("Noted."),
    stepCount: 2
  })
  expect(reportsOf(run)).toMatchObject([{ result: { runId: child.id, summary: "Noted." }, isError: false }])
  expect(yield* spawnsOf(story, run)).toMatchObject([{ status: "completed" }])
  const outcomes = (yield* logOfRun(story, run)).filter(({ type }) => type === "ToolCallCompletedEvent")
  expect(outcomes).toHaveLength(1)
  expect((yield* story.get("/objects?type=Note")).items).toHaveLength(1)
})

describe("A task that is handed over", () => {
  it.live(
    "is done once and told once, wherever an attempt dies, and whoever was dead writes nothing when it wakes up",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const { doors, freeze, thaw } = yield* freezingServer(access)
          for (const statement of heldSubAgents) yield* ask(access, statement)
          for (const [place, passing] of deaths) {
            const story = yield* newProject(doors, access)
            yield* story.post("/agents", worker("helper", noteMaker))
            const agent = yield* boss(story, [spawning("helper")])
            const dead = yield* Effect.forkChild(freeze(place, passing))
            // Whoever hands over comes to rest before its sub-agent is at work.
            const held = yield* holding(
              access,
              ...(place === "run.afterWait" ? ["select pg_advisory_xact_lock(42)"] : [])
            )
            const run = yield* begin(story, agent)
            yield* Fiber.join(dead)
            yield* held.query("commit")
            const ended = yield* runWhen(story, run, isEnded)
            yield* expectOnce(story, ended)
            const logs = yield* Effect.forEach([run, ...(yield* childrenOf(story, run))], (each) =>
              logOfRun(story, each)
            )
            yield* thaw
            // Another run shows that the server goes on, and what woke up has had its turn.
            yield* make(story, "Thing")
            yield* runThrough(story, yield* story.post("/agents", worker("later", saysAfter(0))))
            expect(
              yield* Effect.forEach([run, ...(yield* childrenOf(story, run))], (each) =>
                logOfRun(story, each)
              )
            ).toEqual(logs)
          }
        })
      ),
    300_000
  )

  it.live(
    "is done by whoever took it over, also when the one that froze wakes up while that is at work",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const { doors, freeze, thaw } = yield* freezingServer(access)
          const story = yield* newProject(doors, access)
          yield* story.post("/agents", worker("helper", saysAfter(8_000, "Noted.")))
          const agent = yield* boss(story, [spawning("helper")])
          // The child's first attempt has its answer, and keeps it when another is already asking again.
          const frozen = yield* Effect.forkChild(freeze("run.afterModel", 2))
          const run = yield* begin(story, agent)
          yield* Fiber.join(frozen)
          const [child] = yield* childrenWhen(story, run, 1, ({ attempt }) => attempt === 2)
          const log = yield* eventually(
            logOfRun(story, child),
            (events) => events.at(-1)?.type === "AgentTurnStartedEvent" && events.at(-1).turnNumber === 2
          )
          yield* thaw
          const ended = yield* runWhen(story, run, isEnded)
          expect(reportsOf(ended)).toMatchObject([{ result: { runId: child.id, summary: "Noted." } }])
          expect(yield* childrenOf(story, run)).toMatchObject([
            { status: "completed", attempt: 2, stepCount: 1 }
          ])
          const after = yield* logOfRun(story, child)
          expect(after.slice(0, log.length)).toEqual(log)
          expect(after.slice(log.length).map(({ type }) => type)).toEqual([
            "AssistantMessageEvent",
            "AgentTurnCompletedEvent",
            "SessionEndedEvent"
          ])
        })
      )
  )

  it.live("goes on at another server when the first one stops in the middle", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* patientDatabase
        const { projectId, run } = yield* Effect.scoped(
          Effect.gen(function* () {
            const story = yield* newProject(yield* startServer(access), access)
            const { run } = yield* waitingFor(story, saysAfter(60_000, "Noted."))
            return { projectId: story.projectId, run }
          })
        )
        // The clock of the other one goes on as fast as the story wants.
        const nowMs = yield* Clock.currentTimeMillis
        const { ended, story } = yield* Effect.gen(function* () {
          yield* TestClock.setTime(nowMs)
          const there = storyIn(yield* startServer(access), access, projectId)
          return { ended: yield* endedInTime(there, run), story: there }
        }).pipe(Effect.provide(TestClock.layer()))
        expect(reportsOf(ended)).toMatchObject([{ result: { status: "completed", summary: "Noted." } }])
        const [child] = yield* childrenOf(story, run)
        expect(child).toMatchObject({ status: "completed", attempt: 1 })
      })
    )
  )

  it.live("is worked on by two servers side by side, each task by one of them", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const story = yield* newProject(yield* startServer(access), access)
        yield* startServer(access)
        yield* story.post("/agents", worker("helper", saysAfter(1_500, "Noted.")))
        const tasks = Array.from({ length: 20 }, (_, index) => spawning("helper", { task: `Task ${index}` }))
        const agent = yield* boss(story, tasks)
        const runs = yield* Effect.forEach([1, 2], () => begin(story, agent))
        for (const run of runs) {
          const ended = yield* runWhen(story, run, isEnded)
          expect(reportsOf(ended).map(({ result }) => result.summary)).toEqual(tasks.map(() => "Noted."))
          const children = yield* childrenOf(story, run)
          expect(new Set(children.map(({ trigger }) => trigger.input.task)).size).toBe(20)
          expect(children.map(({ attempt, stepCount }) => [attempt, stepCount])).toEqual(
            tasks.map(() => [1, 1])
          )
        }
        // Forty at once are more than one server takes.
        const workers = yield* ask(
          access,
          "select distinct worker_id from kb.agent_runs where parent_run_id is not null"
        )
        expect(workers).toHaveLength(2)
      })
    )
  )
})
