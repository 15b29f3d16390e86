/**
 * Agents work without anybody starting them: by the clock, and from the moment a server is up.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Agents } from "../src/agents/agents.ts"
import { Database } from "../src/database/database.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, startServer } from "../testing/platform.ts"
import { changeUnserved, unserved, whileServing } from "../testing/restarts.ts"
import { clerk, passUntil, periodsBefore, runDueAt, schedulesOf } from "../testing/schedule-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  saying,
  watcher
} from "../testing/story-words.ts"

const fiveMinutesMs = 300_000

const isOnFiveMinutes = (at: string) => Date.parse(at) % fiveMinutesMs === 0

const fiveMinutesBefore = (at: string, times: number) => periodsBefore(at, times, fiveMinutesMs)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Dynamic Scheduling", () => {
    it.effect(
      "S000-R41 an agent with the schedule */5 runs when five minutes are over, again and again",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", clerk("*/5 * * * *", { model: saying("It is time.") }))
          expect(isOnFiveMinutes(agent.nextFireAt)).toBe(true)
          for (const times of [1, 2]) {
            const due = fiveMinutesBefore(agent.nextFireAt, times)
            yield* passUntil(story.access, agent, due)
            expect(yield* runDueAt(story, agent, due)).toMatchObject({
              status: "completed",
              summary: "It is time.",
              trigger: { type: "schedule" }
            })
            const { nextFireAt } = yield* story.get(`/agents/${agent.id}`)
            expect(isOnFiveMinutes(nextFireAt)).toBe(true)
            expect(Date.parse(nextFireAt)).toBeGreaterThanOrEqual(Date.parse(agent.nextFireAt))
          }
        })
    )

    it.effect(
      "S000-R42, R43 changing cron_schedule stops the old schedule and starts the new one at once",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", clerk("*/5 * * * *"))
          const path = `/agents/${agent.id}`
          const yearly = yield* story.patch(path, { cronSchedule: "0 0 1 1 *" })
          expect(yearly.nextFireAt).toMatch(/^\d{4}-01-01T00:00:00\.000Z$/)
          // The old job is gone: there is one schedule, and it is the new one.
          expect(yield* schedulesOf(story.access, agent)).toEqual([
            { cron: "0 0 1 1 *", at: yearly.nextFireAt }
          ])

          const due = fiveMinutesBefore(agent.nextFireAt, 1)
          yield* passUntil(story.access, agent, due)
          yield* runDueAt(story, agent, due)
          expect(yield* story.get(path)).toMatchObject({ nextFireAt: yearly.nextFireAt })

          const july = yield* story.patch(path, { cronSchedule: "0 12 1 7 *" })
          expect(yield* schedulesOf(story.access, agent)).toEqual([
            { cron: "0 12 1 7 *", at: july.nextFireAt }
          ])
          expect(july.nextFireAt).toMatch(/^\d{4}-07-01T12:00:00\.000Z$/)
        })
    )

    it.effect("S000-R42 an agent that is disabled, deleted or no longer scheduled has no schedule", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agents = yield* Effect.forEach(["one", "two", "three"], (name) =>
          story.post("/agents", clerk("0 12 1 7 *", { name }))
        )
        const [disabled, deleted, manual] = agents
        yield* story.patch(`/agents/${disabled.id}`, { enabled: false })
        yield* story.delete(`/agents/${deleted.id}`)
        yield* story.patch(`/agents/${manual.id}`, { triggerType: "manual" })
        for (const agent of agents) expect(yield* schedulesOf(story.access, agent)).toEqual([])
        const enabled = yield* story.patch(`/agents/${disabled.id}`, { enabled: true })
        expect(yield* schedulesOf(story.access, disabled)).toEqual([
          { cron: "0 12 1 7 *", at: enabled.nextFireAt }
        ])
      })
    )
  })
})

