/**
 * Each sign that is bad changes the verdict, and tells what mends it.
 */
import { describe, expect, it } from "vitest"
import { UserId } from "./ids.ts"
import { verdictOf } from "./health.ts"
import { healthBounds } from "./health-words.ts"
import { judge, type VitalSigns } from "./vital-signs.ts"
import { wellSigns } from "./vital-signs-for-tests.ts"

const verdict = (signs: Partial<VitalSigns>) => verdictOf(judge({ ...wellSigns, ...signs }))

const stopped: VitalSigns["stopped"] = {
  scope: "project",
  reason: "Enough",
  stoppedBy: UserId.make("ada"),
  stoppedAt: "2026-01-01T00:00:00.000Z"
}

describe("the health of a project", () => {
  it.each<[Partial<VitalSigns>, "fault" | "warn", string]>([
    [{ serverFault: "The dispatcher has ended" }, "fault", "The dispatcher has ended."],
    [
      { untold: { count: 1, oldestSeconds: 3_700 } },
      "fault",
      "1 event has reached no agent yet, the oldest for 61 minutes."
    ],
    [
      { untold: { count: healthBounds.countedMax, oldestSeconds: 90 } },
      "fault",
      "1,000 events or more have reached no agent yet, the oldest for 90 seconds."
    ],
    [
      { overdue: { count: 2, oldestSeconds: 200_000 } },
      "fault",
      "2 schedules should have fired and did not, the oldest 2 days ago."
    ],
    [
      { orphaned: { count: 1, oldestSeconds: 120 } },
      "fault",
      "1 run lost its worker and was taken over by no other, the oldest 2 minutes ago."
    ],
    [
      { queued: { count: 3, oldestSeconds: 61 }, running: 16 },
      "warn",
      "3 runs wait for a worker, the oldest for 61 seconds, while 16 runs of the project are at work."
    ]
  ])("of %j is told as %s, in one sentence and with what mends it", (signs, state, sentence) => {
    const told = verdict(signs)
    expect(told).toMatchObject({ state, verdict: sentence, nextStep: { state } })
    expect(told.nextStep?.remedy).toMatch(/\.$/)
    expect(told.nextStep?.fix).not.toBeNull()
    expect(told.findings.filter((one) => one.state !== "ok")).toEqual([told.nextStep])
  })

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
    expect([alone.state, alone.verdict]).toEqual([
      "warn",
      "The agent tidy is disabled since the project was restored from a dump."
    ])
    const several = verdict({ atRest: [one, { id: "2", name: "sort" }] })
    expect(several.verdict).toBe("2 agents are disabled since the project was restored from a dump.")
    expect(several.nextStep?.fix).toBe("tropism agents enable tidy")
  })

  it("puts the gravest first, says how much more there is, and quotes what others said without saying it itself", () => {
    const told = verdict({
      stopped,
      disabled: [{ id: "1", name: "tidy", reason: "All is well" }],
      deadLetters: [{ id: "1", name: "tidy", count: 1 }]
    })
    expect(told.verdict).toBe(
      "The agent tidy failed too often and disabled itself. 2 more things need a look."
    )
    expect(told.nextStep?.said).toBe("All is well")
    expect(told.findings.map(({ state }) => state).slice(0, 4)).toEqual(["fault", "warn", "warn", "ok"])
  })

  it("names ten of the agents that disabled themselves, and says how many more there are", () => {
    const disabled = Array.from({ length: 10 }, (_, index) => ({
      id: `${index}`,
      name: `weak-${index}`,
      reason: "It failed"
    }))
    const details = (signs: Partial<VitalSigns>) =>
      verdict(signs)
        .findings.filter(({ state }) => state === "fault")
        .map(({ detail }) => detail)
    expect(details({ disabled, disabledCount: 10 })).toHaveLength(10)
    expect(details({ disabled, disabledCount: 11 }).at(-1)).toBe(
      "And 1 more agent failed too often and disabled itself."
    )
    expect(details({ disabled, disabledCount: healthBounds.countedMax }).at(-1)).toBe(
      "And at least 990 more agents failed too often and disabled themselves."
    )
  })
})
