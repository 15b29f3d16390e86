/**
 * What may be let into the graph, and when two values are the same to it.
 *
 * Bounds are tested on both of their sides. The properties are checked against
 * effect's own structural equality, which knows nothing of canonical texts.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Equal, Schema } from "effect"
import {
  canonicalJson,
  changedProperties,
  findFault,
  findPropertiesFault,
  isJsonObject,
  jsonBounds,
  mergePatch,
  pointerStep,
  Properties
} from "./json.ts"
import { mergePatchExamples } from "../testing/json-examples.ts"

const loneSurrogate = "\ud83d"

/** A value of `depth` containers inside one another. */
const nested = (
  depth: number,
  wrap: (inner: Schema.Json) => Schema.Json = (inner) => [inner]
): Schema.Json => {
  let value: Schema.Json = 1
  for (let level = 0; level < depth; level++) value = wrap(value)
  return value
}

const withKeys = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]))

const anyJson = Arbitrary.schema(Schema.Json)

/** Values from so few keys and scalars that two of them are often equal, or nearly. */
const Scalar = Schema.NullOr(Schema.Literals([0, 1, "0", "", true]))
const SmallObject: Schema.Codec<Properties> = Schema.Record(
  Schema.Literals(["a", "b"]),
  Schema.Union([Scalar, Schema.Array(Scalar).check(Schema.isMaxLength(2)), Schema.suspend(() => SmallObject)])
)
const smallJson = Arbitrary.schema(Schema.Union([Scalar, SmallObject]))

/** The same value with the keys of each object in the opposite order. */
const turned = (value: Schema.Json): Schema.Json => {
  if (Array.isArray(value)) return value.map(turned)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toReversed()
      .map(([key, item]) => [key, turned(item)])
  )
}

describe("findFault", () => {
  it.each([
    ["arrays", (inner: Schema.Json) => [inner]],
    ["objects", (inner: Schema.Json) => ({ in: inner })]
  ] as const)("takes %s nested 63 and 64 deep and refuses 65", (_, wrap) => {
    expect(findFault(nested(63, wrap))).toBeUndefined()
    expect(findFault(nested(64, wrap))).toBeUndefined()
    expect(findFault(nested(65, wrap))?.message).toMatch(/\b64\b/)
  })

  it("points at the container that is too deep", () => {
    expect(findFault(nested(65, (inner) => ({ in: inner })))?.pointer).toBe("/in".repeat(64))
  })

  it("takes 1,000 keys in one object and refuses 1,001", () => {
    expect(findFault(withKeys(1_000))).toBeUndefined()
    expect(findFault({ big: withKeys(1_001) })).toEqual({
      pointer: "/big",
      message: expect.stringMatching(/\b1000\b/)
    })
  })

  it("does not count the items of an array as keys", () => {
    expect(findFault(Array.from({ length: 5_000 }, () => 0))).toBeUndefined()
  })

  it("refuses U+0000 in a value, in an array's item and in a key", () => {
    const message = expect.stringContaining("U+0000")
    expect(findFault({ a: "x\u0000y" })).toEqual({ pointer: "/a", message })
    expect(findFault({ a: ["fine", { b: "\u0000" }] })).toEqual({ pointer: "/a/1/b", message })
    expect(findFault({ "k\u0000": 1 })).toEqual({ pointer: "/k\u0000", message })
  })

  it("refuses a lone surrogate and takes a pair", () => {
    const message = findFault({ a: loneSurrogate })?.message
    expect(message).not.toContain("U+0000")
    expect(findFault({ a: "\ude00\ud83d" })).toEqual({ pointer: "/a", message })
    expect(findFault({ [loneSurrogate]: 1 })).toEqual({ pointer: `/${loneSurrogate}`, message })
    expect(findFault({ a: "😀", "😀": "a" })).toBeUndefined()
  })

  it.each(["__proto__", "constructor", "prototype"])("refuses the key %s wherever it stands", (key) => {
    expect(findFault(JSON.parse(`{"a":[{"${key}":1}]}`))).toEqual({
      pointer: `/a/0/${key}`,
      message: expect.stringContaining(`"${key}"`)
    })
  })

  it("takes the forbidden keys as values", () => {
    expect(findFault({ name: "__proto__", names: ["constructor", "prototype"] })).toBeUndefined()
  })

  it("refuses numbers that overflowed while they were decoded", () => {
    expect(findFault(JSON.parse(`{"a":1e400}`))?.pointer).toBe("/a")
    expect(findFault([-Infinity])?.pointer).toBe("/0")
    expect(findFault([Number.NaN])?.pointer).toBe("/0")
  })

  it("takes -0, the smallest and the largest numbers", () => {
    expect(
      findFault([-0, Number.MIN_VALUE, Number.MAX_VALUE, 1.0e28, Number.MAX_SAFE_INTEGER])
    ).toBeUndefined()
  })

  it("escapes a pointer's steps as RFC 6901 asks", () => {
    expect(pointerStep("a/b~c")).toBe("/a~1b~0c")
    expect(findFault({ "a/b": { "~": "\u0000" } })?.pointer).toBe("/a~1b/~0")
  })
})

