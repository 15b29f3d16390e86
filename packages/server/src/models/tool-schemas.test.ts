/**
 * Tools of any MCP server as providers accept them; the rules are those of the providers' published documentation.
 */
import { describe, expect, it } from "@effect/vitest"
import { isJsonObject } from "@tropism/domain/json"
import { Ajv2020 } from "ajv/dist/2020.js"
import { Tool } from "effect/ai"
import type { Json } from "../../testing/platform.ts"
import { schemaRulesOf, toAiSdkTools, withOwnKeys } from "./tool-schemas.ts"

// oxlint-disable unicorn/no-thenable -- JSON Schema has a keyword of that name

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
    ...["allOf", "oneOf", "not", "if", "then", "else", "contains", "propertyNames"]
      .filter((keyword) => (schema as Json)[keyword] !== undefined)
      .flatMap((keyword) => faultsIn((schema as Json)[keyword], `${place}/${keyword}`)),
    ...["patternProperties", "$defs", "definitions", "dependentSchemas"].flatMap((keyword) =>
      Object.entries((schema as Json)[keyword] ?? {}).flatMap(([name, each]) =>
        faultsIn(each, `${place}/${keyword}/${name}`)
      )
    ),
    ...["exclusiveMinimum", "exclusiveMaximum"]
      .filter((bound) => typeof (schema as Json)[bound] === "boolean")
      .map((bound) => `${place}: ${bound} must be a number`)
  ]
}

/** Anthropic's rule for the schema of a tool is JSON Schema of 2020-12 (platform.claude.com, tool use). */
const validator = new Ajv2020({ strict: false, validateFormats: false })

/** What JSON Schema itself has against a schema. */
const invalidIn = (schema: Json): unknown =>
  validator.validateSchema(schema) === true ? [] : validator.errors

