/**
 * What is cut of an outcome, and what is not.
 */
import { describe, expect, it } from "@effect/vitest"
import { pageBounds } from "@tropism/api/page"
import { isJsonObject } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import type { Schema } from "effect"
import { toolLimits } from "../limits.ts"
import { bounded } from "./arguments.ts"

const long = "x".repeat(toolLimits.resultMaxChars)

/** An outcome that was cut, in bounds. */
const cutOf = (result: Schema.Json) => {
  const cut = bounded(result)
  expect(keptChars(cut)).toBeLessThanOrEqual(toolLimits.resultMaxChars)
  expect(cut).toMatchObject({
    isTruncated: true,
    note: expect.stringContaining(String(keptChars(result)))
  })
  return cut as Record<string, Schema.Json>
}

describe("An outcome that is too long", () => {
  it("keeps its small members whole, wherever they stand", () => {
    expect(cutOf({ object: { id: "1", properties: { long } }, status: "applied" })).toMatchObject({
      status: "applied",
      object: { id: "1", properties: { long: expect.stringMatching(/^x+…$/) } }
    })
  })

  it("keeps every item of the longest page, and where the next one begins", () => {
    const items = Array.from({ length: pageBounds.maxLimit }, (_, id) => ({ id, long }))
    const cut = cutOf({ items, nextCursor: "next" })
    expect(cut["nextCursor"]).toBe("next")
    const kept = cut["items"] as ReadonlyArray<Schema.Json>
    expect(kept.map((item) => isJsonObject(item) && item["id"])).toEqual(items.map(({ id }) => id))
  })

  it("says also what it said of itself", () => {
    const { note, result } = cutOf({ isTruncated: true, note: "Page 1 of 3", result: [long] })
    expect(note).toMatch(/^Page 1 of 3\. /)
    expect(result).toEqual([expect.stringMatching(/^x+…$/)])
  })

  it("becomes a member where it is no object", () => {
    expect(cutOf([long])["result"]).toEqual([expect.stringMatching(/^x+…$/)])
    expect(cutOf(long)["result"]).toMatch(/^x+…$/)
  })
})

describe("An outcome that fits", () => {
  it("is told as it is", () => {
    const fitting = { note: "Mine", text: "x".repeat(90_000) }
    expect(bounded(fitting)).toBe(fitting)
  })
})
