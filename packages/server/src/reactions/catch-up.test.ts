/**
 * What becomes of the instants of an hourly schedule, whoever finds it and when.
 */
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { readCron } from "../agents/cron-schedules.ts"
import { dispatchLimits } from "../limits.ts"
import { type OwingSchedule, settle } from "./schedules.ts"

const rule = Result.getOrThrow(readCron("0 * * * *", "UTC"))

const at = (hour: number, minute = 0, second = 0) => new Date(Date.UTC(2026, 10, 22, hour, minute, second))

/** Due at one o'clock and found half past four: one, two, three and four were missed. */
const owing = (overrides: Partial<OwingSchedule> = {}): OwingSchedule => ({
  rule,
  now: at(4, 30),
  nextFireAt: at(1),
  backlog: undefined,
  catchUp: "one",
  overlapPolicy: "skip",
  isBusy: false,
  ...overrides
})

const onTime = { now: at(1, 0, 1) }

describe("settle", () => {
  it.each(["none", "one", "all"] as const)("fires what is on time, whatever is caught up: %s", (catchUp) => {
    expect(settle(owing({ ...onTime, catchUp }))).toEqual({
      fires: [{ dueAt: at(1) }],
      omissions: [],
      backlog: undefined
    })
  })

  it.each(["none", "one", "all"] as const)("skips what is on time while a run is at work: %s", (catchUp) => {
    const { fires, omissions } = settle(owing({ ...onTime, catchUp, isBusy: true }))
    expect([fires, omissions.map(({ dueAt }) => dueAt)]).toEqual([[], [at(1)]])
    expect(settle(owing({ ...onTime, catchUp, isBusy: true, overlapPolicy: "allow" })).fires).toEqual([
      { dueAt: at(1) }
    ])
  })

  it("one: the oldest fires for all", () => {
    expect(settle(owing())).toEqual({
      fires: [{ dueAt: at(1), until: at(4) }],
      omissions: [],
      backlog: undefined
    })
  })

  it("none: lets the missed go and fires what is due just now", () => {
    expect(settle(owing({ catchUp: "none" }))).toMatchObject({
      fires: [],
      omissions: [{ dueAt: at(1), reason: expect.stringContaining("2026-11-22T04:00") }]
    })
    expect(settle(owing({ catchUp: "none", now: at(4, 0, 30) }))).toMatchObject({
      fires: [{ dueAt: at(4) }],
      omissions: [{ dueAt: at(1), reason: expect.stringContaining("2026-11-22T03:00") }]
    })
  })

  it("all: the first fires and the others wait for it", () => {
    const settled = settle(owing({ catchUp: "all" }))
    expect(settled).toEqual({
      fires: [{ dueAt: at(1) }],
      omissions: [],
      backlog: { from: at(2), until: at(4) }
    })
    const waiting = owing({ catchUp: "all", nextFireAt: at(5), backlog: settled.backlog })
    expect(settle(waiting)).toEqual({
      fires: [{ dueAt: at(2) }],
      omissions: [],
      backlog: { from: at(3), until: at(4) }
    })
    // What falls due meanwhile joins those that wait.
    expect(settle({ ...waiting, now: at(5, 0, 1), isBusy: true })).toEqual({
      fires: [],
      omissions: [],
      backlog: { from: at(2), until: at(5) }
    })
    expect(settle({ ...waiting, backlog: { from: at(4), until: at(4) } })).toEqual({
      fires: [{ dueAt: at(4) }],
      omissions: [],
      backlog: undefined
    })
  })

  it("a schedule that is not to make up for everything any more lets the waiting go", () => {
    const waiting = { nextFireAt: at(5), backlog: { from: at(2), until: at(4) } }
    expect(settle(owing({ ...waiting, catchUp: "one" }))).toEqual({
      fires: [],
      omissions: [],
      backlog: undefined
    })
  })

  it("all: no more than the newest hundred, exactly", () => {
    const most = dispatchLimits.catchUpInstants
    for (const [missed, cut] of [
      [most, 0],
      [most + 1, 1],
      [most + 50, 50]
    ] as const) {
      const { fires, omissions } = settle(
        owing({ catchUp: "all", overlapPolicy: "allow", nextFireAt: at(5 - missed) })
      )
      expect(fires).toHaveLength(most)
      expect(fires.at(0)?.dueAt).toEqual(at(5 - most))
      expect(fires.at(-1)?.dueAt).toEqual(at(4))
      expect(omissions.map(({ dueAt }) => dueAt)).toEqual(cut === 0 ? [] : [at(5 - missed)])
    }
  })
})
