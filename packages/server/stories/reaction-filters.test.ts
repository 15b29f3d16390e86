/**
 * Which of the events of the right type are meant: by properties, by what
 * changed, and of relationships.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  change,
  endedRuns,
  entriesWhen,
  explained,
  feedOf,
  make,
  saying,
  versionsOf,
  watcher
} from "../testing/story-words.ts"

/** An agent for Packages. */
const packages = (reaction: Record<string, unknown>, overrides: Record<string, unknown> = {}) =>
  watcher({
    reactionConfig: { objectTypes: ["Package"], events: ["created", "updated", "deleted"], ...reaction },
    ...overrides
  })

/** Says what woke it, as its templates see it. */
const witness = {
  prompt: `{% if relationship %}{{ relationship.type }} {{ relationship.fromId }} {{ relationship.toId }} {{ relationship.properties.range }}
    {%- else %}{{ object.type }} {{ object.properties.name }}{% endif %} ({{ event.entityType }} {{ event.type }} {{ event.objectId }})`,
  model: saying("{{ message }}")
}

const wokenBy = (entries: ReadonlyArray<Json>) =>
  entries.map((entry) => [entry.eventType, entry.objectVersion])

layer(SharedServer.layer)((it) => {
  describe("Open question: filter by object properties, not only type", () => {
    it.effect("S001-F04 an agent is woken only where the state after the change meets its conditions", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const severe = { property: "severity", op: "gte", value: 7 }
        const agent = yield* story.post("/agents", packages({ where: { properties: [severe] } }))
        const harmless = yield* make(story, "Package", { severity: 3 })
        yield* change(story, harmless, { severity: 8 }, { severity: 2 })
        const [, , calm] = yield* feedOf(story, 3)
        expect(wokenBy(yield* entriesWhen(story, agent, 1))).toEqual([["updated", 2]])
        expect(yield* explained(story, agent, calm)).toMatchObject({
          outcome: "refused",
          rule: "properties"
        })
      })
    )

    it.effect("S001-F04 a deletion is judged by the last state", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const condition = { property: "/owner/team", op: "eq", value: "core" }
        const agent = yield* story.post(
          "/agents",
          packages({ events: ["deleted"], where: { properties: [condition] } })
        )
        const ours = yield* make(story, "Package", { owner: { team: "core" } })
        const theirs = yield* make(story, "Package", { owner: { team: "web" } })
        yield* story.delete(`/objects/${theirs.id}`)
        yield* story.delete(`/objects/${ours.id}`)
        yield* feedOf(story, 4)
        const entries = yield* entriesWhen(story, agent, 1)
        expect(entries.map((entry) => [entry.graphObjectId, entry.eventType])).toEqual([[ours.id, "deleted"]])
      })
    )

    it.effect("S001-F04 an agent that looks at some properties is woken when one of them changed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          packages({
            events: ["updated"],
            concurrencyStrategy: "parallel",
            where: { changedProperties: ["license", "severity"] }
          })
        )
        const found = yield* make(story, "Package", { license: "MIT", stars: 1 })
        yield* change(story, found, { stars: 2 }, { license: "GPL", stars: 3 }, { severity: 1 }, { stars: 4 })
        const events = yield* feedOf(story, 5)
        expect(wokenBy(yield* entriesWhen(story, agent, 2))).toEqual([
          ["updated", 3],
          ["updated", 4]
        ])
        expect(yield* explained(story, agent, events[1])).toMatchObject({
          outcome: "refused",
          rule: "changedProperties",
          reason: expect.stringContaining("stars")
        })
      })
    )

    it.effect("S001-F04 a condition that cannot be asked is refused with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const refused = [
          [
            { properties: [{ property: "name", op: "like", value: "x" }] },
            "/reactionConfig/where/properties/0/op"
          ],
          [
            { properties: [{ property: "", op: "eq", value: 1 }] },
            "/reactionConfig/where/properties/0/property"
          ],
          [{ changedProperties: [] }, "/reactionConfig/where/changedProperties"]
        ] as const
        for (const [where, pointer] of refused) {
          const answer = yield* story.ask("POST", "/agents", packages({ where }))
          expect([answer.status, answer.body.errors?.[0]?.pointer]).toEqual([422, pointer])
        }
      })
    )
  })

  describe("Decision: only object events, and relationships where the configuration names them", () => {
    it.effect("S001-R47 an agent that names a relationship type is woken by those, and by no other", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = {
          objectTypes: ["None"],
          events: ["created", "deleted"],
          concurrencyStrategy: "parallel"
        }
        const agent = yield* story.post(
          "/agents",
          watcher({ ...witness, reactionConfig: { ...reactionConfig, relationshipTypes: ["dependsOn"] } })
        )
        const deaf = yield* story.post("/agents", watcher({ name: "deaf", reactionConfig }))
        const from = yield* make(story, "Package", { name: "a" })
        const to = yield* make(story, "Package", { name: "b" })
        const relate = (type: string) =>
          story.post("/relationships", { type, fromId: from.id, toId: to.id, properties: { range: "^1" } })
        yield* relate("replaces")
        const edge = yield* relate("dependsOn")
        yield* story.delete(`/relationships/${edge.id}`)
        const [, , other] = yield* feedOf(story, 5)
        const entries = yield* entriesWhen(story, agent, 2)
        expect(entries.map((entry) => [entry.entityType, entry.graphObjectId, entry.eventType])).toEqual([
          ["relationship", edge.id, "created"],
          ["relationship", edge.id, "deleted"]
        ])
        const [run] = yield* endedRuns(story, agent, 2)
        expect(run.summary).toBe(`dependsOn ${from.id} ${to.id} ^1 (relationship created ${edge.id})`)
        expect(versionsOf(run)).toEqual([1])
        expect(yield* explained(story, agent, other)).toMatchObject({
          outcome: "refused",
          rule: "relationshipType"
        })
        expect((yield* story.get(`/agents/${deaf.id}/processing-log`)).items).toEqual([])
      })
    )

    it.effect("S001-R47 relationshipTypes [] is all of them, beside the objects that are named", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          packages({ events: ["created"], relationshipTypes: [] }, witness)
        )
        const from = yield* make(story, "Package", { name: "a" })
        const to = yield* make(story, "Person", { name: "b" })
        yield* story.post("/relationships", { type: "ownedBy", fromId: from.id, toId: to.id })
        yield* feedOf(story, 3)
        const entries = yield* entriesWhen(story, agent, 2)
        expect(entries.map((entry) => entry.entityType)).toEqual(["graphObject", "relationship"])
        const runs = yield* endedRuns(story, agent, 2)
        expect(runs.map((run) => run.summary)).toContain(`Package a (graphObject created ${from.id})`)
      })
    )
  })
})
