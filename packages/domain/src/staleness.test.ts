/**
 * What moved under a change is told, and never overwritten.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import type { Change } from "./change.ts"
import type { ObjectId, RelationshipId } from "./ids.ts"
import { canonicalJson, isJsonObject, mergePatch, pointerStep, type Properties } from "./json.ts"
import { judgeStaleness, type Standing, stalenessBounds, toldStaleness } from "./staleness.ts"

const objectId = "o" as ObjectId
const relationshipId = "r" as RelationshipId
const updating = (data: Properties): Change => ({ type: "update", objectId, data })

/** A target that went from one state to another. */
const moved = (base: Properties, current: Properties, versions = 1): Standing => ({
  base: { version: 1, properties: base },
  current: { version: 1 + versions, properties: current },
  isGone: false,
  added: [],
  takenBy: null
})

const conflicts = (patch: Properties, base: Properties, current: Properties) =>
  judgeStaleness(updating(patch), moved(base, current)).conflicts

describe("a change whose target moved", () => {
  it("is fresh at the version that was seen, whatever it would write", () => {
    expect(judgeStaleness(updating({ a: 2 }), moved({ a: 1 }, { a: 1 }, 0))).toEqual({
      state: "fresh",
      moved: [],
      conflicts: []
    })
  })

  it("is rebasable when only other places moved, or none in the end", () => {
    expect(judgeStaleness(updating({ a: 2 }), moved({ a: 1, b: 1 }, { a: 1, c: 1 }))).toEqual({
      state: "rebasable",
      moved: ["/b", "/c"],
      conflicts: []
    })
    expect(judgeStaleness(updating({ a: 2 }), moved({ a: 1 }, { a: 1 }, 2)).state).toBe("rebasable")
  })

  it("is outdated by what it would write, told in three versions", () => {
    expect(judgeStaleness(updating({ a: 2 }), moved({ a: 1, b: 1 }, { a: 3, b: 2 }))).toEqual({
      state: "outdated",
      moved: ["/a", "/b"],
      conflicts: [{ pointer: "/a", base: 1, current: 3, suggested: 2 }]
    })
  })

  it("clashes in the leaves of its patch alone", () => {
    expect(conflicts({ a: { b: 1 } }, { a: { b: 0, c: 0 } }, { a: { b: 0, c: 5 } })).toEqual([])
    expect(conflicts({ a: { b: 1 } }, { a: { b: 0, c: 0 } }, { a: { b: 5, c: 0 } })).toEqual([
      { pointer: "/a/b", base: 0, current: 5, suggested: 1 }
    ])
    // Somebody made the whole of it: the leaf of the patch is not among what they set.
    expect(conflicts({ a: { b: 1 } }, {}, { a: { c: 5 } })).toEqual([])
    expect(conflicts({ a: { b: 1 } }, {}, { a: { b: 5 } })).toEqual([
      { pointer: "/a/b", current: 5, suggested: 1 }
    ])
  })

  it("does not bring back a whole that was removed, nor replace one by its part", () => {
    expect(conflicts({ a: { b: 1 } }, { a: { b: 0, c: 0 } }, {})).toEqual([
      { pointer: "/a", base: { b: 0, c: 0 }, suggested: { b: 1, c: 0 } }
    ])
    expect(conflicts({ a: { b: 1 } }, { a: { b: 0 } }, { a: "text" })).toEqual([
      { pointer: "/a", base: { b: 0 }, current: "text", suggested: { b: 1 } }
    ])
    expect(conflicts({ a: { b: 1 } }, { a: "text" }, { a: { c: 1 } })).toEqual([
      { pointer: "/a", base: "text", current: { c: 1 }, suggested: { b: 1 } }
    ])
    expect(conflicts({ a: null }, { a: { b: 0, c: 0 } }, { a: { b: 0, c: 5 } })).toEqual([
      { pointer: "/a", base: { b: 0, c: 0 }, current: { b: 0, c: 5 } }
    ])
    expect(conflicts({ list: [1, 2] }, { list: [1] }, { list: [1, 3] })).toEqual([
      { pointer: "/list", base: [1], current: [1, 3], suggested: [1, 2] }
    ])
  })

  it("clashes with nothing that has the suggested value already", () => {
    expect(conflicts({ a: 2, b: null, c: { d: 1 } }, { a: 1, b: 1 }, { a: 2, c: { d: 1 } })).toEqual([])
    expect(conflicts({ a: {} }, { a: 1 }, { a: { b: 1 } })).toEqual([])
  })

  it("takes keys for what they are", () => {
    expect(conflicts({ constructor: 1 }, {}, { toString: 1 })).toEqual([])
    expect(conflicts({ "a/b": 1 }, { "a/b": 0 }, { "a/b": 2 })[0]?.pointer).toBe("/a~1b")
  })
})

