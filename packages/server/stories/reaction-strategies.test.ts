/**
 * What becomes of events of an object that an agent is still working on.
 *
 * The scripted model thinks for as long as the story wants: the server's clock
 * stands still until the story moves it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  entriesOf,
  entriesWhen,
  feedOf,
  isOver,
  make,
  runsOf,
  silentFor,
  watcher
} from "../testing/story-words.ts"

const thinkingMs = 60_000

/** An agent that hears everything of Persons and thinks for a minute. */
const slow = (reaction: Record<string, unknown>, overrides: Record<string, unknown> = {}) =>
  watcher({
    reactionConfig: { objectTypes: ["Person"], events: ["created", "updated", "deleted"], ...reaction },
    model: silentFor(thinkingMs),
    ...overrides
  })

const versionsOf = (run: Json): ReadonlyArray<number> =>
  run.trigger.events.map((event: Json) => event.version)

const rename = (story: Story, person: Json, ...names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => story.patch(`/objects/${person.id}`, { properties: { name } }))

/** Lets time pass until every entry is over, and answers them with the runs. */
const untilOver = Effect.fnUntraced(function* (story: Story, agent: Json, count: number) {
  const entries = yield* asTimePasses(
    thinkingMs,
    entriesOf(story, agent),
    (seen) => seen.length === count && seen.every(isOver)
  )
  return { entries, runs: yield* runsOf(story, agent) }
})

/** A Person on whose creation the agent is at work. */
const atWorkOn = Effect.fnUntraced(function* (story: Story, agent: Json) {
  const person = yield* make(story, "Person")
  yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
  return person
})

layer(SharedServer.layer)((it) => {
  describe("Strategy: latest", () => {
    it.effect(
      "S001-F02 works once more, with all events that came meanwhile, when the present run ends",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", slow({ concurrencyStrategy: "latest" }))
          const person = yield* atWorkOn(story, agent)
          yield* rename(story, person, "Ada", "Grace", "Edith")
          const waiting = yield* entriesWhen(story, agent, 4, () => true)
          expect(waiting.map((entry) => [entry.status, entry.runId === null])).toEqual([
            ["processing", false],
            ["pending", true],
            ["pending", true],
            ["pending", true]
          ])
          for (const { reason } of waiting.slice(1)) expect(reason).toBeTypeOf("string")
          const { entries, runs } = yield* untilOver(story, agent, 4)
          expect(runs.map(versionsOf)).toEqual([[1], [2, 3, 4]])
          expect(entries.map((entry) => [entry.status, entry.reason, entry.runId])).toEqual([
            ["completed", null, runs[0].id],
            ["completed", null, runs[1].id],
            ["completed", null, runs[1].id],
            ["completed", null, runs[1].id]
          ])
        })
    )

    it.effect("S001-F02 goes on with what waits however the run ended: cancelled, too", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({ concurrencyStrategy: "latest" }))
        const person = yield* atWorkOn(story, agent)
        yield* rename(story, person, "Ada")
        yield* feedOf(story, 2)
        const [first] = yield* runsOf(story, agent)
        yield* story.post(`/runs/${first.id}/cancel`)
        const runs = yield* eventually(runsOf(story, agent), (seen) => seen.length === 2)
        expect(runs.map(versionsOf)).toEqual([[1], [2]])
        yield* untilOver(story, agent, 2)
      })
    )
  })

  describe("Strategy: queue", () => {
    it.effect("S001-F02 works on every event of an object, one after the other, in their order", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({ concurrencyStrategy: "queue" }))
        const person = yield* atWorkOn(story, agent)
        yield* rename(story, person, "Ada", "Grace")
        yield* story.delete(`/objects/${person.id}`)
        yield* feedOf(story, 4)
        expect(yield* runsOf(story, agent)).toHaveLength(1)
        const { entries, runs } = yield* untilOver(story, agent, 4)
        expect(runs.map(versionsOf)).toEqual([[1], [2], [3], [4]])
        expect(entries.map((entry) => entry.status)).toEqual(Array.from({ length: 4 }, () => "completed"))
        for (const [index, run] of runs.slice(1).entries())
          expect(Date.parse(run.startedAt)).toBeGreaterThanOrEqual(Date.parse(runs[index].completedAt))
      })
    )

    it.effect(
      "S001-F02, F05 an event that is tried again keeps its place: the later ones wait behind it",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const stumbling = scripted([
            {
              when: "input.event.version == 1",
              latencyMs: thinkingMs,
              fault: { kind: "error", message: "It stumbles over the first" }
            },
            { say: "Done." }
          ])
          const agent = yield* story.post(
            "/agents",
            slow(
              { concurrencyStrategy: "queue" },
              { model: stumbling, retryPolicy: { maxAttempts: 2, backoffMs: 1 } }
            )
          )
          const person = yield* atWorkOn(story, agent)
          yield* rename(story, person, "Ada")
          const { entries, runs } = yield* untilOver(story, agent, 3)
          expect(entries.map((entry) => [entry.objectVersion, entry.attempt, entry.status])).toEqual([
            [1, 1, "failed"],
            [2, 1, "completed"],
            [1, 2, "failed"]
          ])
          expect(runs.map(versionsOf)).toEqual([[1], [1], [2]])
        })
    )

    it.effect("S001-F02 the end of a run lets the next event of its object go, in one transaction", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({ concurrencyStrategy: "queue" }))
        const person = yield* atWorkOn(story, agent)
        yield* rename(story, person, "Ada")
        const waits = ask(
          story.access,
          `select entry.parked from kb.agent_processing_log entry where entry.agent_id = $1 and entry.object_version = 2
             and exists (select from kb.agent_runs run where run.agent_id = entry.agent_id and run.status = 'completed')`,
          [agent.id]
        )
        yield* eventually(
          ask(
            story.access,
            "select 1 from kb.agent_processing_log where agent_id = $1 and object_version = 2 and parked",
            [agent.id]
          ),
          (parked) => parked.length === 1
        )
        const [seen] = yield* asTimePasses(thinkingMs, waits, (ended) => ended.length === 1)
        expect(seen).toEqual([false])
      })
    )

    it.effect("S001-F02 goes on by itself, should an entry ever be parked behind nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({ concurrencyStrategy: "queue" }))
        const person = yield* atWorkOn(story, agent)
        yield* rename(story, person, "Ada")
        const [first] = yield* entriesWhen(story, agent, 2, () => true)
        // A fault that no code here makes: the entry ends and nobody lets the next one go.
        yield* ask(story.access, "update kb.agent_processing_log set status = 'failed' where id = $1", [
          first.id
        ])
        const { entries } = yield* untilOver(story, agent, 2)
        expect(entries.map((entry) => entry.status)).toEqual(["failed", "completed"])
      })
    )

    it.effect("S001-F02 holds up no other object", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", slow({ concurrencyStrategy: "queue" }))
        const ada = yield* atWorkOn(story, agent)
        yield* rename(story, ada, "Ada")
        const grace = yield* make(story, "Person")
        const entries = yield* eventually(
          entriesOf(story, agent),
          (seen) => seen.length === 3 && seen[2].status === "processing"
        )
        expect(entries.map((entry) => [entry.graphObjectId, entry.status])).toEqual([
          [ada.id, "processing"],
          [ada.id, "pending"],
          [grace.id, "processing"]
        ])
        yield* untilOver(story, agent, 3)
      })
    )
  })
})
