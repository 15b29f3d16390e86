/**
 * TodoAssistant on a server without any key: what it does and says, utterance by utterance (P3-MCP-08).
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answered } from "../testing/chat-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { ask } from "../testing/owner-rows.ts"

/** Says things one after the other in one conversation, and gives what is answered to each. */
const talk = Effect.fnUntraced(function* (story: Story, ...messages: ReadonlyArray<string>) {
  const answers: Array<Json> = []
  let conversationId: string | undefined
  for (const message of messages) {
    const answer: Json = yield* answered(story, { conversationId, message })
    conversationId = answer.conversationId
    answers.push(answer)
  }
  return answers
})

const keep = (story: Story, ...titles: ReadonlyArray<string>) =>
  Effect.forEach(titles, (title) => story.post("/tasks", { title }))

const callsIn = (answer: Json): ReadonlyArray<unknown> =>
  answer.toolCalls.map(({ arguments: args, tool }: Json) => [tool, args])

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: the assistant understands plain requests", () => {
    const utterances: ReadonlyArray<readonly [string, ReadonlyArray<unknown>, string]> = [
      ["Add a task to buy bread", [["add_task", { title: "Buy bread" }]], "#4 “Buy bread”"],
      ["I need to remember to pay bills", [["add_task", { title: "Pay bills" }]], "#4 “Pay bills”"],
      ["Show me my tasks", [["list_tasks", { status: "all" }]], "#1 Buy milk"],
      ["What's pending?", [["list_tasks", { status: "pending" }]], "3 pending tasks"],
      ["What have I completed?", [["list_tasks", { status: "completed" }]], "not completed any"],
      ["Mark task 3 as complete", [["complete_task", { task_id: 3 }]], "#3 “Call mom” as done"],
      [
        "Delete the meeting task",
        [
          ["list_tasks", { status: "all" }],
          ["delete_task", { task_id: 2 }]
        ],
        "deleted #2 “Meeting with Bob”"
      ],
      [
        "Change task 1 to 'Call mom tonight'",
        [["update_task", { task_id: 1, title: "Call mom tonight" }]],
        "#1 is now called “Call mom tonight”"
      ]
    ]
    for (const [message, calls, reply] of utterances)
      it.effect(`P3-MCP-08 S003-R01 S003-R12 S003-R13 S003-R18 S003-A04 “${message}”`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* keep(story, "Buy milk", "Meeting with Bob", "Call mom")
          const [answer] = yield* talk(story, message)
          expect(answer).toMatchObject({ status: "completed" })
          expect(callsIn(answer)).toEqual(calls)
          expect(answer.response).toContain(reply)
        })
      )

    it.effect(
      "S003-R14 S003-R17 S003-R19 a list is one line for each task that the tool told, and no other",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* keep(story, "Buy milk", "Call mom")
          const [, all, none] = yield* talk(
            story,
            "complete 2",
            "list all my tasks",
            "show tasks about pizza"
          )
          expect(all.response).toBe(
            "You have 2 tasks (1 pending, 1 completed):\n- [ ] #1 Buy milk\n- [x] #2 Call mom"
          )
          expect(none.response).toContain("couldn't find that task")
        })
    )

    it.effect("S003-R16 where several are meant it asks back, and the next message resolves it", () =>
      Effect.gen(function* () {
        for (const [reply, id] of [
          ["the second one", 3],
          ["1", 1],
          ["the dentist one", undefined],
          ["the one about the invoice", 3]
        ] as const) {
          const story = yield* newStoryHere
          yield* keep(story, "Call dentist", "Buy milk", "Dentist invoice")
          const [asked, done] = yield* talk(story, "delete the dentist task", reply)
          expect(callsIn(asked)).toEqual([["list_tasks", { status: "all" }]])
          expect(asked.response).toMatch(/Which one[\s\S]*#1 Call dentist[\s\S]*#3 Dentist invoice/)
          expect(callsIn(done)).toEqual(id === undefined ? [] : [["delete_task", { task_id: id }]])
        }
      })
    )

    it.effect(
      "S003-R15 S003-R51 S003-R55 S003-R56 an unknown task is told with its number, and its list is offered",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [byId, listed, byTitle] = yield* talk(
            story,
            "delete task 999",
            "yes",
            "complete the moon landing"
          )
          expect(byId.toolCalls[0].result).toEqual({ error: "Task not found", task_id: 999 })
          expect(byId.response).toContain(
            "I couldn't find task #999. Would you like to see your current tasks?"
          )
          expect(callsIn(listed)).toEqual([["list_tasks", { status: "all" }]])
          expect(byTitle.response).toContain("I couldn't find that task")
        })
    )

    it.effect("S003-R50 S003-R52 a title that is too long is told as that, and nothing is kept", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [answer] = yield* talk(story, `add ${"x".repeat(201)}`)
        expect(answer.toolCalls).toHaveLength(1)
        expect(answer.response).toContain("That title is too long")
        expect((yield* story.get("/tasks")).items).toEqual([])
      })
    )

    it.effect(
      "S003-A05 S003-R57 S003-R58 S003-R59 a tool that fails is acknowledged, and never called again by itself",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* keep(story, "Buy milk")
          // A person takes a tool away from the agent.
          const { items } = yield* story.get("/agents")
          const assistant = items.find(({ name }: Json) => name === "TodoAssistant")
          yield* story.patch(`/agents/${assistant.id}`, { tools: ["tasks.list_tasks"] })
          const [answer] = yield* talk(story, "delete the milk task")
          expect(callsIn(answer)).toEqual([["list_tasks", { status: "all" }]])
          expect(answer.response).toContain("I am not allowed to use delete_task")
          expect((yield* story.get("/tasks")).items).toHaveLength(1)
        })
    )

    it.effect(
      "it says what it is at the beginning of a conversation and when it is asked, and not between",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [first, second, asked] = yield* talk(story, "add milk", "what's left?", "Are you an AI?")
          for (const answer of [first, asked])
            expect(answer.response).toContain("running as a script: no AI language model")
          expect(second.response).not.toContain("script")
        })
    )
  })

  describe("Requirement: each project has had its TodoAssistant, once", () => {
    it.effect(
      "an older project gets it at the first chat; one that a person deleted stays deleted, one renamed is still the one",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const assistants = Effect.map(story.get("/agents"), ({ items }) => items)
          // As in a project from before there was one.
          yield* ask(story.access, "update kb.projects set assistant_id = null where id = $1", [
            story.projectId
          ])
          yield* ask(story.access, "update kb.agents set name = 'other' where project_id = $1", [
            story.projectId
          ])
          const both = yield* Effect.all([talk(story, "hi"), talk(story, "hi")], { concurrency: 2 })
          expect(both.flat().map(({ status }) => status)).toEqual(["completed", "completed"])
          const [made, ...others] = (yield* assistants).filter(({ name }: Json) => name === "TodoAssistant")
          expect(others).toEqual([])
          yield* story.patch(`/agents/${made.id}`, {
            name: "Butler",
            model: { provider: "scripted", name: "TodoAssistant" }
          })
          expect((yield* talk(story, "add milk"))[0].response).toContain("#1 “Milk”")
          yield* story.delete(`/agents/${made.id}`)
          const refused = yield* story.ask("POST", "/chat", { message: "hi" })
          expect([refused.status, refused.body.errors[0].pointer]).toEqual([422, "/agentId"])
          expect((yield* assistants).map(({ name }: Json) => name)).toEqual(["other"])
        })
    )
  })
})