/** What OpenAI and Anthropic refuse at the root: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level". */
const rootFaultsIn = (schema: Json): ReadonlyArray<string> => [
  ...(schema.type === "object" ? [] : ["the root is no object"]),
  ...["oneOf", "anyOf", "allOf", "enum", "const", "not", "if", "$ref"].filter((keyword) => keyword in schema)
]

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
    ["an enum without values", { a: { type: "string", enum: [] } }, { a: { type: "string" } }],
    [
      "types in lists of lists",
      { a: { type: ["string", ["null"]] }, b: { type: [["array"], null, "array"] } },
      { a: { type: ["string", "null"] }, b: { type: ["array", "null"], items: {} } }
    ],
    [
      "types that JSON Schema does not have",
      {
        any: { type: "any" },
        either: { type: ["string", "file"] },
        int: { type: "int", minimum: 1 },
        float: { type: ["Float", "null"] },
        bool: { type: "bool" },
        str: { type: "str" },
        dict: { type: "dict", properties: { x: { type: "decimal" } } },
        list: { type: "list" },
        none: { type: 7 }
      },
      {
        any: {},
        either: {},
        int: { type: "integer", minimum: 1 },
        float: { type: ["number", "null"] },
        bool: { type: "boolean" },
        str: { type: "string" },
        dict: { type: "object", properties: { x: { type: "number" } } },
        list: { type: "array", items: {} },
        none: {}
      }
    ],
    [
      "bounds that bound nothing",
      {
        a: { type: "string", minLength: -1, maxLength: 2.5 },
        b: { type: "array", items: {}, minItems: "1", maxItems: 3 },
        c: { type: "object", minProperties: -2, maxProperties: 0 },
        d: { type: "number", minimum: "0", maximum: null, exclusiveMinimum: "1", multipleOf: 0 },
        e: { type: "number", exclusiveMaximum: true, maximum: "9" }
      },
      {
        a: { type: "string" },
        b: { type: "array", items: {}, maxItems: 3 },
        c: { type: "object", maxProperties: 0 },
        d: { type: "number" },
        e: { type: "number" }
      }
    ],
    [
      "patterns that are no regular expressions of JSON Schema",
      {
        a: { type: "string", pattern: "[" },
        b: { type: "string", pattern: "^(?i)a" },
        c: { type: "string", pattern: "^[a-z]+$" },
        d: { type: "object", patternProperties: { "(": {}, "^x": { type: "list" } } }
      },
      {
        a: { type: "string" },
        b: { type: "string" },
        c: { type: "string", pattern: "^[a-z]+$" },
        d: { type: "object", patternProperties: { "^x": { type: "array", items: {} } } }
      }
    ],
    [
      "descriptions and titles that are no text",
      { a: { type: "string", description: ["A"], title: 1 }, b: { title: "B", description: "b" } },
      { a: { type: "string" }, b: { title: "B", description: "b" } }
    ],
    [
      "schemas in every place that has them",
      {
        a: {
          additionalProperties: { type: "list" },
          oneOf: [{ type: "int" }, { allOf: [] }],
          not: { type: "str" },
          if: { properties: { "x y": { type: "array" } }, required: ["x y"] },
          then: { dependentSchemas: { "x y": { type: "dict", required: [] } } },
          else: { propertyNames: { minLength: -1, pattern: "^a" } },
          definitions: { one: { type: "array", enum: [] }, two: null },
          dependentRequired: { "x y": ["x y"] }
        }
      },
      {
        a: {
          additionalProperties: { type: "array", items: {} },
          oneOf: [{ type: "integer" }, {}],
          not: { type: "string" },
          if: { properties: { x_y: { type: "array", items: {} } }, required: ["x_y"] },
          then: { dependentSchemas: { x_y: { type: "object" } } },
          else: { propertyNames: { pattern: "^a" } },
          definitions: { one: { type: "array", items: {} }, two: {} },
          dependentRequired: { x_y: ["x_y"] }
        }
      }
    ],
    [
      "a condition of which nothing is left: it would hold for everything",
      { a: { type: "string", not: { type: "any" } }, b: { if: { minLength: -1 }, then: { maxLength: 3 } } },
      { a: { type: "string" }, b: {} }
    ]
  ])("%s", (_, properties, expected) => {
    expect(offered({ type: "object", properties }).properties).toEqual(expected)
  })

  it("is offered with properties and required that are null", () => {
    const given = { type: "object", properties: null, required: null }
    expect(offered(given)).toEqual({ type: "object", properties: {} })
  })

  it.each<readonly [string, Json, Json]>([
    [
      "any of several objects: the fields of all, and what each requires",
      {
        anyOf: [
          { properties: { a: { type: "string" }, "b c": { type: "int" } }, required: ["a", "b c"] },
          { properties: { a: { type: "number" } }, required: ["a"] }
        ]
      },
      {
        type: "object",
        properties: { a: { anyOf: [{ type: "string" }, { type: "number" }] }, b_c: { type: "integer" } },
        required: ["a"]
      }
    ],
    [
      "all of several objects, beside fields of its own",
      {
        type: "object",
        description: "Looks.",
        properties: { a: { type: "string" } },
        allOf: [
          { properties: { b: {} }, required: ["b"] },
          { oneOf: [{ required: ["a"] }, { required: ["b"] }] }
        ],
        additionalProperties: false
      },
      { type: "object", description: "Looks.", properties: { a: { type: "string" }, b: {} }, required: ["b"] }
    ],
    [
      "what it is not, and conditions",
      {
        properties: { a: {} },
        not: { required: ["a"] },
        if: { properties: { b: { type: "list" } } },
        then: {}
      },
      { type: "object", properties: { a: {}, b: { type: "array", items: {} } } }
    ]
  ])("is one object where its root is %s", (_, schema, expected) => {
    expect(offered(schema)).toEqual(expected)
  })

  it("takes a call of such a tool back to its own keys", () => {
    const tools = [toolOf({ oneOf: [{ properties: { "b c": {} } }, { properties: { d: {} } }] })]
    expect(withOwnKeys(tools, "t", { b_c: 1, d: 2 })).toEqual({ "b c": 1, d: 2 })
  })

  it("refers to a renamed key by its new name", () => {
    const properties = { "a b": { type: "string" }, c: { $ref: "#/properties/a%20b" }, d: { $ref: 1 } }
    expect(offered({ type: "object", properties }).properties).toEqual({
      a_b: { type: "string" },
      c: { $ref: "#/properties/a_b" },
      d: {}
    })
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

  it("is described in at most 1,024 characters to OpenAI and those that speak as it does, and in full to others", () => {
    const tool = toolOf({ type: "object", properties: {} }, "x".repeat(7_000))
    const lengthFor = (provider: string) =>
      toAiSdkTools([tool], schemaRulesOf(provider))[0]?.description?.length
    const lengths = ["openai", "azure", "openai-compatible", "openrouter", "mistral"].map(lengthFor)
    expect(lengths).toEqual(lengths.map(() => 1_024))
    expect(["anthropic", "google", "amazon-bedrock"].map(lengthFor)).toEqual([7_000, 7_000, 7_000])
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
    const oneOf = <A>(...values: readonly [A, ...ReadonlyArray<A>]): A =>
      values[below(values.length)] ?? values[0]
    const anyType = (): Json =>
      oneOf<Json>("any", "int", "Float", "list", "dict", "array", "null", "weird", null, 7, "str", "text")
    const bounds = [
      "minLength",
      "maxItems",
      "minProperties",
      "minimum",
      "exclusiveMaximum",
      "multipleOf"
    ] as const
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
        () => ({ [oneOf("anyOf", "oneOf", "allOf")]: some(inner) }),
        () => ({ type: anyType() }),
        () => ({ type: some(() => one<Json>(anyType, () => some(anyType))) }),
        () => ({ [oneOf(...bounds)]: oneOf<Json>(-1, 0, 2, 1.5, "3", null, true, []), type: anyType() }),
        () => ({ pattern: oneOf<Json>("[", "^(?i)a", "^a$", 7), type: "string" }),
        () => ({ description: oneOf<Json>(["x"], 1, "x"), title: oneOf<Json>({}, "y", false) }),
        () => ({ [oneOf("not", "if", "then", "else", "contains", "propertyNames")]: inner() }),
        () => ({ additionalProperties: one<Json>(inner, () => "no") }),
        () => ({ patternProperties: { [oneOf("(", "^a", "\\d", "")]: inner() } }),
        () => ({
          [oneOf("$defs", "definitions", "dependentSchemas")]: one<Json>(
            () => ({ [key()]: inner() }),
            () => null,
            () => [inner()]
          )
        }),
        () => ({
          dependentRequired: {
            [key()]: one<Json>(
              () => some(key),
              () => "a"
            )
          }
        }),
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
      const branches = () =>
        some(() => ({ ...schema(3), properties: { [key()]: schema(1) }, required: some(key) }))
      const given = {
        type: "object",
        properties,
        required: one<Json>(
          () => some(key),
          () => null
        ),
        ...one<Json>(
          () => ({}),
          () => ({}),
          () => ({ [oneOf("anyOf", "oneOf", "allOf")]: branches() }),
          () => ({ oneOf: branches(), allOf: branches(), [oneOf("not", "if", "then", "else")]: schema(2) }),
          () => ({ [oneOf<string>("enum", "const", "$ref")]: oneOf<Json>([1], {}, "#/properties/a") })
        )
      }
      const result = offered(given, "google")
      expect([round, faultsIn(result), invalidIn(result), rootFaultsIn(result)]).toEqual([round, [], [], []])
    }
  })
})
