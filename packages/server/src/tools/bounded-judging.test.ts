/**
 * What is judged of a value, and when that is given up.
 */
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { branching, doubling, folders, nested } from "../../testing/doubling-schemas.ts"
import { externalLimits } from "./external-mcp/limits.ts"
import { judge } from "./json-schemas.ts"

const givenUp = Result.fail(expect.stringContaining(String(externalLimits.judgingSteps)))
const fits = Result.succeed(undefined)

describe("Judging by a stranger's schema", () => {
  it("is given up where the work doubles with each level of the value", () => {
    expect(judge(branching, nested(5))).toEqual(fits)
    expect(judge(branching, nested(60))).toEqual(givenUp)
    expect(judge(branching, nested(60), { isThorough: true })).toEqual(givenUp)
  })

  it("is given up where each item is compared with each other, for a long list and many branches", () => {
    const distinct = { type: "array", uniqueItems: true }
    const list = Array.from({ length: 10_000 }, (_, index) => index)
    expect(judge(distinct, list.slice(0, 500))).toEqual(fits)
    expect(judge({ allOf: Array.from({ length: 1_000 }, () => distinct) }, list)).toEqual(givenUp)
  })

  it("is given up where each visit tells of many words", () => {
    const words = { enum: ["x".repeat(40_000)] }
    expect(judge({ anyOf: Array.from({ length: 500 }, () => ({ $ref: "#/w" })), w: words }, 1)).toEqual(
      givenUp
    )
  })

  it("is not begun where references alone are too much", () => {
    expect(judge(doubling(30), {})).toEqual(Result.fail(expect.any(String)))
  })

  it("finds what it would find without a bound, in trees and in what is called type", () => {
    const folder = (child: unknown) => ({ name: "a", type: "folder", children: [{ name: "b" }, child] })
    expect(judge(folders, folder({ name: "c", type: "file" }))).toEqual(fits)
    expect(judge(folders, folder(folder({ name: 1 })))).toEqual(
      Result.succeed(
        expect.stringContaining('#/children/1/children/1/name: Instance type "number" is invalid')
      )
    )
    expect(judge(folders, folder({ name: "b" }))).toEqual(
      Result.succeed(expect.stringContaining("Duplicate items at indexes 0 and 1"))
    )
    const typed = {
      properties: { type: { const: { type: "a" } } },
      required: ["type"],
      additionalProperties: false
    }
    expect(judge(typed, { type: { type: "a" } })).toEqual(fits)
    expect(judge(typed, { type: { type: "b" } })).toEqual(
      Result.succeed(expect.stringContaining('#/type: Instance does not match {"type":"a"}'))
    )
    expect(judge(typed, {})).toEqual(Result.succeed(expect.stringContaining('required property "type"')))
  })

  it("has room for a long list of ordinary things", () => {
    const cell = { anyOf: [{ type: "null" }, { type: "integer" }] }
    const rows = {
      type: "array",
      items: { type: "object", properties: { a: cell, b: cell }, required: ["a"] }
    }
    const list = Array.from({ length: 5_000 }, (_, index) => ({ a: index, b: null }))
    expect(judge(rows, list)).toEqual(fits)
  })
})
