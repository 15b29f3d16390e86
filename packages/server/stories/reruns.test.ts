/**
 * A person lets an agent look again, because what it had looked at has moved.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addEvent, newContext } from "../testing/context-words.ts"
import { deliver } from "../testing/delivery-words.ts"
import { eventually, type Json, promptWithObject, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { worker, spawning, handingOver } from "../testing/sub-agent-words.ts"
import {
  calling,
  change,
  endedRuns,
  entriesOf,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  suggestionsOf,
  versionsOf,
  watcher
} from "../testing/story-words.ts"
import { approve, reject } from "../testing/suggestion-words.ts"

const rerun = (story: Story, task: Json) => story.ask("POST", `/tasks/${task.id}/rerun`)

/** The run that looks again, once it has ended. */
const looked = (story: Story, task: Json): Effect.Effect<Json> =>
  Effect.flatMap(
    eventually(story.get(`/tasks/${task.id}`), (now) => now.rerun?.status === "completed"),
    (now) => story.get(`/runs/${now.rerun.runId}`)
  )

/** An agent that suggests another name for each Person that is made, and its first suggestion. */
const suggestedOf = Effect.fnUntraced(function* (story: Story, more: Record<string, unknown> = {}) {
  const agent = yield* story.post(
    "/agents",
    watcher({
      executionMode: "suggest",
      prompt: promptWithObject,
      model: calling({
        tool: "update_object",
        arguments: {
          objectId: "{{ input.object.id }}",
          properties: { name: "{{ input.object.properties.name }}!" }
        }
      }),
      ...more
    })
  )
  const person = yield* make(story, "Person", { name: "Ada" })
  const [first] = yield* endedRuns(story, agent, 1)
  const [task] = yield* suggestionsOf(story, 1)
  return { agent, person, first, task }
})

/** From now on the agent only says something. */
const silenced = (story: Story, agent: Json, more: Record<string, unknown> = {}) =>
  story.patch(`/agents/${agent.id}`, { model: saying("Seen {{ input.object.properties.name }}."), ...more })

const suggestingCall = { tool: "create_object", arguments: { type: "Note", properties: {} } }

