/**
 * What keeps an agent from doing harm or running away: its caps, its failures, and a person's hand.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chat, newAssistant } from "../testing/chat-words.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  callsOf,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const minute = 60_000

/** A provider without a key fails a run at once. */
const unreachable = { provider: "anthropic", name: "none" }

/** A model that reads for a minute, then writes an object, then would go on for ever. */
const tireless = {
  provider: "scripted",
  name: "tireless",
  script: {
    rules: [
      {
        when: "true",
        latencyMs: minute,
        calls: [{ tool: "create_object", arguments: { type: "Note", properties: {}, reasoning: "One more" } }]
      }
    ]
  }
}

/** Triggers an agent without waiting for its run. */
const trigger = (story: Story, agent: Json) =>
  story.send("POST", `/api/projects/${story.projectId}/agents/${agent.id}/trigger?wait=false`, {})

layer(SharedServer.layer)((it) => {
  describe("Safeguards: the time of a reaction", () => {
    it.effect(
      "S002-R26 an agent that reacts has 15 minutes for a run where nobody gave it another time",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher())
          const patient = yield* story.post(
            "/agents",
            watcher({ name: "patient", defaultTimeoutMs: 604_800_000 })
          )
          const asked = yield* story.post("/agents", watcher({ name: "asked", triggerType: "manual" }))
          expect([agent, patient, asked].map(({ defaultTimeoutMs }) => defaultTimeoutMs)).toEqual([
            900_000,
            604_800_000,
            null
          ])
          yield* make(story, "Person")
          const [run] = yield* endedRuns(story, agent, 1)
          expect(run).toMatchObject({ trigger: { type: "reaction" }, limits: { timeoutMs: 900_000 } })
          const longer = yield* story.patch(`/agents/${agent.id}`, { defaultTimeoutMs: 1_800_000 })
          const cleared = yield* story.patch(`/agents/${agent.id}`, { defaultTimeoutMs: null })
          expect([longer.defaultTimeoutMs, cleared.defaultTimeoutMs]).toEqual([1_800_000, 900_000])
        })
    )
  })

  describe("Safeguards: the cap on pending runs", () => {
    it.effect(
      "beyond it a door answers 429 with the reason and when to come again, also when many ask at once",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({ triggerType: "manual", maxPendingRuns: 3, model: silentFor(minute) })
          )
          const answers = yield* Effect.all(
            Array.from({ length: 12 }, () => trigger(story, agent)),
            { concurrency: 12 }
          )
          expect(answers.map((answer) => answer.status).toSorted()).toEqual([
            202,
            202,
            202,
            ...Array(9).fill(429)
          ])
          const refused = answers.find((answer) => answer.status === 429)
          expect(refused?.body).toMatchObject({
            type: "/problems/too-many-requests",
            reason: "pendingRuns",
            detail: expect.stringMatching(/\b3\b/),
            retryAfterSeconds: expect.any(Number)
          })
          expect(refused?.headers.get("retry-after")).toBe(String(refused?.body.retryAfterSeconds))
          expect(refused?.headers.get("content-type")).toContain("application/problem+json")
          expect(yield* runsOf(story, agent)).toHaveLength(3)

          // A message that a run at work will answer needs no place; one that needs a run of its own does.
          yield* story.post("/contexts", { name: "full", agentId: agent.id })
          const message = { type: "UserMessageEvent", content: "Hello" }
          expect((yield* story.ask("POST", "/contexts/full/events", message)).status).toBe(429)
          expect(yield* story.get("/contexts/full")).toMatchObject({ eventCount: 0 })
          yield* asTimePasses(minute / 2, runsOf(story, agent), (runs) =>
            runs.every((run) => run.completedAt !== null)
          )
          expect((yield* story.ask("POST", "/contexts/full/events", message)).status).toBe(204)
          expect((yield* trigger(story, agent)).status).toBe(202)
          expect((yield* trigger(story, agent)).status).toBe(202)
          expect((yield* story.ask("POST", "/contexts/full/events", message)).status).toBe(204)
          expect((yield* trigger(story, agent)).status).toBe(429)
        })
    )
  })

  describe("Safeguards: automatic disable", () => {
    it.effect("an agent that fails K times in a row is disabled, visibly and as a version of its own", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: unreachable, disableAfterFailures: 3 }))
        for (const count of [1, 2, 3]) {
          expect((yield* story.get(`/agents/${agent.id}`)).enabled).toBe(true)
          yield* make(story, "Person")
          yield* endedRuns(story, agent, count)
        }
        const disabled = yield* story.get(`/agents/${agent.id}`)
        expect(disabled).toMatchObject({ enabled: false, version: 2 })
        expect(disabled.disabledReason).toMatch(/\b3\b/)
        expect(disabled.disabledReason).toContain("anthropic")
        expect(
          yield* ask(
            story.access,
            "select version, created_by, definition->>'enabled' from kb.agent_versions where agent_id = $1 order by version",
            [agent.id]
          )
        ).toEqual([
          [1, "admin", "true"],
          [2, "system", "false"]
        ])
        yield* make(story, "Person")
        yield* feedOf(story, 4)
        expect(yield* runsOf(story, agent)).toHaveLength(3)

        // A person who enables it again begins the count anew.
        yield* story.patch(`/agents/${agent.id}`, { enabled: true })
        for (const count of [4, 5]) {
          yield* make(story, "Person")
          yield* endedRuns(story, agent, count)
        }
        expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({
          enabled: true,
          version: 3,
          disabledReason: null
        })
      })
    )

    it.effect("what failed in somebody's own conversation is told to nobody by it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, unreachable, { disableAfterFailures: 1 })
        expect((yield* chat(story, { agentId: agent.id, message: "Hello" })).status).toBe(200)
        const [run] = yield* endedRuns(story, agent, 1)
        expect(run.errorMessage).toContain("anthropic")
        expect((yield* story.get(`/agents/${agent.id}`)).disabledReason).toContain(run.id)
      })
    )

    it.effect(
      "a run that completes ends the row of failures, and one that a person cancels counts as neither",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: unreachable, disableAfterFailures: 2 }))
          const wake = Effect.fnUntraced(function* (model: unknown, count: number) {
            yield* story.patch(`/agents/${agent.id}`, { model })
            yield* make(story, "Person")
            return yield* endedRuns(story, agent, count)
          })
          yield* wake(unreachable, 1)
          yield* wake(saying("Fine."), 2)
          yield* wake(unreachable, 3)
          expect((yield* story.get(`/agents/${agent.id}`)).enabled).toBe(true)

          yield* story.patch(`/agents/${agent.id}`, { model: silentFor(minute) })
          yield* make(story, "Person")
          const [, , , held] = yield* entriesWhen(story, agent, 4, (entry) => entry.status !== "pending")
          yield* story.post(`/runs/${held.runId}/cancel`)
          expect((yield* story.get(`/agents/${agent.id}`)).enabled).toBe(true)

          yield* wake(unreachable, 5)
          expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ enabled: false })
        })
    )
  })

  describe("Safeguards: a person's hand on a run at work (S001-K04)", () => {
    /** An agent whose model has been asked and has not answered yet. */
    const atWork = Effect.fnUntraced(function* (story: Story, overrides: Record<string, unknown> = {}) {
      const agent = yield* story.post("/agents", watcher({ model: tireless, ...overrides }))
      yield* make(story, "Person")
      yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
      return agent
    })
    const notesOf = (story: Story) => Effect.map(story.get("/objects?type=Note"), (page) => page.items)

    it.effect("disabling the agent stops its next write and ends the run with the reason", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* atWork(story)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        const [run] = yield* asTimePasses(
          minute / 2,
          runsOf(story, agent),
          ([found]) => found.completedAt !== null
        )
        expect(run).toMatchObject({ status: "cancelled", errorMessage: naming("watcher") })
        expect(yield* notesOf(story)).toEqual([])
        // Had the model been asked already, the write that it wanted is refused on record; it is not asked again.
        for (const call of yield* callsOf(story, run))
          expect(call).toMatchObject({ status: "refused", result: { reason: "agentDisabled" } })
        expect(run.stepCount).toBeLessThanOrEqual(1)
        expect(yield* entriesOf(story, agent)).toMatchObject([
          { status: "failed", errorMessage: run.errorMessage }
        ])
      })
    )

    it.effect("deleting the agent does too, and what it did before stays readable", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* atWork(story)
        expect((yield* story.delete(`/agents/${agent.id}`)).status).toBe(204)
        const [run] = yield* asTimePasses(
          minute / 2,
          runsOf(story, agent),
          ([found]) => found.completedAt !== null
        )
        expect(run).toMatchObject({ status: "cancelled", errorMessage: naming("watcher") })
        expect(run.stepCount).toBeLessThanOrEqual(1)
        expect(yield* notesOf(story)).toEqual([])
      })
    )

    it.effect("taking a capability away stops the next write; the agent is told and goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* atWork(story, { maxSteps: 1 })
        yield* story.patch(`/agents/${agent.id}`, { capabilities: { canCreateObjects: false } })
        const [run] = yield* asTimePasses(
          minute / 2,
          runsOf(story, agent),
          ([found]) => found.status === "paused"
        )
        expect(yield* callsOf(story, run)).toMatchObject([
          { status: "refused", result: { reason: "notPermitted" } },
          // Its last request, after its one step, asks for a tool all the same.
          { status: "refused", result: { reason: "softStop" } }
        ])
        expect(yield* notesOf(story)).toEqual([])
      })
    )

    it.effect("setting the agent to suggest turns the next write into a suggestion", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* atWork(story, { maxSteps: 1 })
        yield* story.patch(`/agents/${agent.id}`, { executionMode: "suggest" })
        yield* asTimePasses(minute / 2, runsOf(story, agent), ([found]) => found.status === "paused")
        expect(yield* suggestionsOf(story, 1)).toMatchObject([{ type: "object_create_suggestion" }])
        expect(yield* notesOf(story)).toEqual([])
      })
    )

    it.effect("a run that waits when its agent is disabled never asks the model", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: tireless }))
        const put = (stopped: boolean) =>
          story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped, reason: "Hold" })
        yield* put(true)
        yield* make(story, "Person")
        yield* feedOf(story, 1)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        yield* put(false)
        const runs = yield* asTimePasses(1_000, runsOf(story, agent), (found) =>
          found.every((run) => run.completedAt !== null)
        )
        expect(runs.filter((run) => run.stepCount > 0)).toEqual([])
      })
    )
  })
})
