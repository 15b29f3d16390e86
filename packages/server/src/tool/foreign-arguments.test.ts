/**
 * What a model is told of arguments that do not fit the schema of a foreign tool.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Schema } from "effect"
import { branching, doubling, nested } from "../../testing/doubling-schemas.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { findArgumentsFault, whyUnjudgeable } from "./foreign-arguments.ts"

const object = (properties: Record<string, Schema.Json>, more: Record<string, Schema.Json> = {}) => ({
  type: "object",
  properties,
  ...more
})

const text = { type: "string" }

const told = (schema: Record<string, Schema.Json>, args: Schema.Json) => {
  const fault = findArgumentsFault({ inputSchema: schema }, args)
  const [, places] =
    /^The arguments do not fit the tool's schema\. (.*)\. It takes \{.*\}\.$/s.exec(fault?.detail ?? "") ?? []
  return { pointer: fault?.pointer, places: places?.split("; ") }
}

describe("Arguments of a foreign tool that do not fit", () => {
  it("are told at each place, deep in lists and by names that a pointer escapes", () => {
    const schema = object(
      {
        "a/b c": object(
          { list: { type: "array", items: { type: ["integer", "null"] } } },
          { required: ["é~"] }
        )
      },
      { additionalProperties: false }
    )
    expect(told(schema, { "a/b c": { list: [1, null, "x"] }, more: 1 })).toEqual({
      pointer: "/a~1b c/é~0",
      places: [
        "/a~1b c/é~0: This is required",
        "/a~1b c/list/2: This must be a whole number or null",
        "/more: There is no field of this name: leave it out or correct its spelling"
      ]
    })
  })

  it.each<[string, Schema.Json, Schema.Json, string]>([
    ["one of several values", { enum: ["red", 2, null] }, "blue", 'This must be "red" or 2 or null'],
    ["one value", { const: { a: 1 } }, 1, 'This must be {"a":1}'],
    [
      "either of two types",
      { anyOf: [text, { type: "array", items: text }] },
      7,
      "This must be text or a list"
    ],
    ["as long as it is asked for", { type: "string", minLength: 3 }, "a", "String is too short (1 < 3)"],
    ["not what is forbidden", { not: { const: 1 } }, 1, 'This matched "not" schema'],
    [
      "of one kind only",
      { oneOf: [{ type: "number" }, { type: "integer" }] },
      1,
      "This does not match exactly one subschema (2 matches)"
    ]
  ])("says what would be right: %s", (_, schema, value, message) => {
    expect(told(object({ value: schema }), { value })).toEqual({
      pointer: "/value",
      places: [`/value: ${message}`]
    })
  })

  it("are told so many at once as a model mends, and never in more words than are bounded", () => {
    const list = (length: number) =>
      told(object({ list: { type: "array", items: text } }), { list: Array.from({ length }, () => 1) })
    expect(list(1_000).places).toHaveLength(foreignLimits.argumentFaults)
    expect(list(200_000)).toEqual({ pointer: "/list/0", places: ["/list/0: This must be text"] })
    const [long = ""] = told(object({ value: { enum: ["x".repeat(10_000)] } }), { value: 1 }).places ?? []
    expect(long.length).toBeLessThan(foreignLimits.faultMaxChars + 50)
  })

  it("of a schema whose own words look like places are told all the same", () => {
    const schema = object({ "a; #/b": text, value: { enum: ["; #/b: x"] } })
    expect(told(schema, { "a; #/b": 1, value: 1 }).places?.length).toBeGreaterThan(0)
  })
})

describe("A schema that stands for more than anybody goes through", () => {
  it("is none to judge by, and a call by it is refused", () => {
    expect(whyUnjudgeable(doubling(30))).toMatch(/its inputSchema cannot be used: following its references/)
    expect(findArgumentsFault({ inputSchema: doubling(30) }, {})?.detail).toMatch(
      /cannot be used to check the arguments: following its references/
    )
  })

  it("only with certain arguments is refused with those", () => {
    expect(whyUnjudgeable(branching)).toBe(undefined)
    const judged = (depth: number) =>
      findArgumentsFault({ inputSchema: branching }, nested(depth) as Schema.Json)
    expect(judged(3)).toBe(undefined)
    expect(judged(50)?.detail).toMatch(/cannot be used to check the arguments: .*More than \d+ steps/)
  })
})
