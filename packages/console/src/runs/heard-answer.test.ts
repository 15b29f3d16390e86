/**
 * Whoever reads what a run says now sees where something is missing.
 */
import { describe, expect, it } from "@effect/vitest"
import { hear, type HeardAnswer, knownWords, shownWords } from "./heard-answer.ts"

const piece = (number: number, delta: string, after = 4) => ({
  name: "TextDeltaEvent",
  text: JSON.stringify({ id: `run-1:${after}.d${number}`, delta })
})

const heard = (...events: ReadonlyArray<ReturnType<typeof piece>>): HeardAnswer | undefined =>
  events.reduce<HeardAnswer | undefined>(hear, undefined)

const shown = (...events: ReadonlyArray<ReturnType<typeof piece>>) => {
  const answer = heard(...events)
  return answer && shownWords(answer)
}

describe("what a run says now", () => {
  it.each([
    ["all of it", [piece(1, "One "), piece(2, "two "), piece(3, "three")], "One two three"],
    ["from where one came", [piece(3, "three "), piece(4, "four")], "… three four"],
    [
      "what a cut took away as a hole",
      [piece(1, "One"), piece(4, "four "), piece(5, "five")],
      "One … four five"
    ],
    ["each hole", [piece(2, "two"), piece(4, "four"), piece(6, "six")], "… two … four … six"],
    ["the next answer alone", [piece(1, "One"), piece(1, "Another", 6)], "Another"],
    ["what is said anew alone", [piece(1, "One "), piece(2, "two"), piece(1, "Uno")], "Uno"],
    [
      "what is said anew from where one hears it",
      [piece(1, "One "), piece(2, "two"), piece(2, "dos")],
      "… dos"
    ]
  ])("shows %s", (_, events, words) => {
    expect(shown(...events)).toBe(words)
  })

  it("is said no longer once the answer stands in the log, and by no other event", () => {
    const one = heard(piece(1, "One"))
    expect(hear(one, { name: "ToolCallStartedEvent", text: "{}" })).toBe(one)
    expect(hear(one, { name: "AssistantMessageEvent", text: "{}" })).toBeUndefined()
  })

  it("is as long as what was heard, and with a hole at least as long as what the server kept of it", () => {
    const known = (kept: string, ...events: ReadonlyArray<ReturnType<typeof piece>>) => {
      const answer = heard(...events)
      return answer && knownWords(answer, kept)
    }
    expect(known("One two three", piece(1, "One"))).toBe("One")
    expect(known("One two three", piece(1, "One"), piece(3, "three"))).toBe("One two three")
    expect(known("One", piece(1, "One"), piece(3, "three"))).toBe("Onethree")
  })
})
