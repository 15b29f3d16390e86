/**
 * What is said of schedules, of how agents fare, and of what becomes of their changes.
 */
import type { AgentHealth } from "@tropism/api/agents-api"
import { expect, it } from "vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
import { cronText, healthState, healthText, outcomeOf, outcomeWord } from "./agent-words.ts"

it("says a schedule in words, and nothing of what is none", () => {
  expect(cronText("0 9 * * 1-5")).toBe("At 09:00, Monday through Friday")
  expect(cronText("0 0 13 * 5")).toBe("At 00:00, on day 13 of the month, or on Friday")
  expect(cronText("0 9,10 1-7 1,6 MON")).toMatch(/between day 1 and 7 of the month, or on Monday/)
  expect(cronText("0 9 1 * *")).toBe("At 09:00, on day 1 of the month")
  expect(cronText("nine")).toBeUndefined()
})

const health = (latest: ReadonlyArray<string>, rest: Partial<AgentHealth> = {}): AgentHealth =>
  ({ enabled: true, disabledReason: null, latest: latest.map((status) => ({ status })), ...rest }) as never

it.each([
  [health([]), "notRun"],
  [health(["completed", "failed"]), "well"],
  [health(["failed", "completed"]), "failed"],
  [health(["failed", "failed"]), "failed"],
  [health(["running", "failed"]), "running"],
  [health(["paused"]), "paused"],
  [health(["failed"], { enabled: false }), "disabled"]
] as const)("knows how an agent fares, what needs a person first: %#", (told, state) => {
  expect(healthState(told)).toBe(state)
})

it("says how an agent fares, how often it failed in a row, and why it is disabled", () => {
  expectOneSentencePerKind({
    notRun: [healthText(health([]))],
    well: [healthText(health(["completed"]))],
    failed: [healthText(health(["failed"])), healthText(health(["failed", "completed", "failed"]))],
    failedTwice: [healthText(health(["failed", "failed"]))],
    running: [healthText(health(["running"]))],
    paused: [healthText(health(["paused"]))],
    disabled: [healthText(health([], { enabled: false }))]
  })
  expect(healthText(health(["failed", "failed"]))).toMatch(/\b2\b/)
  const disabledReason = "10 sheep fled."
  expect(healthText(health([], { enabled: false, disabledReason }))).toBe(disabledReason)
})

it("knows what happens with a change, and says how sure the agent must be", () => {
  for (const mode of ["execute", "hybrid", "suggest"]) expect(outcomeOf(false, mode, true)).toBe("refused")
  expect(outcomeOf(true, "execute", true)).toBe("done")
  expect(outcomeOf(true, "suggest", false)).toBe("suggested")
  expect(outcomeOf(true, "hybrid", true)).toBe("suggested")
  expect(outcomeOf(true, "hybrid", false)).toBe("doneIfSure")
  expectOneSentencePerKind({
    refused: [outcomeWord("refused", "")],
    done: [outcomeWord("done", "")],
    suggested: [outcomeWord("suggested", "")],
    doneIfSure: [outcomeWord("doneIfSure", "")]
  })
  expect(outcomeWord("doneIfSure", "")).toContain("80%")
  expect(outcomeWord("doneIfSure", "0.955")).toContain("96%")
})
