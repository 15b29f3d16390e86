/**
 * What a model is told of arguments that do not fit the schema of a foreign tool.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Schema } from "effect"
import { branching, doubling, nested } from "../../testing/doubling-schemas.ts"
import { findArgumentsFault, whyUnjudgeable, withoutPatterns } from "./arguments.ts"
import { externalLimits } from "./external-mcp/limits.ts"

const object = (properties: Record<string, Schema.Json>, more: Record<string, Schema.Json> = {}) => ({
  type: "object",
  properties,
  ...more
})

const text = { type: "string" }

const told = (schema: Record<string, Schema.Json>, args: Schema.Json) => {
  const { detail = "", pointer } = findArgumentsFault({ inputSchema: schema }, args) ?? {}
  return { pointer, detail, places: [...detail.matchAll(/(?<= )(\/[^:]*): /g)].map(([, place]) => place) }
}

/** What is told of the member `value`, and neither its place nor what the tool takes. */
const toldOf = (schema: Schema.Json, value: Schema.Json) => {
  const { detail, ...rest } = told(object({ value: schema }), { value })
  expect(rest).toEqual({ pointer: "/value", places: ["/value"] })
  return detail.split("/value: ")[1]?.split("{value?: ")[0] ?? ""
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
    expect(told(schema, { "a/b c": { list: [1, null, "x"] }, more: 1 })).toMatchObject({
      pointer: "/a~1b c/é~0",
      places: ["/a~1b c/é~0", "/a~1b c/list/2", "/more"]
    })
  })

  it.each<[string, Schema.Json, Schema.Json, RegExp]>([
    ["one of several values", { enum: ["red", 2, null] }, "blue", /"red".*\b2\b.*\bnull\b/],
    ["one value", { const: { a: 1 } }, 1, /\{"a":1\}/],
    ["as long as it is asked for", { type: "string", minLength: 3 }, "a", /\b3\b/],
    ["not what is forbidden", { not: { const: 1 } }, 1, /./],
    ["of one kind only", { oneOf: [{ type: "number" }, { type: "integer" }] }, 1, /\b2\b/]
  ])("says what would be right: %s", (_, schema, value, values) => {
    expect(toldOf(schema, value)).toMatch(values)
  })

  it("says that a value may be of either of two types, and not of one alone", () => {
    const list = { type: "array", items: text }
    const [either = "", ...single] = [{ anyOf: [text, list] }, text, list].map((schema) => toldOf(schema, 7))
    expect(single).not.toContain(either)
  })

  it("are told so many at once as a model mends, and never in more words than are bounded", () => {
    const list = (length: number) =>
      told(object({ list: { type: "array", items: text } }), { list: Array.from({ length }, () => 1) })
    expect(list(1_000).places).toHaveLength(externalLimits.argumentFaults)
    expect(list(200_000)).toMatchObject({ pointer: "/list/0", places: ["/list/0"] })
    const long = toldOf({ enum: ["x".repeat(10_000)] }, 1)
    expect(long.length).toBeLessThan(externalLimits.faultMaxChars + 50)
  })

  it("of a schema whose own words look like places are told all the same", () => {
    const schema = object({ "a; #/b": text, value: { enum: ["; #/b: x"] } })
    expect(told(schema, { "a; #/b": 1, value: 1 }).detail).toContain("{a; #/b?: ")
  })
})

describe("A schema that stands for more than anybody goes through", () => {
  it("is none to judge by, and a call by it is refused", () => {
    expect(whyUnjudgeable(doubling(30))).toEqual(expect.any(String))
    expect(findArgumentsFault({ inputSchema: doubling(30) }, {})).toMatchObject({ reason: "invalid" })
  })

  it("only with certain arguments is refused with those", () => {
    expect(whyUnjudgeable(branching)).toBe(undefined)
    const judged = (depth: number) =>
      findArgumentsFault({ inputSchema: branching }, nested(depth) as Schema.Json)
    expect(judged(3)).toBe(undefined)
    expect(judged(50)).toMatchObject({ reason: "invalid" })
    expect(judged(50)?.detail).toContain(String(externalLimits.judgingSteps))
  })
})

describe("A schema of a client tool", () => {
  it("S004-F02 is judged without expressions, which the client checks", () => {
    const schema = {
      type: "object",
      properties: { a: { type: "string", pattern: "^(a+)+$" }, pattern: { type: "string" } },
      patternProperties: { "^x": { type: "integer" } },
      propertyNames: { pattern: "^(a+)+$" },
      additionalProperties: false
    }
    const judged = withoutPatterns(schema)
    expect(judged).toEqual({
      type: "object",
      properties: { a: { type: "string" }, pattern: { type: "string" } },
      propertyNames: {}
    })
    expect(findArgumentsFault({ inputSchema: judged }, { a: `${"a".repeat(40)}!`, x1: 1 })).toBeUndefined()
    expect(findArgumentsFault({ inputSchema: judged }, { a: 1 })).toMatchObject({ reason: "invalid" })
  })
})
