/**
 * What is said of schedules, of how agents fare, and of what becomes of their changes.
 */
import type { AgentHealth } from "@tropism/api/agents-api"
import { expect, it } from "vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
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

it("says how an agent fares, what needs a person first", () => {
  const said = (...given: ReadonlyArray<AgentHealth>) => given.map(healthText)
  expectOneSentencePerKind({
    notRun: said(health([])),
    well: said(health(["completed"]), health(["completed", "failed"])),
    failed: said(health(["failed"]), health(["failed", "completed"])),
    failedTwice: said(health(["failed", "failed"]), health(["failed", "failed", "completed"])),
    running: said(health(["running"]), health(["running", "failed"])),
    paused: said(health(["paused"]), health(["paused", "completed"])),
    disabled: said(health([], { enabled: false }), health(["failed"], { enabled: false }))
  })
  expect(healthText(health(["failed", "failed"]))).toContain("2")
  const disabledReason = "10 sheep fled."
  expect(healthText(health([], { enabled: false, disabledReason }))).toBe(disabledReason)
})

it("says what becomes of a change", () => {
  expectOneSentencePerKind({
    refused: [outcomeWord(false, "execute", "", false), outcomeWord(false, "hybrid", "", true)],
    done: [outcomeWord(true, "execute", "", false), outcomeWord(true, "execute", "", true)],
    suggested: [outcomeWord(true, "suggest", "", false), outcomeWord(true, "hybrid", "", true)],
    doneIfSure: [outcomeWord(true, "hybrid", "", false)],
    doneIfSurer: [outcomeWord(true, "hybrid", "0.955", false)]
  })
  expect(outcomeWord(true, "hybrid", "", false)).toContain("80 %")
  expect(outcomeWord(true, "hybrid", "0.955", false)).toContain("96 %")
})
