/**
 * What is cut of an outcome, and what is not.
 */
import { describe, expect, it } from "@effect/vitest"
import { pageBounds } from "@tropism/api/page"
import { isJsonObject } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import type { Schema } from "effect"
import { toolLimits } from "../limits.ts"
import { bounded, unfit } from "./arguments.ts"

const long = "x".repeat(toolLimits.resultMaxChars)

/** An outcome that was cut, in bounds. */
const cutOf = (result: Schema.Json) => {
  const cut = bounded(result)
  expect(keptChars(cut)).toBeLessThanOrEqual(toolLimits.resultMaxChars)
  expect(cut).toMatchObject({
    isTruncated: true,
    note: expect.stringContaining(String(keptChars(result)))
  })
  return cut as Record<string, Schema.Json>
}

describe("An outcome that is too long", () => {
  it("keeps its small members whole, wherever they stand", () => {
    expect(cutOf({ object: { id: "1", properties: { long } }, status: "applied" })).toMatchObject({
      status: "applied",
      object: { id: "1", properties: { long: expect.stringMatching(/^x+…$/) } }
    })
  })

  it("keeps every item of the longest page, and where the next one begins", () => {
    const items = Array.from({ length: pageBounds.maxLimit }, (_, id) => ({ id, long }))
    const cut = cutOf({ items, nextCursor: "next" })
    expect(cut["nextCursor"]).toBe("next")
    const kept = cut["items"] as ReadonlyArray<Schema.Json>
    expect(kept.map((item) => isJsonObject(item) && item["id"])).toEqual(items.map(({ id }) => id))
  })

  it("says also what it said of itself", () => {
    const { note, result } = cutOf({ isTruncated: true, note: "Page 1 of 3", result: [long] })
    expect(note).toMatch(/^Page 1 of 3\. /)
    expect(result).toEqual([expect.stringMatching(/^x+…$/)])
  })

  it("becomes a member where it is no object", () => {
    expect(cutOf([long])["result"]).toEqual([expect.stringMatching(/^x+…$/)])
    expect(cutOf(long)["result"]).toMatch(/^x+…$/)
  })
})

describe("An outcome that fits", () => {
  it("is told as it is", () => {
    const fitting = { note: "Mine", text: "x".repeat(90_000) }
    expect(bounded(fitting)).toBe(fitting)
  })
})

describe("What a tool takes", () => {
  const taken = (schema: unknown) => /It takes (.*)\.$/.exec(unfit([], schema))?.[1]
  const note = { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
  const found = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] }

  it.each<readonly [string, unknown, string]>([
    ["its own members", note, "{text: string}"],
    ["a reference at the root", { $ref: "#/$defs/note", $defs: { note } }, "{text: string}"],
    ["a choice by anyOf", { anyOf: [note, found] }, "{text: string} | {id: integer}"],
    [
      "a choice by oneOf beside members of its own",
      {
        properties: { dry: { type: "boolean" } },
        oneOf: [{ $ref: "#/definitions/note" }, found],
        definitions: { note }
      },
      "{dry?: boolean, text: string} | {dry?: boolean, id: integer}"
    ],
    ["all of several", { allOf: [note, found] }, "{text: string, id: integer}"],
    [
      "what is required by one of several",
      { ...found, required: [], anyOf: [{ required: ["id"] }, { required: ["name"] }] },
      "{id: integer} | {id?: integer, name: any JSON}"
    ],
    [
      "members by reference",
      {
        type: "object",
        properties: {
          kind: { $ref: "#/$defs/kind" },
          note: { $ref: "#/$defs/note" },
          notes: { type: "array", items: { $ref: "#/$defs/note" } },
          maybe: { anyOf: [{ type: "string" }, { type: "null" }] }
        },
        $defs: { note, kind: { enum: ["a", "b"] } }
      },
      '{kind?: "a" | "b", note?: {text: string}, notes?: array of object, maybe?: string}'
    ],
    [
      "a reference to itself",
      {
        $ref: "#/$defs/tree",
        $defs: { tree: { properties: { of: { $ref: "#/$defs/tree" }, n: { type: "number" } } } }
      },
      "{of?: object, n?: number}"
    ],
    ["a reference that goes round", { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } }, "{}"],
    ["a reference that leads nowhere", { $ref: "#/$defs/none" }, "{}"],
    ["nothing", {}, "{}"]
  ])("is told of %s", (_, schema, shape) => {
    expect(taken(schema)).toBe(shape)
  })

  it("is told in bounds, however many choices there are", () => {
    const deep = (depth: number): unknown =>
      depth === 0 ? note : { anyOf: Array.from({ length: 9 }, () => deep(depth - 1)) }
    const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`field${index}`, deep(1)]))
    for (const schema of [deep(4), { properties: wide }, { allOf: [deep(3), { properties: wide }] }])
      expect(taken(schema)?.length).toBeLessThanOrEqual(2_001)
  })
})
