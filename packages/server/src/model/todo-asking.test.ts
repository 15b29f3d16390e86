/** What TodoAssistant's script asks back before it does it, and what it takes for an answer. */
import { describe, expect, it } from "@effect/vitest"
import { chanceOf } from "../../simulation/chance.ts"
import { saidInHand, saidInTurn } from "../../testing/list-in-hand.ts"

const titled = (...titles: ReadonlyArray<string>) => titles.map((title) => ({ title }))

/** What became of a list, in short. */
const left = (messages: ReadonlyArray<string>, ...titles: ReadonlyArray<string>) =>
  saidInTurn(messages, titled(...titles)).after.map(({ completed, title }) =>
    completed ? `${title} (done)` : title
  )

describe("S003-R16 a word that is only near is offered", () => {
  const titles = ["Call mom", "See the dentist", "Buy milk chocolate", "Water plants"]
  for (const message of [
    "delete call mum",
    "delete the dentit",
    "delete buy mlik chocolate",
    "complete the dentit"
  ])
    it(`“${message}”`, () => {
      expect(left([message], ...titles)).toEqual(titles)
      expect(left([message, "yes"], ...titles)).not.toEqual(titles)
    })

  it("one letter that is another deletes, completes and renames nothing without a yes", () => {
    const { below } = chanceOf("slips")
    const harmful = Array.from({ length: 1_000 }, () => {
      const title = titles[below(titles.length)] ?? ""
      const at = below(title.length)
      if (title[at] === " ") return undefined
      const letter = "abcdefghijklmnopqrstuvwxyz"[below(26)] ?? ""
      const slip = title.slice(0, at) + ["", letter, letter + title[at]][below(3)] + title.slice(at + 1)
      if (slip.toLowerCase() === title.toLowerCase()) return undefined
      const said = [`delete ${slip}`, `complete ${slip}`, `rename ${slip} to Other`, `mark ${slip} as done`]
      return said.find((message) => left([message], ...titles).join() !== titles.join())
    })
    expect(harmful.filter((each) => each !== undefined)).toEqual([])
  })
})

describe("S003-R16 words that may tell of the errand and not of the task are asked back", () => {
  for (const [message, title] of [
    ["I don't want to phone bob", "Phone Bob"],
    ["I'm not going to buy milk", "Buy milk"],
    ["I'm not going to the dentist appointment", "Dentist appointment"]
  ] as const)
    it(`“${message}”`, () => {
      expect(left([message], title)).toEqual([title])
      expect(left([message, "yes"], title)).toEqual([])
    })

  for (const message of ["complete list", "complete everything"])
    it(`“${message}”`, () => {
      expect(left([message], "A", "B")).toEqual(["A", "B"])
      expect(left([message, "yes"], "A", "B")).toEqual(["A (done)", "B (done)"])
    })
})

describe("what is wanted on a condition, or only perhaps, is asked back", () => {
  for (const [message, after] of [
    ["once I have called mum, tick off 2", ["Buy milk", "Call mum (done)"]],
    ["tick off 2 once I have called mum", ["Buy milk", "Call mum (done)"]],
    ["if the milk is bought, complete 1", ["Buy milk (done)", "Call mum"]],
    ["complete buy milk if the milk is bought", ["Buy milk (done)", "Call mum"]],
    ["Hey, as soon as I'm home delete 2", ["Buy milk"]],
    ["when the milk is there, rename 1 to Drink milk", ["Drink milk", "Call mum"]],
    ["unless it rains, add buy umbrella", ["Buy milk", "Call mum", "Buy umbrella"]],
    ["if I called mum, tick it off", ["Buy milk", "Call mum"]],
    ["maybe complete 2", ["Buy milk", "Call mum (done)"]],
    ["complete 2, maybe", ["Buy milk", "Call mum (done)"]],
    ["perhaps you could delete 1", ["Call mum"]]
  ] as const)
    it(`“${message}”`, () => {
      const titles = ["Buy milk", "Call mum"]
      expect(left([message], ...titles)).toEqual(titles)
      expect(left([message, "no"], ...titles)).toEqual(titles)
      expect(left([message, "yes"], ...titles)).toEqual(after)
    })

  it("what is wanted beside it is done", () => {
    expect(left(["add bread and once I have called mum, tick off 1"], "Call mum")).toEqual([
      "Call mum",
      "Bread"
    ])
    expect(left(["add bread. If I have called mum, tick off 1. Delete 2."], "Call mum", "Tea")).toEqual([
      "Call mum",
      "Bread"
    ])
  })

  for (const [message, ...after] of [
    ["complete 1 when you can", "Call mum when home (done)"],
    ["if you don't mind, complete 1", "Call mum when home (done)"],
    ["complete call mum when home", "Call mum when home (done)"],
    ["rename 1 to Call if late", "Call if late"],
    ["add sleep until noon", "Call mum when home", "Sleep until noon"],
    ["once I got home, I called mum when home", "Call mum when home (done)"],
    ['delete "call mum when home"']
  ] as const)
    it(`a courtesy, a title and what is over hang on nothing: “${message}”`, () => {
      expect(left([message], "Call mum when home")).toEqual(after)
    })
})

describe("a message that is a whole request answers no question for a title", () => {
  for (const [message, ...after] of [
    ["help", "A", "B"],
    ["delete 2", "A"],
    ["mark 2 as done", "A", "B (done)"],
    ["complete 211", "A", "B"],
    ["add bread", "A", "B", "Bread"]
  ] as const)
    it(`“${message}”`, () => {
      expect(left(["rename 1", message], "A", "B")).toEqual(after)
      expect(left(["add", message], "A", "B")).toEqual(after)
    })

  it("what stands in quotes is a title, whatever it says", () => {
    expect(left(["rename 1", '"help"'], "A")).toEqual(["Help"])
    expect(left(["add", '"delete 1"'], "A")).toEqual(["A", "Delete 1"])
  })
})

describe("no part of a message is left out in silence", () => {
  for (const [message, ...after] of [
    ["add fix bike; also clean garage", "Fix bike", "Clean garage"],
    ["add a1\nb1", "A1", "B1"],
    ["add a\nb\nc", "A", "B", "C"],
    ["add buy tea. wash the car.", "Buy tea", "Wash the car"]
  ] as const)
    it(`“${message.replaceAll("\n", " / ")}”`, () => {
      expect(left([message])).toEqual(after.slice(0, 1))
      expect(left([message, "yes"])).toEqual(after)
    })
})

describe("short words are words", () => {
  it("a title of one letter", () => {
    expect(left(["rename 1 to x"], "A")).toEqual(["X"])
    expect(left(["add x"])).toEqual(["X"])
  })

  it("a number that is spelled", () => {
    expect(left(["complete two"], "A", "B")).toEqual(["A", "B (done)"])
    expect(left(["mark two as done"], "A", "B")).toEqual(["A", "B (done)"])
  })

  it("“anything left?” asks for what is pending", () => {
    expect(saidInHand("anything left?", titled("A")).response).toMatch(/\b1\b/)
  })
})
