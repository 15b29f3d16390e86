/**
 * Cron expressions by the wall clocks of zones: the hours that do not exist, and those that come twice.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Cron, DateTime, Result, Schema } from "effect"
import { type CronRule, nextInstant, previousInstant, readCron, nextInstants } from "./cron-schedules.ts"

const rule = (expression: string, zone: string): CronRule => Result.getOrThrow(readCron(expression, zone))

const fires = (expression: string, zone: string, after: string, count: number) =>
  nextInstants(rule(expression, zone), new Date(after), count).map((at) => at.toISOString().slice(0, 16))

describe("nextInstant follows the wall clock", () => {
  it.each([
    // In the gap, an instant after it; the day before and after at their usual time.
    [
      "Europe/Berlin",
      "30 2 * * *",
      "2026-03-28T00:00Z",
      ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]
    ],
    [
      "America/New_York",
      "30 2 * * *",
      "2026-03-07T00:00Z",
      ["2026-03-07T07:30", "2026-03-08T07:00", "2026-03-09T06:30"]
    ],
    [
      "Australia/Lord_Howe",
      "15 2 * * *",
      "2026-10-02T00:00Z",
      ["2026-10-02T15:45", "2026-10-03T15:30", "2026-10-04T15:15"]
    ],
    // Twenty past, forty past and the full hour of the same gap are one instant.
    [
      "Europe/Berlin",
      "*/20 2 * * *",
      "2026-03-28T12:00Z",
      ["2026-03-29T01:00", "2026-03-30T00:00", "2026-03-30T00:20"]
    ],
    // Shown twice, due once: the first time.
    [
      "Europe/Berlin",
      "30 2 * * *",
      "2026-10-24T12:00Z",
      ["2026-10-25T00:30", "2026-10-26T01:30", "2026-10-27T01:30"]
    ],
    [
      "America/New_York",
      "30 1 * * *",
      "2026-10-31T12:00Z",
      ["2026-11-01T05:30", "2026-11-02T06:30", "2026-11-03T06:30"]
    ],
    [
      "Australia/Lord_Howe",
      "45 1 * * *",
      "2026-04-04T00:00Z",
      ["2026-04-04T14:45", "2026-04-05T15:15", "2026-04-06T15:15"]
    ],
    // Zones whose clocks never leap.
    [
      "Asia/Kolkata",
      "30 2 * * *",
      "2026-03-28T00:00Z",
      ["2026-03-28T21:00", "2026-03-29T21:00", "2026-03-30T21:00"]
    ],
    ["UTC", "30 2 * * *", "2026-03-28T00:00Z", ["2026-03-28T02:30", "2026-03-29T02:30", "2026-03-30T02:30"]],
    ["UTC", "0 0 29 2 *", "2026-03-28T00:00Z", ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]]
  ] as const)("%s %s after %s", (zone, expression, after, expected) => {
    expect(fires(expression, zone, after, expected.length)).toEqual(expected)
  })

  it.each([
    // Every half hour means every half hour that passes, also when an hour comes again.
    [
      "Europe/Berlin",
      "*/30 * * * *",
      "2026-10-24T23:45Z",
      ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00"]
    ],
    [
      "Europe/Berlin",
      "*/30 * * * *",
      "2026-03-29T00:15Z",
      ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30"]
    ],
    // Nothing is made up for, and nothing beside the gap is lost with it.
    [
      "Australia/Lord_Howe",
      "15,40 * * * *",
      "2026-10-03T15:00Z",
      ["2026-10-03T15:10", "2026-10-03T15:40", "2026-10-03T16:15"]
    ]
  ] as const)("in every hour: %s %s after %s", (zone, expression, after, expected) => {
    expect(fires(expression, zone, after, expected.length)).toEqual(expected)
  })

  it("has no instant when no calendar has the day", () => {
    expect(nextInstant(rule("0 0 30 2 *", "UTC"), new Date(0))).toBeUndefined()
    expect(previousInstant(rule("0 0 30 2 *", "Europe/Berlin"), new Date(0))).toBeUndefined()
  })

  it.each(["0 9 * *", "* * * * * *", "61 * * * *", "0 25 * * *", "a b c d e", ""])(
    "refuses %j",
    (expression) => {
      expect(Result.isFailure(readCron(expression, "UTC"))).toBe(true)
    }
  )
})

/** Near a change of clocks, and on a day without one. */
const moments = Arbitrary.map(
  Arbitrary.schema(
    Schema.Struct({
      day: Schema.Literals([
        "2026-03-29T01:00Z",
        "2026-10-25T01:00Z",
        "2026-03-08T07:00Z",
        "2026-11-01T06:00Z",
        "2026-10-03T15:30Z",
        "2026-04-04T15:00Z",
        "2027-07-01T00:00Z"
      ]),
      minutes: Schema.Int.check(Schema.isBetween({ minimum: -180, maximum: 180 }))
    })
  ),
  ({ day, minutes }) => new Date(Date.parse(day) + minutes * 60_000)
)

const rules = Arbitrary.map(
  Arbitrary.schema(
    Schema.Struct({
      zone: Schema.Literals([
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "UTC"
      ]),
      minute: Schema.Literals(["*", "0", "30", "59", "*/7", "*/20", "15,40", "1,31,58", "10-20"]),
      hour: Schema.Literals(["*", "0", "1", "2", "3", "1-3", "*/2", "2,14", "23"]),
      weekday: Schema.Literals(["*", "0", "1-5"])
    })
  ),
  ({ zone, minute, hour, weekday }) => rule(`${minute} ${hour} * * ${weekday}`, zone)
)

const wallOf = ({ zone }: CronRule, at: Date) =>
  new Date(at.getTime() + DateTime.zonedOffset(DateTime.makeZonedUnsafe(at, { timeZone: zone })))

/** Whether the clock leaps forward to this instant. */
const endsGap = (of: CronRule, at: Date) =>
  wallOf(of, at).getTime() - wallOf(of, new Date(at.getTime() - 60_000)).getTime() > 60_000

describe("nextInstant for any rule, zone and moment", () => {
  it.prop(
    "is later, matches the clock except at the end of a gap, and is never answered twice",
    [rules, moments],
    ([of, moment]) => {
      let at = moment
      const shown = new Set<number>()
      for (let times = 0; times < 8; times++) {
        const next = nextInstant(of, at)
        expect(next && next > at).toBe(true)
        if (!next) return
        const wall = wallOf(of, next)
        if (!Cron.match(of.onWall, wall)) expect(endsGap(of, next)).toBe(true)
        // A rule that names hours never shows one wall time twice.
        if (!of.inEveryHour) expect(shown.has(wall.getTime())).toBe(false)
        shown.add(wall.getTime())
        at = next
      }
    },
    { arbitrary: { runs: 300 } }
  )

  it.prop(
    "leaves nothing out: what is before the next instant is the one before it",
    [rules, moments],
    ([of, moment]) => {
      const next = nextInstant(of, moment)
      if (!next) return
      const before = previousInstant(of, next)
      expect(before && before <= moment).toBe(true)
      expect(nextInstant(of, new Date(next.getTime() - 1))).toEqual(next)
      expect(previousInstant(of, new Date(next.getTime() + 1))).toEqual(next)
    },
    { arbitrary: { runs: 300 } }
  )
})
