/**
 * The rows a person decides on say exactly what the server will do.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Change } from "@tropism/domain/change"
import type { ObjectId } from "@tropism/domain/ids"
import { canonicalJson, mergePatch, Properties } from "@tropism/domain/json"
import { Arbitrary, Schema } from "effect"
import { fixtureId } from "../../testing/fixture-world.ts"
import { changeRows, requestedRows, valueAt, valueText, versionDifferences } from "./property-diff.ts"

const objectId = fixtureId<ObjectId>(2, 1)
const update = (data: Properties): Change => ({ type: "update", objectId, data })

describe("the rows of a change", () => {
  it("show every property of a new object as added", () => {
    expect(
      changeRows({ type: "create", objectType: "Package", key: null, data: { name: "a", tags: [] } }, {})
    ).toEqual([
      { path: ["name"], kind: "added", after: "a" },
      { path: ["tags"], kind: "added", after: [] }
    ])
  })

  it("show every property of a deleted object as removed", () => {
    expect(changeRows({ type: "delete", objectId }, { name: "a" })).toEqual([
      { path: ["name"], kind: "removed", before: "a" }
    ])
  })

  it("show an update against what stands there now, and nothing else", () => {
    const current = { licence: "MIT", note: "old", same: 1, untouched: true }
    expect(
      changeRows(update({ licence: "ISC", note: null, same: 1, fresh: "x", absent: null }), current)
    ).toEqual([
      { path: ["licence"], kind: "changed", before: "MIT", after: "ISC" },
      { path: ["note"], kind: "removed", before: "old" },
      { path: ["same"], kind: "kept", before: 1, after: 1 },
      { path: ["fresh"], kind: "added", after: "x" },
      { path: ["absent"], kind: "kept" }
    ])
  })

  it("go into nested objects, so that only what is named is shown", () => {
    expect(
      changeRows(update({ review: { state: "done", by: null } }), {
        review: { state: "open", by: "ana", at: 1 }
      })
    ).toEqual([
      { path: ["review", "state"], kind: "changed", before: "open", after: "done" },
      { path: ["review", "by"], kind: "removed", before: "ana" }
    ])
  })

  it("compare whole what lies very deep, with what the merge leaves in place", () => {
    const deep = (leaf: Properties): Properties => ({ a: { b: { c: { d: leaf } } } })
    expect(changeRows(update(deep({ x: 2 })), deep({ x: 1, y: 1 }))).toEqual([
      { path: ["a", "b", "c", "d"], kind: "changed", before: { x: 1, y: 1 }, after: { x: 2, y: 1 } }
    ])
  })

  it("do not take an inherited name for a property", () => {
    expect(changeRows(update({ toString: "x" }), {})).toEqual([
      { path: ["toString"], kind: "added", after: "x" }
    ])
  })

  it("say what was asked for once the target has moved on", () => {
    expect(requestedRows(update({ a: 1, b: null }))).toEqual([
      { path: ["a"], kind: "added", after: 1 },
      { path: ["b"], kind: "removed" }
    ])
    expect(requestedRows({ type: "delete", objectId })).toEqual([])
  })

  const Scalar = Schema.NullOr(Schema.Literals([0, 1, "a"]))
  const Small: Schema.Codec<Properties> = Schema.Record(
    Schema.Literals(["a", "b"]),
    Schema.Union([Scalar, Schema.suspend(() => Small)])
  )
  it.prop(
    "agree with the merge patch that the server applies",
    [Arbitrary.schema(Small), Arbitrary.schema(Small)],
    ([current, patch]) => {
      const after = mergePatch(current, patch)
      for (const row of changeRows(update(patch), current)) {
        const result = valueAt(after, row.path)
        if (row.kind === "removed") expect(result).toBeUndefined()
        else expect(result).toEqual(row.after)
        const isSame =
          row.before !== undefined &&
          row.after !== undefined &&
          canonicalJson(row.before) === canonicalJson(row.after)
        expect(row.kind === "kept").toBe(isSame || (row.before === undefined && row.after === undefined))
      }
      const isShown = changeRows(update(patch), current).some(({ kind }) => kind !== "kept")
      if (canonicalJson(after) !== canonicalJson(current)) expect(isShown).toBe(true)
    }
  )
})

describe("a value as text", () => {
  it("is a string as it is, and anything else as JSON", () => {
    expect(
      ["review", "5.6.1", "2026-11-02", 80, true, null, [1, "a"]].map((value) => valueText(value))
    ).toEqual(["review", "5.6.1", "2026-11-02", "80", "true", "null", '[1,"a"]'])
  })

  it("keeps the quotes of a string that could be taken for something else", () => {
    expect(["true", "80", "-1.5e3", "null", "", '{"a":1}', '"x"'].map((value) => valueText(value))).toEqual([
      '"true"',
      '"80"',
      '"-1.5e3"',
      '"null"',
      '""',
      '"{\\"a\\":1}"',
      '"\\"x\\""'
    ])
  })

  it("breaks long JSON into lines", () => {
    expect(valueText({ first: "a".repeat(40), second: "b".repeat(40) }).split("\n")).toHaveLength(4)
  })
})

it("tells two versions apart by their properties, whatever the order of their keys", () => {
  expect(
    versionDifferences(
      { a: 1, b: { x: 1, y: 2 }, c: "old", d: null },
      { b: { y: 2, x: 1 }, c: "new", d: null, e: [] }
    )
  ).toEqual([
    { name: "a", before: 1 },
    { name: "c", before: "old", after: "new" },
    { name: "e", after: [] }
  ])
  expect(versionDifferences({ a: 1 }, { a: 1 })).toEqual([])
})
