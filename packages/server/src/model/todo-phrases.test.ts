/** What plain words are read as, without any list or tool. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { readMessage } from "./todo-phrases.ts"

/** An intent in short, as the tables below say it. */
const brief = (message: string): ReadonlyArray<string> =>
  readMessage(message).map((intent) => {
    switch (intent.type) {
      case "add":
        return `add ${intent.tasks.map(({ description, title }) => (description ? `${title} (${description})` : title)).join(" | ")}`
      case "list":
        return `list ${intent.status}${intent.about === null ? "" : ` about ${intent.about}`}`
      case "deed": {
        const { deed, ref } = intent
        const which =
          ref.kind === "ids"
            ? ref.ids.map((id) => `#${id}`).join(" ")
            : ref.kind === "title"
              ? ref.text
              : ref.kind === "place"
                ? `place ${ref.places.join(" ")}`
                : ref.kind === "all"
                  ? `all ${ref.status}`
                  : ref.kind
        return `${deed.type} ${which}${deed.type === "update" ? `: ${deed.title ?? ""}/${deed.description ?? ""}` : ""}`
      }
      case "rename":
        return `rename ${intent.readings.map(({ ref, title }) => `${ref.kind === "title" ? ref.text : ref.kind} → ${title}`).join(" | ")}`
      default:
        return intent.type
    }
  })

const table = (rows: Readonly<Record<string, string | ReadonlyArray<string>>>) => {
  for (const [said, meant] of Object.entries(rows))
    it(`“${said.slice(0, 70).replaceAll("\n", " / ")}”`, () => {
      expect(brief(said)).toEqual(typeof meant === "string" ? [meant] : meant)
    })
}

describe("S003-R01 words of adding", () => {
  table({
    "Add a task to buy milk": "add Buy milk",
    "I need to remember to pay bills": "add Pay bills",
    'Hi, can you add "walk the dog" please?': "add Walk the dog",
    "Remind me to call mom tomorrow": "add Call mom tomorrow",
    "Don't let me forget to water the plants": "add Water the plants",
    "put laundry on my list": "add Laundry",
    "New task: write report": "add Write report",
    "add buy milk with description 2 litres": "add Buy milk (2 litres)",
    "add milk and eggs": "add Milk and eggs",
    "add tasks: milk, eggs and bread": "add Milk | Eggs | Bread",
    "Add these tasks:\n- milk\n- eggs": "add Milk | Eggs",
    "put laundry and ironing on my list as separate tasks": "add Laundry | Ironing",
    "add a task to review and update the docs": "add Review and update the docs",
    add: "add "
  })
})

describe("words of listing", () => {
  table({
    "What's pending?": "list pending",
    "Show me my tasks": "list all",
    "What have I completed?": "list completed",
    "what's left?": "list pending",
    "what did I finish already?": "list completed",
    "how's my list looking?": "list all",
    "which tasks are still open": "list pending",
    "show completed": "list completed",
    "do I have anything about the dentist?": "list all about Dentist"
  })
})

describe("words of doing something to tasks", () => {
  table({
    "Mark task 1 as done": "complete #1",
    "I finished buying groceries": "complete buying groceries",
    "delete 1, 2 and 3": "delete #1 #2 #3",
    "no need to call mom anymore": "delete call mom",
    "number 2 can be ticked off": "complete #2",
    "task 1 should be called Buy oat milk": "update #1: Buy oat milk/",
    "the second one is wrong, it should say Call dad": "update place 2: Call dad/",
    "Delete the meeting task": "delete meeting",
    "clear completed tasks": "delete all completed",
    "I don't need to call the plumber anymore": "delete call the plumber",
    "complete the second one": "complete place 2",
    "finish it": "complete it",
    "rename task 2 to Buy oat milk": "update #2: Buy oat milk/",
    "change buy milk to buy oat milk": "rename buy milk → Buy oat milk",
    "Set the description of task 2 to 2 litres": "update #2: /2 litres",
    "add a note to task 1: from the corner shop": "update #1: /from the corner shop",
    "is task 3 done?": "show #3",
    "reopen task 2": "reopen",
    "mark task 2 as not done": "reopen"
  })
})

describe("several requests in one message, and talk beside them", () => {
  table({
    "add buy milk and complete task 2": ["add Buy milk", "complete #2"],
    "complete task 2 and show me what's left": ["complete #2", "list pending"],
    "Hello! Add milk. Thanks!": "add Milk",
    "Call Dr. Smith": "unknown",
    hi: "hello",
    "thanks!": "thanks",
    "Are you an AI?": "who",
    help: "help",
    "what's the weather like?": "beyond",
    "add a due date to task 1": "beyond",
    "call mom": "unknown",
    "": "help"
  })
})

describe("a message of any length", () => {
  const long = 100_000
  const messages = [
    `add ${"a b, and, to ".repeat(long / 13)}`,
    "delete the one and ".repeat(long / 19),
    " ".repeat(long),
    "\n- ".repeat(long / 3),
    '"'.repeat(long),
    "change it to ".repeat(long / 13),
    "1 and ".repeat(240),
    "I finished ".repeat(130),
    "mark as done ".repeat(110)
  ]
  for (const message of messages)
    it.live(`${JSON.stringify(message.slice(0, 12))} … is read at once`, () =>
      Effect.gen(function* () {
        readMessage(message)
        const began = yield* Clock.currentTimeMillis
        readMessage(message)
        // A rule that is quadratic in such a message takes minutes; a busy machine does not.
        expect((yield* Clock.currentTimeMillis) - began).toBeLessThan(1_000)
      })
    )
})
