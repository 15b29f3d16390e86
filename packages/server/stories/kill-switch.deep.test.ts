/**
 * One switch stops every agent of a project or of the server; nothing is lost, and all goes on afterwards.
 */
import { describe, expect, it as live, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { runLimits } from "../src/limits.ts"
import { codeIn } from "../testing/kept-lines.ts"
import { ask, holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, newStory, scripted, type Story } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  change,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  isOver,
  make,
  runsOf,
  versionsOf,
  watcher
} from "../testing/story-words.ts"

const minute = 60_000

const stop = (story: Story, reason = "Wrong deletions") =>
  story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped: true, reason })

const goOn = (story: Story) =>
  story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped: false })

const isPaused = (run: Json) => run.status === "paused"

/** An agent that thinks for a minute and then writes an object. */
const slowWriter = (overrides: Record<string, unknown> = {}) =>
  watcher({
    model: {
      provider: "scripted",
      name: "slow",
      script: {
        rules: [
          {
            when: "step == 0",
            latencyMs: minute,
            calls: [{ tool: "create_object", arguments: { type: "Note", properties: {} } }]
          },
          { say: "Written." }
        ]
      }
    },
    ...overrides
  })

/** Steps in which a heartbeat reaches the database before its lease seems to be over, on a busy machine, too. */
const unhurried = 500

/** A run whose attempt has met a switch that is on and that no run follows yet; `lost` is how many attempts have said that they lost theirs. */
const metByAnAttempt = Effect.gen(function* () {
  const { log } = yield* SharedServer
  const story = yield* newStoryHere
  const agent = yield* story.post("/agents", slowWriter())
  yield* make(story, "Person")
  yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
  const all = Effect.sync(() => log.filter(({ message }) => codeIn(message) === "attemptLost"))
  const before = (yield* all).length
  const lost = Effect.map(all, ({ length }) => length - before)
  // No sweep makes good what nobody else does.
  yield* holding(story.access, lockOf("switches"))
  const claim = yield* holding(story.access, lockOf("claims"))
  yield* ask(
    story.access,
    "insert into kb.kill_switches (project_id, reason, stopped_by) values ($1, 'A moment', 'ada')",
    [story.projectId]
  )
  yield* asTimePasses(unhurried, lost, (count) => count === 1)
  return { agent, claim, lost, story }
})

/** Its run ends well in its first attempt and its first turn: nobody has taken it for dead. */
const goesOnAtOnce = Effect.fnUntraced(function* (story: Story, agent: Json) {
  const [run] = yield* asTimePasses(unhurried, runsOf(story, agent), ([found]) => found.completedAt !== null)
  expect(run).toMatchObject({ status: "completed", summary: "Written.", attempt: 1 })
  const { items } = yield* story.get(`/runs/${run.id}/events?limit=200`)
  expect(items.map(({ type }: Json) => type)).not.toContain("AgentTurnInterruptedEvent")
  expect((yield* story.get("/objects?type=Note")).items).toHaveLength(1)
})

