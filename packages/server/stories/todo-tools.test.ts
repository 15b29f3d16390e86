/**
 * The five tools by which an agent keeps the todos of the person it works for, and nothing else.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newContext, say } from "../testing/context-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, promptWithObject, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { updating } from "../testing/suggestion-words.ts"
import { callsOf, endedRuns, make, type ScriptedCall, watcher } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const call = (tool: string, args: Record<string, unknown> = {}): ScriptedCall => ({ tool, arguments: args })
const adding = (title: string, more: Record<string, unknown> = {}) => call("add_task", { title, ...more })

/** An agent that makes these calls, one step after the other, whoever triggers it. */
const keeper = (story: Story, calls: ReadonlyArray<ScriptedCall>, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name: `keeper-${crypto.randomUUID().slice(0, 8)}`,
    prompt: promptWithObject,
    triggerType: "manual",
    tools: ["tasks.*"],
    model: scripted([
      ...calls.map((each, step) => ({ when: `step == ${step}`, calls: [each] })),
      { say: "Done." }
    ]),
    ...overrides
  })

/** What the calls of one run came to, in their order. */
const outcomes = Effect.fnUntraced(function* (story: Story, ...calls: ReadonlyArray<ScriptedCall>) {
  const agent = yield* keeper(story, calls)
  const run = yield* story.post(`/agents/${agent.id}/trigger`)
  expect(run.status).toBe("completed")
  return yield* callsOf(story, run)
})

