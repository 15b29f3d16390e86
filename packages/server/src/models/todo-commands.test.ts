/** TodoAssistant's command parser: the calls and the replies of each command, over an in-memory list. */
import { describe, expect, it } from "@effect/vitest"
import { Result } from "effect"
import { Prompt } from "effect/ai"
import { scopeOf } from "./script.ts"
import { todoCommands } from "./todo-commands.ts"

const tools = ["add_task", "list_tasks", "complete_task", "delete_task", "update_task"]
const titles = ["Buy milk", "Call the dentist", "Pay the dentist"]

type Call = readonly [tool: string, args: Readonly<Record<string, unknown>>]
type Answer = (...call: Call) => unknown

/** Answers as the tools do where the list has these titles. */
const listAnswer: Answer = (tool, args) => {
  if (tool === "list_tasks")
    return titles.map((title, index) => ({ id: index + 1, title, description: null, completed: index === 0 }))
  if (tool === "add_task") return { task_id: 4, status: "created", title: args["title"] }
  const title = titles[Number(args["task_id"]) - 1]
  return title === undefined
    ? { error: "Task not found", task_id: args["task_id"] }
    : { task_id: args["task_id"], status: "done", title: args["title"] ?? title }
}

/** Sends messages in one turn and runs it to its reply. */
const turnOf = (
  messages: ReadonlyArray<string>,
  {
    answer = listAnswer,
    before = [],
    tools: allowed = tools
  }: {
    readonly answer?: Answer
    readonly before?: ReadonlyArray<Prompt.MessageEncoded>
    readonly tools?: ReadonlyArray<string>
  } = {}
) => {
  const calls: Array<Call> = []
  const log: Array<Prompt.MessageEncoded> = [
    { role: "system", content: "You are TodoAssistant." },
    ...before,
    ...messages.map((content) => ({ role: "user" as const, content }))
  ]
  for (let step = 0; step < 20; step++) {
    const prompt = Prompt.make(log)
    const { calls: asked, text } = Result.getOrThrow(
      todoCommands.answer(scopeOf(prompt, allowed, {}, undefined), prompt)
    )
    const [call] = asked
    if (call === undefined) return { calls, text, log }
    const args = call.arguments as Record<string, unknown>
    calls.push([call.tool, args])
    const result = answer(call.tool, args)
    const isFailure = typeof result === "object" && result !== null && "error" in result
    log.push(
      { role: "assistant", content: [{ type: "tool-call", id: call.id, name: call.tool, params: args }] },
      { role: "tool", content: [{ type: "tool-result", id: call.id, name: call.tool, isFailure, result }] }
    )
  }
  throw new Error("The turn has no end")
}

const readAll: Call = ["list_tasks", { status: "all" }]

describe("P3-MCP-08 S003-R01 the commands", () => {
  const cases: ReadonlyArray<readonly [message: string, ...calls: ReadonlyArray<Call>]> = [
    ["add buy milk", ["add_task", { title: "Buy milk" }]],
    ["Please add a new task to buy milk.", ["add_task", { title: "Buy milk" }]],
    ["add todo: buy milk", ["add_task", { title: "Buy milk" }]],
    ["add task today's lunch", ["add_task", { title: "Today's lunch" }]],
    ["ADD taskforce lunch", ["add_task", { title: "Taskforce lunch" }]],
    ['add "Who comes?"', ["add_task", { title: "Who comes?" }]],
    ["add milk with description 2 litres", ["add_task", { title: "Milk", description: "2 litres" }]],
    ["remind me to call mom", ["add_task", { title: "Call mom" }]],
    ["I need to remember to pay bills", ["add_task", { title: "Pay bills" }]],
    ["list", readAll],
    ["Show me my tasks", readAll],
    ["show all my tasks", readAll],
    ["list completed", ["list_tasks", { status: "completed" }]],
    ["show me my pending todos", ["list_tasks", { status: "pending" }]],
    ["What’s pending?", ["list_tasks", { status: "pending" }]],
    ["What is left", ["list_tasks", { status: "pending" }]],
    ["What have I completed?", ["list_tasks", { status: "completed" }]],
    ["Mark task 1 as done", ["complete_task", { task_id: 1 }]],
    ["mark #3 complete", ["complete_task", { task_id: 3 }]],
    ["complete milk", readAll, ["complete_task", { task_id: 1 }]],
    ["finish the task 2", ["complete_task", { task_id: 2 }]],
    ["delete 2", ["delete_task", { task_id: 2 }]],
    ["Delete the milk task", readAll, ["delete_task", { task_id: 1 }]],
    ["remove call the dentist", readAll, ["delete_task", { task_id: 2 }]],
    ["rename 2 to call mom", ["update_task", { task_id: 2, title: "Call mom" }]],
    ["Change task 1 to 'Call mom tonight'", ["update_task", { task_id: 1, title: "Call mom tonight" }]],
    ["rename the milk task to go to town", readAll, ["update_task", { task_id: 1, title: "Go to town" }]],
    ["change the description of 2 to at noon", ["update_task", { task_id: 2, description: "at noon" }]]
  ]
  for (const [message, ...calls] of cases)
    it(`“${message}”`, () => {
      expect(turnOf([message]).calls).toEqual(calls)
    })

  for (const message of [
    "help",
    "hi",
    "Are you an AI?",
    "milk bought",
    "don't delete 2",
    "delete",
    "add",
    ""
  ])
    it(`“${message}” calls no tool; the reply says what it is, how to add a key, and names every command`, () => {
      const { calls, text } = turnOf([message])
      expect(calls).toEqual([])
      expect(text).toContain("not a language model")
      expect(text).toContain("OPENAI_API_KEY")
      for (const command of ["add", "list", "complete", "delete", "rename", "help"])
        expect(text).toContain(`\n- ${command}`)
    })
})

