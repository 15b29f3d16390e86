/**
 * Tools of any MCP server as providers accept them; the rules are those of the providers' published documentation.
 */
import { describe, expect, it } from "@effect/vitest"
import { isJsonObject } from "@tropism/domain/json"
import { Tool } from "effect/ai"
import { schemaRulesOf, toAiSdkTools, withOwnKeys } from "./tool-schemas.ts"

import type { Json } from "../../testing/platform.ts"

const toolOf = (parameters: Json, description?: string) =>
  Tool.dynamic("t", { parameters, ...(description === undefined ? {} : { description }) })

const offered = (parameters: Json, provider = "openai-compatible"): Json =>
  toAiSdkTools([toolOf(parameters)], schemaRulesOf(provider))[0]?.inputSchema

/** Complaints about a schema by the rules of all providers together. */
const faultsIn = (schema: Json, place = ""): ReadonlyArray<string> => {
  if (Array.isArray(schema)) return schema.flatMap((each, index) => faultsIn(each, `${place}/${index}`))
  if (!isJsonObject(schema)) return [`${place} is no object`]
  const { anyOf, enum: values, items, properties, required, type } = schema as Json
  const isList = type === "array" || (Array.isArray(type) && type.includes("array"))
  const names = Object.keys(properties ?? {})
  return [
    ...(isList && !isJsonObject(items) ? [`${place}: array schema missing items`] : []),
    ...(items === undefined ? [] : faultsIn(items, `${place}/items`)),
    ...(values === undefined ||
    (values.length > 0 && values.every((value: Json) => typeof value === "string"))
      ? []
      : [`${place}: enum: only allowed for STRING type`]),
    ...(required === undefined ||
    (Array.isArray(required) && required.every((name: Json) => names.includes(name)))
      ? []
      : [`${place}: required: property is not defined`]),
    ...names
      .filter((name) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(name))
      .map((name) => `${place}: Property keys should match pattern: ${name}`),
    ...names.flatMap((name) => faultsIn(properties[name], `${place}/${name}`)),
    ...(anyOf === undefined ? [] : faultsIn(anyOf, `${place}/anyOf`)),
    ...["exclusiveMinimum", "exclusiveMaximum"]
      .filter((bound) => typeof (schema as Json)[bound] === "boolean")
      .map((bound) => `${place}: ${bound} must be a number`)
  ]
}

describe("A tool as a provider accepts it", () => {
  it.each([
    ["an array without items", { a: { type: "array" } }, { a: { type: "array", items: {} } }],
    [
      "a tuple",
      { a: { type: "array", items: [{ type: "string" }, { type: "number" }] } },
      { a: { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } } }
    ],
    [
      "a tuple of the newest draft",
      { a: { type: "array", prefixItems: [{ type: "string" }], items: false } },
      { a: { type: "array", items: { type: "string" } } }
    ],
    [
      "an array among the types of a branch",
      { a: { anyOf: [{ type: ["array", "null"] }, { type: "string" }] } },
      { a: { anyOf: [{ type: ["array", "null"], items: {} }, { type: "string" }] } }
    ],
    [
      "bounds of draft 4",
      { a: { type: "number", minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false } },
      { a: { type: "number", exclusiveMinimum: 1, maximum: 9 } }
    ],
    [
      "required that is null, or a boolean",
      { a: { type: "string", required: true }, b: { type: "object", required: null } },
      { a: { type: "string" }, b: { type: "object" } }
    ],
    ["a schema that is a boolean", { a: true }, { a: {} }],
    ["an enum without values", { a: { type: "string", enum: [] } }, { a: { type: "string" } }]
  ])("%s", (_, properties, expected) => {
    expect(offered({ type: "object", properties }).properties).toEqual(expected)
  })

  it("has keys that Anthropic takes, and a call has the tool's own", () => {
    const tools = [
      toolOf({
        type: "object",
        properties: {
          "filter[id]": { type: "string" },
          filter_id: { type: "string" },
          $top: { type: "integer" },
          naïve: { type: "object", properties: { "a b": { type: "string" } } }
        },
        required: ["filter[id]", "absent"]
      })
    ]
    const [{ inputSchema }] = toAiSdkTools(tools) as Json
    expect(Object.keys(inputSchema.properties)).toEqual(["filter_id_2", "filter_id", "top", "na_ve"])
    expect(inputSchema.required).toEqual(["filter_id_2"])
    expect(
      withOwnKeys(tools, "t", { filter_id_2: "x", filter_id: "y", top: 5, na_ve: { a_b: "z" } })
    ).toEqual({ "filter[id]": "x", filter_id: "y", $top: 5, naïve: { "a b": "z" } })
    expect(withOwnKeys(tools, "other", { top: 5 })).toEqual({ top: 5 })
  })

  it("names an enum of numbers in its description for Google alone", () => {
    const properties = { a: { type: "integer", enum: [1, 2], description: "How many." } }
    const schema = { type: "object", properties }
    expect(offered(schema).properties).toEqual(properties)
    expect(offered(schema, "google").properties).toEqual({
      a: { type: "integer", description: "How many.\nOne of 1, 2" }
    })
  })

  it("is described in at most 1,024 characters to OpenAI, and in full to others", () => {
    const tool = toolOf({ type: "object", properties: {} }, "x".repeat(7_000))
    const lengthFor = (provider: string) =>
      toAiSdkTools([tool], schemaRulesOf(provider))[0]?.description?.length
    expect([lengthFor("openai"), lengthFor("anthropic")]).toEqual([1_024, 7_000])
  })

  it("breaks no rule of a provider, whatever 2,000 schemas say", () => {
    let seed = 20_261_129
    const below = (count: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return Math.floor((seed / 2_147_483_648) * count)
    }
    const one = <A>(...choices: readonly [() => A, ...ReadonlyArray<() => A>]): A =>
      (choices[below(choices.length)] ?? choices[0])()
    const keys = ["a", "filter[id]", "$top", "a b", "ü", "x".repeat(80), "", "__proto", "a_b"]
    const some = <A>(make: () => A): ReadonlyArray<A> => Array.from({ length: below(4) }, make)
    const key = (): string => keys[below(keys.length)] ?? "a"
    const schema = (depth: number): Json => {
      if (depth === 0)
        return one<Json>(
          () => ({ type: "string" }),
          () => true,
          () => ({})
        )
      const inner = () => schema(depth - 1)
      return one<Json>(
        () => ({ type: "array" }),
        () => ({
          type: ["array", "null"],
          items: one<Json>(
            inner,
            () => some(inner),
            () => false
          )
        }),
        () => ({ type: "array", prefixItems: some(inner), items: one<Json>(inner, () => false) }),
        () => ({ type: "integer", enum: some(() => below(9)) }),
        () => ({
          type: "number",
          minimum: below(9),
          exclusiveMinimum: one<Json>(
            () => true,
            () => below(3)
          )
        }),
        () => ({ anyOf: some(inner) }),
        () => ({ description: null, enum: null, items: null, properties: null, required: null }),
        () => ({
          type: "object",
          properties: Object.fromEntries(some(() => [key(), inner()])),
          required: one<Json>(
            () => some(key),
            () => null,
            () => true,
            () => [1]
          )
        })
      )
    }
    for (let round = 0; round < 2_000; round++) {
      const properties = Object.fromEntries(some(() => [key(), schema(3)]))
      const given = {
        type: "object",
        properties,
        required: one<Json>(
          () => some(key),
          () => null
        )
      }
      const result = offered(given, "google")
      expect([round, faultsIn(result)]).toEqual([round, []])
      expect(result.type).toBe("object")
    }
  })
})