layer(SharedServer.layer)((it) => {
  describe("Requirement: Staleness, a person lets the agent look again", () => {
    it.effect(
      "S000-R29 a reaction looks at the newest versions of the same objects, as the agent is now",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { agent, first, person, task } = yield* suggestedOf(story)
          expect(task.rerun).toBeNull()
          yield* change(story, person, { name: "Ada L." })
          yield* feedOf(story, 2)
          yield* silenced(story, agent)
          const asked = yield* rerun(story, task)
          expect([asked.status, asked.body.id, asked.body.status]).toEqual([200, task.id, "pending"])
          const run = yield* looked(story, task)
          expect(run).toMatchObject({
            id: asked.body.rerun.runId,
            agentId: agent.id,
            agentVersion: 2,
            parentRunId: null,
            rootEventId: asked.body.rerun.runId,
            depth: 0,
            trigger: { type: "reaction" },
            summary: "Seen Ada L.."
          })
          expect([versionsOf(first), versionsOf(run)]).toEqual([[1], [2]])
          expect(
            (yield* entriesOf(story, agent)).map(({ objectVersion, runId, status }) => [
              objectVersion,
              runId,
              status
            ])
          ).toEqual([
            [1, first.id, "completed"],
            [2, run.id, "completed"]
          ])
          // It did not suggest it again: the task says that it looked, and waits for its person.
          expect(yield* story.get(`/tasks/${task.id}`)).toMatchObject({
            status: "pending",
            rerun: { runId: run.id, status: "completed" }
          })
        })
    )

    it.effect("S000-R29 what it suggests then refines the suggestion that waits, which is fresh again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { person, task } = yield* suggestedOf(story)
        yield* change(story, person, { name: "Grace" })
        yield* feedOf(story, 2)
        expect((yield* story.get(`/tasks/${task.id}`)).staleness).toMatchObject({
          state: "outdated",
          conflicts: ["/name"],
          evidenceChanged: [{ objectId: person.id, version: 1, currentVersion: 2 }]
        })
        yield* rerun(story, task)
        const run = yield* looked(story, task)
        const [refined, ...others] = yield* suggestionsOf(story, 1)
        expect(others).toEqual([])
        expect(refined).toMatchObject({
          id: task.id,
          runId: run.id,
          baseVersion: 2,
          payload: { suggestedChanges: { data: { name: "Grace!" } } },
          staleness: { state: "fresh", moved: [], evidenceChanged: [] },
          rerun: { runId: run.id, status: "completed" }
        })
        // Who saw the earlier one has not seen this.
        const late = yield* approve(story, task, { digest: task.digest })
        expect([late.status, late.body.reason]).toEqual([409, "digestMismatch"])
        const decided = yield* approve(story, refined, { digest: refined.digest })
        expect(decided.body.outcome).toEqual({ entityId: person.id, version: 3, change: "updated" })
        expect((yield* story.get(`/objects/${person.id}`)).properties).toEqual({ name: "Grace!" })
      })
    )

    it.effect("S000-R29 the same version is looked at again, and again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, task } = yield* suggestedOf(story)
        yield* silenced(story, agent)
        for (const attempt of [2, 3]) {
          expect((yield* rerun(story, task)).status).toBe(200)
          expect(versionsOf(yield* looked(story, task))).toEqual([1])
          yield* endedRuns(story, agent, attempt)
        }
        expect((yield* entriesOf(story, agent)).map((entry) => entry.attempt)).toEqual([1, 2, 3])
      })
    )

    it.effect("S000-R29 a second click while it looks is refused, and queues nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          worker("hand", calling(suggestingCall), { executionMode: "suggest" })
        )
        yield* story.post(`/agents/${agent.id}/trigger`)
        const [task] = yield* suggestionsOf(story, 1)
        yield* story.patch(`/agents/${agent.id}`, { model: silentFor(60_000) })
        const answers = yield* Effect.all(
          Array.from({ length: 5 }, () => rerun(story, task)),
          { concurrency: 5 }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409])
        const late = yield* rerun(story, task)
        expect([late.status, late.body.reason]).toEqual([409, "state"])
        expect(yield* runsOf(story, agent)).toHaveLength(2)
      })
    )

    it.effect("S000-R29 a deleted object is looked at where the agent's rule names what is deleted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, person, task } = yield* suggestedOf(story)
        yield* silenced(story, agent)
        yield* story.delete(`/objects/${person.id}`)
        yield* feedOf(story, 2)
        const refused = yield* rerun(story, task)
        expect([refused.status, refused.body.reason]).toEqual([409, "state"])
        expect((yield* story.get(`/tasks/${task.id}`)).rerun).toBeNull()
        yield* story.patch(`/agents/${agent.id}`, {
          reactionConfig: { objectTypes: ["Person"], events: ["created", "deleted"] }
        })
        expect((yield* rerun(story, task)).status).toBe(200)
        const run = yield* looked(story, task)
        expect(run.trigger.events).toMatchObject([{ type: "deleted", objectId: person.id, version: 2 }])
      })
    )

    it.effect("S000-R29 what somebody triggered by hand is run with the same input", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          worker("hand", calling(suggestingCall), { executionMode: "suggest" })
        )
        yield* story.post(`/agents/${agent.id}/trigger`, { input: { n: 7 } })
        const [task] = yield* suggestionsOf(story, 1)
        yield* story.patch(`/agents/${agent.id}`, { model: saying("Again.") })
        expect((yield* rerun(story, task)).status).toBe(200)
        expect(yield* looked(story, task)).toMatchObject({
          agentVersion: 2,
          trigger: { type: "manual", input: { n: 7 } },
          summary: "Again."
        })
      })
    )

    it.effect("S000-R29 and so is a delivery", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          worker("hook", calling(suggestingCall), { executionMode: "suggest", triggerType: "webhook" })
        )
        const hook = yield* story.post(`/agents/${agent.id}/webhooks`, {})
        yield* deliver(story, hook, '{"n": 7}')
        const [task] = yield* suggestionsOf(story, 1)
        yield* endedRuns(story, agent, 1)
        yield* story.patch(`/agents/${agent.id}`, { model: saying("Again.") })
        expect((yield* rerun(story, task)).status).toBe(200)
        expect((yield* looked(story, task)).trigger).toMatchObject({ type: "webhook", input: { n: 7 } })
      })
    )

    it.effect("S000-R29 what a spawned run suggested is looked at by the first run above it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", calling(suggestingCall), { executionMode: "suggest" }))
        const boss = yield* story.post(
          "/agents",
          worker("boss", handingOver(spawning("helper")), { subAgents: ["*"], executionMode: "suggest" })
        )
        const first = yield* story.post(`/agents/${boss.id}/trigger`, { input: 1 })
        const [task] = yield* suggestionsOf(story, 1)
        expect(task.agentName).toBe("helper")
        yield* story.patch(`/agents/${boss.id}`, { model: saying("Nothing to do.") })
        expect((yield* rerun(story, task)).status).toBe(200)
        expect(yield* looked(story, task)).toMatchObject({
          agentId: boss.id,
          parentRunId: null,
          trigger: first.trigger,
          summary: "Nothing to do."
        })
      })
    )

    it.effect("S000-R29 what was suggested in a conversation is asked for there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([{ when: "step == 0", calls: [suggestingCall] }, { say: "Done." }])
        yield* newContext(story, "talk", model, { executionMode: "suggest" })
        yield* addEvent(story, "talk", "Note it")
        const [task] = yield* suggestionsOf(story, 1)
        const refused = yield* rerun(story, task)
        expect([refused.status, refused.body.reason]).toEqual([409, "state"])
        expect(refused.body.detail).toContain("/contexts/talk/events")
      })
    )
  })

  describe("Requirement: Staleness, what is not run again", () => {
    it.effect("S000-R29 nothing of a disabled agent, under a kill switch, or beyond what may wait", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, task } = yield* suggestedOf(story)
        const path = `/agents/${agent.id}`
        yield* story.patch(path, { enabled: false })
        const disabled = yield* rerun(story, task)
        expect([disabled.status, disabled.body.reason]).toEqual([409, "agentDisabled"])
        yield* story.patch(path, { enabled: true, maxPendingRuns: 1, model: silentFor(60_000) })
        yield* story.post(`${path}/trigger?wait=false`)
        const full = yield* rerun(story, task)
        expect([full.status, full.body.reason]).toEqual([429, "pendingRuns"])
        yield* story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, {
          stopped: true,
          reason: "Stop"
        })
        const stopped = yield* rerun(story, task)
        expect([stopped.status, stopped.body.reason]).toEqual([409, "stopped"])
        expect((yield* story.get(`/tasks/${task.id}`)).rerun).toBeNull()
      })
    )

    it.effect("S000-R29 S001-K03 nothing beyond the bounds of the rule", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, task } = yield* suggestedOf(story)
        const boundBy = (bound: Record<string, unknown>) =>
          story.patch(`/agents/${agent.id}`, {
            model: silentFor(60_000),
            reactionConfig: { objectTypes: ["Person"], events: ["created"], ...bound }
          })
        const refusedFor = Effect.fnUntraced(function* (sentence: string) {
          const refused = yield* rerun(story, task)
          expect([refused.status, refused.body.reason]).toEqual([429, "pendingRuns"])
          expect(refused.body.detail).toContain(sentence)
        })
        yield* boundBy({ rateLimit: { maxRuns: 1, perSeconds: 3_600 } })
        yield* refusedFor("rateLimit")
        yield* boundBy({ maxConcurrency: 1 })
        yield* make(story, "Person", { name: "Grace" })
        yield* feedOf(story, 2)
        yield* refusedFor("maxConcurrency")
        expect((yield* story.get(`/tasks/${task.id}`)).rerun).toBeNull()
        // What was refused has taken nothing. A run by hand is no reaction, and counts as none.
        const [, working] = yield* runsOf(story, agent)
        yield* story.post(`/runs/${working.id}/cancel`)
        yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
        expect((yield* rerun(story, task)).status).toBe(200)
        expect((yield* entriesOf(story, agent)).map(({ attempt }) => attempt)).toEqual([1, 1, 2])
      })
    )

    it.effect("S000-R29 nothing that is decided, missing, another project's or no suggestion", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        const { task } = yield* suggestedOf(story)
        expect((yield* rerun(other, task)).status).toBe(404)
        expect((yield* rerun(story, { id: "01a20341-b863-7547-8c62-9f9f7787e88c" })).status).toBe(404)
        const todo = yield* story.post("/tasks", { title: "Mine" })
        const no = yield* rerun(story, todo)
        expect([no.status, no.body.reason]).toEqual([409, "state"])
        yield* reject(story, task)
        const late = yield* rerun(story, task)
        expect([late.status, late.body.reason]).toEqual([409, "alreadyDecided"])
        expect((yield* approve(story, task)).status).toBe(409)
      })
    )
  })
})
