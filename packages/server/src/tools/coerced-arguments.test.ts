/**
 * Which arguments are put right, and which are left to be refused.
 */
import { describe, expect, it } from "@effect/vitest"
import { isJsonObject } from "@tropism/domain/json"
import { Arbitrary, Result, Schema } from "effect"
import { fitArguments, inputSchemaOf } from "./arguments.ts"
import { graphTools } from "./graph-tools.ts"
import { judge } from "./json-schemas.ts"

type Json = Schema.Json

const closed = (properties: Record<string, unknown>, required: ReadonlyArray<string> = [], more = {}) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
  ...more
})
const open = (properties: Record<string, unknown>, required: ReadonlyArray<string> = []) => ({
  type: "object",
  properties,
  required
})

const integer = { type: "integer" }
const string = { type: "string" }
const anyObject = { type: "object" }
const nullable = (schema: unknown) => ({ anyOf: [schema, { type: "null" }] })

/** What is sent, by which schema, and what becomes of it; undefined where it stays to be refused. */
type Case = readonly [name: string, schema: Record<string, unknown>, sent: Json, became: Json | undefined]

const id = "01a2250e-5942-766e-8fc6-ee73ba003b5a"

const cases: ReadonlyArray<Case> = [
  ["an object as text", closed({ p: anyObject }), { p: '{"a":"1"}' }, { p: { a: "1" } }],
  ["a list as text", closed({ p: { type: "array", items: string } }), { p: '["1"]' }, { p: ["1"] }],
  [
    "a list as text, and numbers as text in it",
    closed({ p: { type: "array", items: integer } }),
    { p: '["1", 2]' },
    { p: [1, 2] }
  ],
  ["a list as text where an object is wanted", closed({ p: anyObject }), { p: "[1]" }, undefined],
  ["half an object as text", closed({ p: anyObject }), { p: '{"a":1' }, undefined],
  ["a key twice in an object as text", closed({ p: anyObject }), { p: '{"a":1,"a":2}' }, undefined],
  ["an integer as text", closed({ n: integer }), { n: " 5 " }, { n: 5 }],
  ["a negative number as text", closed({ n: { type: "number" } }), { n: "-0.5e1" }, { n: -5 }],
  ["an integer with a fraction as text", closed({ n: integer }), { n: "5.5" }, undefined],
  ["an integer too large to be read exactly", closed({ n: integer }), { n: "9007199254740993" }, undefined],
  ["text with more than a number", closed({ n: integer }), { n: "5 days" }, undefined],
  ["empty text", closed({ n: integer }), { n: "" }, undefined],
  ["a number as text beyond the bounds", closed({ n: { ...integer, maximum: 4 } }), { n: "5" }, undefined],
  ["true as text", closed({ b: { type: "boolean" } }), { b: "true" }, { b: true }],
  ["False as Python spells it", closed({ b: { type: "boolean" } }), { b: "False" }, { b: false }],
  ["yes as text", closed({ b: { type: "boolean" } }), { b: "yes" }, undefined],
  ["one as a boolean", closed({ b: { type: "boolean" } }), { b: "1" }, undefined],
  ["null as text where null is taken", closed({ n: nullable(integer) }), { n: "null" }, { n: null }],
  ["a number as text where null is taken, too", closed({ n: nullable(integer) }), { n: "7" }, { n: 7 }],
  ["a number as text in a list of types", closed({ n: { type: ["integer", "null"] } }), { n: "7" }, { n: 7 }],
  ["a number as text in an enum", closed({ n: { enum: [1, 2] } }), { n: "2" }, { n: 2 }],
  ["a number that is not in an enum", closed({ n: { enum: [1, 2] } }), { n: "3" }, undefined],
  [
    "text that spells a number where text is taken",
    closed({ s: string, n: integer }),
    { s: "5", n: "5" },
    { s: "5", n: 5 }
  ],
  [
    "text where text and numbers are taken",
    closed({ s: { type: ["string", "integer"] }, n: integer }),
    { s: "5", n: "5" },
    { s: "5", n: 5 }
  ],
  ["text where the schema says no type", closed({ s: {}, n: integer }), { s: "5", n: "5" }, { s: "5", n: 5 }],
  ["a number where text is wanted", closed({ s: string }), { s: 5 }, undefined],
  ["a value where a list is wanted", closed({ p: { type: "array" } }), { p: 5 }, undefined],
  [
    "other capitals and separators",
    closed({ objectId: string }, ["objectId"]),
    { object_id: "x" },
    { objectId: "x" }
  ],
  ["capitals for separators", closed({ max_results: integer }), { maxResults: "3" }, { max_results: 3 }],
  [
    "the right key beside the other spelling",
    closed({ objectId: string }),
    { objectId: "x", object_id: "y" },
    undefined
  ],
  ["two spellings of one key", closed({ objectId: string }), { object_id: "x", "object-id": "y" }, undefined],
  ["a key that two of the schema are like", closed({ a_b: string, aB: string }), { AB: "x" }, undefined],
  [
    "another spelling of a required key of an open schema",
    open({ repoName: string }, ["repoName"]),
    { repo_name: "x" },
    { repoName: "x" }
  ],
  [
    "another spelling of an optional key of an open schema",
    open({ repoName: string, n: integer }),
    { repo_name: "x", n: "1" },
    { repo_name: "x", n: 1 }
  ],
  ["an unknown key", closed({ query: string }), { query: "x", foo: "bar" }, { query: "x" }],
  ["an unknown key that may be misspelled", closed({ limit: integer }), { limt: 3 }, undefined],
  [
    "an unknown key of a schema with patterns",
    closed({ query: string }, [], { patternProperties: { "^x-": string } }),
    { foo: "bar" },
    undefined
  ],
  ["an unknown key of an open schema", open({ n: integer }), { n: "1", foo: "bar" }, { n: 1, foo: "bar" }],
  ["who is calling", closed({ query: string }), { query: "x", user_id: "somebody" }, undefined],
  ["null for an optional key", closed({ query: string, n: integer }), { query: null, n: 1 }, { n: 1 }],
  ["null for a required key", closed({ query: string }, ["query"]), { query: null }, undefined],
  [
    "arguments in an object of their own",
    closed({ query: string }, ["query"]),
    { arguments: { query: "x" } },
    { query: "x" }
  ],
  [
    "the same as text, with a number as text in it",
    closed({ n: integer }, ["n"]),
    { args: '{"n":"1"}' },
    { n: 1 }
  ],
  [
    "a wrapper beside another key",
    closed({ query: string }, ["query"]),
    { arguments: { query: "x" }, n: 1 },
    undefined
  ],
  ["a wrapper that the tool has", closed({ input: integer }, ["input"]), { input: "5" }, { input: 5 }],
  ["all arguments as text", closed({ n: integer }, ["n"]), '{"n":1}', { n: 1 }],
  ["text that is no object", closed({ n: integer }), "[1]", undefined],
  ["a list", closed({ n: integer }), [1], undefined],
  ["an object within", closed({ o: closed({ n: integer }) }), { o: { n: "1" } }, { o: { n: 1 } }],
  [
    "an object that two branches may take",
    closed({ o: { anyOf: [closed({ n: integer }), closed({ m: integer })] } }),
    { o: { n: "1" } },
    undefined
  ],
  [
    "behind a reference",
    { ...closed({ o: { $ref: "#/$defs/o" } }), $defs: { o: closed({ n: integer }) } },
    { o: '{"n":"1"}' },
    { o: { n: 1 } }
  ],
  [
    "a reference that leads round",
    { ...closed({ o: { $ref: "#/$defs/o" } }), $defs: { o: { $ref: "#/$defs/o" } } },
    { o: "1" },
    undefined
  ],
  [
    "get_object: the id's other spelling",
    inputSchemaOf(graphTools.get_object.arguments),
    { object_id: id },
    { objectId: id }
  ],
  [
    "search_objects: an unknown key",
    inputSchemaOf(graphTools.search_objects.arguments),
    { query: "tea", foo: 1 },
    { query: "tea" }
  ],
  [
    "search_objects: conditions and a limit as text",
    inputSchemaOf(graphTools.search_objects.arguments),
    { where: '[{"property":"license","op":"eq","value":"5"}]', limit: "5" },
    { where: [{ property: "license", op: "eq", value: "5" }], limit: 5 }
  ],
  [
    "update_object: properties as text, whose values stay",
    inputSchemaOf(graphTools.update_object.arguments),
    { objectId: id, properties: '{"count":"5","open":"true"}', confidence: "0.9" },
    { objectId: id, properties: { count: "5", open: "true" }, confidence: 0.9 }
  ]
]

