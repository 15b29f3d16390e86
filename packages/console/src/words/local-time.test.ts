/**
 * A time that is chosen in a field and read back is the same time.
 */
import { describe, expect, it } from "@effect/vitest"
import { instantOf, localTimeOf } from "./local-time.ts"

describe("the time of a field", () => {
  it("is the same there and back, to the minute", () => {
    for (const local of ["2026-11-23T09:05", "0999-01-02T00:00", "2026-07-01T23:59"])
      expect(localTimeOf(instantOf(local))).toBe(local)
  })

  it("is nothing where no time is said", () => {
    expect(["", "x", undefined].map(localTimeOf)).toEqual(["", "", ""])
    expect(["", "banana", "999999-01-01"].map(instantOf)).toEqual([undefined, undefined, undefined])
  })
})
