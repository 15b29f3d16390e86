/**
 * The line of a log in which an event stands.
 */
import { describe, expect, it } from "vitest"
import { elapsedText, eventWords, saysWords, type SentEvent } from "./event-words.ts"

const event = (fields: Record<string, unknown>): SentEvent => ({
  id: "run:1",
  type: "UserMessageEvent",
  timestamp: "2026-11-25T10:00:00.000Z",
  ...fields
})

describe("an event of a log in a line", () => {
  it("says the tool, then what came of it", () => {
    expect(eventWords(event({ tool: "create_object", error: "It is there already" }))).toBe(
      "create_object: It is there already"
    )
    expect(eventWords(event({ content: "Go.\nNow." }))).toBe("Go.")
    expect(eventWords(event({ content: "", error: { code: 1 } }))).toBe("")
  })

  it("says how long after the beginning it was", () => {
    const later = event({ timestamp: "2026-11-25T10:00:01.250Z" })
    expect(elapsedText(event({}), later)).toBe("+1.2 s")
  })

  it("is found by what stands anywhere in it", () => {
    const found = event({ arguments: { key: "Ada" } })
    expect([undefined, "", " ada ", "usermessage", "bob"].map((words) => saysWords(found, words))).toEqual([
      true,
      true,
      true,
      true,
      false
    ])
  })
})