describe("Arguments that nearly fit", () => {
  it.each(cases)("%s", (_name, schema, sent, became) => {
    const { arguments: args, coerced } = fitArguments(schema, sent, true)
    expect(args).toEqual(became === undefined ? sent : became)
    expect(coerced === undefined).toBe(became === undefined)
    expect(coerced?.sent ?? sent).toEqual(sent)
  })

  it("say what was put right, and where", () => {
    const schema = closed({ objectId: string, limit: integer, p: anyObject })
    const sent = { args: { object_id: "x", limit: "3", p: "{}" } }
    expect(fitArguments(schema, sent, true).coerced?.changes).toEqual([
      { pointer: "/args", change: "unwrapped" },
      { pointer: "/args/object_id", change: "renamed", to: "objectId" },
      { pointer: "/args/limit", change: "parsed" },
      { pointer: "/args/p", change: "parsed" }
    ])
    expect(fitArguments(closed({ query: string }), { foo: 1 }, true).coerced?.changes).toEqual([
      { pointer: "/foo", change: "dropped" }
    ])
  })

  it.each([
    ["a word", "x", false],
    ["true", true, false],
    ["an object", { a: 1 }, false],
    ["null", null, true],
    ["empty text", "", true],
    ["false", false, true],
    ["an empty object", {}, true]
  ] as const)("of a tool that changes something: an unknown key with %s", (_name, value, isDropped) => {
    const schema = inputSchemaOf(graphTools.create_object.arguments)
    const fitting = { type: "Person", properties: {} }
    const sent = { ...fitting, owner: value }
    expect(fitArguments(schema, sent, false).arguments).toEqual(isDropped ? fitting : sent)
  })

  it("stay as they are where too much would be put right", () => {
    const schema = closed({ list: { type: "array", items: integer } })
    const sent = { list: Array.from({ length: 60 }, String) }
    expect(fitArguments(schema, sent, true)).toEqual({ arguments: sent })
  })
})

