/**
 * Entries that nobody works on any more: found by themselves, and tried again.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Clock, ConfigProvider, Deferred, Effect } from "effect"
import type { Change } from "@tropism/domain/change"
import { ProjectId } from "@tropism/domain/ids"
import { TestClock } from "effect/testing"
import { Sweeps } from "../src/cluster/sweeps.ts"
import { Database, type ProjectTransaction } from "../src/database/database.ts"
import { Dispatcher } from "../src/reactions/dispatcher.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { runLimits } from "../src/limits.ts"
import { chatChunk, chatEnd, toEvent } from "../testing/fake-model-server.ts"
import { WorkerLiveness } from "../src/runs/liveness.ts"
import { Runs } from "../src/runs/run-store.ts"
import { logOf } from "../testing/context-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { answering, atCall, newOddShop, said } from "../testing/mcp-odd-server.ts"
import { wiredStory, wireModel } from "../testing/model-words.ts"
import { ask, refusingToFail } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, slots, startServer, type Story } from "../testing/platform.ts"
import { changeUnserved, unserved, whileServing } from "../testing/restarts.ts"
import {
  asTimePasses,
  newStoryHere,
  passing,
  patientDatabase,
  SharedServer
} from "../testing/shared-server.ts"
import {
  calling,
  change,
  entriesOf,
  entriesWhen,
  explained,
  isOver,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"

const isProcessing = (entry: Json) => entry.status === "processing"

/** Between two heartbeats. */
const beatMs = runLimits.heartbeatIntervalMs

/** Progress is judged by heartbeats and found by a sweep; a machine that is busy does some of them late. */
const latestMs = runLimits.stuckAfterMs + 2 * runLimits.stuckIntervalMs + 6 * beatMs

/** The server's own loops look at least so often. */
const secondMs = 1_000

/** Makes an entry one that has been in processing for longer than the five minutes of the design. */
const age = (story: Story, entry: Json) =>
  ask(
    story.access,
    "update kb.agent_processing_log set started_at = now() - interval '301 seconds' where id = $1",
    [entry.id]
  )

/** Leaves an entry without anybody who would end it: its run is over and has not said so. */
const orphan = (story: Story, entry: Json) =>
  ask(story.access, "update kb.agent_runs set status = 'cancelled', attempt_token = null where id = $1", [
    entry.runId
  ])

/** Gives a run to a worker that has died: its token is nobody's, and its lease is over. */
const giveToDead = (story: Story, entry: Json, attempt: number) =>
  ask(
    story.access,
    `update kb.agent_runs set attempt_token = gen_random_uuid(), worker_id = 'dead', attempt = $2, attempts_before_step = 0,
       lease_expires_at = now() - interval '1 second' where id = $1`,
    [entry.runId, attempt]
  )

const newPerson: Change = { type: "create", objectType: "Person", key: null, data: {} }

const inProjectOf =
  (projectId: string) =>
  <A, E>(effect: Effect.Effect<A, E, ProjectTransaction>) =>
    Effect.flatMap(Database, (database) => database.inProject(ProjectId.make(projectId), effect))

/** What an outage leaves of as many new Persons: runs that a worker had, in processing for an hour, with leases that are over for so long. */
const leaveAtWork = Effect.fnUntraced(function* (
  access: PostgresAccess,
  projectId: string,
  count: number,
  outageSeconds: number
) {
  yield* changeUnserved(access, projectId, ...Array.from({ length: count }, () => newPerson))
  yield* unserved(
    access,
    Effect.gen(function* () {
      yield* (yield* Dispatcher).round
      const { claim } = yield* Runs
      yield* inProjectOf(projectId)(claim("a worker that dies", { limit: count, oldest: 0, backtests: 0 }))
    })
  )
  yield* ask(access, "update kb.agent_processing_log set started_at = now() - interval '1 hour'")
  yield* ask(
    access,
    `update kb.agent_runs set lease_expires_at = now() - interval '${outageSeconds} seconds' where status = 'running'`
  )
})

/** The server is there for five minutes, and at each look has a hand for whatever waits. */
const attend = Effect.gen(function* () {
  const { note } = yield* WorkerLiveness
  const steps = runLimits.stuckAfterMs / runLimits.attendanceGapMs
  yield* Effect.andThen(note(true), TestClock.adjust(runLimits.attendanceGapMs)).pipe(
    Effect.repeat({ times: steps - 1 })
  )
})

