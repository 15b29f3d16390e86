/**
 * Todos through the doors: what people have set themselves to do, beside what waits for a decision.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { poolLayer } from "../src/database/pool.ts"
import { pageOfTasks, type TaskFilter } from "../src/review/task-queries.ts"
import { todoLimits } from "../src/review/limits.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Json, startServer, type Story, storyIn } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { asked } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { approve, reject, suggested, updating } from "../testing/suggestion-words.ts"
import { make } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const add = (story: Story, title: string, description?: string) =>
  story.post("/tasks", { title, ...(description === undefined ? {} : { description }) })

const listed = (story: Story, query = ""): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/tasks${query}`), ({ items }) => items)

const numbers = (tasks: ReadonlyArray<Json>) => tasks.map(({ number, type }) => [type, number])

const nobody = "01990000-0000-7000-8000-000000000000"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Todos beside suggestions", () => {
    it.effect("a todo is its owner's, with a number of its own, from the first word to the last", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const made = yield* story.ask("POST", "/tasks", { title: "  Buy milk ", description: "2 %" })
        expect([made.status, made.body]).toEqual([
          201,
          {
            id: expect.any(String),
            number: 1,
            type: "todo",
            owner: "admin",
            status: "pending",
            title: "Buy milk",
            description: "2 %",
            resolvedBy: null,
            resolutionNote: null,
            createdAt: expect.any(String),
            resolvedAt: null
          }
        ])
        const todo = made.body
        expect((yield* add(story, "Call mom")).number).toBe(2)
        expect(yield* story.get(`/tasks/${todo.id}`)).toEqual(todo)
        expect(yield* story.patch(`/tasks/${todo.id}`, { title: "Buy oat milk", description: null })).toEqual(
          {
            ...todo,
            title: "Buy oat milk"
          }
        )
        expect((yield* story.patch(`/tasks/${todo.id}`, { description: "" })).description).toBeNull()
        const done = yield* story.post(`/tasks/${todo.id}/complete`)
        expect(done).toMatchObject({
          status: "completed",
          title: "Buy oat milk",
          resolvedBy: "admin",
          resolvedAt: expect.any(String)
        })
        expect((yield* story.delete(`/tasks/${todo.id}`)).status).toBe(204)
        expectProblem(yield* story.ask("GET", `/tasks/${todo.id}`), 404)
        expect(numbers(yield* listed(story))).toEqual([["todo", 2]])
        // A number is given once.
        expect((yield* add(story, "Pay bills")).number).toBe(3)
      })
    )

    it.effect("one list holds the project's tasks and the reader's todos, each by state and type", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* asUser(story, "reviewer")
        const person = yield* make(story, "Person")
        const { task } = yield* suggested(story, updating(person, { seen: true }))
        const { question } = yield* asked(story, { tool: "ask_user", arguments: { question: "Why?" } })
        const [mine, done] = [yield* add(story, "Mine"), yield* add(story, "Done")]
        yield* story.post(`/tasks/${done.id}/complete`)
        const theirs = yield* add(other, "Theirs")
        expect([mine.number, theirs.number, task.number, question.number]).toEqual([1, 1, 1, 2])
        const ids = (tasks: ReadonlyArray<Json>) => tasks.map(({ id }) => id)
        const shared = [question.id, task.id]
        expect(ids(yield* listed(story))).toEqual([done.id, mine.id, ...shared])
        expect(ids(yield* listed(other))).toEqual([theirs.id, ...shared])
        expect(ids(yield* listed(story, "?status=pending"))).toEqual([mine.id, ...shared])
        expect(ids(yield* listed(story, "?type=todo"))).toEqual([done.id, mine.id])
        expect(ids(yield* listed(story, "?type=todo&status=completed"))).toEqual([done.id])
        expect(ids(yield* listed(other, "?type=question"))).toEqual([question.id])
        // Page by page nothing is lost or told twice.
        const pages: Array<string> = []
        let cursor = ""
        do {
          const page = yield* story.get(`/tasks?limit=1${cursor}`)
          pages.push(...ids(page.items))
          cursor = page.nextCursor === null ? "" : `&cursor=${page.nextCursor}`
        } while (cursor !== "")
        expect(pages).toEqual([done.id, mine.id, ...shared])
      })
    )

    it.effect("another's todo is not there, at no door and for no role, as one that never was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const editor = yield* asUser(story, "editor")
        const elsewhere = yield* newStoryHere
        const todo = yield* add(editor, "Of the editor")
        const foreign = yield* add(elsewhere, "Of another project")
        const before = yield* countRows(story)
        const removed = yield* add(story, "Gone")
        yield* story.delete(`/tasks/${removed.id}`)
        for (const [method, path, body] of [
          ["GET", "", undefined],
          ["PATCH", "", { title: "Stolen" }],
          ["POST", "/complete", undefined],
          ["DELETE", "", undefined],
          ["POST", "/approve", {}],
          ["POST", "/reject", {}]
        ] as const) {
          const [missing, ...others] = yield* Effect.forEach(
            [nobody, todo.id, foreign.id, removed.id],
            (id) => story.ask(method, `/tasks/${id}${path}`, body)
          )
          if (!missing) throw new Error("Nothing was answered")
          expectProblem(missing, 404)
          for (const answer of others) expect([answer.status, answer.body]).toEqual([404, missing.body])
        }
        expect(yield* editor.get(`/tasks/${todo.id}`)).toEqual(todo)
        expect(yield* elsewhere.get(`/tasks/${foreign.id}`)).toEqual(foreign)
        expect((yield* countRows(story))["tasks"]).toBe(Number(before["tasks"]) + 1)
      })
    )

    it.effect("what is no todo is not completed, changed or deleted: its door is named", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person")
        const { task } = yield* suggested(story, updating(person, { seen: true }))
        const { question } = yield* asked(story, { tool: "ask_user", arguments: { question: "Why?" } })
        const todo = yield* add(story, "Mine")
        for (const [each, instead] of [
          [task, "approve"],
          [question, "answer"]
        ])
          for (const [method, path, body] of [
            ["POST", "/complete", undefined],
            ["DELETE", "", undefined],
            ["PATCH", "", { title: "Other" }]
          ] as const) {
            const answer = yield* story.ask(method, `/tasks/${each.id}${path}`, body)
            expectProblem(answer, 409)
            expect(answer.body).toMatchObject({ reason: "state", detail: expect.stringContaining(instead) })
          }
        for (const decide of [approve, reject]) {
          const answer = yield* decide(story, todo)
          expectProblem(answer, 409)
          expect(answer.body.detail).toContain(`/tasks/${todo.id}/complete`)
        }
        expect(yield* listed(story, "?status=pending")).toEqual([todo, question, task])
      })
    )

    it.effect("a todo is done once; whoever is late is told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const todo = yield* add(story, "Once")
        const answers = yield* Effect.forEach(
          Array.from({ length: 20 }),
          () => story.ask("POST", `/tasks/${todo.id}/complete`),
          { concurrency: "unbounded" }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([
          200,
          ...Array.from({ length: 19 }, () => 409)
        ])
        const late = answers.find(({ status }) => status === 409)
        expect(late?.body.reason).toBe("state")
      })
    )

    it.effect("words that do not fit are refused with their place, and nothing is kept", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const todo = yield* add(story, "x".repeat(200), "y".repeat(1_000))
        // A flag is one character of two code units, or four.
        expect((yield* add(story, "🇩🇪".repeat(100))).number).toBe(2)
        const before = yield* countRows(story)
        const refused = [
          ["POST", { description: "no title" }, "/title", undefined],
          ["POST", { title: "" }, "/title", undefined],
          ["POST", { title: " \n " }, "/title", undefined],
          ["POST", { title: "x".repeat(201) }, "/title", "200"],
          ["POST", { title: "a", description: "y".repeat(1_001) }, "/description", "1000"],
          ["POST", { title: 3 }, "/title", undefined],
          ["POST", { title: "a", owner: "ada" }, "/owner", undefined],
          ["POST", { title: "a\u0000b" }, "/title", undefined],
          ["PATCH", { title: "\ud800" }, "/title", undefined],
          ["PATCH", {}, "", "expiresAt"],
          ["PATCH", { title: null, description: null }, "", "expiresAt"],
          ["PATCH", { title: " " }, "/title", undefined],
          ["PATCH", { title: "x".repeat(201) }, "/title", "200"],
          ["PATCH", { description: "y".repeat(1_001) }, "/description", "1000"],
          ["PATCH", { status: "completed" }, "/status", undefined]
        ] as const
        for (const [method, body, pointer, value] of refused) {
          const answer = yield* story.ask(method, method === "POST" ? "/tasks" : `/tasks/${todo.id}`, body)
          expectProblem(answer, 422, pointer)
          if (value !== undefined) expect(answer.body.errors[0].message).toContain(value)
        }
        expect(yield* countRows(story)).toEqual(before)
        expect(yield* story.get(`/tasks/${todo.id}`)).toEqual(todo)
        expect((yield* add(story, "Next")).number).toBe(3)
      })
    )

    it.effect("who may only look has no todos", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const viewer = yield* asUser(story, "viewer")
        for (const [method, path, body] of [
          ["POST", "", { title: "a" }],
          ["PATCH", `/${nobody}`, { title: "a" }],
          ["POST", `/${nobody}/complete`, undefined],
          ["DELETE", `/${nobody}`, undefined]
        ] as const)
          expectProblem(yield* viewer.ask(method, `/tasks${path}`, body), 403)
        expect(yield* listed(viewer)).toEqual([])
      })
    )

    it.effect("nobody has more open todos than anybody does; what is done makes room", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const todo = yield* add(story, "The first")
        yield* ask(
          story.access,
          `insert into kb.tasks (id, project_id, owner, number, type, title, payload, digest, evidence, depth)
           select gen_random_uuid(), $1, 'admin', 10 + n, 'todo', 'Todo ' || n, '{}', '', '[]', 0 from generate_series(1, $2::int) n`,
          [story.projectId, todoLimits.openPerOwner - 6]
        )
        const answers = yield* Effect.forEach(
          Array.from({ length: 10 }),
          () => story.ask("POST", "/tasks", { title: "One more" }),
          { concurrency: "unbounded" }
        )
        expect(answers.map(({ status }) => status).toSorted()).toEqual([
          ...Array.from({ length: 5 }, () => 201),
          ...Array.from({ length: 5 }, () => 409)
        ])
        expect(answers.find(({ status }) => status === 409)?.body.reason).toBe("state")
        yield* story.post(`/tasks/${todo.id}/complete`)
        expect((yield* add(story, "Room")).number).toBe(7)
      })
    )

    it.effect("at two servers at once every number is given once, and none is left out", () =>
      Effect.gen(function* () {
        const { access } = yield* SharedServer
        const here = yield* newStoryHere
        const there = storyIn(yield* startServer(access), access, here.projectId)
        const editor = yield* asUser(here, "editor")
        const made = yield* Effect.forEach(
          Array.from({ length: 60 }, (_, index) => index),
          (index) =>
            Effect.map(
              add([here, there, editor][index % 3] ?? here, `Todo ${index}`),
              ({ number, owner }) => ({ number, owner })
            ),
          { concurrency: "unbounded" }
        )
        const of = (owner: string) =>
          made
            .filter((each) => each.owner === owner)
            .map(({ number }) => number)
            .toSorted((a, b) => a - b)
        expect(of("admin")).toEqual(Array.from({ length: 40 }, (_, index) => index + 1))
        expect(of("editor")).toEqual(Array.from({ length: 20 }, (_, index) => index + 1))
      })
    )

    it.effect("the list of one among twenty thousand tasks of others is read through its index", () =>
      Effect.gen(function* () {
        const { access } = yield* SharedServer
        const story = yield* newStoryHere
        const person = yield* make(story, "Person")
        const { task } = yield* suggested(story, updating(person, { seen: true }))
        const todo = yield* add(story, "Mine")
        yield* ask(
          access,
          `insert into kb.tasks (id, project_id, owner, number, type, status, title, payload, digest, evidence, depth)
           select gen_random_uuid(), $1, 'user ' || n % 10, n, 'todo', case when n % 2 = 0 then 'pending' else 'completed' end, 'x', '{}', '', '[]', 0
           from generate_series(1, 16000) n`,
          [story.projectId]
        )
        yield* ask(
          access,
          `insert into kb.tasks (id, project_id, number, type, status, title, payload, digest, agent_id, agent_version, run_id, tool_call_id, evidence, depth)
           select gen_random_uuid(), $1, 100 + n, type, 'rejected', 'x', payload, '', agent_id, 1, run_id, tool_call_id, '[]', 0
           from kb.tasks, generate_series(1, 4000) n where id = $2`,
          [story.projectId, task.id]
        )
        yield* ask(access, "vacuum analyze kb.tasks")
        const plan = (filter: TaskFilter) =>
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql`select set_config('tropism.project', ${story.projectId}, true)`
            const whose = { projectId: story.projectId as never, reader: "admin" as never }
            const page = pageOfTasks(sql, whose, filter, undefined, 51)
            const rows = yield* sql<Record<string, string>>`explain (analyze, timing off, costs off) ${page}`
            return rows.map((row) => Object.values(row)[0]).join("\n")
          }).pipe((reading) =>
            Effect.flatMap(SqlClient.SqlClient, (sql) => sql.withTransaction(reading)).pipe(
              Effect.provide(
                poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
              ),
              Effect.orDie
            )
          )
        for (const filter of [
          {},
          { status: "pending" },
          { type: "todo" },
          { type: "question" },
          { type: "object_update_suggestion", status: "pending" }
        ] as const) {
          const text = yield* plan(filter)
          expect(text).toContain("tasks_list")
          expect(text).not.toMatch(/Seq Scan|Rows Removed by Filter: \d{2,}/)
          expect(text).not.toMatch(/rows=\d{4,}/)
        }
        const numbered = yield* plan({ number: 5_100 })
        expect(numbered).toContain("tasks_pkey")
        expect(numbered).not.toMatch(/Seq Scan|Rows Removed by Filter: \d{2,}/)
        const ids = (tasks: ReadonlyArray<Json>) => tasks.map(({ id }) => id)
        expect(ids(yield* listed(story, "?number=1"))).toEqual([todo.id, task.id])
        expect(ids(yield* listed(story, "?number=1&type=todo"))).toEqual([todo.id])
        expect(yield* listed(story, "?number=4101")).toEqual([])
        expect(ids(yield* listed(story, "?status=pending"))).toEqual([todo.id, task.id])
        expect(ids(yield* listed(story, "?type=todo"))).toEqual([todo.id])
        expect(yield* listed(story, "?limit=200")).toHaveLength(200)
      })
    )
  })
})