const resultsOf = (calls: ReadonlyArray<Json>) => calls.map(({ result, status }) => [status, result])

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Todo tools", () => {
    it.effect("P3-MCP-01 S003-R20 add_task keeps a todo of the person who triggered the run", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const calls = yield* outcomes(
          story,
          adding("Buy milk"),
          adding(" x".repeat(100).trim(), { description: "y".repeat(1_000) }),
          adding("x".repeat(200), { description: null }),
          adding(""),
          call("add_task"),
          call("add_task", { title: null }),
          adding("  "),
          adding("x".repeat(201)),
          adding("a", { description: "y".repeat(1_001) })
        )
        expect(resultsOf(calls)).toEqual([
          ["completed", { task_id: 1, status: "created", title: "Buy milk" }],
          ["completed", { task_id: 2, status: "created", title: " x".repeat(100).trim() }],
          ["completed", { task_id: 3, status: "created", title: "x".repeat(200) }],
          ["failed", { error: expect.any(String) }],
          ["failed", { error: expect.any(String) }],
          ["failed", { error: expect.any(String) }],
          ["failed", { error: expect.any(String) }],
          ["failed", { error: expect.stringMatching(/\b200\b/) }],
          ["failed", { error: expect.stringMatching(/\b1000\b/) }]
        ])
        expect(calls[0]).toMatchObject({ tool: "add_task", userId: "admin", decision: null })
        const { items } = yield* story.get("/tasks?type=todo")
        expect(items.map(({ number, owner, title }: Json) => [number, owner, title.slice(0, 8)])).toEqual([
          [3, "admin", "xxxxxxxx"],
          [2, "admin", "x x x x "],
          [1, "admin", "Buy milk"]
        ])
      })
    )

    it.effect("P3-MCP-02 S003-R21 list_tasks answers the array, in the order of the numbers", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const shown = (id: number, title: string, completed: boolean, description: string | null = null) => ({
          id,
          title,
          description,
          completed
        })
        const calls = yield* outcomes(
          story,
          call("list_tasks"),
          adding("Buy milk"),
          adding("Call mom", { description: "On Sunday" }),
          adding("Pay bills"),
          call("complete_task", { task_id: 2 }),
          call("list_tasks", { status: "all" }),
          call("list_tasks", { status: "pending" }),
          call("list_tasks", { status: "completed" }),
          call("list_tasks", { status: null }),
          call("list_tasks", { status: "done" })
        )
        const [milk, mom, bills] = [
          shown(1, "Buy milk", false),
          shown(2, "Call mom", true, "On Sunday"),
          shown(3, "Pay bills", false)
        ]
        expect(calls[0]?.result).toEqual([])
        expect(calls.slice(5, 9).map(({ result }) => result)).toEqual([
          [milk, mom, bills],
          [milk, bills],
          [mom],
          [milk, mom, bills]
        ])
        expect(calls[9]).toMatchObject({ status: "failed", result: { pointer: "/status" } })
      })
    )

    it.effect(
      "P3-MCP-03 P3-MCP-04 P3-MCP-05 S003-R22 S003-R23 S003-R24 a todo is changed, done and deleted by its number",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* outcomes(story, adding("Buy milk"), adding("Call mom"))
          const calls = yield* outcomes(
            story,
            call("update_task", { task_id: 1, title: "Buy oat milk" }),
            call("update_task", { task_id: 1, description: "2 litres" }),
            call("update_task", { task_id: 1 }),
            call("update_task", { task_id: 1, title: null, description: null }),
            call("update_task", { task_id: 1, title: " " }),
            call("update_task", { task_id: 1, title: "x".repeat(201) }),
            call("update_task", { task_id: 1, description: "y".repeat(1_001) }),
            call("complete_task", { task_id: 1 }),
            call("complete_task", { task_id: 1 }),
            call("delete_task", { task_id: 2 }),
            call("delete_task", { task_id: 2 }),
            call("list_tasks")
          )
          expect(resultsOf(calls)).toEqual([
            ["completed", { task_id: 1, status: "updated", title: "Buy oat milk" }],
            ["completed", { task_id: 1, status: "updated", title: "Buy oat milk" }],
            ["failed", { error: expect.any(String), task_id: 1 }],
            ["failed", { error: expect.any(String), task_id: 1 }],
            ["failed", { error: expect.any(String), task_id: 1 }],
            ["failed", { error: expect.stringMatching(/\b200\b/), task_id: 1 }],
            ["failed", { error: expect.stringMatching(/\b1000\b/), task_id: 1 }],
            ["completed", { task_id: 1, status: "completed", title: "Buy oat milk" }],
            ["completed", { task_id: 1, status: "completed", title: "Buy oat milk" }],
            ["completed", { task_id: 2, status: "deleted", title: "Call mom" }],
            ["failed", { error: expect.any(String), task_id: 2 }],
            ["completed", [{ id: 1, title: "Buy oat milk", description: "2 litres", completed: true }]]
          ])
        })
    )

    it.effect(
      "P3-MCP-06 P3-MCP-07 an agent reaches the todos of its user alone, and no argument names another",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const editor = yield* asUser(story, "editor")
          const [first, second] = [
            yield* editor.post("/tasks", { title: "Theirs" }),
            yield* editor.post("/tasks", { title: "Too" })
          ]
          yield* outcomes(story, adding("Mine"))
          const calls = yield* outcomes(
            story,
            call("complete_task", { task_id: 2 }),
            call("complete_task", { task_id: 77 }),
            call("delete_task", { task_id: 2 }),
            call("delete_task", { task_id: 77 }),
            call("update_task", { task_id: 2, title: "Stolen" }),
            call("update_task", { task_id: 77, title: "Stolen" }),
            call("list_tasks")
          )
          expect(resultsOf(calls)).toEqual([
            ...[2, 77, 2, 77, 2, 77].map((task_id) => ["failed", { error: expect.any(String), task_id }]),
            ["completed", [{ id: 1, title: "Mine", description: null, completed: false }]]
          ])
          const named = yield* outcomes(
            story,
            call("list_tasks", { user_id: "editor" }),
            call("add_task", { title: "For them", user_id: "editor" }),
            call("add_task", { title: "For them", userId: "editor" }),
            call("complete_task", { task_id: 2, owner: "editor" }),
            call("delete_task", { task_id: "two" }),
            call("delete_task", { task_id: 0 }),
            call("delete_task", { task_id: 1.5 }),
            call("delete_task", { task_id: 1e300 }),
            call("delete_task")
          )
          expect(named.map(({ result, status }) => [status, result.reason, result.pointer])).toEqual([
            ["failed", "invalid", "/user_id"],
            ["failed", "invalid", "/user_id"],
            ["failed", "invalid", "/userId"],
            ["failed", "invalid", "/owner"],
            ...Array.from({ length: 5 }, () => ["failed", "invalid", "/task_id"])
          ])
          const { items } = yield* editor.get("/tasks")
          expect(items).toEqual([second, first])
          expect((yield* story.get("/tasks")).items).toHaveLength(1)
        })
    )

    it.effect("whoever triggers the agent has his own todos kept by it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* keeper(story, [adding("Of whoever asks")])
        for (const doors of [yield* asUser(story, "editor"), yield* asUser(story, "reviewer"), story])
          yield* doors.post(`/agents/${agent.id}/trigger`)
        const rows = yield* ask(
          story.access,
          "select owner, number::int from kb.tasks where project_id = $1 order by owner",
          [story.projectId]
        )
        expect(rows).toEqual([
          ["admin", 1],
          ["editor", 1],
          ["reviewer", 1]
        ])
      })
    )

    it.effect("who is spoken with keeps the todos of who speaks", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const editor = yield* asUser(story, "editor")
        yield* newContext(
          story,
          "talk",
          scripted([{ when: "step == 0", calls: [adding("{{ message }}")] }, { say: "Noted." }]),
          {
            tools: ["tasks.add_task"]
          }
        )
        yield* say(editor, "talk", "Buy milk")
        const { items } = yield* eventually(editor.get("/tasks"), (page) => page.items.length === 1)
        expect(items[0]).toMatchObject({ title: "Buy milk", owner: "editor", number: 1 })
        expect((yield* story.get("/tasks")).items).toEqual([])
      })
    )

    it.effect("an agent that another one asked works for the same person", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const editor = yield* asUser(story, "editor")
        const child = yield* keeper(story, [adding("By the child")])
        const parent = yield* keeper(story, [call("spawn_agent", { agent: child.name, task: "Note it" })], {
          tools: ["run.spawn_agent"],
          subAgents: [child.name]
        })
        yield* editor.post(`/agents/${parent.id}/trigger`)
        expect((yield* editor.get("/tasks")).items).toMatchObject([
          { title: "By the child", owner: "editor" }
        ])
      })
    )

    it.effect("a run that nobody in particular asked for has no todos, and is told so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            tools: ["tasks.*"],
            model: scripted([
              { when: "step == 0", calls: [adding("Whose?"), call("list_tasks")] },
              { say: "Done." }
            ])
          })
        )
        yield* make(story, "Person")
        const [run] = yield* endedRuns(story, agent, 1)
        const calls = yield* callsOf(story, run)
        expect(
          calls.map(({ decision, result, status, userId }) => [status, decision, userId, result.error])
        ).toEqual(calls.map(() => ["refused", "refuse", null, expect.any(String)]))
        expect((yield* story.get("/tasks")).items).toEqual([])
      })
    )

    it.effect("no number that a todo tool is given means a suggestion or a question", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const people = yield* Effect.forEach([1, 2, 3], () => make(story, "Person"))
        const suggesting = people.map((person) => updating(person, { seen: true }))
        const tries = [1, 2, 3, 4, 5].flatMap((task_id) => [
          call("complete_task", { task_id }),
          call("update_task", { task_id, title: "Approved" }),
          call("delete_task", { task_id })
        ])
        // It has suggestions open, and tries every number with every tool.
        const agent = yield* keeper(
          story,
          [...suggesting, ...tries, call("list_tasks"), call("ask_user", { question: "?" })],
          {
            executionMode: "suggest",
            tools: ["graph.*", "tasks.*", "run.ask_user"]
          }
        )
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        expect([run.status, run.pauseReason]).toEqual(["paused", "question"])
        const calls = (yield* callsOf(story, run)).slice(suggesting.length)
        expect(resultsOf(calls).slice(0, -1)).toEqual([
          ...tries.map(({ arguments: { task_id } }) => ["failed", { error: expect.any(String), task_id }]),
          ["completed", []]
        ])
        const before = yield* story.get("/tasks?limit=200")
        expect(before.items.map(({ number, status, type }: Json) => [type, number, status])).toEqual([
          ["question", 4, "pending"],
          ...[3, 2, 1].map((number) => ["object_update_suggestion", number, "pending"])
        ])
        // Also where todos have the same numbers, only those are reached.
        const mixed = yield* outcomes(story, adding("One"), adding("Two"), ...tries, call("list_tasks"))
        expect(mixed.at(-1)?.result).toEqual([])
        expect(yield* story.get("/tasks?limit=200")).toEqual(before)
        for (const person of people) expect((yield* story.get(`/objects/${person.id}`)).version).toBe(1)
      })
    )

    it.effect("an agent has the tools that its list names, and none by a wrong name", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const misspelt = yield* story.ask("POST", "/agents", {
          name: "misspelt",
          prompt: "x",
          triggerType: "manual",
          tools: ["tasks.add_tasks"]
        })
        expectProblem(misspelt, 422, "/tools/0")
        expect(misspelt.body.detail).toContain("tasks.add_task")
        const reader = yield* keeper(story, [adding("No"), call("list_tasks")], {
          tools: ["tasks.list_tasks"]
        })
        const run = yield* story.post(`/agents/${reader.id}/trigger`)
        expect((yield* callsOf(story, run)).map(({ status }) => status)).toEqual(["refused", "completed"])
        // Reading todos changes nothing, so variants of a conversation may do it; adding is an act.
        const variants = [
          { label: "a", content: "A?" },
          { label: "b", content: "B?" }
        ]
        const acting = yield* keeper(story, [], { tools: ["tasks.*"] })
        for (const [agent, status] of [
          [reader, 201],
          [acting, 422]
        ]) {
          const name = `talk-${status}`
          yield* story.post("/contexts", { name, agentId: agent.id })
          yield* story.post(`/contexts/${name}/events`, {
            type: "UserMessageEvent",
            content: "Hi",
            triggersAgentTurn: false
          })
          const compared = yield* story.ask("POST", `/contexts/${name}/comparisons`, {
            content: "Which?",
            variants
          })
          expect([compared.status, JSON.stringify(compared.body)]).toEqual([status, expect.any(String)])
        }
      })
    )
  })
})
