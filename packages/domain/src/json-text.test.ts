/**
 * JSON judged as text: what a decoder would round, or die of.
 *
 * Each refusal is paired with the nearest text that is taken.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { findFault } from "./json.ts"
import { hasExponent, scanJson } from "./json-text.ts"

describe("scanJson", () => {
  it("takes 2^53−1 and refuses 2^53+1, of either sign, and says where", () => {
    expect(scanJson(`{"a":[9007199254740991,-9007199254740991]}`)).toBeUndefined()
    expect(scanJson(`{"a":[0,9007199254740993]}`)).toEqual({
      pointer: "/a/1",
      message: expect.stringMatching(/\b9007199254740993 .*±\(2\^53−1\)/)
    })
    expect(scanJson(`{"a/b":{"~":-9007199254740993}}`)?.pointer).toBe("/a~1b/~0")
  })

  it("refuses 2^53 itself, which 2^53+1 is rounded to", () => {
    expect(scanJson("9007199254740992")?.pointer).toBe("")
  })

  it("refuses numbers that overflow or become 0, and takes 0 however it is written", () => {
    expect(scanJson(`[1,1e400]`)).toEqual({
      pointer: "/1",
      message: expect.stringContaining(" 1e400 ")
    })
    expect(scanJson(`-1.5E+309`)?.pointer).toBe("")
    expect(scanJson(`{"a":[1e-400]}`)).toEqual({
      pointer: "/a/0",
      message: expect.stringMatching(/ 1e-400 .* 0\b/)
    })
    const withoutNumber = (text: string) =>
      scanJson(text)?.message.replace(text.slice(0, 32), "").replace("…", "")
    for (const lost of ["-2E-324", "0.0001e-321", `0.${"0".repeat(400)}1`])
      expect(withoutNumber(lost)).toBe(withoutNumber("1e-400"))
    expect(withoutNumber("1e400")).not.toBe(withoutNumber("1e-400"))
    expect(scanJson(`[5e-324, 3e-324, 0e-400, -0.000E5, 0e9, 1.7976931348623157e308]`)).toBeUndefined()
  })

  it("takes -0, fractions, and large numbers written with a fraction or an exponent", () => {
    expect(scanJson(`[-0, -0.0, 0.1, 1.0e28, 1e28, 1E+22]`)).toBeUndefined()
  })

  it("refuses an integer beyond 2^53−1 that would be rounded, however it is written", () => {
    expect(scanJson(`{"a":9007199254740993.0}`)).toEqual({
      pointer: "/a",
      message: expect.stringMatching(/ 9007199254740993\.0 .* 9007199254740992\b/)
    })
    for (const [written, kept] of [
      ["9.007199254740993e15", "9007199254740992"],
      ["-90071992547409930E-1", "-9007199254740992"],
      ["12345678901234567890.5", "12345678901234567000"]
    ] as const)
      expect(scanJson(written)?.message.match(/-?\d[\d.eE+-]{8,}/g)).toEqual([written, kept])
    // As it is kept: by its digits, by seventeen of them, or by all.
    expect(
      scanJson("[9007199254740992.0, 1e16, 9.9999999999999992e22, 9.9999999999999991611392e22]")
    ).toBeUndefined()
  })

  it("does not print a number of a thousand digits", () => {
    expect(scanJson("9".repeat(1_000))?.message.match(/9+./g)).toEqual([`${"9".repeat(32)}…`])
  })

  it("does not look for numbers or brackets in strings and keys", () => {
    expect(scanJson(`{"9007199254740993":"[[[ 1e400 \\" 9007199254740993","\\\\":"{"}`)).toBeUndefined()
    expect(scanJson(`{"a\\"":"\\\\","b":1e400}`)?.pointer).toBe("/b")
  })

  it("takes objects nested 64 deep in a request body and refuses a hundred thousand brackets", () => {
    const nested = (depth: number) => `{"properties":${`{"a":`.repeat(depth)}1${"}".repeat(depth)}}`
    expect(scanJson(nested(63))).toBeUndefined()
    expect(scanJson(nested(64))).toBeUndefined()
    expect(findFault((JSON.parse(nested(64)) as { readonly properties: unknown }).properties)).toBeUndefined()
    // Depth 65 may pass the text's own, wider bound; it is then seen in the value.
    expect(findFault((JSON.parse(nested(65)) as { readonly properties: unknown }).properties)).toEqual({
      pointer: "/a".repeat(64),
      message: expect.stringMatching(/\b64\b/)
    })
    expect(scanJson("[".repeat(100_000))).toEqual({
      pointer: "/0".repeat(68),
      message: expect.stringMatching(/\b64\b/)
    })
  })

  it("refuses an object of far too many keys", () => {
    const keys = (count: number) => Array.from({ length: count }, (_, index) => `"k${index}":1`).join(",")
    expect(scanJson(`{${keys(2_000)}}`)).toBeUndefined()
    expect(scanJson(`{"a":{${keys(2_001)}}}`)).toEqual({
      pointer: "/a/k2000",
      message: expect.stringMatching(/\b1000\b/)
    })
  })

  it("refuses a key that stands twice in one object, however it is spelled", () => {
    expect(scanJson(`{"a":1,"b":{"a":1},"c":[{"a":1},{"a":2}]}`)).toBeUndefined()
    expect(scanJson(`{"b":[{"a":1,"a":1}]}`)?.pointer).toBe("/b/0/a")
    expect(scanJson(`{"a":1,"\\u0061":2}`)?.pointer).toBe("/\\u0061")
    expect(scanJson(`{"\\n":1,"\\u000a":2}`)?.pointer).toBe("/\\u000a")
    expect(scanJson(`{"\\\\u0061":1,"a":2,"\\n":3,"n":4}`)).toBeUndefined()
  })

  it("lets a key stand twice in the properties that somebody gives, as JSON does, and nowhere else", () => {
    for (const given of [
      `{"properties":{"a":1,"a":2}}`,
      `{"type":"T","properties":{"b":[{"a":1,"a":2}]}}`,
      `{"params":{"arguments":{"properties":{"a":1,"a":2}}}}`
    ])
      expect(scanJson(given)).toBeUndefined()
    for (const [own, pointer] of [
      [`{"properties":{},"properties":{}}`, "/properties"],
      [
        `{"reactionConfig":{"where":{"properties":[{"op":"eq","op":"ne"}]}}}`,
        "/reactionConfig/where/properties/0/op"
      ],
      [`{"params":{"arguments":{"type":"A","type":"B"}}}`, "/params/arguments/type"],
      [`[{"properties":{"a":1,"a":2}}]`, "/0/properties/a"]
    ] as const)
      expect(scanJson(own)?.pointer).toBe(pointer)
    expect(scanJson(`{"properties":{"a":1,"a":1e400}}`)?.pointer).toBe("/properties/a")
  })

  it("sees what stands behind a string of ten million characters", () => {
    expect(scanJson(`{"a":"${"x".repeat(10_000_000)}","b":1e400}`)?.pointer).toBe("/b")
    expect(scanJson(`{"a":"${"\\n".repeat(5_000_000)}","b":1e400}`)?.pointer).toBe("/b")
  })

  it.each(["", "{", `"`, `{"a`, `{"a":"\\`, "]", "}}", "-", "tru", "{]", ",", `{"a" "b"}`, "\u0000"])(
    "leaves the syntax error %j to the decoder",
    (text) => {
      expect(scanJson(text)).toBeUndefined()
    }
  )

  it.prop(
    "takes whatever JSON.stringify writes of numbers that are no big integers",
    [Arbitrary.schema(Schema.Json)],
    ([value]) => {
      const text = JSON.stringify(value, (_, item: unknown) =>
        typeof item === "number" && Number.isInteger(item) && !Number.isSafeInteger(item) ? 0 : item
      )
      expect(scanJson(text)).toBeUndefined()
    }
  )
})

describe("hasExponent", () => {
  it.each(["1e5", "[1.5E-7]", `{"a":[true,{"b":"x","c":-2e+30}]}`, `["\\"",5e-324]`, `["1e5",1e5`])(
    "finds the number in %s",
    (text) => expect(hasExponent(text)).toBe(true)
  )

  it.each(["15", `"1e5"`, `{"1e5":"7e8"}`, `[true,false,"4e12-\\"5e6"]`, `["\\\\","3e3"]`, `["3e3`, ""])(
    "finds none in %s",
    (text) => expect(hasExponent(text)).toBe(false)
  )
})
