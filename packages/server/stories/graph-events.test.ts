/**
 * What the graph tells of its changes, and to whom.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { openStream } from "../testing/event-stream.ts"
import { ask } from "../testing/owner-rows.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, endedRuns, entriesWhen, feedOf, make, watcher } from "../testing/story-words.ts"

const everything = { objectTypes: [], events: ["created", "updated", "deleted"] }

layer(SharedServer.layer)((it) => {
  describe("Decision: event emission strategy", () => {
    it.effect(
      "S001-R08, R09, R10 created, updated and deleted are emitted with the entity and its actor",
      () =>
        Effect.gen(function* () {
          const [story, other] = [yield* newStoryHere, yield* newStoryHere]
          const person = yield* story.post("/objects", {
            type: "Person",
            key: "ada",
            properties: { name: "Ada" }
          })
          yield* story.patch(`/objects/${person.id}`, { properties: { born: 1815 } })
          yield* story.delete(`/objects/${person.id}`)
          const feed = yield* feedOf(story, 3)
          const context = {
            entityType: "graphObject",
            entityId: person.id,
            objectType: "Person",
            actorType: "user",
            actorId: person.actorId
          }
          const entity = { id: person.id, type: "Person", key: "ada" }
          expect(feed).toMatchObject([
            {
              ...context,
              type: "created",
              version: 1,
              changedProperties: ["name"],
              snapshot: { ...entity, version: 1, properties: { name: "Ada" } }
            },
            {
              ...context,
              type: "updated",
              version: 2,
              changedProperties: ["born"],
              snapshot: { ...entity, version: 2, properties: { name: "Ada", born: 1815 } }
            },
            {
              ...context,
              type: "deleted",
              version: 3,
              snapshot: { ...entity, properties: { name: "Ada", born: 1815 } }
            }
          ])
          // The project is the address under which the event is told, and no other project is told of it.
          expect(yield* feedOf(other, 0)).toEqual([])
          const rows = yield* ask(
            story.access,
            "select distinct project_id::text from kb.graph_events where entity_id = $1",
            [person.id]
          )
          expect(rows).toEqual([[story.projectId]])
        })
    )

    it.effect("S001-R11 whoever subscribes to the feed hears every event, of all types and kinds", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const feed = `/api/projects/${story.projectId}/events`
        const [one, other] = [yield* openStream(story, feed), yield* openStream(story, feed)]
        const agent = yield* story.post(
          "/agents",
          watcher({ model: calling({ tool: "create_object", arguments: { type: "Note", properties: {} } }) })
        )
        const ada = yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        const acme = yield* make(story, "Company")
        yield* story.patch(`/objects/${acme.id}`, { properties: { name: "Acme" } })
        yield* story.post("/relationships", { type: "WORKS_AT", fromId: ada.id, toId: acme.id })
        yield* story.delete(`/objects/${acme.id}`)
        const expected = [
          ["created", "Person", "user"],
          ["created", "Note", "agent"],
          ["created", "Company", "user"],
          ["updated", "Company", "user"],
          ["created", "WORKS_AT", "user"],
          ["deleted", "WORKS_AT", "user"],
          ["deleted", "Company", "user"]
        ]
        for (const stream of [one, other]) {
          const heard = yield* stream.until((events) => events.length >= expected.length)
          expect(heard.map(({ name, json }) => [name, json.objectType, json.actorType])).toEqual(expected)
        }
      })
    )

    it.effect(
      "S001-R09 an update that changes nothing makes no version, emits nothing and wakes nobody",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ reactionConfig: everything }))
          const person = yield* make(story, "Person", { name: "Ada", list: [1, { a: 1, b: 2 }] })
          const same = yield* story.patch(`/objects/${person.id}`, {
            properties: { list: [1, { b: 2, a: 1 }], gone: null }
          })
          expect(same).toEqual(person)
          yield* make(story, "Person")
          const feed = yield* feedOf(story, 2)
          expect(feed.map((event) => event.type)).toEqual(["created", "created"])
          expect(yield* entriesWhen(story, agent, 2)).toHaveLength(2)
        })
    )
  })
})
