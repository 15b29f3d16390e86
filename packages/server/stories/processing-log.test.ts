/**
 * Which agent has handled which version of which object, and that it did so once.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { sharesOf } from "../src/runs/worker.ts"
import { ask, refusalOf } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, scripted, slots, startServer } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  isOver,
  make,
  runsOf,
  silentFor,
  watcher
} from "../testing/story-words.ts"

const minute = 60_000
const isProcessing = (entry: { readonly status: string }) => entry.status === "processing"
const changes = (concurrencyStrategy?: string) => ({
  objectTypes: ["Person"],
  events: ["created", "updated"],
  concurrencyStrategy
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: Agent Processing Log", () => {
    it.effect(
      "S000-R13, R14 a triggered agent has a pending entry that says agent, object, version and event",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: silentFor(minute) }))
          // One object more than the server works on at once for one project: the last one waits.
          const hands = slots - sharesOf(slots).spare
          const people = yield* Effect.forEach(Array.from({ length: hands + 1 }), () => make(story, "Person"))
          const entries = yield* eventually(
            entriesOf(story, agent),
            (found) => found.filter(isProcessing).length === hands && found.length === people.length
          )
          const [waiting] = entries.filter((entry) => entry.status === "pending")
          expect(waiting).toMatchObject({
            agentId: agent.id,
            graphObjectId: people.at(-1).id,
            objectVersion: 1,
            eventType: "created",
            startedAt: null,
            completedAt: null
          })
          expect(yield* story.get(`/runs/${waiting.runId}`)).toMatchObject({ status: "queued", attempt: 0 })
          const after = yield* asTimePasses(minute / 2, entriesOf(story, agent), (found) =>
            found.every(isOver)
          )
          expect(after.map((entry) => entry.status)).toEqual(people.map(() => "completed"))
        })
    )

    it.effect(
      "S000-R15, R16 an entry is processing while the agent works and completed when it succeeds",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: silentFor(minute) }))
          yield* make(story, "Person")
          const [begun] = yield* entriesWhen(story, agent, 1, isProcessing)
          expect(begun).toMatchObject({ startedAt: expect.any(String), completedAt: null })
          expect(yield* story.get(`/runs/${begun.runId}`)).toMatchObject({ status: "running" })
          const [ended] = yield* asTimePasses(minute / 2, entriesOf(story, agent), ([entry]) => isOver(entry))
          expect(ended).toMatchObject({
            ...begun,
            status: "completed",
            completedAt: expect.any(String),
            errorMessage: null
          })
          expect(yield* story.get(`/runs/${begun.runId}`)).toMatchObject({
            status: "completed",
            summary: "Done."
          })
        })
    )

    it.effect("S000-R17 an entry is failed, with an error message, when the agent fails", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const fault = { kind: "error", message: "the model fell over" }
        const agent = yield* story.post("/agents", watcher({ model: scripted([{ fault }]) }))
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, () => true)
        const [entry] = yield* asTimePasses(minute, entriesOf(story, agent), ([found]) => isOver(found))
        const failed = { status: "failed", errorMessage: "the model fell over" }
        expect(entry).toMatchObject({ ...failed, completedAt: expect.any(String) })
        expect(yield* runsOf(story, agent)).toMatchObject([failed])
      })
    )

    it.effect("S001-R59 an agent that failed in execute mode is not tried again by itself", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const unrunnable = scripted([{ when: "'neither true nor false'" }])
        const agent = yield* story.post("/agents", watcher({ executionMode: "execute", model: unrunnable }))
        yield* make(story, "Person")
        const [failed] = yield* entriesWhen(story, agent, 1)
        expect(failed.status).toBe("failed")
        yield* TestClock.adjust("1 hour")
        yield* make(story, "Person")
        const entries = yield* entriesWhen(story, agent, 2)
        expect(entries).toMatchObject([failed, { status: "failed", attempt: 1 }])
        expect((yield* runsOf(story, agent)).map((run) => [run.status, run.attempt])).toEqual([
          ["failed", 1],
          ["failed", 1]
        ])
      })
    )

    it.effect(
      "S000-R18, S001-R24 with skip, an event of an object that the agent is processing is skipped",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({ reactionConfig: changes("skip"), model: silentFor(minute) })
          )
          const person = yield* make(story, "Person")
          yield* entriesWhen(story, agent, 1, isProcessing)
          const path = `/objects/${person.id}`
          yield* story.patch(path, { properties: { age: 1 } })
          yield* story.patch(path, { properties: { age: 2 } })
          const other = yield* make(story, "Person")
          const feed = yield* feedOf(story, 4)
          const entries = yield* entriesOf(story, agent)
          expect(entries).toMatchObject([
            { objectVersion: 1, status: "processing" },
            { objectVersion: 2, status: "skipped", runId: null, reason: expect.any(String) },
            { objectVersion: 3, status: "skipped", runId: null, reason: expect.any(String) },
            { graphObjectId: other.id, objectVersion: 1, status: expect.stringMatching(/pending|processing/) }
          ])
          expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${feed[1].id}`)).toMatchObject({
            outcome: "skipped",
            reason: entries[1].reason
          })

          // Skipped is not handled: once the agent is free, the next event of the object wakes it again.
          yield* asTimePasses(minute / 2, entriesOf(story, agent), (found) => found.every(isOver))
          yield* story.patch(path, { properties: { age: 3 } })
          const again = yield* asTimePasses(
            minute / 2,
            entriesOf(story, agent),
            (found) => found.length === 5 && found.every(isOver)
          )
          expect(again.map((entry) => [entry.objectVersion, entry.status])).toEqual([
            [1, "completed"],
            [2, "skipped"],
            [3, "skipped"],
            [1, "completed"],
            [4, "completed"]
          ])
          expect(yield* runsOf(story, agent)).toHaveLength(3)
        })
    )
  })

  describe("Decision: concurrency strategy", () => {
    it.effect("S001-R24 with skip, what comes after a kept deletion is kept with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = {
          objectTypes: ["Person"],
          events: ["created", "updated", "deleted"],
          concurrencyStrategy: "skip"
        }
        const agent = yield* story.post("/agents", watcher({ reactionConfig, model: silentFor(minute) }))
        const person = yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, isProcessing)
        yield* story.delete(`/objects/${person.id}`)
        yield* story.post(`/objects/${person.id}/restore`)
        yield* story.patch(`/objects/${person.id}`, { properties: { age: 1 } })
        const kept = yield* eventually(entriesOf(story, agent), ({ length }) => length === 4)
        expect(kept.map(({ eventType, status }) => [eventType, status])).toEqual([
          ["created", "processing"],
          ["deleted", "pending"],
          ["created", "pending"],
          ["updated", "pending"]
        ])
        yield* asTimePasses(
          minute / 2,
          entriesOf(story, agent),
          (found) => found.length === 4 && found.every(({ status }) => status === "completed")
        )
        const runs = yield* runsOf(story, agent)
        expect(runs.map((run) => run.trigger.events.map(({ type }: Json) => type))).toEqual([
          ["created"],
          ["deleted", "created", "updated"]
        ])
      })
    )

    it.effect.each([
      ["that begins at once", {}],
      ["whose events wait for a place", { maxConcurrency: 9 }]
    ] as const)(
      "S000-R18, S001-R24 with skip, the deletion of an object that the agent is processing is the next that it handles, for an agent %s",
      ([, rule]) =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const reactionConfig = {
            objectTypes: ["Person"],
            events: ["created", "updated", "deleted"],
            concurrencyStrategy: "skip",
            ...rule
          }
          const agent = yield* story.post("/agents", watcher({ reactionConfig, model: silentFor(minute) }))
          const person = yield* make(story, "Person")
          yield* entriesWhen(story, agent, 1, isProcessing)
          yield* story.patch(`/objects/${person.id}`, { properties: { age: 1 } })
          expect((yield* story.delete(`/objects/${person.id}`)).status).toBeLessThan(300)
          const feed = yield* feedOf(story, 3)
          expect(yield* eventually(entriesOf(story, agent), ({ length }) => length === 3)).toMatchObject([
            { eventType: "created", status: "processing" },
            { eventType: "updated", status: "skipped", runId: null },
            { eventType: "deleted", status: "pending", runId: null, reason: expect.any(String) }
          ])
          expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${feed[2].id}`)).toMatchObject({
            outcome: "waiting"
          })
          const ended = yield* asTimePasses(
            minute / 2,
            entriesOf(story, agent),
            (found) => found.length === 3 && found.every(isOver)
          )
          expect(ended.map(({ eventType, status }) => [eventType, status])).toEqual([
            ["created", "completed"],
            ["updated", "skipped"],
            ["deleted", "completed"]
          ])
          const [first, second, ...others] = yield* runsOf(story, agent)
          expect(others).toEqual([])
          expect([first, second].map((run) => run.trigger.events.map(({ type }: Json) => type))).toEqual([
            ["created"],
            ["deleted"]
          ])
          expect(Date.parse(second.startedAt)).toBeGreaterThanOrEqual(Date.parse(first.completedAt))
        })
    )

    it.effect("S001-R23 the strategy is configured for each agent and is skip where nothing is said", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const strategyOf = (name: string, concurrencyStrategy?: string) =>
          Effect.map(
            story.post("/agents", watcher({ name, reactionConfig: changes(concurrencyStrategy) })),
            (agent) => agent.reactionConfig.concurrencyStrategy
          )
        expect(yield* strategyOf("one")).toBe("skip")
        expect(yield* strategyOf("two", "skip")).toBe("skip")
        expect(yield* strategyOf("three", "parallel")).toBe("parallel")
        const unknown = watcher({ name: "four", reactionConfig: changes("whenever") })
        const refused = yield* story.ask("POST", "/agents", unknown)
        expect([refused.status, refused.body.errors[0].pointer]).toEqual([
          422,
          "/reactionConfig/concurrencyStrategy"
        ])
      })
    )

    it.effect("S001-R25 with parallel, several runs work on one object at once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ reactionConfig: changes("parallel"), model: silentFor(minute) })
        )
        const person = yield* make(story, "Person")
        for (const age of [1, 2]) yield* story.patch(`/objects/${person.id}`, { properties: { age } })
        const entries = yield* entriesWhen(story, agent, 3, isProcessing)
        expect(entries.map((entry) => [entry.graphObjectId, entry.objectVersion])).toEqual([
          [person.id, 1],
          [person.id, 2],
          [person.id, 3]
        ])
        expect((yield* runsOf(story, agent)).map((run) => run.status)).toEqual([
          "running",
          "running",
          "running"
        ])
        yield* asTimePasses(minute / 2, entriesOf(story, agent), (found) =>
          found.every((entry) => entry.status === "completed")
        )
      })
    )
  })

  describe("Decision: processing log for idempotency", () => {
    it.effect("S001-R06, R07 of many simultaneous changes, seen by two servers, each is processed once", () =>
      Effect.gen(function* () {
        const { access, doors } = yield* SharedServer
        const second = yield* startServer(access)
        const story = yield* newProject(doors, access)
        const agents = yield* Effect.forEach(["one", "two"], (name) =>
          story.post("/agents", watcher({ name, reactionConfig: changes("parallel") }))
        )
        const person = yield* make(story, "Person")
        const count = 24
        const path = `/api/projects/${story.projectId}`
        yield* Effect.forEach(
          Array.from({ length: count }, (_, index) => index),
          (index) => {
            const door = index % 2 === 0 ? doors : second
            return index % 3 === 0
              ? door.send("PATCH", `${path}/objects/${person.id}`, { properties: { index } })
              : door.send("POST", `${path}/objects`, { type: "Person", properties: { index } })
          },
          { concurrency: count }
        )
        const feed = yield* feedOf(story, count + 1)
        for (const agent of agents) {
          const entries = yield* entriesWhen(story, agent, count + 1)
          expect(entries.map((entry) => entry.status)).toEqual(entries.map(() => "completed"))
          expect(entries.map((entry) => entry.eventId).toSorted()).toEqual(
            feed.map((event) => event.id).toSorted()
          )
          const runs = yield* endedRuns(story, agent, count + 1)
          expect(runs.map((run) => run.id).toSorted()).toEqual(entries.map((entry) => entry.runId).toSorted())
          expect(runs.map((run) => run.attempt)).toEqual(runs.map(() => 1))
        }
      })
    )

    it.effect(
      "S001-R22 one agent's entry for one version and event of an object is unique: the database keeps it",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher())
          yield* make(story, "Person")
          const [entry] = yield* entriesWhen(story, agent, 1)
          const copyFor = (version: string) => `
          insert into kb.agent_processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, event_id, exclusive, status)
          select gen_random_uuid(), project_id, agent_id, graph_object_id, ${version}, event_type, event_id, false, 'completed'
          from kb.agent_processing_log where id = '${entry.id}'`
          expect(yield* refusalOf(story.access, copyFor("object_version"))).toBe("23505")
          expect(yield* refusalOf(story.access, copyFor("object_version + 1"))).toBeUndefined()
          const indexes = yield* ask(
            story.access,
            `select indexdef from pg_indexes where schemaname = 'kb' and tablename = 'agent_processing_log'
           and indexdef like '%(agent_id, graph_object_id, object_version, event_type, attempt)'`
          )
          expect(indexes).toEqual([[expect.stringContaining("UNIQUE")]])
        })
    )

    it.effect(
      "S001-R17 the table has the columns of the design, and an entry is pending unless it says else",
      () =>
        Effect.gen(function* () {
          const { access } = yield* SharedServer
          const rows = yield* ask(
            access,
            `select column_name, data_type, is_nullable from information_schema.columns
           where table_schema = 'kb' and table_name = 'agent_processing_log'`
          )
          const columns = new Map(rows.map(([name, type, nullable]) => [name, `${type} ${nullable}`]))
          const required = {
            id: "uuid NO",
            agent_id: "uuid NO",
            graph_object_id: "uuid NO",
            object_version: "integer NO",
            event_type: "character varying NO",
            status: "character varying NO",
            started_at: "timestamp with time zone YES",
            completed_at: "timestamp with time zone YES",
            error_message: "text YES",
            created_at: "timestamp with time zone NO"
          }
          expect(Object.fromEntries(columns)).toMatchObject(required)
          const defaults = yield* ask(
            access,
            `select column_default from information_schema.columns
           where table_schema = 'kb' and table_name = 'agent_processing_log' and column_name = 'status'`
          )
          expect(defaults).toEqual([[expect.stringMatching(/^'pending'/)]])
        })
    )

    it.effect(
      "S001-R18, R19 an entry has one of the statuses of the design, or skipped, and one of three events",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher())
          yield* make(story, "Person")
          const [entry] = yield* entriesWhen(story, agent, 1)
          const set = (column: string, value: string) =>
            refusalOf(
              story.access,
              `update kb.agent_processing_log set ${column} = '${value}' where id = '${entry.id}'`
            )
          for (const status of ["pending", "processing", "completed", "failed", "abandoned", "skipped"]) {
            expect(yield* set("status", status)).toBeUndefined()
            const found = yield* story.get(`/agents/${agent.id}/processing-log?status=${status}`)
            expect(found.items).toMatchObject([{ id: entry.id, status }])
          }
          expect(yield* set("status", "lost")).toBe("23514")
          for (const eventType of ["created", "updated", "deleted"])
            expect(yield* set("event_type", eventType)).toBeUndefined()
          expect(yield* set("event_type", "renamed")).toBe("23514")
        })
    )

    it.effect("S001-R21 deleting an object keeps its entries, so that its deletion has one too", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ reactionConfig: { objectTypes: ["Person"], events: ["created", "deleted"] } })
        )
        const person = yield* make(story, "Person")
        const [created] = yield* entriesWhen(story, agent, 1)
        yield* story.delete(`/objects/${person.id}`)
        expect((yield* story.ask("GET", `/objects/${person.id}`)).status).toBe(404)
        expect(yield* entriesWhen(story, agent, 2)).toMatchObject([
          created,
          { graphObjectId: person.id, objectVersion: 2, eventType: "deleted", status: "completed" }
        ])
      })
    )

    it.effect("S001-R20 deleting an agent keeps its entries and runs, and wakes it no more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher())
        yield* make(story, "Person")
        const entries = yield* entriesWhen(story, agent, 1)
        expect((yield* story.delete(`/agents/${agent.id}`)).status).toBe(204)
        expect((yield* story.ask("GET", `/agents/${agent.id}`)).status).toBe(404)
        yield* make(story, "Person")
        yield* feedOf(story, 2)
        expect(yield* runsOf(story, agent)).toMatchObject([{ id: entries[0].runId, status: "completed" }])
        // The log outlives its agent: it is read as before, while nobody ever heard of another id.
        expect(yield* entriesOf(story, agent)).toEqual(entries)
        const never = `/agents/${story.projectId}/processing-log`
        expect((yield* story.ask("GET", never)).status).toBe(404)
      })
    )
  })
})
