/**
 * What each operator of a property filter means.
 */
import { assert, describe, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { type FilterOperator, matches, PropertyFilter } from "./property-filter.ts"

const license = { license: "MIT", size: 12, tags: ["a", "b"], author: { name: "Ada" }, gone: null }

const holds = (property: string, op: FilterOperator, value: Schema.Json) =>
  matches([{ property, op, value }], license)

describe("Property filters (S001-F04)", () => {
  it("compare JSON, and a missing property equals nothing", () => {
    assert.isTrue(holds("license", "eq", "MIT"))
    assert.isFalse(holds("license", "eq", "mit"))
    assert.isFalse(holds("missing", "eq", null))
    assert.isTrue(holds("gone", "eq", null))
    assert.isTrue(holds("missing", "ne", "MIT"))
    assert.isFalse(holds("license", "ne", "MIT"))
    assert.isTrue(holds("tags", "eq", ["a", "b"]))
    assert.isFalse(holds("tags", "eq", ["b", "a"]))
  })

  it("order numbers by size and texts by code point, and nothing else", () => {
    assert.isTrue(holds("size", "gt", 11.5))
    assert.isFalse(holds("size", "gt", 12))
    assert.isTrue(holds("size", "gte", 12))
    assert.isTrue(holds("license", "lt", "MITx"))
    assert.isFalse(holds("license", "lt", 3))
    assert.isFalse(holds("tags", "gte", "a"))
    // U+FF5E lies before U+1F600 although its code unit is the greater one.
    assert.isTrue(matches([{ property: "t", op: "lt", value: "\u{1F600}" }], { t: "\uFF5E" }))
  })

  it("find a text in a text and an element in a list", () => {
    assert.isTrue(holds("license", "contains", "IT"))
    assert.isTrue(holds("tags", "contains", "b"))
    assert.isFalse(holds("tags", "contains", "ab"))
    assert.isTrue(holds("license", "startsWith", "MI"))
    assert.isFalse(holds("size", "startsWith", "1"))
    assert.isTrue(holds("license", "in", ["ISC", "MIT"]))
    assert.isFalse(holds("license", "in", []))
  })

  it("walk through objects by a pointer, never into lists", () => {
    assert.isTrue(holds("/author/name", "eq", "Ada"))
    assert.isFalse(holds("/tags/0", "eq", "a"))
    assert.isTrue(holds("/author/born", "exists", false))
    assert.isTrue(holds("gone", "exists", true))
    assert.isFalse(holds("toString", "exists", true))
  })

  it("are refused when the value does not fit the operator", () => {
    const isFit = (op: FilterOperator, value: Schema.Json) =>
      Result.isSuccess(Schema.decodeUnknownResult(PropertyFilter)({ property: "p", op, value }))
    assert.isFalse(isFit("in", "MIT"))
    assert.isFalse(isFit("exists", 1))
    assert.isFalse(isFit("gt", null))
    assert.isFalse(isFit("startsWith", 1))
    assert.isTrue(isFit("eq", null))
  })
})
