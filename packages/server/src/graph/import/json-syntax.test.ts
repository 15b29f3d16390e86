/**
 * The place where a text stops being JSON.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { findSyntaxFault } from "./json-syntax.ts"

const conflict = `{
  "a": 1,
<<<<<<< HEAD
  "b": 2
=======
  "b": 3
>>>>>>> theirs
}`

describe("findSyntaxFault", () => {
  it.each([
    [conflict, 3, 1, "<<<<<<< HEAD"],
    [`{\n  "a": [1, 2,]\n}`, 2, 14, "]"],
    [`{"a": 1,}`, 1, 9, "}"],
    [`{"a" 1}`, 1, 6, "1}"],
    [`{"a": tru}`, 1, 7, "tru}"],
    [`{"a": 1} x`, 1, 10, "x"],
    [`{"a": 01}`, 1, 8, "1}"],
    [`["a\nb"]`, 1, 4, ""],
    [`["\\x"]`, 1, 3, `\\x"]`],
    [`{a: 1}`, 1, 2, "a: 1}"],
    [`[1}`, 1, 3, "}"],
    ["", 1, 1, ""],
    [`{"a":\n`, 2, 1, ""],
    [`["open`, 1, 7, ""]
  ])("of %j is line %i, column %i", (text, line, column, excerpt) => {
    expect(findSyntaxFault(text)).toEqual({ line, column, excerpt })
  })

  it("does not overflow on a hundred thousand brackets", () => {
    expect(findSyntaxFault("[".repeat(100_000))).toEqual({ line: 1, column: 100_001, excerpt: "" })
  })

  it.prop("is undefined for whatever JSON.stringify writes", [Arbitrary.schema(Schema.Json)], ([value]) => {
    expect(findSyntaxFault(JSON.stringify(value))).toBeUndefined()
    expect(findSyntaxFault(JSON.stringify(value, undefined, 2))).toBeUndefined()
  })

  it.prop(
    "agrees with the parser on texts that were cut or have a character put in",
    [
      Arbitrary.schema(Schema.Json),
      Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 }))),
      Arbitrary.schema(Schema.Literals(["", ",", "}", "]", '"', "0", "e", "\\", ":", " ", "\n"]))
    ],
    ([value, at, inserted]) => {
      const whole = JSON.stringify(value)
      const text = inserted === "" ? whole.slice(0, at) : whole.slice(0, at) + inserted + whole.slice(at)
      expect(findSyntaxFault(text) === undefined).toBe(isJson(text))
    },
    { arbitrary: { runs: 1_000 } }
  )
})

const decode = Schema.decodeUnknownExit(Schema.fromJsonString(Schema.Unknown))
const isJson = (text: string): boolean => decode(text)._tag === "Success"
