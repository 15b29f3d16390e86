/**
 * TodoAssistant on a server without any key: the commands of its parser through the chat (P3-MCP-08).
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { todoLimits } from "../src/review/limits.ts"
import { answered } from "../testing/chat-words.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { ask } from "../testing/owner-rows.ts"
import { callsOf } from "../testing/story-words.ts"

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
  describe("Requirement: the assistant runs commands", () => {
    const utterances: ReadonlyArray<readonly [string, ReadonlyArray<unknown>, string]> = [
      ["Add a task to buy bread", [["add_task", { title: "Buy bread" }]], "#4 “Buy bread”"],
      ["I need to remember to pay bills", [["add_task", { title: "Pay bills" }]], "#4 “Pay bills”"],
      ["Mark task 1 as done", [["complete_task", { task_id: 1 }]], "#1 “Buy milk”"],
      ["Show me my tasks", [["list_tasks", { status: "all" }]], "#1 Buy milk"],
      ["What's pending?", [["list_tasks", { status: "pending" }]], "#3 Call mom"],
      ["What have I completed?", [["list_tasks", { status: "completed" }]], ""],
      ["Mark task 3 as complete", [["complete_task", { task_id: 3 }]], "#3 “Call mom”"],
      [
        "Delete the meeting task",
        [
          ["list_tasks", { status: "all" }],
          ["delete_task", { task_id: 2 }]
        ],
        "#2 “Meeting with Bob”"
      ],
      [
        "Change task 1 to 'Call mom tonight'",
        [["update_task", { task_id: 1, title: "Call mom tonight" }]],
        "“Call mom tonight”"
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
          expect(all.response).toMatch(/^[^\n]*\n- \[ \] #1 Buy milk\n- \[x\] #2 Call mom$/)
          expect(none.response).not.toContain("#")
        })
    )

    it.effect("S003-R16 where several are meant it asks which, and a command with a number resolves it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* keep(story, "Call dentist", "Buy milk", "Dentist invoice")
        const [asked, done] = yield* talk(story, "delete the dentist task", "delete 3")
        expect(callsIn(asked)).toEqual([["list_tasks", { status: "all" }]])
        expect(asked.response).toMatch(/^[^#]*#1 Call dentist[^#]*#3 Dentist invoice[^#]*$/)
        expect(callsIn(done)).toEqual([["delete_task", { task_id: 3 }]])
      })
    )

    it.effect(
      "S003-R15 S003-R51 S003-R55 S003-R56 an unknown task is reported with its number, and the reply offers the list",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [byId, listed, byTitle] = yield* talk(
            story,
            "delete task 999",
            "list",
            "complete the moon landing"
          )
          expect(byId.toolCalls[0].result).toEqual({ error: expect.any(String), task_id: 999 })
          expect(byId.response).toContain("#999")
          expect(byId.response).toContain("“list”")
          expect(callsIn(listed)).toEqual([["list_tasks", { status: "all" }]])
          expect(byTitle.toolCalls.map(({ tool }: Json) => tool)).toEqual(["list_tasks"])
          expect(byTitle.response).toContain("moon landing")
        })
    )

    it.effect("S003-R50 S003-R52 a title that is too long is told as that, and nothing is kept", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [answer] = yield* talk(story, `add ${"x".repeat(201)}`)
        expect(answer.toolCalls).toHaveLength(1)
        expect(answer.response).toMatch(/\b200\b/)
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
          expect(answer.response).toContain("delete_task")
          expect((yield* story.get("/tasks")).items).toHaveLength(1)
        })
    )

    it.effect(
      "S003-A05 S003-R50 S003-R57 what a schema says of wrong arguments is for the model and stays on record; the person reads a sentence",
      () =>
        Effect.gen(function* () {
          const schemaWords = /schema|pointer|expected|must be|unknown|colour|task_id|\/title/i
          const wrong: ReadonlyArray<readonly [string, Json]> = [
            ["add_task", { title: "Buy milk", colour: "red" }],
            ["add_task", { title: ["Buy milk"] }],
            ["list_tasks", { status: "done" }],
            ["delete_task", { task_id: "milk" }]
          ]
          for (const [tool, args] of wrong) {
            const story = yield* newStoryHere
            const { items } = yield* story.get("/agents")
            const { id } = items.find(({ name }: Json) => name === "TodoAssistant")
            const calls = [{ tool, arguments: args }]
            yield* story.patch(`/agents/${id}`, {
              model: scripted([{ when: "step == 0", calls }, { say: "" }])
            })
            const [answer] = yield* talk(story, "Do it")
            expect(answer.response).toMatch(/^\S/)
            expect(answer.response).not.toMatch(schemaWords)
            const { items: said } = yield* story.get(`/conversations/${answer.conversationId}/messages`)
            expect(said.map(({ content }: Json) => content).join("\n")).not.toMatch(schemaWords)
            const [call] = yield* callsOf(story, { id: answer.runId })
            expect(call).toMatchObject({ tool, status: "failed", result: { error: expect.any(String) } })
            expect(yield* story.get("/tasks")).toMatchObject({ items: [] })
          }
        })
    )

    it.effect(
      "P3-MCP-01 S003-A05 S003-R50 S003-R57 S003-R58 S003-R59 a task that cannot be made is told kindly and with what to do instead, and is tried once",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          // One more than anybody may have open.
          yield* ask(
            story.access,
            `insert into kb.tasks (id, project_id, owner, number, type, title, payload, digest, evidence, depth)
             select gen_random_uuid(), $1, 'admin', n, 'todo', 'Todo ' || n, '{}', '', '[]', 0 from generate_series(1, $2::int) n`,
            [story.projectId, todoLimits.openPerOwner]
          )
          const [full, room] = yield* talk(story, "add a task to call mom", "delete task 7")
          expect(full).toMatchObject({ status: "completed" })
          expect(callsIn(full)).toEqual([["add_task", { title: "Call mom" }]])
          expect(full.toolCalls[0].result.error).toContain(String(todoLimits.openPerOwner))
          expect(full.response).not.toContain("“Call mom”")
          expect(room.response).toContain("#7 “Todo 7”")
        })
    )

    it.effect(
      "S003-A05 S003-R54 S003-R59 where the database breaks below a tool, the person is told of trouble and nothing of the machine; nothing is done, and the next message works",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* keep(story, "Buy milk")
          yield* ask(
            story.access,
            "create function kb.refuse_todo() returns trigger language plpgsql as $$ begin raise exception 'disk full'; end $$"
          )
          yield* ask(
            story.access,
            `create trigger refuse_todo before insert on kb.tasks for each row when (new.project_id = '${story.projectId}') execute function kb.refuse_todo()`
          )
          const [broken] = yield* talk(story, "add a task to call mom")
          expect(broken.status).toBe("failed")
          expect(broken.response).toMatch(/\S/)
          expect(JSON.stringify(broken)).not.toMatch(/disk full/)
          expect(callsIn(broken).length).toBeLessThan(2)
          const { items: runs } = yield* story.get("/runs")
          expect(runs).toHaveLength(1)
          expect((yield* story.get("/tasks")).items).toHaveLength(1)
          yield* ask(story.access, "drop function kb.refuse_todo() cascade")
          const [after] = yield* talk(story, "add a task to call mom")
          expect(after).toMatchObject({
            status: "completed",
            response: expect.stringContaining("“Call mom”")
          })
        })
    )

    it.effect(
      "it says what it is at the beginning of a conversation and when it is asked, and not between",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [first, second, asked] = yield* talk(story, "add milk", "what's left?", "Are you an AI?")
          // The sentence of both that no other answer has.
          const sentences = ({ response }: Json): ReadonlyArray<string> => response.split(/(?<=[.!?])\s+/)
          const own = sentences(first).filter((one) => sentences(asked).includes(one))
          expect(own.length).toBeGreaterThan(0)
          expect(sentences(second).filter((one) => own.includes(one))).toEqual([])
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
