/**
 * What is said of schedules, of how agents fare, and of what becomes of their changes.
 */
import type { AgentHealth } from "@tropism/api/agents-api"
import { expect, it } from "vitest"
import { cronText, healthText, outcomeWord } from "./agent-words.ts"

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
  [health([]), "It has not run yet."],
  [health(["completed", "failed"]), "It is well."],
  [health(["failed", "completed"]), "Its latest run failed."],
  [health(["failed", "failed"]), "Its latest 2 runs failed."],
  [health(["running", "failed"]), "It works."],
  [health(["paused"]), "A run of it waits."],
  [health(["failed"], { enabled: false }), "Disabled."],
  [health([], { enabled: false, disabledReason: "10 failures in a row." }), "10 failures in a row."]
])("says how an agent fares: %#", (told, expected) => {
  expect(healthText(told)).toBe(expected)
})

it("says what becomes of a change", () => {
  expect(outcomeWord(false, "execute", "", false)).toBe("is refused")
  expect(outcomeWord(true, "hybrid", "", false)).toBe("is done when it is 80 % sure")
  expect(outcomeWord(true, "hybrid", "0.955", false)).toBe("is done when it is 96 % sure")
  expect(outcomeWord(true, "hybrid", "", true)).toBe("waits for a person")
})
