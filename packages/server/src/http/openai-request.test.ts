/**
 * Requests for chat completions, as agents are asked.
 */
import { CompletionInput } from "@tropism/api/openai-completions"
import { describe, expect, it } from "@effect/vitest"
import { Result, Schema } from "effect"
import { readCompletion } from "./openai-request.ts"
import { filesOf } from "./openai-turn.ts"

const decode = Schema.decodeUnknownSync(CompletionInput)

const wantedOf = (body: Record<string, unknown>) =>
  Result.getOrThrow(readCompletion(decode({ model: "clerk", ...body })))

const user = (content: unknown) => ({ role: "user", content })

describe("A request for a completion", () => {
  it("parts what the agent is told to be, what was said before, and what is said now", () => {
    const wanted = wantedOf({
      messages: [
        { role: "system", content: "Be brief." },
        { role: "developer", content: [{ type: "text", text: "Be kind." }] },
        user("One"),
        { role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
        { role: "system", content: "In French." },
        user("Two"),
        { role: "assistant", content: null },
        user([
          { type: "text", text: "Three" },
          { type: "text", text: "Four" }
        ]),
        { role: "system", content: "Remember." }
      ]
    })
    expect(wanted.instructions).toBe("Be brief.\n\nBe kind.")
    expect(wanted.history).toEqual([
      { role: "user", content: "One", files: [] },
      { role: "assistant", content: "No." },
      { role: "system", content: "In French." },
      { role: "user", content: "Two", files: [] },
      { role: "assistant", content: "" },
      { role: "system", content: "Remember." }
    ])
    expect(wanted.said).toEqual({ role: "user", content: "Three\nFour", files: [] })
  })

  it("tells the agent nothing where the client tells nothing", () => {
    expect(wantedOf({ messages: [user("One")] })).toMatchObject({ instructions: null, history: [] })
    expect(wantedOf({ messages: [{ role: "system", content: " " }, user("One")] }).instructions).toBeNull()
  })

  it("names each file once, wherever it stands", () => {
    const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }
    const wanted = wantedOf({
      messages: [
        user([picture, { type: "text", text: "This?" }]),
        { role: "assistant", content: "Yes." },
        user([
          picture,
          { type: "image_url", image_url: { url: "https://example.org/x.png", detail: "low" } },
          { type: "file", file: { file_data: "data:application/pdf;base64,BBBB", filename: "x.pdf" } },
          { type: "file", file: { file_id: "0123" } }
        ])
      ]
    })
    expect(filesOf(wanted).map(({ source }) => source)).toEqual([
      { type: "bytes", dataUrl: "data:image/png;base64,AAAA" },
      { type: "address", url: "https://example.org/x.png" },
      { type: "bytes", dataUrl: "data:application/pdf;base64,BBBB" },
      { type: "kept", digest: "0123" }
    ])
    expect(wanted.said.content).toBe("")
    expect(wanted.said.files.map(({ fileName }) => fileName)).toEqual([null, null, "x.pdf", null])
  })

  it("says how long an answer may be by either of its names, and no longer than any may", () => {
    const lengthOf = (body: Record<string, unknown>) =>
      wantedOf({ messages: [user("One")], ...body }).maxOutputTokens
    expect([
      lengthOf({}),
      lengthOf({ max_tokens: 7 }),
      lengthOf({ max_tokens: 7, max_completion_tokens: 9 }),
      lengthOf({ max_tokens: 9_999_999 }),
      lengthOf({ max_tokens: -1 }),
      lengthOf({ max_completion_tokens: -2 })
    ]).toEqual([null, 7, 9, 1_000_000, null, null])
  })

  it("takes a picture whose address is a string", () => {
    const url = "data:image/png;base64,AAAA"
    expect(
      filesOf(wantedOf({ messages: [user([{ type: "image_url", image_url: url }])] })).map(
        ({ param, source }) => [param, source]
      )
    ).toEqual([["messages[0].content[0].image_url", { type: "bytes", dataUrl: url }]])
  })

  it("asks the agent to continue where the assistant's message is the last", () => {
    const { history, said } = wantedOf({
      messages: [user("One"), { role: "assistant", content: "Once upon" }]
    })
    expect(history).toEqual([
      { role: "user", content: "One", files: [] },
      { role: "assistant", content: "Once upon" }
    ])
    expect(said).toEqual({
      role: "user",
      content: expect.stringMatching(/^Continue/),
      files: []
    })
  })

  it("goes on in a conversation that its metadata names", () => {
    expect(
      wantedOf({ messages: [user("One")], metadata: { conversation_id: "completion-1" } }).conversation
    ).toBe("completion-1")
  })
})