const anyKey = Schema.Literals([
  "objectId",
  "object_id",
  "limit",
  "b",
  "list",
  "inner",
  "foo",
  "s",
  "arguments"
])
const anyValue = Schema.Union([
  Schema.Literals(["5", "true", "null", "x", "", '{"n":"1"}', "[1]", '["2"]', "5.5"]),
  Schema.Literals([0, 5, 5.5]),
  Schema.Boolean,
  Schema.Null,
  Schema.Struct({ n: Schema.Literals([1, "1", "x"]) }),
  Schema.Array(Schema.Literals([1, "2", "x"]))
])
const anyType = Schema.Union([
  Schema.Literals(["string", "integer", "number", "boolean", "array", "object", "null"]),
  Schema.Array(Schema.Literals(["string", "integer", "boolean", "null"]))
])
const anyProperty = Schema.Struct({
  type: anyType,
  properties: Schema.Struct({ n: Schema.Struct({ type: anyType }) }),
  items: Schema.Struct({ type: anyType })
})

const entriesOf = <S extends Schema.Codec<unknown>>(value: S) =>
  Arbitrary.array(Arbitrary.all([Arbitrary.schema(anyKey), Arbitrary.schema(value)]), { maxLength: 5 }).pipe(
    Arbitrary.map((entries): Record<string, S["Type"]> => Object.fromEntries(entries))
  )

const anySchema = Arbitrary.all({
  properties: entriesOf(anyProperty),
  required: Arbitrary.array(Arbitrary.schema(anyKey), { maxLength: 2 }),
  additionalProperties: Arbitrary.schema(Schema.Boolean)
})

const fits = (schema: Record<string, unknown>, args: Json): boolean =>
  isJsonObject(args) && Result.getOrElse(judge(schema, args), () => "unusable") === undefined

describe("Whatever is sent, by whatever schema", () => {
  const seen = new Set<string>()
  it.prop(
    "arguments that fit stay, and those that are put right fit",
    [anySchema, entriesOf(anyValue)],
    ([given, sent]) => {
      const schema = { type: "object", ...given }
      const { arguments: args, coerced } = fitArguments(schema, sent as Json, true)
      if (fits(schema, sent as Json)) expect([args, coerced]).toEqual([sent, undefined])
      if (coerced) seen.add(coerced.changes.map(({ change }) => change).join())
      if (coerced) expect(fits(schema, args)).toBe(true)
      else expect(args).toEqual(sent)
      // A text that a text may stand for is never something else.
      for (const [key, value] of Object.entries(sent))
        if (typeof value === "string" && isJsonObject(args) && key in args && takesText(schema, key))
          expect(args[key]).toBe(value)
    },
    { arbitrary: { runs: 2_000, seed: 39 } }
  )

  it("among which are changes of every kind", () => {
    for (const change of ["unwrapped", "parsed", "renamed", "dropped"])
      expect([...seen].some((each) => each.includes(change))).toBe(true)
  })
})

const takesText = ({ properties }: { readonly properties?: unknown }, key: string): boolean => {
  const part: unknown = isJsonObject(properties) ? properties[key] : undefined
  return isJsonObject(part) && [part["type"]].flat().includes("string")
}