layer(SharedServer.layer)((it) => {
  describe("Safeguards: the kill switch of a project (S001-K04)", () => {
    it.effect("stops a run at work before its next write, and lets it go on when it is released", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slowWriter())
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")

        const answer = yield* stop(story)
        expect(answer).toMatchObject({
          status: 200,
          body: { stopped: { scope: "project", reason: "Wrong deletions", stoppedBy: "admin" } }
        })
        // When the switch has answered, the run is at rest and says why.
        expect(yield* runsOf(story, agent)).toMatchObject([{ status: "paused", pauseReason: "killSwitch" }])
        expect(yield* story.send("GET", `/api/projects/${story.projectId}`)).toMatchObject({
          body: { id: story.projectId, stopped: answer.body.stopped }
        })
        // The model's answer comes; nothing is written with it.
        yield* asTimePasses(minute, runsOf(story, agent), (runs) => runs.every(isPaused))
        expect((yield* story.get("/objects?type=Note")).items).toEqual([])
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "processing" }])

        expect(yield* goOn(story)).toMatchObject({ status: 200, body: { stopped: null } })
        const [run] = yield* asTimePasses(
          minute / 4,
          runsOf(story, agent),
          ([found]) => found.completedAt !== null
        )
        expect(run).toMatchObject({ status: "completed", summary: "Written.", pauseReason: null, attempt: 1 })
        expect((yield* story.get("/objects?type=Note")).items).toHaveLength(1)
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "completed", attempt: 1 }])
      })
    )

    it.effect("keeps what comes of the object of a paused run, also for an agent that skips", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          slowWriter({ reactionConfig: { objectTypes: ["Person"], events: ["created", "updated"] } })
        )
        const person = yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        yield* stop(story)
        yield* change(story, person, { name: "Ada" }, { name: "Grace" })
        yield* feedOf(story, 3)
        const waiting = yield* entriesOf(story, agent)
        expect(waiting.map((entry) => entry.status)).toEqual(["processing", "pending", "pending"])
        expect(waiting[1]?.reason).toBeTypeOf("string")

        yield* goOn(story)
        const entries = yield* asTimePasses(
          minute / 4,
          entriesOf(story, agent),
          (found) => found.length === 3 && found.every(isOver)
        )
        expect(entries.map((entry) => entry.status)).toEqual(["completed", "completed", "completed"])
        expect((yield* runsOf(story, agent)).map(versionsOf)).toEqual([[1], [2, 3]])
      })
    )

    it.effect("lets no run begin, while events are recorded and wait; none of them is lost", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        yield* stop(story)
        const people = yield* Effect.forEach(Array.from({ length: 3 }), () => make(story, "Person"))
        yield* feedOf(story, 3)
        const waiting = yield* asTimePasses(1_000, entriesOf(story, agent), (found) => found.length === 3)
        expect(waiting.map((entry) => [entry.graphObjectId, entry.status])).toEqual(
          people.map((person) => [person.id, "pending"])
        )
        for (const entry of waiting) expect(entry.reason).toBeTypeOf("string")
        expect(yield* runsOf(story, agent)).toEqual([])

        yield* goOn(story)
        const entries = yield* asTimePasses(1_000, entriesOf(story, agent), (found) =>
          found.every((entry) => entry.status === "completed")
        )
        expect(entries.map((entry) => entry.graphObjectId)).toEqual(people.map((person) => person.id))
        expect(yield* runsOf(story, agent)).toHaveLength(3)
      })
    )

    it.effect(
      "answers a door that would trigger an agent 409 with the reason, and other projects go on",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ triggerType: "manual" }))
          yield* story.post("/contexts", { name: "talk", agentId: agent.id })
          yield* stop(story, "An audit")
          const refused = {
            status: 409,
            body: { reason: "stopped", detail: expect.stringContaining("An audit") }
          }
          expect(yield* story.ask("POST", `/agents/${agent.id}/trigger`, {})).toMatchObject(refused)
          const message = { type: "UserMessageEvent", content: "Hello" }
          expect(yield* story.ask("POST", "/contexts/talk/events", message)).toMatchObject(refused)
          expect(yield* story.get("/contexts/talk")).toMatchObject({ eventCount: 0 })
          expect(yield* runsOf(story, agent)).toEqual([])

          const other = yield* newStoryHere
          const free = yield* other.post("/agents", watcher())
          yield* make(other, "Person")
          expect(yield* endedRuns(other, free, 1)).toMatchObject([{ status: "completed" }])
          yield* goOn(story)
          expect((yield* story.ask("POST", `/agents/${agent.id}/trigger`, {})).status).toBe(200)
        })
    )

    it.effect("is followed by the runs also when the program that turned it died at once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slowWriter())
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        // Committed, and nothing done after it.
        yield* ask(
          story.access,
          "insert into kb.kill_switches (project_id, reason, stopped_by) values ($1, 'Died here', 'ada')",
          [story.projectId]
        )
        const [run] = yield* asTimePasses(1_000, runsOf(story, agent), (runs) => runs.every(isPaused))
        expect(run).toMatchObject({ pauseReason: "killSwitch" })
        yield* ask(story.access, "delete from kb.kill_switches where project_id = $1", [story.projectId])
        yield* asTimePasses(minute / 4, runsOf(story, agent), ([found]) => found.completedAt !== null)
        expect((yield* story.get("/objects?type=Note")).items).toHaveLength(1)
      })
    )

    it.effect("counts the runs that it has stopped as live from the moment at which it is off", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = { objectTypes: ["Person"], events: ["created"], maxConcurrency: 1 }
        const agent = yield* story.post("/agents", slowWriter({ reactionConfig }))
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        yield* stop(story)

        // A claim that is not committed yet keeps the runs from following the switch.
        const claim = yield* holding(story.access, lockOf("claims", "_shared"))
        const released = yield* Effect.forkScoped(goOn(story))
        yield* whenWaiting(story.access, 1)
        yield* make(story, "Person")
        yield* asTimePasses(
          1_000,
          entriesOf(story, agent),
          ([, second]) => second !== undefined && (second.reason !== null || second.runId !== null)
        )
        expect(yield* runsOf(story, agent)).toMatchObject([{ pauseReason: "killSwitch" }])
        yield* claim.query("commit")
        expect(yield* Fiber.join(released)).toMatchObject({ status: 200, body: { stopped: null } })
        expect(yield* runsOf(story, agent)).toHaveLength(1)
        const runs = yield* asTimePasses(
          minute / 4,
          runsOf(story, agent),
          (found) => found.length === 2 && found.every((run) => run.completedAt !== null)
        )
        expect(runs.map((run) => run.status)).toEqual(["completed", "completed"])
      })
    )

    it.effect("loses no run whose attempt met it in the moment before it was off again", () =>
      Effect.gen(function* () {
        const { agent, claim, lost, story } = yield* metByAnAttempt
        // The attempt finds that it may not write; the switch is off before its run has followed.
        yield* ask(story.access, "delete from kb.kill_switches where project_id = $1", [story.projectId])
        yield* claim.query("commit")
        yield* goesOnAtOnce(story, agent)
        expect(yield* lost).toBe(1)
      })
    )

    it.effect("lets a run rest whose attempt met it before the runs had followed it", () =>
      Effect.gen(function* () {
        const { agent, claim, lost, story } = yield* metByAnAttempt
        yield* claim.query("commit")
        yield* eventually(runsOf(story, agent), (runs) => runs.every(isPaused))
        expect(yield* runsOf(story, agent)).toMatchObject([{ pauseReason: "killSwitch", attempt: 0 }])
        expect(yield* goOn(story)).toMatchObject({ status: 200, body: { stopped: null } })
        yield* goesOnAtOnce(story, agent)
        expect(yield* lost).toBe(1)
      })
    )

    it.effect("finds no run held by a worker that waits with its claims until all have followed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slowWriter())
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        // Only the worker waits: no sweep does.
        yield* holding(story.access, lockOf("switches"))
        const following = yield* holding(story.access, lockOf("claims"))
        // Its workers have died as often as they may: the next that looks gives it up, and then claims.
        yield* ask(
          story.access,
          "update kb.agent_runs set attempt = $2, attempt_token = null, lease_expires_at = now() where project_id = $1",
          [story.projectId, runLimits.maxAttemptsInAll]
        )
        const waiting = whenWaiting(story.access, 1)
        yield* Effect.raceFirst(waiting, Effect.forever(asTimePasses(1_000, Effect.void, () => true)))
        // Whoever gives it up has it for a moment, and waits for no claims.
        yield* following.query("set local lock_timeout = '10s'")
        yield* following.query(
          `select id from kb.agent_runs where project_id = '${story.projectId}' for update`
        )
        yield* following.query("commit")
        const [run] = yield* asTimePasses(
          1_000,
          runsOf(story, agent),
          ([found]) => found.completedAt !== null
        )
        expect(run).toMatchObject({ status: "failed" })
      })
    )

    it.effect("needs a reason to stop, and says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const body of [
          { stopped: true },
          { stopped: true, reason: null },
          { stopped: true, reason: " " }
        ]) {
          const answer = yield* story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, body)
          expect([answer.status, answer.body.errors?.[0].pointer]).toEqual([422, "/reason"])
        }
        const path = "/api/projects/00000000-0000-7000-8000-000000000000/kill-switch"
        expect((yield* story.send("PUT", path, { stopped: true, reason: "x" })).status).toBe(404)
        expect((yield* story.send("GET", path)).status).toBe(404)
        expect(yield* story.send("GET", `/api/projects/${story.projectId}/kill-switch`)).toMatchObject({
          status: 200,
          body: { stopped: null }
        })
      })
    )
  })
})

