/**
 * Which schemas are too much to be judged by, told from their references alone.
 */
import { describe, expect, it } from "@effect/vitest"
import { branching, doubling, folders } from "../../testing/doubling-schemas.ts"
import { externalLimits } from "./external-mcp/limits.ts"
import { whyTooMuch } from "./json-schemas.ts"

type Schema = Record<string, unknown>

const tooMuch = expect.stringContaining(String(externalLimits.schemaVisits))

describe("A schema is too much to be judged by", () => {
  it.each<[string, (ref: Schema) => Schema]>([
    ["allOf", (ref) => ({ allOf: [ref, ref] })],
    ["anyOf", (ref) => ({ anyOf: [ref, ref] })],
    ["oneOf", (ref) => ({ oneOf: [ref, ref] })],
    ["if and then", (ref) => Object.fromEntries(["if", "then"].map((keyword) => [keyword, ref]))],
    ["if and else", (ref) => ({ if: ref, else: ref })],
    ["not, and a reference beside it", (ref) => ({ ...ref, not: ref })],
    ["dependentSchemas", (ref) => ({ dependentSchemas: { a: ref, b: ref } })],
    ["dependencies", (ref) => ({ dependencies: { a: ref, b: ref } })]
  ])("whose definitions double by %s", (_, twice) => {
    expect(whyTooMuch(doubling(30, twice))).toEqual(tooMuch)
    expect(whyTooMuch(doubling(2_000, twice))).toEqual(tooMuch)
    expect(whyTooMuch(doubling(5, twice))).toBe(undefined)
  })

  it.each<[string, Schema]>([
    ["below a field", { $defs: doubling(30)["$defs"], properties: { a: { $ref: "#/$defs/a30" } } }],
    ["below a list", { $defs: doubling(30)["$defs"], items: [{ contains: { $ref: "#/$defs/a30" } }] }],
    ["by itself", { allOf: [{ $ref: "#" }] }],
    [
      "by a circle",
      { $ref: "#/$defs/a", $defs: { a: { not: { $ref: "#b" } }, b: { $anchor: "b", $ref: "#" } } }
    ],
    ["by $recursiveRef", { anyOf: [{ $recursiveRef: "#" }] }],
    ["by $dynamicRef", { $dynamicAnchor: "node", anyOf: [{ $dynamicRef: "#node" }] }],
    [
      "by how many branches it has",
      { anyOf: Array.from({ length: externalLimits.schemaVisits }, () => true) }
    ]
  ])("%s", (_, schema) => expect(whyTooMuch(schema)).toEqual(tooMuch))
})

describe("A schema is not too much", () => {
  it.each<[string, Schema]>([
    ["a tree of folders", folders],
    ["what branches in the value", branching],
    ["a tree by $recursiveRef", { $recursiveAnchor: true, items: { $recursiveRef: "#" } }],
    ["a tree by $dynamicRef", { $dynamicAnchor: "node", properties: { a: { $dynamicRef: "#node" } } }],
    [
      "an expression of many kinds",
      {
        $ref: "#/$defs/expression",
        $defs: {
          expression: {
            oneOf: Array.from({ length: 50 }, (_, kind) => ({
              properties: { kind: { const: kind }, parts: { items: { $ref: "#/$defs/expression" } } }
            }))
          }
        }
      }
    ],
    [
      "fields that share what they are made of",
      {
        $defs: Object.fromEntries(
          Array.from({ length: 40 }, (_, index) => {
            const ref = { $ref: `#/$defs/a${Math.max(0, index - 1)}` }
            return [`a${index}`, { properties: { left: ref, right: ref } }]
          })
        ),
        $ref: "#/$defs/a39"
      }
    ]
  ])("that is %s", (_, schema) => expect(whyTooMuch(schema)).toBe(undefined))
})
