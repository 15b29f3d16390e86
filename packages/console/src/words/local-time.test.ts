/**
 * A time that is chosen in a field and read back is the same time.
 */
import { describe, expect, it } from "@effect/vitest"
import { clockText, dayText, instantOf, localTimeOf, wallClockText } from "./local-time.ts"

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

it("a clock in another zone is told in words, with the year where it is another", () => {
  const nowMs = Date.UTC(2026, 10, 23)
  expect(wallClockText("2026-11-24T09:30:00.000+01:00", nowMs)).toBe("Tue 24 Nov, 09:30")
  expect(wallClockText("2026-12-31T23:05:00.000-10:00", nowMs)).toBe("Thu 31 Dec, 23:05")
  expect(wallClockText("2028-02-29T00:00:00.000+00:00", nowMs)).toBe("Tue 29 Feb 2028, 00:00")
  expect(wallClockText("soon", nowMs)).toBe("soon")
})

it("the reader's own clock is told in the same words, to the second where one asks", () => {
  const nowMs = new Date("2026-11-23T12:00").getTime()
  const at = new Date("2026-11-24T09:05:07").toISOString()
  expect(clockText(at, nowMs)).toBe("Tue 24 Nov, 09:05")
  expect(clockText(at, nowMs, "seconds")).toBe("Tue 24 Nov, 09:05:07")
  expect(clockText(new Date("2025-01-02T00:00").toISOString(), nowMs)).toBe("Thu 2 Jan 2025, 00:00")
  expect(clockText("soon", nowMs)).toBe("soon")
  expect(dayText("2026-11-24", nowMs)).toBe("Tue 24 Nov")
  expect(dayText("2025-12-31", nowMs)).toBe("Wed 31 Dec 2025")
})
