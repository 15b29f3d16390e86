/**
 * What becomes of the instants of a schedule that nobody fired in time, or that came too soon.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Agents } from "../src/agents/agents.ts"
import { Database } from "../src/database/database.ts"
import { Scheduler } from "../src/reactions/schedules.ts"
import { dispatchLimits } from "../src/limits.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, startServer } from "../testing/platform.ts"
import { unserved, whileServing } from "../testing/restarts.ts"
import { clerk, instantsUntil, passUntil, periodsBefore, runDueAt } from "../testing/schedule-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, runsOf, saying, silentFor } from "../testing/story-words.ts"

const hourMs = 3_600_000

const hoursBefore = (at: string, times: number) => periodsBefore(at, times, hourMs)

const statusesOf = (runs: ReadonlyArray<Json>) => runs.map((run) => run.status)

/** The instants of so many hours before one, the oldest first. */
const hoursUntil = (at: string, count: number) =>
  Array.from({ length: count }, (_, index) => hoursBefore(at, count - index).toISOString())

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Missed instants after downtime", () => {
    it.effect("catchUp one: one run makes up for all that was missed, and says for what", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", clerk("0 * * * *", { model: saying("Late.") }))
        const [first, last] = [hoursBefore(agent.nextFireAt, 4), hoursBefore(agent.nextFireAt, 1)]
        yield* passUntil(story.access, agent, first)
        expect(yield* runDueAt(story, agent, first)).toMatchObject({
          status: "completed",
          trigger: { type: "schedule", dueAt: first.toISOString(), madeUpUntil: last.toISOString() }
        })
        expect(instantsUntil(yield* runsOf(story, agent), last)).toEqual([first.toISOString()])
      })
    )

    it.effect("catchUp none: nothing runs for what was missed, and the run list says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", clerk("0 0 * * *", { catchUp: "none" }))
        const [first, last] = [hoursBefore(agent.nextFireAt, 72), hoursBefore(agent.nextFireAt, 24)]
        yield* passUntil(story.access, agent, first)
        const skipped = yield* runDueAt(story, agent, first)
        expect(skipped).toMatchObject({
          status: "skipped",
          startedAt: null,
          contextName: `run-${skipped.id}`
        })
        expect(skipped.summary).toContain(last.toISOString())
        expect(skipped.summary).toContain("catchUp")
        expect(yield* story.get(`/runs?status=skipped&agentId=${agent.id}`)).toMatchObject({
          items: [{ id: skipped.id }]
        })
        expect((yield* story.get(`/runs/${skipped.id}/events`)).items).toEqual([])
        expect((yield* story.ask("POST", `/runs/${skipped.id}/cancel`)).status).toBe(409)
        // What is due just now is not missed.
        const now = new Date(Math.floor(Date.parse(agent.createdAt) / 60_000) * 60_000)
        const timely = yield* story.post("/agents", clerk("* * * * *", { name: "timely", catchUp: "none" }))
        yield* passUntil(story.access, timely, now)
        yield* eventually(runsOf(story, timely), (runs) => statusesOf(runs).includes("completed"))
      })
    )

    it.effect("catchUp all: each missed instant has its run, one after another where none may overlap", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          clerk("0 * * * *", { catchUp: "all", model: silentFor(150) })
        )
        const last = hoursBefore(agent.nextFireAt, 1)
        yield* passUntil(story.access, agent, hoursBefore(agent.nextFireAt, 4))
        const runs = yield* endedRuns(story, agent, 4)
        expect(instantsUntil(runs, last)).toEqual(hoursUntil(agent.nextFireAt, 4))
        for (const [index, run] of runs.entries()) {
          expect(run.status).toBe("completed")
          if (index > 0) expect(run.createdAt >= runs[index - 1].completedAt).toBe(true)
        }
        expect((yield* story.get(`/agents/${agent.id}/schedule`)).waiting).toBeNull()
      })
    )

    it.effect("catchUp all with overlapPolicy allow: the missed instants run beside each other", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const settings = { catchUp: "all", overlapPolicy: "allow", model: silentFor(600_000) }
        const agent = yield* story.post("/agents", clerk("0 * * * *", settings))
        yield* passUntil(story.access, agent, hoursBefore(agent.nextFireAt, 3))
        yield* eventually(
          runsOf(story, agent),
          (runs) => runs.length === 3 && runs.every((run) => run.status === "running")
        )
      })
    )

    it.effect("catchUp all: only the newest hundred are made up for, and what is cut is said", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const settings = { catchUp: "all", overlapPolicy: "allow", model: saying("Done.") }
        const agent = yield* story.post("/agents", clerk("0 * * * *", settings))
        const count = dispatchLimits.catchUpInstants
        const first = hoursBefore(agent.nextFireAt, count + 20)
        yield* passUntil(story.access, agent, first)
        const cut = yield* runDueAt(story, agent, first)
        expect(cut).toMatchObject({ status: "skipped" })
        expect(cut.summary).toContain(hoursBefore(agent.nextFireAt, count + 1).toISOString())
        expect(cut.summary).toMatch(new RegExp(`\\b${count}\\b`))
        const runs = yield* endedRuns(story, agent, count + 1)
        expect(instantsUntil(runs, hoursBefore(agent.nextFireAt, 1)).slice(1)).toEqual(
          hoursUntil(agent.nextFireAt, count)
        )
      })
    )
  })

  describe("Requirement: Time that passes while a kill switch is on", () => {
    it.effect("nothing fires; when the switch is off again, it is caught up with as missed time is", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        const agent = yield* story.post("/agents", clerk("0 * * * *", { model: saying("Late.") }))
        const witness = yield* other.post("/agents", clerk("0 * * * *", { model: saying("Seen.") }))
        const due = hoursBefore(agent.nextFireAt, 2)
        yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "Look first." })
        yield* passUntil(story.access, agent, due)
        yield* passUntil(story.access, witness, due)
        // The scheduler has looked when it has fired the other project's.
        yield* runDueAt(other, witness, due)
        expect(yield* runsOf(story, agent)).toEqual([])
        yield* story.ask("PUT", "/kill-switch", { stopped: false })
        expect(yield* runDueAt(story, agent, due)).toMatchObject({ status: "completed", summary: "Late." })
      })
    )
  })

  describe("Requirement: An agent has no more runs than it may have", () => {
    it.effect("a schedule that piles them up is skipped at the cap, with its reason", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const settings = {
          catchUp: "all",
          overlapPolicy: "allow",
          maxPendingRuns: 2,
          model: silentFor(600_000)
        }
        const agent = yield* story.post("/agents", clerk("0 * * * *", settings))
        yield* passUntil(story.access, agent, hoursBefore(agent.nextFireAt, 4))
        const runs = yield* eventually(
          runsOf(story, agent),
          (found) => statusesOf(found).filter((status) => status === "running").length === 2
        )
        const skipped = runs.filter(({ status }) => status === "skipped")
        expect(skipped).toHaveLength(2)
        for (const { summary } of skipped) expect(summary).toMatch(/\b2\b/)
      })
    )
  })

  describe("Requirement: An instant that comes while the earlier run is at work", () => {
    it.effect("overlapPolicy skip: it is skipped with its reason; the next one runs", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", clerk("0 * * * *", { model: silentFor(600_000) }))
        const [second, first] = [hoursBefore(agent.nextFireAt, 1), hoursBefore(agent.nextFireAt, 2)]
        yield* passUntil(story.access, agent, second)
        const [running] = yield* eventually(runsOf(story, agent), (runs) => runs[0]?.status === "running")
        yield* passUntil(story.access, agent, first)
        const skipped = yield* runDueAt(story, agent, first)
        expect(skipped).toMatchObject({ status: "skipped", summary: expect.any(String) })

        yield* story.post(`/runs/${running.id}/cancel`)
        const third = hoursBefore(agent.nextFireAt, 3)
        yield* passUntil(story.access, agent, third)
        yield* eventually(runsOf(story, agent), (runs) =>
          runs.some((run) => run.trigger.dueAt === third.toISOString() && run.status === "running")
        )
      })
    )

    it.effect("overlapPolicy skip: so it is while the earlier run waits for another, and for an answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", {
          ...clerk("0 * * * *", { name: "helper", model: silentFor(600_000) }),
          triggerType: "manual",
          cronSchedule: null
        })
        const waiting = {
          subAgents: [{ tool: "spawn_agent", arguments: { agent: "helper", task: "Help." } }],
          question: [{ tool: "ask_user", arguments: { question: "Shall I?" } }]
        }
        for (const [pauseReason, calls] of Object.entries(waiting)) {
          const model = scripted([{ when: "step == 0", calls }, { say: "Done." }])
          const settings = { name: pauseReason, model, tools: ["run.*", "user.*"], subAgents: ["helper"] }
          const agent = yield* story.post("/agents", clerk("0 * * * *", settings))
          const [second, first] = [hoursBefore(agent.nextFireAt, 1), hoursBefore(agent.nextFireAt, 2)]
          yield* passUntil(story.access, agent, second)
          yield* eventually(runsOf(story, agent), (runs) => runs[0]?.pauseReason === pauseReason)
          yield* passUntil(story.access, agent, first)
          expect(yield* runDueAt(story, agent, first)).toMatchObject({ status: "skipped" })
        }
      })
    )

    it.effect("overlapPolicy allow: it runs beside the earlier one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const settings = { overlapPolicy: "allow", model: silentFor(600_000) }
        const agent = yield* story.post("/agents", clerk("0 * * * *", settings))
        for (const times of [1, 2]) {
          yield* passUntil(story.access, agent, hoursBefore(agent.nextFireAt, times))
          yield* eventually(runsOf(story, agent), (runs) => runs.length === times)
        }
        yield* eventually(runsOf(story, agent), (runs) =>
          statusesOf(runs).every((status) => status === "running")
        )
      })
    )
  })
})