describe("findPropertiesFault", () => {
  const ofBytes = (bytes: number) => ({ a: "x".repeat(bytes - `{"a":""}`.length) })

  it("takes 256 KiB and refuses one byte more", () => {
    expect(jsonBounds.maxObjectBytes).toBe(256 * 1024)
    expect(findPropertiesFault(ofBytes(262_144))).toBeUndefined()
    expect(findPropertiesFault(ofBytes(262_145))).toEqual({
      pointer: "/properties",
      message: expect.stringMatching(/^\D*262144\D*262145$/)
    })
  })

  it("counts bytes and not characters", () => {
    expect(findPropertiesFault({ a: "é".repeat(131_068) })).toBeUndefined()
    expect(findPropertiesFault({ a: "é".repeat(131_069) })?.pointer).toBe("/properties")
  })

  it("counts numbers with all their digits, and says so", () => {
    const ofTiny = (count: number) => ({ a: Array.from({ length: count }, () => 5e-324) })
    expect(findPropertiesFault(ofTiny(801))).toBeUndefined()
    // The note on numbers follows the two figures.
    expect(findPropertiesFault(ofTiny(802))?.message).toMatch(/^\D*262144\D*262261\. \S.*\S$/)
  })

  it("points below /properties", () => {
    expect(findPropertiesFault({ a: { b: "\u0000" } })?.pointer).toBe("/properties/a/b")
  })
})

describe("canonicalJson", () => {
  it("orders keys by code unit and writes no white space", () => {
    expect(canonicalJson({ b: [1, { d: null, c: "x" }], a: true, B: 0, é: 1, "😀": 2 })).toBe(
      `{"B":0,"a":true,"b":[1,{"c":"x","d":null}],"é":1,"😀":2}`
    )
  })

  it("writes -0 as 0, since it is read back so", () => {
    expect(canonicalJson([-0, 0, 1.0, 1e28])).toBe("[0,0,1,1e+28]")
  })

  it("leaves out what is undefined", () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe(`{"b":1}`)
  })

  it.prop(
    "is equal exactly when the values are",
    [smallJson, smallJson],
    ([a, b]) => {
      expect(canonicalJson(a) === canonicalJson(b)).toBe(Equal.equals(a, b))
    },
    { arbitrary: { runs: 500 } }
  )

  it.prop("does not depend on the order of keys", [anyJson], ([value]) => {
    expect(canonicalJson(turned(value))).toBe(canonicalJson(value))
  })

  it.prop("is JSON that reads back as the value", [anyJson], ([value]) => {
    expect(Equal.equals(JSON.parse(canonicalJson(value)), value)).toBe(true)
  })
})

describe("mergePatch", () => {
  it.each(mergePatchExamples)("of %j by %j is %j", (target, patch, result) => {
    expect(mergePatch(target, patch)).toStrictEqual(result)
  })

  it.each(["toString", "hasOwnProperty", "__proto__"])("takes %s for a key like any other", (key) => {
    const value = JSON.parse(`{"${key}":{"a":1}}`)
    expect(Object.entries(mergePatch({}, value) ?? {})).toEqual([[key, { a: 1 }]])
    expect(mergePatch(value, JSON.parse(`{"${key}":null}`))).toStrictEqual({})
  })

  it.prop("changes neither the target nor the patch", [anyJson, anyJson], ([target, patch]) => {
    const before = canonicalJson([target, patch])
    mergePatch(target, patch)
    expect(canonicalJson([target, patch])).toBe(before)
  })

  it.prop("applied a second time changes nothing", [smallJson, smallJson], ([target, patch]) => {
    const once = mergePatch(target, patch)
    expect(canonicalJson(mergePatch(once, patch))).toBe(canonicalJson(once))
  })
})

describe("changedProperties", () => {
  it("names what came, what went and what differs, sorted", () => {
    expect(
      changedProperties({ same: [1], went: 1, b: { c: 1 } }, { came: null, same: [1], b: { c: 2 } })
    ).toEqual(["b", "came", "went"])
  })

  it("sees a property that came with the value null", () => {
    expect(changedProperties({}, { a: null })).toEqual(["a"])
  })

  it("does not take an inherited name for a property", () => {
    expect(changedProperties({}, { toString: 1 })).toEqual(["toString"])
  })

  it.prop(
    "is empty exactly when the canonical texts are equal",
    [Arbitrary.schema(SmallObject), Arbitrary.schema(SmallObject)],
    ([before, after]) => {
      expect(changedProperties(before, after).length === 0).toBe(
        canonicalJson(before) === canonicalJson(after)
      )
    },
    { arbitrary: { runs: 500 } }
  )

  it.prop(
    "is exactly what must be taken over for the states to be equal",
    [Arbitrary.schema(Properties), Arbitrary.schema(Properties)],
    ([before, after]) => {
      const changed = changedProperties(before, after)
      const taken = new Map(Object.entries(before))
      for (const key of changed) {
        if (Object.hasOwn(after, key)) taken.set(key, after[key] ?? null)
        else taken.delete(key)
      }
      expect(canonicalJson(Object.fromEntries(taken))).toBe(canonicalJson(after))
    }
  )
})