describe("a deletion", () => {
  const deletions: ReadonlyArray<Change> = [
    { type: "delete", objectId },
    { type: "deleteRelationship", relationshipId }
  ]

  it("is outdated by whatever moved, and by nothing that is the same again", () => {
    for (const deletion of deletions) {
      expect(judgeStaleness(deletion, moved({ a: 1 }, { b: 2 }))).toEqual({
        state: "outdated",
        moved: ["/a", "/b"],
        conflicts: [
          { pointer: "/a", base: 1 },
          { pointer: "/b", current: 2 }
        ]
      })
      expect(judgeStaleness(deletion, moved({ a: 1 }, { a: 1 }, 2)).state).toBe("rebasable")
    }
  })

  it("is outdated by a relationship that was made since", () => {
    const added = [{ id: relationshipId, type: "KNOWS", fromId: objectId, toId: objectId }]
    const standing = { ...moved({}, {}, 0), added }
    expect(judgeStaleness({ type: "delete", objectId }, standing).state).toBe("outdated")
  })
})

describe("a change that meets nothing", () => {
  const nothing: Standing = { base: null, current: null, isGone: false, added: [], takenBy: null }
  const creation: Change = { type: "create", objectType: "Person", key: "a", data: { a: 1 } }

  it("is gone with its target", () => {
    expect(judgeStaleness(updating({ a: 1 }), { ...nothing, isGone: true }).state).toBe("gone")
  })

  it("is fresh when it makes something new, and outdated when that is there", () => {
    expect(judgeStaleness(creation, nothing).state).toBe("fresh")
    expect(judgeStaleness(creation, { ...nothing, takenBy: "b" }).state).toBe("outdated")
  })

  it("tells a bounded number of places", () => {
    const many = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`p${n}`, n]))
    const told = toldStaleness({ type: "delete", objectId }, moved({}, many), [])
    expect([told.moved.length, told.conflicts.length]).toEqual([
      stalenessBounds.toldPointers,
      stalenessBounds.toldPointers
    ])
  })
})

const name = Schema.Literals(["a", "b", "c"])
const scalar = Schema.Union([Schema.Null, Schema.Literals([0, 1, "x"])])
const inner = Schema.Array(Schema.Tuple([name, scalar]))
const middle = Schema.Array(Schema.Tuple([name, Schema.Union([scalar, inner])]))
const outer = Schema.Array(Schema.Tuple([name, Schema.Union([scalar, middle])]))

/** Pairs, at any depth, as objects: few names and few values, so that states often touch. */
const objectOf = (pairs: unknown): Schema.Json =>
  Array.isArray(pairs)
    ? Object.fromEntries(pairs.map(([key, value]) => [key, objectOf(value)]))
    : (pairs as Schema.Json)

const states = Arbitrary.map(Arbitrary.schema(outer), (pairs) => objectOf(pairs) as Properties)

/** Every value that is no object, by its place. */
const leaves = (value: Schema.Json, pointer = ""): ReadonlyMap<string, string> =>
  isJsonObject(value)
    ? new Map(Object.entries(value).flatMap(([key, item]) => [...leaves(item, pointer + pointerStep(key))]))
    : new Map([[pointer, canonicalJson(value)]])

describe("what others have set", () => {
  it.prop(
    "is as they set it after every change that is not refused",
    [states, states, states],
    ([base, current, patch]) => {
      if (judgeStaleness(updating(patch), moved(base, current)).conflicts.length > 0) return
      const after = leaves(mergePatch(current, patch))
      const [before, now] = [leaves(base), leaves(current)]
      for (const pointer of new Set([...before.keys(), ...now.keys()]))
        if (before.get(pointer) !== now.get(pointer))
          expect([pointer, after.get(pointer)]).toEqual([pointer, now.get(pointer)])
    }
  )
})
