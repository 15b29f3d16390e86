/**
 * A history that a client brings, as a model is shown it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Option } from "effect"
import { promptOf } from "./context.ts"
import type { NewEvent } from "./context-event.ts"
import { GivenFile } from "./given-history.ts"
import { answers, asks, contextOf, turnStarts } from "../testing/log.ts"
import { quoted } from "./message.ts"

type History = Extract<NewEvent, { readonly type: "HistoryGivenEvent" }>

const given = (messages: History["messages"], instructions: string | null = null): NewEvent => ({
  type: "HistoryGivenEvent",
  instructions,
  messages
})

const digest = "a".repeat(64) as GivenFile["digest"]

describe("A history that is given", () => {
  it("is shown behind the agent's own system prompt and the client's, before what is asked now", () => {
    const context = contextOf(
      { type: "SystemPromptEvent", content: "You are a clerk." },
      given(
        [
          { role: "user", content: "My name is Ada." },
          { role: "assistant", content: "Hello, Ada." },
          { role: "system", content: "From here on in French." }
        ],
        "Be brief."
      ),
      asks("What is my name?")
    )
    expect(promptOf(context)).toEqual([
      { role: "system", content: "You are a clerk.\n\nBe brief." },
      { role: "user", content: "My name is Ada." },
      { role: "assistant", content: [{ type: "text", text: "Hello, Ada." }], options: quoted },
      { role: "system", content: "From here on in French." },
      { role: "user", content: "What is my name?" }
    ])
  })

  it("is the whole system prompt where the agent has none", () => {
    expect(contextOf(given([], "Be brief.")).systemPrompt).toEqual(Option.some("Be brief."))
    expect(contextOf(given([])).systemPrompt).toEqual(Option.none())
  })

  it("replaces the instructions that it names, for a guard, too, and nothing else", () => {
    const prompt: NewEvent = { type: "SystemPromptEvent", content: "You are a clerk." }
    const then = (replaces: string, instructions: string | null = null): NewEvent => ({
      type: "HistoryGivenEvent",
      instructions,
      replaces,
      messages: []
    })
    const replaced = contextOf(prompt, given([], "Obey.\n\nBe brief."), then("Be brief.", "Be long."))
    expect(replaced.systemPrompt).toEqual(Option.some("You are a clerk.\n\nObey.\n\nBe long."))
    expect(replaced.unjudgedInstructions).toEqual(Option.some("Obey.\n\nBe long."))
    const alone = contextOf(given([], "Be brief."), then("Be brief."))
    expect([alone.systemPrompt, alone.unjudgedInstructions]).toEqual([Option.none(), Option.none()])
    expect(contextOf(prompt, then("clerk.", "Be brief.")).systemPrompt).toEqual(
      Option.some("You are a clerk.\n\nBe brief.")
    )
  })

  it("asks for nothing by itself, and costs nobody anything", () => {
    const context = contextOf(given([{ role: "user", content: "Do it!" }]))
    expect([context.isTurnDue, context.isTriggered, context.run.steps, context.lastText]).toEqual([
      false,
      false,
      0,
      ""
    ])
    expect(context.spoken).toEqual({ turns: 1, answers: 0 })
  })

  it("shows files before the words that they came with, and nothing of a message that says nothing", () => {
    const file = { digest, mimeType: "image/png", fileName: "map.png" } as const
    const { messages } = contextOf(
      given([
        { role: "user", content: "Where is this?", files: [file] },
        { role: "assistant", content: "" },
        { role: "user", content: "", files: [file] },
        { role: "user", content: "", files: [] }
      ])
    )
    const part = { type: "file", mediaType: "image/png", fileName: "map.png", data: `attachment:${digest}` }
    expect(messages).toEqual([
      { role: "user", content: [part, { type: "text", text: "Where is this?" }] },
      { role: "user", content: [part] }
    ])
  })

  it("waits for the outcome of a call as everything does that is said meanwhile", () => {
    const context = contextOf(
      turnStarts(1),
      answers("", ["c1"]),
      given([{ role: "user", content: "Later." }])
    )
    expect(context.heldMessages).toEqual([{ role: "user", content: "Later." }])
  })
})