/** Entries in processing of as many Persons, with a model that does not answer for ten minutes. */
const held = Effect.fnUntraced(function* (story: Story, count: number) {
  const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000) }))
  yield* Effect.forEach(Array.from({ length: count }), () => make(story, "Person"))
  return { agent, entries: yield* entriesWhen(story, agent, count, isProcessing) }
})

const cancelAll = Effect.fnUntraced(function* (story: Story, agent: Json) {
  for (const run of yield* runsOf(story, agent))
    if (run.status === "running") yield* story.post(`/runs/${run.id}/cancel`)
})

layer(SharedServer.layer)((it) => {
  describe("Scenario: Stuck Job Recovery", () => {
    it.effect(
      "S000-R19, R20, S001-R42 after five minutes in processing an entry is abandoned, time and again",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { agent, entries } = yield* held(story, 4)
          const [first, second, alive, young] = entries
          yield* age(story, alive)
          yield* orphan(story, young)
          yield* age(story, first)
          yield* orphan(story, first)
          const statuses = (found: ReadonlyArray<Json>) => found.map((entry) => entry.status)
          const once = yield* asTimePasses(secondMs, entriesOf(story, agent), ([entry]) => isOver(entry))
          expect(statuses(once)).toEqual(["abandoned", "processing", "processing", "processing"])
          expect(once[0]).toMatchObject({
            errorMessage: expect.any(String),
            completedAt: expect.any(String)
          })

          // Nobody called the detector, and it looks again: it runs by itself and periodically.
          yield* age(story, second)
          yield* orphan(story, second)
          const twice = yield* asTimePasses(secondMs, entriesOf(story, agent), ([, entry]) => isOver(entry))
          expect(statuses(twice)).toEqual(["abandoned", "abandoned", "processing", "processing"])
          expect(yield* story.get(`/runs/${alive.runId}`)).toMatchObject({ status: "running", attempt: 1 })
          yield* cancelAll(story, agent)
        })
    )

    it.effect(
      "S000-R19, S001-R42 a dead worker's run is taken over first, and abandoned when no attempt is left",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { agent, entries } = yield* held(story, 1)
          const [entry] = entries
          const run = story.get(`/runs/${entry.runId}`)
          yield* age(story, entry)
          yield* giveToDead(story, entry, 1)
          yield* asTimePasses(secondMs, run, (found) => found.attempt === 2)
          expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "processing", errorMessage: null }])

          yield* giveToDead(story, entry, runLimits.maxAttempts)
          const [ended] = yield* asTimePasses(secondMs, entriesOf(story, agent), ([found]) => isOver(found))
          expect(ended).toMatchObject({ status: "abandoned", errorMessage: expect.any(String) })
          expect(yield* run).toMatchObject({ status: "failed", attempt: runLimits.maxAttempts })
        })
    )
  })

  describe("An entry whose run nobody takes over", () => {
    it.effect(
      "S001-R42 is left to other workers for five minutes and then abandoned together with its run",
      () =>
        Effect.gen(function* () {
          const { access, projectId } = yield* stoppedProject
          const agent = yield* whileServing(access, projectId, (story) => story.post("/agents", watcher()))
          yield* leaveAtWork(access, projectId, 1, 0)
          const inProject = inProjectOf(projectId)
          yield* unserved(
            access,
            Effect.gen(function* () {
              const { abandonStuck } = yield* Sweeps
              const runs = yield* Runs
              const lapsed = (seconds: number) =>
                ask(
                  access,
                  `update kb.agent_runs set lease_expires_at = now() - interval '${seconds} seconds'`
                )
              yield* lapsed(310)
              // Whoever has just come could not have taken it.
              expect(yield* abandonStuck).toBe(0)
              yield* attend
              yield* lapsed(290)
              expect(yield* abandonStuck).toBe(0)
              expect(
                yield* inProject(runs.takeOver("another that dies", { limit: 1, backtests: 0 }))
              ).toMatchObject([{ attempt: 2 }])
              yield* lapsed(310)
              expect(yield* abandonStuck).toBe(1)
              expect(
                yield* inProject(runs.takeOver("one that comes late", { limit: 1, backtests: 0 }))
              ).toEqual([])
              expect(yield* abandonStuck).toBe(0)
            })
          )
          yield* whileServing(access, projectId, (story) =>
            Effect.gen(function* () {
              const [entry] = yield* entriesOf(story, agent)
              expect(entry).toMatchObject({ status: "abandoned", errorMessage: expect.any(String) })
              expect(yield* runsOf(story, agent)).toMatchObject([
                { id: entry.runId, status: "failed", errorMessage: entry.errorMessage, attempt: 2 }
              ])
            })
          )
        })
    )
  })

  describe("Entries of which one cannot be ended", () => {
    it.effect("S000-R19 are abandoned one by one, and it keeps none of the others", () =>
      Effect.gen(function* () {
        const { access, projectId } = yield* stoppedProject
        const agent = yield* whileServing(access, projectId, (story) => story.post("/agents", watcher()))
        yield* leaveAtWork(access, projectId, 3, 310)
        const [[held] = []] = yield* ask(access, "select id from kb.agent_runs order by id")
        const letFail = yield* refusingToFail(access, held)
        yield* unserved(
          access,
          Effect.gen(function* () {
            const { abandonStuck } = yield* Sweeps
            yield* attend
            expect(yield* abandonStuck).toBe(2)
            yield* letFail
            expect(yield* abandonStuck).toBe(1)
            expect(yield* abandonStuck).toBe(0)
          })
        )
        yield* whileServing(access, projectId, (story) =>
          Effect.gen(function* () {
            const entries = yield* entriesOf(story, agent)
            expect(entries.map(({ status }) => status)).toEqual(["abandoned", "abandoned", "abandoned"])
            const runs = yield* runsOf(story, agent)
            expect(runs.map(({ status }) => status)).toEqual(["failed", "failed", "failed"])
          })
        )
      })
    )
  })

  describe("Runs that an outage of more than five minutes left at work", () => {
    it.effect("are taken over, however many there are beside the hands for them, and none is abandoned", () =>
      Effect.gen(function* () {
        const access = yield* patientDatabase
        const { projectId } = yield* stoppedProjectIn(access)
        // So long that the last of them wait for a hand for more than five minutes.
        const longMs = 0.55 * runLimits.stuckAfterMs
        const agent = yield* whileServing(access, projectId, (story) =>
          story.post("/agents", watcher({ model: silentFor(longMs) }))
        )
        const count = 2 * slots
        yield* leaveAtWork(access, projectId, count + 1, 600)
        yield* whileServing(access, projectId, (story) =>
          Effect.gen(function* () {
            const [lost] = yield* entriesOf(story, agent)
            yield* orphan(story, lost)
            // Whoever looks for the stuck has found the one that nobody could take over.
            const [, ...left] = yield* asTimePasses(secondMs, entriesOf(story, agent), ([entry]) =>
              isOver(entry)
            )
            expect(left.map(({ status }) => status)).toEqual(left.map(() => "processing"))
            const ended = yield* asTimePasses(8 * secondMs, entriesOf(story, agent), (entries) =>
              entries.every(isOver)
            )
            expect(ended.map(({ status }) => status)).toEqual(["abandoned", ...left.map(() => "completed")])
            const [, ...runs] = yield* runsOf(story, agent)
            expect(runs.map(({ attempt }) => attempt)).toEqual(Array.from({ length: count }, () => 2))
            expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ enabled: true })
          })
        )
      })
    )
  })

  describe("A run at work of which nothing comes", () => {
    it.effect(
      "S000-R19, S001-R42, S001-R24 is abandoned after five minutes with its reason, writes nothing more, and holds up no later event",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const reactionConfig = { objectTypes: ["Person"], events: ["created", "updated"] }
          const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000), reactionConfig }))
          const person = yield* make(story, "Person")
          yield* entriesWhen(story, agent, 1, isProcessing)
          const beganMs = yield* Clock.currentTimeMillis
          const [entry] = yield* asTimePasses(beatMs, entriesOf(story, agent), ([first]) => isOver(first))
          const tookMs = (yield* Clock.currentTimeMillis) - beganMs
          expect([tookMs >= runLimits.stuckAfterMs, tookMs <= latestMs]).toEqual([true, true])
          expect(entry).toMatchObject({
            status: "abandoned",
            failureReason: "noProgress",
            errorMessage: expect.stringContaining("300"),
            deadLetteredAt: expect.any(String)
          })
          const run = yield* story.get(`/runs/${entry.runId}`)
          const { errorMessage } = entry
          expect(run).toMatchObject({
            status: "failed",
            failureReason: "noProgress",
            errorMessage,
            attempt: 1
          })
          const log = yield* logOf(story, run.contextName)
          expect(log.slice(-2)).toMatchObject([
            { type: "AgentTurnFailedEvent", reason: "noProgress", error: errorMessage },
            { type: "SessionEndedEvent" }
          ])
          const told = yield* explained(story, agent, { id: entry.eventId })
          expect(told).toMatchObject({ outcome: "woke", entry: { failureReason: "noProgress" } })
          expect(told.reason).toContain(errorMessage)

          // The attempt has lost its token: what its model says now is written by nobody.
          expect(
            yield* ask(story.access, "select attempt_token from kb.agent_runs where id = $1", [run.id])
          ).toEqual([[null]])
          yield* passing(600_000, beatMs)
          expect(yield* logOf(story, run.contextName)).toEqual(log)
          yield* story.patch(`/agents/${agent.id}`, { model: saying("Heard.") })
          yield* change(story, person, { n: 2 })
          const [, next] = yield* entriesWhen(story, agent, 2)
          expect(next).toMatchObject({ status: "completed", objectVersion: 2, failureReason: null })
        })
    )

    it.effect("S001-R42 is ended without an entry, too: a run by hand, and one that another waits for", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const byHand = { triggerType: "manual", reactionConfig: null }
        const silent = yield* story.post(
          "/agents",
          watcher({ ...byHand, name: "silent", model: silentFor(600_000) })
        )
        const boss = yield* story.post(
          "/agents",
          watcher({
            name: "boss",
            tools: ["run.spawn_agent"],
            subAgents: ["silent"],
            model: calling({ tool: "spawn_agent", arguments: { agent: "silent", task: "Help." } })
          })
        )
        const run = yield* story.post(`/agents/${silent.id}/trigger?wait=false`, {})
        yield* make(story, "Person")
        yield* eventually(
          runsOf(story, silent),
          (runs) => runs.filter(({ status }) => status === "running").length === 2
        )
        const [entry] = yield* asTimePasses(beatMs, entriesOf(story, boss), ([first]) => isOver(first))
        // The one that waits is no run at work: what became of the other is its answer.
        expect(entry).toMatchObject({ status: "completed", failureReason: null })
        const failed = { status: "failed", failureReason: "noProgress" }
        expect(yield* story.get(`/runs/${run.id}`)).toMatchObject(failed)
        expect(yield* runsOf(story, silent)).toMatchObject([failed, failed])
        expect(yield* runsOf(story, boss)).toMatchObject([{ status: "completed", failureReason: null }])
      })
    )

    it.effect("S001-R42 is none whose model thinks: what nobody is shown is a sign of life", () =>
      Effect.gen(function* () {
        const thought = toEvent(chatChunk({ reasoning_content: "Hm." }))
        const rest = [
          thought,
          thought,
          thought,
          [chatChunk({ content: "At last." }), ...chatEnd("stop")].map(toEvent).join("")
        ]
        const { models, story } = yield* wiredStory([
          { kind: "stream", chunks: [thought], ending: "hang", rest }
        ])
        const agent = yield* story.post("/agents", watcher({ model: wireModel }))
        yield* make(story, "Person")
        yield* Deferred.await(models.asked)
        for (const _ of rest) {
          yield* passing(100_000, beatMs)
          yield* models.letGoOn
        }
        const [entry] = yield* entriesWhen(story, agent, 1)
        expect(entry).toMatchObject({ status: "completed" })
        expect(yield* story.get(`/runs/${entry.runId}`)).toMatchObject({ summary: "At last.", attempt: 1 })
      })
    )

    it.effect("S001-R42 is none whose tool is at work within its own limit", () =>
      Effect.gen(function* () {
        const called = yield* Deferred.make<void>()
        const answer = yield* Deferred.make<void>()
        const run = Effect.runPromiseWith(yield* Effect.context<never>())
        const { story } = yield* newOddShop(
          atCall((message) => {
            Deferred.doneUnsafe(called, Effect.void)
            return run(Deferred.await(answer)).then(() => answering(message, said("fig is a word.")))
          }),
          {},
          { callTimeoutMs: 600_000 }
        )
        const model = calling({ tool: "shop__lookup", arguments: { word: "fig" } })
        const agent = yield* story.post("/agents", watcher({ tools: ["shop.*"], model }))
        yield* make(story, "Person")
        yield* Deferred.await(called)
        yield* passing(500_000, beatMs)
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "processing" }])
        yield* Deferred.succeed(answer, undefined)
        expect(yield* entriesWhen(story, agent, 1)).toMatchObject([{ status: "completed" }])
      })
    )

    it.effect(
      "S004-R45 is none that has a fallback: it is asked where the first model was silent for minutes",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const fallback = { provider: "scripted", name: "daily-digest" }
          const agent = yield* story.post("/agents", watcher({ model: { ...silentFor(600_000), fallback } }))
          yield* make(story, "Person")
          yield* entriesWhen(story, agent, 1, isProcessing)
          const [entry] = yield* asTimePasses(beatMs, entriesOf(story, agent), ([first]) => isOver(first))
          expect(entry).toMatchObject({ status: "completed" })
        })
    )

    it.effect("S001-R42 is abandoned when the operator says", () =>
      Effect.gen(function* () {
        const access = yield* patientDatabase
        const doors = yield* startServer(access).pipe(
          Effect.provide(
            ConfigProvider.layer(ConfigProvider.fromUnknown({ TROPISM_STUCK_AFTER_SECONDS: "60" }))
          )
        )
        const story = yield* newProject(doors, access)
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000) }))
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, isProcessing)
        const beganMs = yield* Clock.currentTimeMillis
        const [entry] = yield* asTimePasses(beatMs, entriesOf(story, agent), ([first]) => isOver(first))
        expect(entry).toMatchObject({ status: "abandoned", failureReason: "noProgress" })
        expect((yield* Clock.currentTimeMillis) - beganMs).toBeLessThan(runLimits.stuckAfterMs)
      })
    )
  })

  describe("Decision: stuck job handling", () => {
    it.effect(
      "S001-R43 an abandoned entry can be retried: a new entry, a new run, and the old one stays",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { agent, entries } = yield* held(story, 1)
          const [entry] = entries
          yield* giveToDead(story, entry, runLimits.maxAttempts)
          const [abandoned] = yield* asTimePasses(secondMs, entriesOf(story, agent), ([found]) =>
            isOver(found)
          )
          yield* story.patch(`/agents/${agent.id}`, { model: saying("Done at last.") })
          const retry = `/agents/${agent.id}/processing-log/${entry.id}/retry`
          const answers = yield* Effect.all(
            Array.from({ length: 5 }, () => story.ask("POST", retry)),
            { concurrency: 5 }
          )
          expect(answers.map((answer) => answer.status).toSorted()).toEqual([201, 409, 409, 409, 409])
          const made = answers.find((answer) => answer.status === 201)?.body
          const { graphObjectId, objectVersion, eventType, eventId } = abandoned
          expect(made).toMatchObject({ graphObjectId, objectVersion, eventType, eventId, attempt: 2 })
          const after = yield* entriesWhen(story, agent, 2)
          expect(after).toMatchObject([
            { ...abandoned, deadLetteredAt: null },
            { id: made.id, status: "completed", attempt: 2 }
          ])
          expect(yield* runsOf(story, agent)).toMatchObject([
            { id: entry.runId, status: "failed" },
            { id: made.runId, status: "completed", summary: "Done at last." }
          ])
        })
    )

    it.effect("S001-R43 only what failed or was abandoned can be retried, of an agent that is enabled", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: saying("Done.") }))
        yield* make(story, "Person")
        const [completed] = yield* entriesWhen(story, agent, 1)
        const retryOf = (entry: Json) =>
          story.ask("POST", `/agents/${agent.id}/processing-log/${entry.id}/retry`)
        expect((yield* retryOf(completed)).status).toBe(409)

        yield* story.patch(`/agents/${agent.id}`, { model: silentFor(600_000) })
        yield* make(story, "Person")
        const [, working] = yield* entriesWhen(story, agent, 2, (entry) => entry.status !== "pending")
        expect((yield* retryOf(working)).status).toBe(409)
        yield* story.post(`/runs/${working.runId}/cancel`)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        expect((yield* retryOf(working)).status).toBe(409)
        yield* story.patch(`/agents/${agent.id}`, { enabled: true, model: saying("Done.") })
        expect((yield* retryOf(working)).status).toBe(201)
        expect((yield* retryOf({ id: agent.id })).status).toBe(404)
        yield* entriesWhen(story, agent, 3)
        expect((yield* runsOf(story, agent)).map((run) => run.status)).toEqual([
          "completed",
          "cancelled",
          "completed"
        ])
      })
    )
  })
})

/** A project in a database that no server serves. */
const stoppedProjectIn = Effect.fnUntraced(function* (access: PostgresAccess) {
  const { projectId } = yield* Effect.scoped(
    Effect.flatMap(startServer(access), (doors) => newProject(doors, access))
  )
  return { access, projectId }
})

const stoppedProject = Effect.flatMap(freshDatabase, stoppedProjectIn)
