/**
 * Which events a subscription means, and what it is told of each.
 */
import { describe, expect, it } from "@effect/vitest"
import type { GraphEvent } from "@tropism/domain/graph"
import { eventLimits, type EventFilter, eventTypes, isMeant, listedEvents, occurrenceOf } from "./events.ts"

const [one, two] = ["018f0000-0000-7000-8000-000000000001", "018f0000-0000-7000-8000-000000000002"]

/** An event of an object, or with other fields of anything. */
const eventWith = (fields: Record<string, unknown> = {}): GraphEvent =>
  JSON.parse(
    JSON.stringify({
      id: one,
      entityType: "graphObject",
      entityId: two,
      objectType: "Box",
      type: "updated",
      version: 2,
      changedProperties: ["size"],
      snapshot: { key: "a", properties: { size: 9 } },
      actorType: "user",
      actorId: "ada",
      approvedBy: null,
      runId: null,
      rootEventId: one,
      depth: 0,
      createdAt: "2026-11-22T00:00:00.000Z",
      ...fields
    })
  )

const kind = (name: string) => {
  const found = eventTypes.get(name)
  if (!found) throw new Error(`Unknown event ${name}`)
  return found
}

describe("What a subscription means", () => {
  const over5 = [{ property: "size", op: "gt", value: 5 }] as const
  const link = { entityType: "relationship", snapshot: { fromId: one, toId: two, properties: {} } }
  it.each<[string, EventFilter, Record<string, unknown>, boolean]>([
    ["everything, where it says nothing", {}, {}, true],
    ["nulls are nothing said", { where: null, changedProperties: null, fromId: null }, {}, true],
    ["a changed property", { changedProperties: ["colour", "size"] }, {}, true],
    ["none that did not", { changedProperties: ["colour"] }, {}, false],
    ["a condition that holds after the change", { where: over5 }, {}, true],
    ["none that does not", { where: over5 }, { snapshot: { properties: { size: 5 } } }, false],
    ["no condition on what has no properties", { where: over5 }, { snapshot: {} }, false],
    ["an end of a relationship", { fromId: one }, link, true],
    ["both ends", { fromId: one, toId: two }, link, true],
    ["not the other end", { fromId: two }, link, false],
    ["no end of an object", { fromId: one }, {}, false],
    ["all of it together", { where: over5, changedProperties: ["colour"] }, {}, false]
  ])("%s", (_, filter, fields, meant) => {
    expect(isMeant(eventWith(fields), filter)).toBe(meant)
  })
})

describe("What is told of an event", () => {
  it("an object has its id and key, a relationship its ends, and neither the other's", () => {
    expect(occurrenceOf(kind("object.updated"), eventWith())).toMatchObject({
      eventId: one,
      name: "object.updated",
      data: { objectId: two, key: "a", version: 2, properties: { size: 9 } }
    })
    const { data } = occurrenceOf(
      kind("relationship.created"),
      eventWith({ entityType: "relationship", snapshot: { fromId: one, toId: two, properties: {} } })
    )
    expect(data).toMatchObject({ relationshipId: two, fromId: one, toId: two })
    expect(Object.keys(data)).not.toEqual(expect.arrayContaining(["objectId"]))
    expect(Object.keys(data)).not.toEqual(expect.arrayContaining(["key"]))
  })

  it("properties that are too large are null, and the largest that are not are told", () => {
    const told = (chars: number) => {
      const text = "x".repeat(chars - JSON.stringify({ t: "" }).length)
      const event = eventWith({ snapshot: { properties: { t: text } } })
      return occurrenceOf(kind("object.created"), event).data.properties
    }
    expect(told(eventLimits.occurrencePropertiesMaxChars)).not.toBeNull()
    expect(told(eventLimits.occurrencePropertiesMaxChars + 1)).toBeNull()
  })

  it("what nobody vouches for is named, and only then", () => {
    const untrusted = eventWith({ snapshot: { properties: { size: 9 }, untrusted: ["size"] } })
    expect(occurrenceOf(kind("object.updated"), untrusted).data.untrusted).toEqual(["size"])
    expect(occurrenceOf(kind("object.updated"), eventWith()).data).not.toHaveProperty("untrusted")
  })
})

describe("The catalog", () => {
  it("lets only updates be narrowed to properties that changed", () => {
    for (const { inputSchema, name } of listedEvents)
      expect([name, JSON.stringify(inputSchema).includes('"changedProperties"')]).toEqual([
        name,
        name.endsWith(".updated")
      ])
  })
})
