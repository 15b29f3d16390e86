/**
 * How one object or relationship goes back, fact by fact.
 */
import { describe, expect, it } from "@effect/vitest"
import { draftInverse, type EntityFacts, inConflict, type PropertyFacts } from "./inverse.ts"

const later = { version: 9, by: "user ada" }

const property = (more: Partial<PropertyFacts> = {}): PropertyFacts => ({
  property: "age",
  backVersion: 3,
  isSame: false,
  later: null,
  isOverwritten: false,
  ...more
})

const facts = (more: Partial<EntityFacts> = {}): EntityFacts => ({
  entityType: "graphObject",
  isPurged: false,
  isDeleted: false,
  isCreated: false,
  other: null,
  life: null,
  properties: [property()],
  ...more
})

const made = { before: "absent", later: null } as const

describe("the inverse of what was done to an entity", () => {
  it.each<readonly [string, Partial<EntityFacts>, string, string]>([
    ["purged", { isPurged: true }, "none", "unneeded"],
    ["made", { isCreated: true, life: made }, "delete", "ready"],
    ["made, and changed by another", { isCreated: true, life: made, other: later }, "delete", "conflict"],
    ["made and deleted", { isCreated: true, isDeleted: true, life: made }, "none", "unneeded"],
    [
      "made, changed by another and deleted",
      { isCreated: true, isDeleted: true, life: made, other: later },
      "restore",
      "ready"
    ],
    ["updated, and deleted by another", { isDeleted: true, other: later }, "none", "unneeded"],
    [
      "made, and deleted by another",
      { isCreated: true, isDeleted: true, life: { ...made, later } },
      "none",
      "unneeded"
    ],
    ["deleted", { isDeleted: true, life: { before: "live", later: null } }, "restore", "ready"],
    [
      "deleted, and restored by another",
      { life: { before: "live", later }, properties: [] },
      "none",
      "unneeded"
    ],
    ["updated", {}, "update", "ready"],
    ["updated, and set again by another", { properties: [property({ later })] }, "update", "conflict"],
    [
      "updated, and set back by another",
      { properties: [property({ later, isSame: true })] },
      "none",
      "unneeded"
    ],
    ["updated there and back", { properties: [property({ isSame: true })] }, "none", "unneeded"]
  ])("of one that was %s", (_, more, action, status) => {
    expect(draftInverse(facts(more))).toMatchObject({ action, status })
  })

  it("keeps what another has set since and puts back the rest", () => {
    const draft = draftInverse(
      facts({
        properties: [
          property(),
          property({ property: "name", later }),
          property({ property: "town", isSame: true })
        ]
      })
    )
    expect(draft).toMatchObject({ action: "update", status: "ready" })
    expect(draft.properties.map(({ status }) => status)).toEqual(["ready", "conflict", "unneeded"])
    expect(draft.reason).toMatch(/user ada.*\bname\b.*\b9\b/)
    expect(draft.reason).not.toMatch(/\b(?:age|town)\b/)
  })

  it("leaves an object that another has worked on, with the last state of that work", () => {
    const draft = draftInverse(
      facts({
        isCreated: true,
        life: made,
        other: later,
        properties: [
          property({ property: "own", backVersion: 0 }),
          property({ property: "theirs", isOverwritten: true }),
          property({ property: "again", isOverwritten: true, later })
        ]
      })
    )
    expect(draft).toMatchObject({
      action: "update",
      status: "ready",
      properties: [{ property: "theirs", backVersion: 3, status: "ready" }]
    })
  })

  it("brings back a deleted object without overwriting what another had set", () => {
    const draft = draftInverse(
      facts({
        isDeleted: true,
        life: { before: "live", later: null },
        properties: [property(), property({ property: "name", later })]
      })
    )
    expect(draft.properties.map(({ status }) => status)).toEqual(["ready", "conflict"])
  })

  it("names no more than a few of many properties, and cuts what is long", () => {
    const many = Array.from({ length: 9 }, (_, n) => property({ property: `${n}`.repeat(500), later }))
    const { reason } = draftInverse(facts({ properties: many }))
    expect(Array.from("012345678").filter((n) => reason.includes(n.repeat(10)))).toEqual(Array.from("01234"))
    expect(reason).toMatch(/ 4\b/)
    expect(reason.length).toBeLessThan(500)
  })

  it("keeps all of an item that cannot be done", () => {
    const kept = inConflict(
      draftInverse(facts({ properties: [property(), property({ property: "n", isSame: true })] })),
      "Why"
    )
    expect(kept).toMatchObject({ action: "update", status: "conflict", reason: "Why" })
    expect(kept.properties.map(({ status }) => status)).toEqual(["conflict", "unneeded"])
  })
})
