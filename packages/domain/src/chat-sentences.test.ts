/**
 * What a person in a chat is told of each ending and each failed tool, case by case.
 */
import { describe, expect, it } from "@effect/vitest"
import type { Schema } from "effect"
import type { CarriedCall } from "./chat-calls.ts"
import { ChatEnding } from "./chat-ending.ts"
import { chatResponse, type ToldAnswer, toolSentence } from "./chat-sentences.ts"
import { todoSentences } from "./todo.ts"

const nothing: ToldAnswer = {
  ending: "answered",
  failure: null,
  said: "",
  unspoken: [],
  question: undefined
}

const call = { callId: "c", tool: "complete_task", arguments: {}, timestamp: "2026-11-22T00:00:00.000Z" }
const failed = (fault: Schema.Json): CarriedCall => ({ ...call, status: "failed", result: fault })
const done: CarriedCall = { ...call, status: "completed", result: {} }

const told = (answer: Partial<ToldAnswer>) => chatResponse({ ...nothing, ...answer })

describe("Error categories as a person reads them", () => {
  it.each([
    [
      "S003-R51",
      { error: todoSentences.notFound, task_id: 999 },
      "I couldn't find that task: there is no #999."
    ],
    ["S003-R51", { error: todoSentences.notFound }, "I couldn't find that task."],
    ["S003-R52", { error: todoSentences.longTitle }, "That title is too long."],
    ["S003-R52", { error: todoSentences.noTitle }, "A task needs a title."],
    ["S003-R52", { error: todoSentences.longDescription }, "That description is too long."],
    ["S003-R52", { error: todoSentences.nothingToChange }, "Tell me what to change"],
    ["S003-R50", { error: "Failed to create task" }, "I couldn't do that."],
    ["S003-R50", "out of order", "I couldn't do that."],
    ["S003-R50", null, "I couldn't do that."]
  ])("%s %j begins %j and says what to do instead", (_, fault, beginning) => {
    const sentence = toolSentence(fault)
    expect(sentence.startsWith(beginning)).toBe(true)
    expect(sentence).toMatch(/\?$|Try|Tell me/)
    // Told where the agent says nothing of it, and before the sentence of a failure.
    const unspoken = [done, failed(fault)]
    expect(told({ unspoken })).toBe(sentence)
    expect(told({ ending: "failed", unspoken })).toBe(`${sentence}\n\nI'm having trouble. Try again.`)
  })

  it("S003-R54 a failure of the model is trouble, and its own words are not told", () =>
    expect(told({ ending: "failed", failure: "model", said: "Let me see" })).toBe(
      "I'm having trouble. Try again."
    ))

  it.each([
    ["failed", "doomLoop", "I kept trying the same thing"],
    ["failed", "guard", "I may not go on with this."],
    ["failed", "model", "I'm having trouble. Try again."],
    ["failed", "prompt", "I'm having trouble. Try again."],
    ["failed", null, "I'm having trouble. Try again."],
    ["stopped", null, "I was stopped and wait"],
    ["message", null, "You said something more"],
    ["user", null, "I stopped here"],
    ["cancelled", null, "I was stopped before I was done."],
    ["stepLimit", null, "I have used all the steps"],
    ["timeout", null, "I have used all the time"],
    ["budget", null, "I have used all that I may spend."]
  ] as const)("what ended as %s (%s) is told: %s…", (ending, failure, beginning) => {
    const sentence = told({ ending, failure })
    expect(sentence.startsWith(beginning)).toBe(true)
    // What was said before stands, except where the answer was not to be had.
    const said = told({ ending, failure, said: "So far." })
    expect(said).toBe(ending === "failed" ? sentence : `So far.\n\n${sentence}`)
  })

  it("an answer is the agent's own words, and what it left unsaid behind them", () =>
    expect([
      told({ said: "Here." }),
      told({ said: "Let me see.", unspoken: [failed("out of order")] })
    ]).toEqual([
      "Here.",
      "Let me see.\n\nI couldn't do that. Try it another way, or ask me for something else."
    ]))

  it("an agent that acted without a word has its act confirmed, and one that did nothing says nothing", () =>
    expect([told({ unspoken: [failed("no"), done] }), told({})]).toEqual(["Done.", ""]))

  it("a question is told with its choices, behind what was said", () => {
    const question = { question: "Which one?", options: ["1", "2"] }
    expect(told({ ending: "question", said: "There are two.", question })).toBe(
      "There are two.\n\nWhich one? (1, 2)"
    )
    expect(told({ ending: "question" })).not.toBe("")
  })

  it("every ending but an answer and the bound of time has a sentence", () =>
    expect(ChatEnding.literals.filter((ending) => told({ ending }) === "")).toEqual(["answered", "bound"]))
})
