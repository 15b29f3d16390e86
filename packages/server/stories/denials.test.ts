/**
 * Whoever may not do what he tried is on record: who, through which door, what, and why not.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../testing/context-words.ts"
import { talk } from "../testing/define-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf, calling, make, runsOf, type ScriptedCall, suggestionsOf } from "../testing/story-words.ts"
import { boss, handingOver, runThrough, spawning, worker } from "../testing/sub-agent-words.ts"
import { approve, reject, suggested, updating } from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

/** What was denied, newest first. */
const denialsOf = (story: Story, query = ""): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/denials${query}`), (page) => page.items)

const creating = (type: string): ScriptedCall => ({
  tool: "create_object",
  arguments: { type, properties: { name: "Acme" } }
})

/** The id of nothing. */
const unknown = "01990000-0000-7000-8000-000000000001"

const onlyPersons = { capabilities: { allowedObjectTypes: ["Person"] } }

layer(SharedServer.layer)((it) => {
  describe("Requirement: every denial is on record", () => {
    it.effect("a change that the agent's capabilities forbid, with the change and the reason", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          worker("clerk", handingOver(creating("Company"), creating("Person")), onlyPersons)
        )
        const run = yield* runThrough(story, agent)
        const [refused] = yield* callsOf(story, run)
        const found = yield* denialsOf(story)
        expect(found).toEqual([
          {
            id: expect.any(String),
            at: expect.stringMatching(/^\d{4}-.*Z$/),
            door: "run",
            agentId: agent.id,
            agentName: "clerk",
            runId: run.id,
            userId: "admin",
            taskId: null,
            toolCallId: refused.id,
            tool: "create_object",
            change: { type: "create", objectType: "Company", key: null, data: { name: "Acme" } },
            reason: "notPermitted",
            detail: naming("allowedObjectTypes", "Company")
          }
        ])
        expect(refused).toMatchObject({ status: "refused", result: { error: found[0].detail } })
      })
    )

    it.effect("a tool that the agent was not offered, and one that is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const calls = [
          creating("Person"),
          { tool: "spawn_agent", arguments: { agent: "clerk", task: "Do it" } },
          { tool: "drop_table", arguments: {} },
          { tool: "other__tool", arguments: {} }
        ]
        const agent = yield* story.post(
          "/agents",
          worker("clerk", handingOver(...calls), { tools: ["graph.get_object"] })
        )
        yield* runThrough(story, agent)
        expect((yield* denialsOf(story)).toReversed()).toMatchObject([
          { tool: "create_object", reason: "notPermitted", change: { type: "create", objectType: "Person" } },
          { tool: "spawn_agent", change: null },
          {
            tool: "drop_table",
            change: null,
            detail: expect.stringContaining("drop_table")
          },
          { tool: "other__tool", change: null }
        ])
      })
    )

    it.effect("in a conversation, and in a run that another spawned", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const chatty = yield* newContext(story, "talk", calling(creating("Company")), onlyPersons)
        yield* talk(story, "talk", "Make a company")
        expect(yield* denialsOf(story)).toMatchObject([
          { door: "chat", agentId: chatty.id, userId: "admin", detail: expect.stringContaining("Company") }
        ])
        // The child may do all; it is denied for the sake of the agent above it, which may spawn only this one.
        yield* story.post("/agents", worker("child", handingOver(creating("Company"))))
        yield* story.post("/agents", worker("stranger", handingOver()))
        const above = yield* boss(story, [spawning("child"), spawning("stranger")], {
          ...onlyPersons,
          subAgents: ["child"]
        })
        const parent = yield* runThrough(story, above)
        const found = yield* denialsOf(story)
        expect(found.slice(0, 2).toSorted((a, b) => a.door.localeCompare(b.door))).toMatchObject([
          { door: "run", agentName: "boss", runId: parent.id, tool: "spawn_agent" },
          { door: "subAgent", agentName: "child", detail: expect.stringContaining("boss") }
        ])
        expect(found).toHaveLength(3)
      })
    )

    it.effect("an approval for which the agent, or the person, lacks the right; and nothing is changed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { name: "Ada" })
        const { agent, run, task } = yield* suggested(story, updating(ada, { seen: true }))
        const viewer = yield* asUser(story, "viewer")
        expectProblem(yield* approve(viewer, task), 403)
        yield* story.patch(`/agents/${agent.id}`, { capabilities: { canUpdateObjects: false } })
        const reviewer = yield* asUser(story, "reviewer")
        const edited = { suggestedChanges: { data: { seen: "twice" } } }
        expectProblem(yield* approve(reviewer, task, edited), 409)
        const onlyNotes = { allowedObjectTypes: ["Note"] }
        yield* story.patch(`/agents/${agent.id}`, { capabilities: onlyNotes, enabled: false })
        expectProblem(yield* approve(story, task), 409)
        const common = {
          door: "approval",
          agentId: agent.id,
          runId: run.id,
          taskId: task.id,
          toolCallId: expect.any(String),
          tool: "update_object"
        }
        const { suggestedChanges } = task.payload
        expect((yield* denialsOf(story)).toReversed()).toMatchObject([
          { ...common, userId: "viewer", reason: "forbidden", change: suggestedChanges },
          {
            ...common,
            userId: "reviewer",
            reason: "notPermitted",
            detail: expect.stringContaining("canUpdateObjects"),
            change: { ...suggestedChanges, data: { seen: "twice" } }
          },
          {
            ...common,
            userId: "admin",
            reason: "notPermitted",
            detail: expect.stringContaining("allowedObjectTypes"),
            change: suggestedChanges
          }
        ])
        expect(yield* story.get(`/objects/${ada.id}`)).toEqual(ada)
        expect((yield* story.get(`/tasks/${task.id}`)).status).toBe("pending")
      })
    )

    it.effect("in a sentence that has an end, however long what it quotes; the call has all of it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person", { name: "Ada" })
        const { agent, task } = yield* suggested(story, updating(ada, { seen: true }))
        // A character of two units lies across the place of the cut.
        yield* reject(story, task, { reason: "😀".repeat(1_000) })
        const run = yield* runThrough(story, agent)
        const [refused] = yield* callsOf(story, run)
        const [{ detail, reason }] = yield* denialsOf(story)
        expect(reason).toBe("rejectedBefore")
        expect(detail).toEqual(naming("admin", 1, "😀".repeat(100)))
        expect(detail.length).toBeGreaterThan(990)
        expect(detail.length).toBeLessThanOrEqual(1_001)
        expect(refused.result.error).toContain("😀".repeat(1_000))
      })
    )

    it.effect("a mistake is no denial, and neither is a suggestion or a decision that came too late", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* make(story, "Person")
        const agent = yield* story.post(
          "/agents",
          worker(
            "clerk",
            handingOver(
              updating(ada, { seen: true }),
              updating({ id: unknown }, {}),
              { tool: "create_object", arguments: { kind: "Person" } },
              { tool: "get_object", arguments: { objectId: unknown } }
            ),
            { executionMode: "suggest" }
          )
        )
        const run = yield* runThrough(story, agent)
        expect((yield* callsOf(story, run)).map((call) => call.status)).toEqual([
          "completed",
          "failed",
          "failed",
          "failed"
        ])
        const [task] = yield* suggestionsOf(story, 1)
        expectProblem(yield* approve(story, task, { digest: "another" }), 409)
        yield* reject(story, task)
        expectProblem(yield* approve(story, task), 409)
        expectProblem(yield* story.ask("POST", `/tasks/${unknown}/approve`, {}), 404)
        expect(yield* denialsOf(story)).toEqual([])
      })
    )
  })

  describe("GET /denials", () => {
    it.effect("pages newest first, by agent and by run, to whoever may see the project", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const tried = Effect.fnUntraced(function* (name: string, count: number) {
          const calls = Array.from({ length: count }, (_, n) => creating(`Type${n}`))
          const agent = yield* story.post(
            "/agents",
            worker(name, handingOver(...calls), { capabilities: { canCreateObjects: false } })
          )
          return { agent, run: yield* runThrough(story, agent) }
        })
        const first = yield* tried("first", 3)
        const second = yield* tried("second", 2)
        const viewer = yield* asUser(story, "viewer")
        const all = yield* denialsOf(viewer)
        expect(all.map(({ agentName, change }) => [agentName, change.objectType])).toEqual([
          ["second", "Type1"],
          ["second", "Type0"],
          ["first", "Type2"],
          ["first", "Type1"],
          ["first", "Type0"]
        ])
        const page = yield* viewer.get("/denials?limit=2")
        const next = yield* viewer.get(`/denials?limit=200&cursor=${page.nextCursor}`)
        expect([...page.items, ...next.items]).toEqual(all)
        expect(next.nextCursor).toBeNull()
        expect(yield* denialsOf(story, `?agentId=${second.agent.id}`)).toEqual(all.slice(0, 2))
        expect(yield* denialsOf(story, `?runId=${first.run.id}`)).toEqual(all.slice(2))
        expect(yield* denialsOf(story, `?runId=${first.run.id}&agentId=${second.agent.id}`)).toEqual([])
        // It is kept under the agent's name when the agent is gone.
        yield* story.delete(`/agents/${first.agent.id}`)
        expect(yield* denialsOf(story)).toEqual(all)
        expect((yield* runsOf(story, first.agent)).length).toBe(1)
      })
    )

    it.effect("refuses what is no cursor and no id, and tells another project nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          worker("clerk", handingOver(creating("Company")), onlyPersons)
        )
        const run = yield* runThrough(story, agent)
        for (const query of ["cursor=x", "agentId=x", "runId=%00", "limit=none", "door=run"])
          expectProblem(yield* story.ask("GET", `/denials?${query}`), 422)
        expect(yield* denialsOf(other)).toEqual([])
        expect(yield* denialsOf(other, `?runId=${run.id}`)).toEqual([])
        const foreigner = yield* asUser(story, "admin", [other.projectId])
        expectProblem(yield* foreigner.ask("GET", "/denials"), 404)
      })
    )
  })
})