describe("Requirement: A schedule that is changed while it fires", () => {
  it.live("two servers and an editor: each instant fires once, and no due instant is lost", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { projectId } = yield* Effect.scoped(
        Effect.flatMap(startServer(access), (doors) => newProject(doors, access))
      )
      const agent = yield* whileServing(access, projectId, (story) =>
        story.post("/agents", clerk("0 * * * *", { overlapPolicy: "allow" }))
      )
      const instants = hoursUntil(agent.nextFireAt, 20)
      const fire = Effect.gen(function* () {
        const { round } = yield* Scheduler
        yield* round
      })
      const edit = (prompt: string) =>
        Effect.gen(function* () {
          const [database, agents] = [yield* Database, yield* Agents]
          const change = agents.update(agent.id, { prompt }, UserId.make("admin"))
          yield* database.inProject(ProjectId.make(projectId), change)
        })
      for (const [index, instant] of instants.entries()) {
        yield* passUntil(access, agent, new Date(instant))
        yield* unserved(
          access,
          Effect.all([fire, edit(`Prompt ${index}.`), fire, edit(`Prompt ${index}, again.`), fire], {
            concurrency: "unbounded"
          })
        )
        // Whoever came too late for the row finds it at the next look.
        yield* unserved(access, fire)
      }
      const fired = yield* ask(
        access,
        "select due_at, count(*)::int from kb.agent_runs where status = 'queued' and due_at < $1::timestamptz group by 1 order by 1",
        [agent.nextFireAt]
      )
      expect(fired.map(([at, count]) => [new Date(String(at)).toISOString(), count])).toEqual(
        instants.map((instant) => [instant, 1])
      )
    })
  )
})
