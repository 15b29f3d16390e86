/**
 * What a person decides about an agent's suggestion, and what that does to the graph.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { entriesOf, entriesWhen, feedOf, make, watcher } from "../testing/story-words.ts"
import { approve, reject, suggested, updating } from "../testing/suggestion-words.ts"
import { asUser } from "../testing/token-words.ts"

/** Says that a decision was refused for this reason, and that task, object and feed are as they were. */
const refusesWith = Effect.fnUntraced(function* (story: Story, task: Json, body: unknown, reason: string) {
  const before = yield* untouched(story, task)
  const answer = yield* approve(story, task, body)
  expect([answer.status, answer.body.reason]).toEqual([409, reason])
  expect(answer.headers.get("content-type")).toContain("application/problem+json")
  expect(yield* untouched(story, task)).toEqual(before)
  expect(before.task.status).toBe("pending")
  return answer.body
})

const untouched = (story: Story, task: Json) =>
  Effect.all({
    task: story.get(`/tasks/${task.id}`),
    objects: story.get("/objects?limit=200"),
    relationships: story.get("/relationships?limit=200")
  })

layer(SharedServer.layer)((it) => {
  describe("Requirement: Suggestion Task Resolution", () => {
    it.effect(
      "S000-R29, R30, R31 approving applies the changes as the agent's own and completes the task",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const me = (yield* story.send("GET", "/api/me")).body.userId
          const person = yield* make(story, "Person", { name: "Ada", age: 1 })
          const { agent, run, task } = yield* suggested(story, updating(person, { age: 2 }))
          const listener = yield* story.post(
            "/agents",
            watcher({ name: "listener", reactionConfig: { objectTypes: ["Person"], events: ["updated"] } })
          )
          yield* story.patch(`/agents/${agent.id}`, {
            reactionConfig: { objectTypes: ["Start", "Person"], events: ["created", "updated"] }
          })

          const decided = yield* approve(story, task, { digest: task.digest })
          expect(decided.status).toBe(200)
          expect(decided.body).toMatchObject({
            id: task.id,
            status: "completed",
            resolvedBy: me,
            resolvedAt: expect.any(String),
            outcome: { entityId: person.id, version: 2, change: "updated" }
          })
          expect(yield* story.get(`/tasks/${task.id}`)).toEqual(decided.body)
          const byAgent = { actorType: "agent", actorId: agent.id }
          expect(yield* story.get(`/objects/${person.id}`)).toMatchObject({
            version: 2,
            properties: { name: "Ada", age: 2 },
            ...byAgent
          })
          const cause = { ...byAgent, approvedBy: me, taskId: task.id, runId: run.id }
          const history = yield* story.get(`/objects/${person.id}/history`)
          expect(history.items[0]).toMatchObject({ version: 2, ...cause })
          const [, , ofApproval] = yield* feedOf(story, 3)
          expect(ofApproval).toMatchObject({ type: "updated", entityId: person.id, ...cause })

          // It is the agent's own change: it is not woken by it, and others are.
          expect(ofApproval.refusals).toEqual([
            { agentId: agent.id, rule: "selfTriggered", reason: expect.any(String) }
          ])
          expect(yield* entriesWhen(story, listener, 1)).toMatchObject([{ eventId: ofApproval.id }])
          expect(yield* entriesOf(story, agent)).toHaveLength(1)
        })
    )

    it.effect("S000-R29 every kind of suggested change is applied as it was suggested", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [ada, grace, acme] = [
          yield* make(story, "Person"),
          yield* make(story, "Person"),
          yield* make(story, "Company")
        ]
        const ends = { fromId: ada.id, toId: grace.id }
        const knows = yield* story.post("/relationships", { type: "KNOWS", ...ends })
        const envies = yield* story.post("/relationships", { type: "ENVIES", ...ends })
        const { agent, tasks } = yield* suggested(
          story,
          { tool: "create_object", arguments: { type: "Person", key: "joan", properties: { name: "Joan" } } },
          updating(ada, { name: "Ada" }),
          { tool: "create_relationship", arguments: { type: "ADMIRES", ...ends } },
          { tool: "update_relationship", arguments: { relationshipId: knows.id, properties: { since: 1 } } },
          { tool: "delete_relationship", arguments: { relationshipId: envies.id } },
          { tool: "delete_object", arguments: { objectId: acme.id } }
        )
        const outcomes = yield* Effect.forEach(tasks, (task) =>
          Effect.map(approve(story, task), (answer) => [answer.status, answer.body.outcome.change])
        )
        expect(outcomes).toEqual([
          [200, "created"],
          [200, "updated"],
          [200, "created"],
          [200, "updated"],
          [200, "deleted"],
          [200, "deleted"]
        ])
        const byAgent = { actorType: "agent", actorId: agent.id }
        const joan = yield* story.get("/objects?type=Person&key=joan")
        expect(joan.items).toMatchObject([{ properties: { name: "Joan" }, ...byAgent }])
        expect(yield* story.get(`/objects/${ada.id}`)).toMatchObject({
          properties: { name: "Ada" },
          ...byAgent
        })
        expect((yield* story.get("/relationships")).items).toMatchObject([
          { type: "ADMIRES", ...ends, ...byAgent },
          { id: knows.id, properties: { since: 1 }, ...byAgent }
        ])
        expect((yield* story.ask("GET", `/objects/${acme.id}`)).status).toBe(404)
      })
    )

    it.effect("S000-R32, R33 rejecting changes nothing in the graph and makes the task rejected", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        const decided = yield* reject(story, task, { reason: "She is older" })
        expect(decided.status).toBe(200)
        expect(decided.body).toMatchObject({
          status: "rejected",
          resolutionNote: "She is older",
          outcome: null
        })
        expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
        expect(yield* feedOf(story, 0)).toHaveLength(2)

        const late = yield* approve(story, task)
        expect([late.status, late.body.reason]).toEqual([409, "alreadyDecided"])
        expect(yield* story.get(`/objects/${person.id}`)).toEqual(person)
        expect(yield* story.get(`/tasks/${task.id}`)).toEqual(decided.body)
      })
    )

    it.effect("S000-R30 a task is decided once: approving it again, or rejecting it then, is refused", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        const decided = yield* approve(story, task)
        for (const again of [approve(story, task), reject(story, task)]) {
          const answer = yield* again
          expect([answer.status, answer.body.reason]).toEqual([409, "alreadyDecided"])
        }
        expect(yield* story.get(`/tasks/${task.id}`)).toEqual(decided.body)
        expect((yield* story.get(`/objects/${person.id}/history`)).items).toHaveLength(2)
      })
    )

    it.effect("S000-R29 twenty simultaneous approvals make one change", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        const answers = yield* Effect.all(
          Array.from({ length: 20 }, () => approve(story, task, { digest: task.digest })),
          { concurrency: 20 }
        )
        const statuses = answers.map((answer) => answer.status).toSorted()
        expect(statuses).toEqual([200, ...Array.from({ length: 19 }, () => 409)])
        const history = yield* story.get(`/objects/${person.id}/history`)
        expect(history.items.map((version: Json) => version.version)).toEqual([2, 1])
      })
    )

    it.effect(
      "S000-R29, R32 of an approval and a rejection at once one is taken, and the graph agrees with it",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const people = yield* Effect.forEach([1, 2, 3, 4], () => make(story, "Person", { age: 1 }))
          const { tasks } = yield* suggested(story, ...people.map((person) => updating(person, { age: 2 })))
          yield* Effect.forEach(tasks, (task, index) =>
            Effect.gen(function* () {
              const decisions = [approve(story, task), reject(story, task)]
              const answers = yield* Effect.all(index % 2 === 0 ? decisions : decisions.toReversed(), {
                concurrency: 2
              })
              expect(answers.map((answer) => answer.status).toSorted()).toEqual([200, 409])
              const { status, target } = yield* story.get(`/tasks/${task.id}`)
              expect([status, target.version]).toEqual(
                status === "completed" ? ["completed", 2] : ["rejected", 1]
              )
            })
          )
        })
    )
  })

  describe("An approval is bound to what the person saw", () => {
    it.effect("S000-R29 with another digest nothing is approved, and with the right one it is", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        yield* refusesWith(story, task, { digest: "0".repeat(64) }, "digestMismatch")
        expect((yield* approve(story, task, { digest: task.digest })).status).toBe(200)
      })
    )

    it.effect(
      "S000-R29 a suggestion whose property has moved since is outdated, and nothing is overwritten",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const person = yield* make(story, "Person", { age: 1, name: "Ada" })
          const { task } = yield* suggested(story, updating(person, { age: 2 }))
          yield* story.patch(`/objects/${person.id}`, { properties: { age: 36 } })
          const problem = yield* refusesWith(story, task, { digest: task.digest }, "outdated")
          expect(problem.detail).toContain("age")
          expect((yield* reject(story, task)).status).toBe(200)
        })
    )

    it.effect("S000-R29 when only other properties moved, the suggestion is applied on top of them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1, name: "Ada" })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        yield* story.patch(`/objects/${person.id}`, { properties: { name: "Ada L." } })
        const decided = yield* approve(story, task, { digest: task.digest })
        expect(decided.body.outcome).toMatchObject({ version: 3, change: "updated" })
        expect(yield* story.get(`/objects/${person.id}`)).toMatchObject({
          version: 3,
          properties: { age: 2, name: "Ada L." }
        })
      })
    )

    it.effect("S000-R29 a target that is gone, or changed before its deletion, is outdated", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [gone, changed] = [yield* make(story, "Person"), yield* make(story, "Person")]
        const { tasks } = yield* suggested(story, updating(gone, { age: 2 }), {
          tool: "delete_object",
          arguments: { objectId: changed.id }
        })
        yield* story.delete(`/objects/${gone.id}`)
        yield* story.patch(`/objects/${changed.id}`, { properties: { name: "Ada" } })
        yield* refusesWith(story, tasks[0], {}, "outdated")
        yield* refusesWith(story, tasks[1], {}, "outdated")
      })
    )

    it.effect("S000-R29 an approval has the agent's authority of that moment, not of the suggestion", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { age: 1 })
        const { agent, task } = yield* suggested(story, updating(person, { age: 2 }))
        const path = `/agents/${agent.id}`
        yield* story.patch(path, { capabilities: { canUpdateObjects: false } })
        yield* refusesWith(story, task, {}, "notPermitted")
        yield* story.patch(path, { capabilities: { allowedObjectTypes: ["Company"] } })
        yield* refusesWith(story, task, {}, "notPermitted")
        yield* story.patch(path, { capabilities: null })
        expect((yield* approve(story, task)).status).toBe(200)
      })
    )

    it.effect(
      "S000-R29, R31 what a disabled or deleted agent suggested is applied, and the task says so before",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [ada, grace] = [
            yield* make(story, "Person", { age: 1 }),
            yield* make(story, "Person", { age: 1 })
          ]
          const { agent, tasks } = yield* suggested(
            story,
            updating(ada, { age: 2 }),
            updating(grace, { age: 2 }),
            { tool: "delete_object", arguments: { objectId: (yield* make(story, "Person")).id } }
          )
          const [first, second, deletion] = tasks
          const standing = (task: Json) =>
            Effect.map(story.get(`/tasks/${task.id}`), ({ agentState, staleness, status }) => [
              agentState,
              status,
              staleness?.state
            ])
          expect(yield* standing(first)).toEqual(["enabled", "pending", "fresh"])
          yield* story.patch(`/agents/${agent.id}`, { enabled: false })
          expect(yield* standing(first)).toEqual(["disabled", "pending", "fresh"])
          expect((yield* approve(story, first)).status).toBe(200)

          // Its capabilities judge what it suggested, as they are when it is gone.
          yield* story.patch(`/agents/${agent.id}`, { capabilities: { canDeleteObjects: false } })
          yield* story.delete(`/agents/${agent.id}`)
          const listed = (yield* story.get("/tasks?status=pending")).items
          expect(listed.map((task: Json) => task.agentState)).toEqual(["deleted", "deleted"])
          expect((yield* approve(story, second)).body).toMatchObject({
            status: "completed",
            agentState: "deleted"
          })
          yield* refusesWith(story, deletion, {}, "notPermitted")
          for (const person of [ada, grace])
            expect(yield* story.get(`/objects/${person.id}`)).toMatchObject({
              version: 2,
              properties: { age: 2 },
              actorType: "agent",
              actorId: agent.id
            })
          expect((yield* feedOf(story, 6)).slice(-2)).toMatchObject([
            { approvedBy: "admin", taskId: first.id, actorId: agent.id },
            { approvedBy: "admin", taskId: second.id, actorId: agent.id }
          ])
        })
    )

    it.effect(
      "S000-R29 editors and reviewers approve what they may change themselves, and viewers do not",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const person = yield* make(story, "Person", { age: 1 })
          const { tasks } = yield* suggested(
            story,
            updating(person, { age: 2 }),
            { tool: "create_object", arguments: { type: "Note", properties: {} } },
            { tool: "create_object", arguments: { type: "Memo", properties: {} } },
            { tool: "create_object", arguments: { type: "Page", properties: {} } }
          )
          const [update, note, memo, page] = tasks
          const viewer = yield* asUser(story, "viewer")
          for (const answer of [yield* approve(viewer, update), yield* reject(viewer, update)])
            expect(answer.status).toBe(403)
          const editor = yield* asUser(story, "editor")
          expect((yield* approve(editor, update)).body).toMatchObject({
            resolvedBy: "editor",
            status: "completed"
          })
          expect((yield* reject(editor, note, { reason: "No" })).body).toMatchObject({ status: "rejected" })
          expect((yield* editor.patch(`/tasks/${memo.id}`, { assignee: "me" })).assignee).toBe("editor")
          const decisions = { decision: "approve", tasks: [{ taskId: memo.id, digest: memo.digest }] }
          expect((yield* editor.post("/tasks/decisions", decisions)).items).toMatchObject([
            { task: { status: "completed", resolvedBy: "editor" } }
          ])
          const reviewer = yield* asUser(story, "reviewer")
          expect((yield* approve(reviewer, page)).body).toMatchObject({ resolvedBy: "reviewer" })
        })
    )

    it.effect(
      "S000-R29 a person may approve other values than the suggested ones, within the agent's rights",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const person = yield* make(story, "Person", { age: 1 })
          const { agent, task } = yield* suggested(story, updating(person, { age: 2 }))
          const body = { digest: task.digest, suggestedChanges: { data: { age: 3, checked: true } } }
          const decided = yield* approve(story, task, body)
          expect(decided.status).toBe(200)
          expect(decided.body.payload.suggestedChanges.data).toEqual({ age: 2 })
          expect(yield* story.get(`/objects/${person.id}`)).toMatchObject({
            properties: { age: 3, checked: true },
            actorId: agent.id
          })
        })
    )

    it.effect("S000-R29 a task of another project is not there", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        const person = yield* make(story, "Person", { age: 1 })
        const { task } = yield* suggested(story, updating(person, { age: 2 }))
        expect((yield* approve(other, task)).status).toBe(404)
        expect((yield* reject(other, task)).status).toBe(404)
        expect(yield* story.get(`/tasks/${task.id}`)).toEqual(task)
        expect((yield* other.get("/tasks")).items).toEqual([])
      })
    )
  })
})