describe("S003-R12 S003-R16 S003-R17 a todo named by its title", () => {
  it("is changed where one title has all the words; the reply asks for a number where several have", () => {
    const { calls, text } = turnOf(["delete the dentist task"])
    expect(calls).toEqual([readAll])
    expect(text).toMatch(/\n- #2 Call the dentist\n- #3 Pay the dentist\n/)
    expect(turnOf(["delete 3"]).calls).toEqual([["delete_task", { task_id: 3 }]])
  })

  it("is not changed where a word of the command is not in the title", () => {
    for (const words of ["the moon landing", "milk and honey", "mil", "all", "***"]) {
      const { calls, text } = turnOf([`complete ${words}`])
      expect([words, ...calls]).toEqual([words, readAll])
      expect(text).not.toContain("#")
    }
  })

  it("is the one whose title is the same text, whatever others have its words", () => {
    const answer: Answer = (tool, args) =>
      tool === "list_tasks"
        ? ["Buy milk", "Milk"].map((title, id) => ({
            id: id + 1,
            title,
            description: null,
            completed: false
          }))
        : listAnswer(tool, args)
    expect(turnOf(["delete milk"], { answer }).calls).toEqual([readAll, ["delete_task", { task_id: 2 }]])
  })

  it("is read from a list that the tool cut", () => {
    const answer: Answer = (...call) =>
      call[0] === "list_tasks"
        ? { isTruncated: true, note: "", result: listAnswer(...call) }
        : listAnswer(...call)
    expect(turnOf(["complete milk"], { answer }).calls).toEqual([readAll, ["complete_task", { task_id: 1 }]])
  })
})

describe("S003-R13 S003-R14 S003-R18 replies", () => {
  it("list one todo on a line and confirm a change with its number", () => {
    expect(turnOf(["list"]).text).toMatch(
      /^[^\n]*\n- \[x\] #1 Buy milk\n- \[ \] #2 Call the dentist\n- \[ \] #3 Pay the dentist\n/
    )
    expect(turnOf(["list tasks about milk"]).text).not.toContain("#2")
    for (const message of ["complete 2", "delete 2", "change the description of 2 to at noon"])
      expect(turnOf([message]).text).toContain("#2 “Call the dentist”")
  })

  it("show at most 100 todos, the newest", () => {
    const answer: Answer = () =>
      Array.from({ length: 150 }, (_, index) => ({
        id: index + 1,
        title: "x".repeat(200),
        description: null,
        completed: false
      }))
    const lines = turnOf(["list"], { answer })
      .text.split("\n")
      .filter((line) => line.startsWith("- ["))
    expect([lines.length, lines[0]?.slice(6, 10)]).toEqual([100, "#51 "])
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(100)
  })

  it("introduce the parser in the first reply of a conversation only", () => {
    const first = turnOf(["list"])
    expect(first.text).toContain("not a language model")
    const before: ReadonlyArray<Prompt.MessageEncoded> = [
      { role: "user", content: "list" },
      { role: "assistant", content: first.text }
    ]
    expect(turnOf(["complete 2"], { before }).text).not.toContain("not a language model")
    expect(turnOf(["complete 2"], { before }).calls).toEqual([["complete_task", { task_id: 2 }]])
  })
})

describe("S003-R50 S003-R59 errors of a tool", () => {
  for (const [error, told] of [
    ["Task not found", /couldn't find task #2\b.*“list”/],
    ["At /task_id: must be at least 1", /couldn't find task #2\b.*“list”/],
    ["Title must be 200 characters or less", /title is too long.*\b200\b/],
    [
      "Failed to create task: too many.",
      /couldn't update that task: Failed to create task: too many\. .*“list”/
    ]
  ] as const)
    it(`“${error}” becomes a sentence with an alternative, after one call`, () => {
      const { calls, text } = turnOf(["rename 2 to Call mom"], { answer: () => ({ error }) })
      expect(calls).toHaveLength(1)
      expect(text).toMatch(told)
    })

  it("a tool that the agent may not use is named and not called", () => {
    expect(turnOf(["delete 2"], { tools: ["list_tasks"] })).toMatchObject({
      calls: [],
      text: expect.stringContaining("delete_task")
    })
    expect(turnOf(["delete 2"], { tools: [] }).text).toContain("more tools")
  })
})

describe("a turn over several messages", () => {
  it("runs the commands in their order, the newest five at most", () => {
    const { calls, text } = turnOf(["complete milk", "hi", "delete 2"])
    expect(calls).toEqual([readAll, ["complete_task", { task_id: 1 }], ["delete_task", { task_id: 2 }]])
    expect(text.indexOf("#1")).toBeLessThan(text.indexOf("#2 “"))
    const many = Array.from({ length: 7 }, (_, index) => `add ${index}`)
    expect(turnOf(many).calls.map(([, { title }]) => title)).toEqual(["2", "3", "4", "5", "6"])
  })

  it("takes no outcome of an earlier turn for its own", () => {
    const { log } = turnOf(["list"])
    expect(turnOf(["complete 2"], { before: log.slice(1) }).calls).toEqual([
      ["complete_task", { task_id: 2 }]
    ])
  })

  it("reads a long message in linear time", { timeout: 20_000 }, () => {
    for (const part of ["add x with description ", "!", " ", "rename a to ", "mark ", '"']) {
      const long = part.repeat(300_000 / part.length)
      expect(turnOf([`${long}.`, `delete ${long}x`]).text).not.toBe("")
    }
  })
})
