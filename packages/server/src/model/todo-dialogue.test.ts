/** What comes of whole sentences, in a list in memory: those that people wrote, and those that mean nothing. */
import { stemsOf } from "./todo-words.ts"
import { describe, expect, it } from "@effect/vitest"
import { saidInHand } from "../../testing/list-in-hand.ts"
import { paraphrasesIn, wrongWith } from "../../testing/paraphrase-words.ts"
import { chanceOf } from "../../simulation/chance.ts"

describe("P3-MCP-08 utterances of people who had not seen the rules", () => {
  for (const file of ["todo-paraphrases.jsonl", "todo-paraphrases-2.jsonl"])
    it(`each of ${file} does what it says, and nothing else`, () => {
      const lines = paraphrasesIn(file)
      expect(lines).toHaveLength(100)
      const wrong = lines.map((line) => {
        const { after, calls, response } = saidInHand(line.utterance, line.todos)
        const filters = calls.flatMap(({ arguments: args, tool }) =>
          tool === "list_tasks" ? [args["status"]] : []
        )
        return wrongWith(line, after, filters, response)
      })
      expect(wrong.filter((each) => each !== undefined)).toEqual([])
    })
})

const todos = ["Buy milk", "Call the dentist", "Water plants", "Pay rent", "Read chapter four"].map(
  (title) => ({ title })
)

/** Words that ask for nothing to be deleted or completed, nor tell that anything was. */
const idle =
  "the a my please can you i to and or not with for of on in at is are it that this them show list add what which maybe banana window tomorrow purple seven very should would add rename change remind note think walk talk house about , . ! ? - \" ' :"
const titled =
  "milk buy call dentist water plants pay rent read chapter four 1 2 3 #4 first second last all everything one task"
/** Words that do, and that one may tell it with. */
const pressing =
  "delete remove drop scrap cancel clear forget complete finish done finished mark tick check cross off did washed fixed painted sold"
const told = "bought paid called watered"
const numberWords = ["", "one", "two", "three", "four", "five"]
const strange = "zebra quantum volcano marble harbour lantern telescope 77 fifteenth"

describe("S003-R16 where nobody can be sure", () => {
  for (const message of [
    "paid",
    "I called",
    "bought it",
    "forget it",
    "done",
    "check for it",
    "milk bought?",
    "I finished",
    "delete the meat task"
  ])
    it(`“${message}” does nothing`, () => {
      const { after, response } = saidInHand(message, [...todos, { title: "Meet Bob" }])
      expect(after.map(({ completed, title }) => [title, completed])).toEqual(
        [...todos, { title: "Meet Bob" }].map(({ title }) => [title, false])
      )
      expect(response).not.toBe("")
    })
})

describe("S003-R16 words thrown together", () => {
  const changesIn = (salad: string) =>
    saidInHand(salad, todos).calls.filter(({ tool }) => tool === "delete_task" || tool === "complete_task")

  const salads = (seed: string, ...classes: ReadonlyArray<string>) => {
    const { below } = chanceOf(seed)
    const words = classes.flatMap((each) => each.split(" "))
    return Array.from({ length: 4_000 }, () =>
      Array.from({ length: 1 + below(10) }, () => words[below(words.length)]).join(" ")
    )
  }

  it("delete and complete nothing where no word of deleting, of completing or of having done is among them", () => {
    expect(salads("idle", idle, titled).filter((salad) => changesIn(salad).length > 0)).toEqual([])
  })

  it("delete and complete nothing where none of them is a task that is there", () => {
    const harmful = salads(
      "strange",
      idle.replaceAll(/\b(?:it|that|this|them)\b/g, ""),
      pressing,
      strange
    ).filter((salad) =>
      saidInHand(salad, todos).after.some(
        ({ completed }, _, { length }) => completed || length < todos.length
      )
    )
    expect(harmful).toEqual([])
  })

  it("delete and complete at most what they name, whatever else they hold", () => {
    const harmful = salads("all", idle, pressing, told, titled, strange).filter((salad) => {
      const words = salad.toLowerCase()
      const isForAll = /\b(?:all|everything|them|list|first|second|last|task)\b/.test(words)
      return (
        !isForAll &&
        changesIn(salad).some(({ arguments: args }) => {
          const id = Number(args["task_id"])
          const named = stemsOf(todos[id - 1]?.title ?? "")
          return (
            !words.includes(String(id)) &&
            !words.includes(numberWords[id] ?? "") &&
            !stemsOf(salad).some((stem) => named.includes(stem))
          )
        })
      )
    })
    expect(harmful).toEqual([])
  })

  it("are not all harmless by being nothing: some of them do delete and complete", () => {
    const tools = new Set(
      salads("all", idle, pressing, told, titled, strange).flatMap((salad) =>
        changesIn(salad).map(({ tool }) => tool)
      )
    )
    expect([...tools].toSorted()).toEqual(["complete_task", "delete_task"])
  })
})
