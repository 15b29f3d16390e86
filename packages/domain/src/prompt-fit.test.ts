/** Prompts that are made to fit: within the bound, whole pairs of calls and results, the same each time; for any conversation. */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import type { Message } from "./message.ts"
import { fitPrompt } from "./prompt-fit.ts"

const Unit = Schema.Struct({
  kind: Schema.Literals(["user", "assistant", "call"]),
  chars: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3_000 }))
})

const anyUnits = Arbitrary.array(Arbitrary.schema(Unit), { minLength: 1, maxLength: 30 })
const anyBound = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 700, maximum: 5_000 })))

const conversationOf = (units: ReadonlyArray<typeof Unit.Type>): ReadonlyArray<Message> => [
  { role: "system", content: "Be brief." },
  { role: "user", content: "First." },
  ...units.flatMap(({ chars, kind }, index): ReadonlyArray<Message> => {
    const text = "x".repeat(chars)
    if (kind === "user") return [{ role: "user", content: text }]
    if (kind === "assistant")
      return [{ role: "assistant", content: [{ type: "text", text: text.slice(0, 400) }] }]
    const id = `call-${index}`
    return [
      { role: "assistant", content: [{ type: "tool-call", id, name: "look", params: {} }] },
      { role: "tool", content: [{ type: "tool-result", id, name: "look", isFailure: false, result: text }] }
    ]
  })
]

describe("fitPrompt", () => {
  it.prop("keeps instructions, whole pairs and the bound", [anyUnits, anyBound], ([units, most]) => {
    const messages = conversationOf(units)
    const { leftOut, messages: fitted, tokens } = fitPrompt(messages, 100, most)
    expect(tokens).toBeLessThanOrEqual(most)
    expect(fitted[0]).toEqual(messages[0])
    expect(fitted).toHaveLength(messages.length - (leftOut?.messages ?? 0))
    const calls = fitted.flatMap(({ content, role }) =>
      role === "assistant" ? content.flatMap((part) => (part.type === "tool-call" ? [part.id] : [])) : []
    )
    const results = fitted.flatMap(({ content, role }) =>
      role === "tool" ? content.map(({ id }) => id) : []
    )
    expect(results).toEqual(calls)
    expect(fitPrompt(messages, 100, most)).toEqual({ leftOut, messages: fitted, tokens })
  })

  it("leaves a prompt that fits as it is", () => {
    const messages: ReadonlyArray<Message> = [{ role: "user", content: "Hello" }]
    expect(fitPrompt(messages, 0, 1_000)).toEqual({ messages, tokens: 6, leftOut: null })
  })
})
