/**
 * The live feed's own rules: no event twice, none lost in a gap, and words that mean what they say.
 */
import { describe, expect, it } from "@effect/vitest"
import { GraphEvent } from "@tropism/domain/graph"
import { Schema } from "effect"
import { parseFilter, passes } from "./feed-filter.ts"
import { type FeedItem, gaplessPlace, withEvents } from "./feed-items.ts"

const at = (...places: ReadonlyArray<number>) => places.map((position) => ({ position }))

describe("the events of the feed", () => {
  it.each([
    ["what comes", at(2, 1), at(3), 9, at(3, 2, 1)],
    ["what came twice", at(2, 1), at(2, 1), 9, at(2, 1)],
    ["what comes late", at(4, 1), at(3, 2), 9, at(4, 3, 2, 1)],
    ["at most so many", at(2, 1), at(3), 2, at(3, 2)]
  ])("are %s, once and in order", (_, known, more, maxCount, all) => {
    expect(withEvents(known, more, maxCount)).toEqual(all)
  })

  it.each([
    [at(), undefined],
    [at(5, 4, 3), 5],
    [at(9, 8, 5, 4), 5],
    [at(9, 7, 5, 4), 5]
  ])("%j have no gap up to %s", (events, place) => {
    expect(gaplessPlace(events)).toBe(place)
  })
})

const event = Schema.decodeUnknownSync(GraphEvent)({
  id: "01a20776-0000-7000-8000-000000000001",
  position: 7,
  entityType: "graphObject",
  objectType: "Person",
  entityId: "o1",
  version: 2,
  type: "updated",
  changedProperties: ["field"],
  snapshot: { key: "Ada L." },
  actorType: "agent",
  actorId: "a1",
  approvedBy: null,
  runId: "01a20776-0000-7000-8000-000000000002",
  toolCallId: null,
  taskId: null,
  rootEventId: "01a20776-0000-7000-8000-000000000003",
  depth: 1,
  refusals: [],
  createdAt: "2026-01-01T00:00:00.000Z"
})

const item: FeedItem = { kind: "event", id: "e1", at: "2026-01-01T00:00:00.000Z", event }

describe("the filter", () => {
  it.each([
    ["", true],
    ["type:Person actor:agent agent:tidy op:updated", true],
    ["TYPE:person", true],
    ["type:Package", false],
    ["type:Package,Person", true],
    ["type:Package type:Person", true],
    ["type:Person op:created", false],
    ["-op:updated", false],
    ["-op:created ada", true],
    ["babbage", false],
    ['object:"Ada L."', true],
    ["is:run", false],
    ["prop:field run:01a20776-0000-7000-8000-000000000002 chain:01a20776-0000-7000-8000-000000000003", true]
  ])("%s shows it: %s", (text, isShown) => {
    expect(passes(parseFilter(text), item, () => "tidy")).toBe(isShown)
  })

  it("says which word it does not know, and goes by the others", () => {
    const filter = parseFilter("kind:Person type:Package")
    expect(filter.faults).toEqual([expect.stringContaining('"kind:Person"')])
    expect(passes(filter, item, () => undefined)).toBe(false)
  })
})