describe("Scenario: Bootstrap Scheduling and Reaction Agent Bootstrap", () => {
  it.live(
    "S000-R40 a server that starts finds the schedules of enabled agents, and a missed time is made up once",
    () =>
      Effect.gen(function* () {
        const { access, projectId } = yield* stoppedProject
        const agent = yield* whileServing(access, projectId, (story) =>
          story.post("/agents", clerk("*/5 * * * *"))
        )
        // Three instants were missed while no server ran.
        const missed = [3, 2, 1].map((times) => fiveMinutesBefore(agent.nextFireAt, times).toISOString())
        yield* passUntil(access, agent, new Date(missed[0] ?? 0))
        const madeUp = (runs: ReadonlyArray<Json>) => runs.filter((run) => missed.includes(run.trigger.dueAt))
        yield* whileServing(access, projectId, (story) =>
          Effect.gen(function* () {
            yield* eventually(runsOf(story, agent), (runs) =>
              madeUp(runs).some((run) => run.status === "completed")
            )
            const [schedule] = yield* schedulesOf(access, agent)
            expect(schedule?.cron).toBe("*/5 * * * *")
            expect(isOnFiveMinutes(String(schedule?.at))).toBe(true)
            expect(Date.parse(String(schedule?.at))).toBeGreaterThanOrEqual(Date.parse(agent.nextFireAt))
            expect(madeUp(yield* runsOf(story, agent))).toHaveLength(1)
          })
        )
      })
  )

  it.live(
    "S000-R44, R45 a server that starts hears the graph for its reaction agents, also what came before it",
    () =>
      Effect.gen(function* () {
        const { access, projectId } = yield* stoppedProject
        const [agent, disabled] = yield* whileServing(access, projectId, (story) =>
          Effect.all([
            story.post("/agents", watcher()),
            story.post("/agents", watcher({ name: "off", enabled: false }))
          ])
        )
        const create = (objectType: string) =>
          changeUnserved(access, projectId, { type: "create", objectType, key: null, data: {} })
        yield* create("Company")
        yield* create("Person")
        const waiting = yield* ask(
          access,
          "select count(*)::int from kb.graph_events where dispatched_at is null"
        )
        expect(waiting).toEqual([[2]])
        expect(yield* ask(access, "select count(*)::int from kb.agent_processing_log")).toEqual([[0]])

        yield* whileServing(access, projectId, (story) =>
          Effect.gen(function* () {
            const [person] = (yield* story.get("/objects?type=Person")).items
            expect(yield* entriesWhen(story, agent, 1)).toMatchObject([
              { graphObjectId: person.id, status: "completed" }
            ])
            const later = yield* make(story, "Person")
            const entries = yield* entriesWhen(story, agent, 2)
            expect(entries.map((entry) => entry.graphObjectId)).toEqual([person.id, later.id])
            expect(yield* endedRuns(story, agent, 2)).toHaveLength(2)
            expect(yield* entriesOf(story, disabled)).toEqual([])
            const feed = yield* eventually(story.get("/events"), (page) => page.items.length === 3)
            expect(feed.items.map((event: Json) => event.objectType)).toEqual(["Company", "Person", "Person"])
          })
        )
      })
  )

  it.live("S000-R45 an agent is not woken by what was committed before it was enabled", () =>
    Effect.gen(function* () {
      const { access, projectId } = yield* stoppedProject
      const agent = yield* whileServing(access, projectId, (story) =>
        story.post("/agents", watcher({ enabled: false }))
      )
      const create = changeUnserved(access, projectId, {
        type: "create",
        objectType: "Person",
        key: null,
        data: {}
      })
      yield* create
      // Nobody has dispatched the event yet, and the agent is enabled by the time that somebody does.
      yield* unserved(
        access,
        Effect.gen(function* () {
          const [database, agents] = [yield* Database, yield* Agents]
          const enable = agents.update(agent.id, { enabled: true }, UserId.make("admin"))
          yield* database.inProject(ProjectId.make(projectId), enable)
        })
      )
      yield* create
      yield* whileServing(access, projectId, (story) =>
        Effect.gen(function* () {
          const [before, after] = yield* feedOf(story, 2)
          expect(yield* entriesWhen(story, agent, 1)).toMatchObject([{ eventId: after.id }])
          expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${before.id}`)).toMatchObject({
            outcome: "refused",
            rule: "enabledLater"
          })
        })
      )
    })
  )
})

/** A project in a database that no server serves. */
const stoppedProject = Effect.gen(function* () {
  const access = yield* freshDatabase
  const { projectId } = yield* Effect.scoped(
    Effect.flatMap(startServer(access), (doors) => newProject(doors, access))
  )
  return { access, projectId }
})
