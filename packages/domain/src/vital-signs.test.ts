/**
 * Each sign that is bad changes the verdict, and tells what mends it.
 */
import { describe, expect, it } from "vitest"
import { UserId } from "./ids.ts"
import { verdictOf } from "./health.ts"
import { healthBounds } from "./health-words.ts"
import { judge, type VitalSigns } from "./vital-signs.ts"
import { wellSigns } from "../testing/vital-signs.ts"

const verdict = (signs: Partial<VitalSigns>) => verdictOf(judge({ ...wellSigns, ...signs }))

const stopped: VitalSigns["stopped"] = {
  scope: "project",
  reason: "Enough",
  stoppedBy: UserId.make("ada"),
  stoppedAt: "2026-01-01T00:00:00.000Z"
}

describe("the health of a project", () => {
  it.each<
    readonly [
      signs: Partial<VitalSigns>,
      state: "fault" | "warn",
      part: string,
      check: string,
      fix: string,
      values: string
    ]
  >([
    [{ serverFault: "Out of order" }, "fault", "liveness", "server", "tropism doctor", "Out of order"],
    [
      {
        outages: [
          {
            models: "openai, model m",
            failure: "it fails",
            since: "2026-11-20T00:00:00.000Z",
            seconds: 90,
            runs: 2,
            nextTryAt: "2026-11-20T00:02:00.000Z"
          }
        ]
      },
      "warn",
      "liveness",
      "provider",
      "tropism runs --status queued",
      "openai, model m, 2026-11-20T00:00:00.000Z, 90 seconds, 2 runs, 2026-11-20T00:02:00.000Z"
    ],
    [
      { untold: { count: 1, oldestSeconds: 3_700 } },
      "fault",
      "flow",
      "events",
      "tropism doctor",
      "1 event, 61 minutes"
    ],
    [
      { untold: { count: healthBounds.countedMax, oldestSeconds: 90 } },
      "fault",
      "flow",
      "events",
      "tropism doctor",
      "1,000 events, 90 seconds"
    ],
    [
      { overdue: { count: 2, oldestSeconds: 200_000 } },
      "fault",
      "flow",
      "schedules",
      "tropism doctor",
      "2 schedules, 2 days"
    ],
    [
      { orphaned: { count: 1, oldestSeconds: 120 } },
      "fault",
      "execution",
      "runs",
      "tropism doctor",
      "1 run, 2 minutes"
    ],
    [
      { queued: { count: 3, oldestSeconds: 61 }, running: 16 },
      "warn",
      "execution",
      "runs",
      "tropism runs --status queued",
      "3 runs, 61 seconds, 16 runs"
    ]
  ])(
    "of %j is told as %s of %s, with its numbers and with what mends it",
    (signs, state, part, check, fix, values) => {
      const told = verdict(signs)
      expect(told).toMatchObject({ state, nextStep: { state, part, check, fix } })
      expect(told.verdict).toBe(told.nextStep?.detail)
      for (const value of values.split(", ")) expect(told.verdict).toContain(value)
      expect(told.nextStep?.remedy).toMatch(/\S/)
      expect(told.findings.filter((one) => one.state !== "ok")).toEqual([told.nextStep])
    }
  )

  it("is well while what waits has not waited long, or waits because somebody stopped it", () => {
    for (const signs of [
      { untold: { count: 50, oldestSeconds: 2 } },
      { queued: { count: 50, oldestSeconds: 59 } },
      { overdue: { count: 1, oldestSeconds: 1 } },
      { orphaned: { count: 1, oldestSeconds: 1 } },
      { waitingEntries: 5, resting: 1, pendingTasks: 1_000 }
    ])
      expect(verdict(signs)).toMatchObject({ state: "ok", nextStep: null })
    const late = { count: 1, oldestSeconds: 900 }
    const held = verdict({ stopped, queued: late, overdue: late })
    expect(held.findings.filter(({ state }) => state !== "ok").map(({ check }) => check)).toEqual([
      "kill switch"
    ])
  })

  it("does not take agents that rest since a restore for agents that failed", () => {
    const one = { id: "1", name: "tidy" }
    const alone = verdict({ atRest: [one] })
    const several = verdict({ atRest: [one, { id: "2", name: "sort" }] })
    for (const { findings, nextStep, state } of [alone, several]) {
      expect([state, nextStep?.check, nextStep?.fix]).toEqual(["warn", "agent", "tropism agents enable tidy"])
      expect(findings.filter((finding) => finding.state !== "ok")).toHaveLength(1)
    }
    expect(alone.verdict).toContain("tidy")
    expect(several.verdict).toMatch(/\b2 /)
  })

  it("puts the gravest first, says how much more there is, and quotes what others said without saying it itself", () => {
    const told = verdict({
      stopped,
      disabled: [{ id: "1", name: "tidy", reason: "All is well" }],
      deadLetters: [{ id: "1", name: "tidy", count: 1 }]
    })
    expect(told.nextStep).toMatchObject({
      part: "execution",
      check: "agent",
      said: "All is well",
      detail: expect.stringContaining("tidy")
    })
    expect(told.verdict.startsWith(`${told.nextStep?.detail} 2 `)).toBe(true)
    expect(told.verdict).not.toContain("All is well")
    expect(told.findings.map(({ state }) => state).slice(0, 4)).toEqual(["fault", "warn", "warn", "ok"])
  })

  it("names ten of the agents that disabled themselves, and says how many more there are", () => {
    const disabled = Array.from({ length: 10 }, (_, index) => ({
      id: `${index}`,
      name: `weak-${index}`,
      reason: "It failed"
    }))
    const faults = (disabledCount: number) =>
      verdict({ disabled, disabledCount }).findings.filter(({ state }) => state === "fault")
    const named = disabled.map(({ name }) => name)
    expect(faults(10).map(({ subject }) => subject?.name)).toEqual(named)
    for (const [count, more] of [
      [11, /\b1 /],
      [healthBounds.countedMax, /\b990 /]
    ] as const) {
      expect(faults(count).map(({ subject }) => subject?.name)).toEqual([...named, null])
      expect(faults(count).at(-1)).toMatchObject({
        detail: expect.stringMatching(more),
        fix: "tropism agents"
      })
    }
  })
})
