/**
 * Spans of time in words, at the edges where the unit changes.
 */
import { describe, expect, it } from "@effect/vitest"
import { ageText, durationText } from "./durations.ts"

const then = "2026-11-20T12:00:00.000Z"
const thenMs = Date.parse(then)

describe("spans of time", () => {
  it("say how long something took", () => {
    expect([0, 820.4, 1_000, 1_260, 9_999, 10_000, 59_999].map(durationText)).toEqual([
      "0 ms",
      "820 ms",
      "1.0 s",
      "1.2 s",
      "9.9 s",
      "10 s",
      "59 s"
    ])
    expect([60_000, 125_000, 3_600_000, 4_800_000, 90_000_000].map(durationText)).toEqual([
      "1 min",
      "2 min 5 s",
      "1 h",
      "1 h 20 min",
      "1 d 1 h"
    ])
  })

  it("say how long ago something was, and never that it is yet to come", () => {
    const ages = [-5_000, 9_999, 10_000, 59_999, 60_000, 3_599_999, 3_600_000, 172_799_999, 172_800_000]
    expect(ages.map((ms) => ageText(then, thenMs + ms))).toEqual([
      "now",
      "now",
      "10 s",
      "59 s",
      "1 min",
      "59 min",
      "1 h",
      "47 h",
      "2 d"
    ])
    expect(ageText("no instant", thenMs)).toBe("?")
  })
})
