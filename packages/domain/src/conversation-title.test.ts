/**
 * The titles that first messages give, also odd ones.
 */
import { describe, expect, it } from "@effect/vitest"
import { titleOf } from "./conversation-title.ts"
import { conversationBounds } from "./conversation.ts"

describe("The title that a first message gives", () => {
  it.each([
    ["  Show me\n my   tasks ", "Show me my tasks"],
    ["x", "x"],
    [`${"word ".repeat(40)}`, `${"word ".repeat(15).trimEnd()}…`],
    ["a".repeat(200), `${"a".repeat(79)}…`],
    [`a${" ".repeat(318)}🎉`, "a"],
    ["🎉".repeat(200), `${"🎉".repeat(79)}…`]
  ])("of %j is %j", (message, title) => expect(titleOf(message)).toBe(title))

  it("is never longer than it may be and never blank", () => {
    for (const message of ["\u2003a", "a".repeat(100_000), `${" ".repeat(99_999)}a`, "é".repeat(320)]) {
      const title = titleOf(message)
      expect(title.trim()).not.toBe("")
      expect([...title].length).toBeLessThanOrEqual(conversationBounds.ownTitleMaxChars)
    }
  })
})
