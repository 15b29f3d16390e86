/**
 * The difference of two JSON values: whole, and no more than it is.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { canonicalJson } from "./json.ts"
import { diffJson } from "./json-diff.ts"

describe("diffJson", () => {
  it("tells the place, what was and what is", () => {
    expect(
      diffJson(
        { name: "a", tools: ["x"], model: { name: "m", temperature: 1 }, role: null, "a/b": 1 },
        { name: "b", tools: ["y", "x"], model: { name: "m" }, role: null, maxSteps: 3, "a/b": 2 }
      )
    ).toEqual([
      { pointer: "/name", before: "a", after: "b" },
      { pointer: "/tools", before: ["x"], after: ["y", "x"] },
      { pointer: "/model/temperature", before: 1 },
      { pointer: "/a~1b", before: 1, after: 2 },
      { pointer: "/maxSteps", after: 3 }
    ])
  })

  it("tells null from nothing, and an object from null as a whole", () => {
    expect(diffJson({ a: null }, {})).toEqual([{ pointer: "/a", before: null }])
    expect(diffJson({ a: null }, { a: { b: 1 } })).toEqual([{ pointer: "/a", before: null, after: { b: 1 } }])
    expect(diffJson({ constructor: 1 }, {})).toEqual([{ pointer: "/constructor", before: 1 }])
  })

  const values = Arbitrary.schema(Schema.Json)

  it.prop("is empty exactly for equal values", [values, values], ([before, after]) => {
    expect(diffJson(before, before)).toEqual([])
    expect(diffJson(before, after).length === 0).toBe(canonicalJson(before) === canonicalJson(after))
  })
})
