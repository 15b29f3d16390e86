/**
 * What of a message is shown to people, whatever its shape.
 */
import { describe, expect, it } from "vitest"
import { shownMessage } from "./shown-message.ts"

describe("a message that a model was shown", () => {
  it("is what its role said, part by part", () => {
    expect(shownMessage({ role: "system", content: "Be short." })).toEqual({
      role: "system",
      parts: [{ type: "text", text: "Be short." }]
    })
    expect(
      shownMessage({
        role: "assistant",
        content: [
          { type: "text", text: "I look." },
          { type: "tool-call", id: "1", name: "search_objects", params: { type: "Thing" } }
        ]
      })
    ).toEqual({
      role: "assistant",
      parts: [
        { type: "text", text: "I look." },
        { type: "call", name: "search_objects", value: { type: "Thing" } }
      ]
    })
    expect(
      shownMessage({
        role: "tool",
        content: [{ type: "tool-result", id: "1", name: "search_objects", isFailure: true, result: "No." }]
      })
    ).toEqual({
      role: "tool",
      parts: [{ type: "result", name: "search_objects", hasFailed: true, value: "No." }]
    })
  })

  it("leaves nothing out that it does not know", () => {
    const file = { type: "file", mediaType: "image/png", fileName: "a.png" }
    expect(shownMessage({ role: "user", content: [file] }).parts).toEqual([
      { type: "other", name: "file", value: file }
    ])
    for (const strange of ["words", null, 3, [], { content: "no role" }])
      expect(shownMessage(strange).parts).toEqual([{ type: "other", name: "JSON", value: strange }])
    expect(shownMessage({ role: "user" }).parts).toEqual([{ type: "other", name: "JSON", value: undefined }])
  })
})