describe("Safeguards: the kill switch of the server", () => {
  live.live("stops the agents of every project, under load, and after it has answered none writes", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const other = yield* newProject(story, story.access)
      const stories = [story, other]
      // Each takes a second, and a worker has few hands: most of them are still to write when some have.
      const call = { tool: "create_object", arguments: { type: "Note", properties: {} } }
      const writing = scripted([{ when: "step == 0", latencyMs: 1_000, calls: [call] }, { say: "Written." }])
      for (const each of stories)
        yield* each.post(
          "/agents",
          watcher({ model: writing, reactionConfig: { objectTypes: ["Person"], events: ["created"] } })
        )
      const notes = Effect.map(
        Effect.forEach(stories, (each) => each.get("/objects?type=Note&limit=200")),
        (pages) => pages.flatMap((page) => page.items.map((item: Json) => item.id)).toSorted()
      )
      const people = 40
      // None begins before all of them have something to do.
      const claims = yield* holding(story.access, lockOf("claims"))
      for (const each of stories)
        yield* Effect.forEach(Array.from({ length: people }), () => make(each, "Person"), { concurrency: 10 })
      yield* claims.query("commit")
      yield* eventually(notes, (found) => found.length > 2)

      const stopped = yield* story.send("PUT", "/api/kill-switch", { stopped: true, reason: "Enough" })
      expect(stopped).toMatchObject({ status: 200, body: { stopped: { scope: "server", reason: "Enough" } } })
      const before = yield* notes
      expect(before.length).toBeLessThan(2 * people)
      for (const each of stories) {
        yield* feedOf(each, people)
        // A run that was claimed in the very moment can write nothing either, and the sweep lets it rest.
        yield* eventually(each.get("/runs?status=running"), (page) => page.items.length === 0)
        expect(yield* each.send("GET", `/api/projects/${each.projectId}/kill-switch`)).toMatchObject({
          body: { stopped: { scope: "server" } }
        })
        // A person's own change goes through: only agents are stopped.
        yield* make(each, "Company")
      }
      expect(yield* notes).toEqual(before)

      yield* story.send("PUT", "/api/kill-switch", { stopped: false })
      expect(yield* eventually(notes, (found) => found.length === 2 * people, 30_000)).toHaveLength(
        2 * people
      )
    })
  )
})
