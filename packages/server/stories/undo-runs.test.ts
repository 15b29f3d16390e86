/**
 * What an agent's run did to the graph is taken back by a plan that a person approves.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make } from "../testing/story-words.ts"
import { approve, reject, updating } from "../testing/suggestion-words.ts"
import { acted, itemsOf, undoRun } from "../testing/undo-words.ts"

const objectsOf = (story: Story) => Effect.map(story.get("/objects?limit=200"), (page) => page.items)
const relationshipsOf = (story: Story) =>
  Effect.map(story.get("/relationships?limit=200"), (page) => page.items)

/** What an agent did in one run to a small graph: of each kind of change one. */
const busyRun = Effect.fnUntraced(function* (story: Story) {
  const [ada, grace, gone] = [
    yield* make(story, "Person", { name: "Ada", age: 1, tags: { a: { b: 1 }, c: null } }),
    yield* make(story, "Person", { name: "Grace" }),
    yield* story.post("/objects", { type: "Person", key: "gone", properties: { name: "Gone" } })
  ]
  const relate = (type: string, from: Json, to: Json) =>
    story.post("/relationships", { type, fromId: from.id, toId: to.id, properties: { since: 1 } })
  const [knows, fallen, dropped] = [
    yield* relate("KNOWS", ada, grace),
    yield* relate("KNOWS", ada, gone),
    yield* relate("ADMIRES", ada, grace)
  ]
  const before = { objects: yield* objectsOf(story), relationships: yield* relationshipsOf(story) }
  const { agent, run } = yield* acted(story, [
    updating(ada, { age: 2, tags: { a: { b: 2, d: 3 } }, fresh: true }),
    { tool: "create_object", arguments: { type: "Person", key: "joan", properties: { name: "Joan" } } },
    { tool: "create_relationship", arguments: { type: "LIKES", fromId: ada.id, toId: grace.id } },
    { tool: "update_relationship", arguments: { relationshipId: knows.id, properties: { since: 2 } } },
    { tool: "delete_relationship", arguments: { relationshipId: dropped.id } },
    updating(gone, { name: "Nobody" }),
    { tool: "delete_object", arguments: { objectId: gone.id } }
  ])
  return { agent, run, before, ada, grace, gone, knows, fallen, dropped }
})

/** An entity without what every new version changes. */
const content = ({ id, type, key, fromId, toId, properties }: Json) => ({
  id,
  type,
  key,
  fromId,
  toId,
  properties
})

layer(SharedServer.layer)((it) => {
  describe("Undo of a run", () => {
    it.effect("S001-N04, F08 everything that a run did is planned, and taken back by an approval", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const me = (yield* story.send("GET", "/api/me")).body.userId
        const { ada, agent, before, dropped, fallen, gone, knows, run } = yield* busyRun(story)
        const planned = yield* undoRun(story, run)
        expect(planned.status).toBe(201)
        const task = planned.body
        expect(task).toMatchObject({
          type: "undo",
          status: "pending",
          revision: 1,
          title: expect.stringContaining("actor"),
          payload: {
            cause: { type: "run", runId: run.id },
            requestedBy: me,
            counts: { ready: 7, conflicts: 0, unneeded: 0, kept: 0, suggestions: 0 },
            agents: [{ id: agent.id, name: "actor" }]
          },
          outcome: null
        })
        const items = yield* itemsOf(story, task)
        expect(items[ada.id]).toMatchObject({
          entityType: "graphObject",
          objectType: "Person",
          action: "update",
          status: "ready",
          version: 2,
          properties: [
            { property: "age", status: "ready", now: 2, back: 1 },
            { property: "fresh", status: "ready", now: true },
            {
              property: "tags",
              status: "ready",
              now: { a: { b: 2, d: 3 }, c: null },
              back: { a: { b: 1 }, c: null }
            }
          ]
        })
        expect(items[ada.id].properties[1]).not.toHaveProperty("back")
        expect(items[gone.id]).toMatchObject({ action: "restore", status: "ready", key: "gone", version: 3 })
        expect(items[fallen.id]).toMatchObject({
          entityType: "relationship",
          action: "restore",
          status: "ready"
        })
        expect(items[dropped.id]).toMatchObject({ action: "restore" })
        expect(items[knows.id]).toMatchObject({ action: "update" })
        expect(Object.values(items).filter(({ action }) => action === "delete")).toHaveLength(2)

        const decided = yield* approve(story, task, { digest: task.digest })
        expect(decided.status).toBe(200)
        expect(decided.body).toMatchObject({
          status: "completed",
          resolvedBy: me,
          outcome: { undone: 7, leftOut: 0, expiredSuggestions: 0 }
        })
        expect((yield* objectsOf(story)).filter(({ type }: Json) => type !== "Start").map(content)).toEqual(
          before.objects.map(content)
        )
        expect((yield* relationshipsOf(story)).map(content)).toEqual(before.relationships.map(content))
        expect(decided.body.outcome.reverted).toContainEqual({
          agentId: agent.id,
          agentVersion: 1,
          entityType: "graphObject",
          objectType: "Person",
          operation: "created",
          count: 1
        })
        // The changes are the person's, and say what they belong to.
        const { properties } = yield* story.get(`/objects/${ada.id}/provenance?property=age`)
        expect(properties).toMatchObject([
          { value: 1, actorId: me, task: { number: task.number, type: "undo", title: task.title } }
        ])
        const history = yield* story.get(`/objects/${ada.id}/history`)
        expect(history.items[0]).toMatchObject({
          actorType: "user",
          actorId: me,
          taskId: task.id,
          runId: null
        })
      })
    )

    it.effect("S001-N04 a plan changes nothing, a second request answers it, and a rejection drops it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* busyRun(story)
        const before = { objects: yield* objectsOf(story), relationships: yield* relationshipsOf(story) }
        const task = (yield* undoRun(story, run)).body
        const again = yield* undoRun(story, run)
        expect([again.status, again.body]).toEqual([200, task])
        const answers = yield* Effect.all(
          Array.from({ length: 6 }, () => undoRun(story, run)),
          { concurrency: 6 }
        )
        expect(answers.map(({ body }) => body.id)).toEqual(answers.map(() => task.id))
        const rejected = yield* reject(story, task, { reason: "It was right" })
        expect(rejected.body).toMatchObject({
          status: "rejected",
          resolutionNote: "It was right",
          outcome: null
        })
        expect({ objects: yield* objectsOf(story), relationships: yield* relationshipsOf(story) }).toEqual(
          before
        )
        expect((yield* undoRun(story, run)).status).toBe(201)
      })
    )
  })
})
