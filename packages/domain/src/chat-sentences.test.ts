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
  const unknown = toolSentence("out of order")
  const trouble = told({ ending: "failed" })

  it.each([
    ["S003-R51", "a task that does not exist", { error: todoSentences.notFound, task_id: 999 }, ["#999"]],
    ["S003-R51", "a task without a number", { error: todoSentences.notFound }, []],
    ["S003-R52", "a long title", { error: todoSentences.longTitle }, ["200"]],
    ["S003-R52", "no title", { error: todoSentences.noTitle }, []],
    ["S003-R52", "a long description", { error: todoSentences.longDescription }, ["1000"]],
    ["S003-R52", "nothing to change", { error: todoSentences.nothingToChange }, []]
  ])("%s %s has a sentence of its own", (_, __, fault, values) => {
    const sentence = toolSentence(fault)
    expect(["", unknown, trouble]).not.toContain(sentence)
    for (const value of values) expect(sentence).toContain(value)
    expect(sentence).not.toContain(fault.error)
  })

  it.each([{ error: "out of memory" }, "out of order", null])(
    "S003-R50 %j has the sentence of every other error, and not its own words",
    (fault) => {
      expect(toolSentence(fault)).toBe(unknown)
      expect(unknown).not.toMatch(/out of order/)
    }
  )

  it.each([{ error: todoSentences.noTitle }, "out of order"])(
    "the sentence of %j stands where the agent says nothing, and before that of a failure",
    (fault) => {
      const sentence = toolSentence(fault)
      const unspoken = [done, failed(fault)]
      expect(told({ unspoken })).toBe(sentence)
      expect(told({ ending: "failed", unspoken })).toBe(`${sentence}\n\n${trouble}`)
    }
  )

  it("S003-R54 a failure of the model is trouble, and its own words are not told", () =>
    expect(told({ ending: "failed", failure: "model", said: "Let me see" })).toBe(trouble))

  const endings = [
    ["failed", "doomLoop"],
    ["failed", "guard"],
    ["failed", "model"],
    ["failed", "prompt"],
    ["failed", null],
    ["stopped", null],
    ["message", null],
    ["user", null],
    ["cancelled", null],
    ["stepLimit", null],
    ["timeout", null],
    ["budget", null]
  ] as const

  it.each(endings)("what was said before the end as %s (%s) stands, unless it failed", (ending, failure) => {
    const sentence = told({ ending, failure })
    const said = told({ ending, failure, said: "So far." })
    expect(said).toBe(ending === "failed" ? sentence : `So far.\n\n${sentence}`)
  })

  it("each ending has its own sentence; failures share one, but for a loop and a guard", () => {
    const sentences = endings.map(([ending, failure]) => told({ ending, failure }))
    expect(sentences.filter((sentence) => sentence === trouble)).toHaveLength(3)
    expect(new Set(sentences).size).toBe(sentences.length - 2)
  })

  it("S003-R50 S003-R51 S003-R52 S003-R54 each sentence says what to do instead", () => {
    const faults = [{ error: todoSentences.notFound, task_id: 999 }, ...Object.values(todoSentences), null]
    expect([
      ...faults.map(toolSentence),
      ...endings.map(([ending, failure]) => told({ ending, failure }))
    ]).toMatchSnapshot()
  })

  it("an answer is the agent's own words, and what it left unsaid behind them", () =>
    expect([
      told({ said: "Here." }),
      told({ said: "Let me see.", unspoken: [failed("out of order")] })
    ]).toEqual(["Here.", `Let me see.\n\n${unknown}`]))

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
