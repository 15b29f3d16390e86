/**
 * A server is killed around a todo tool's call: the todo is there once, and its number is given once.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { holding, lockOf } from "../testing/owner-rows.ts"
import { eventually, type Json, newProject, promptWithObject, storyIn } from "../testing/platform.ts"
import { calling, callsOf } from "../testing/story-words.ts"

const adding = (title: string) => ({ tool: "add_task", arguments: { title } })

const keeper = {
  name: "keeper",
  prompt: promptWithObject,
  triggerType: "manual",
  tools: ["tasks.*"],
  model: calling(adding("One"), adding("Two"), adding("Three"))
}

describe("A server that dies around a todo", () => {
  it.live("P3-MCP-07 before it is committed and after: each call has one effect", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const first = yield* startMortal(access)
        const made = yield* newProject(first, access)
        const agent = yield* made.post("/agents", keeper)
        yield* first.dieAt("tool.beforeCommit", 2)
        // No server takes the run before the story is answered, and before it has said where that server dies.
        const answering = yield* holding(access, lockOf("claims"))
        const run = yield* made.post(`/agents/${agent.id}/trigger?wait=false`)
        yield* answering.query("commit")
        yield* first.died

        const arming = yield* holding(access, lockOf("claims"))
        const second = yield* startMortal(access)
        yield* second.dieAt("tool.afterCommit", 2)
        yield* arming.query("commit")
        yield* second.died

        const story = storyIn(yield* startMortal(access), access, made.projectId)
        yield* eventually(story.get(`/runs/${run.id}`), ({ status }) => status === "completed")
        const { items } = yield* story.get("/tasks")
        expect(items.map(({ number, title }: Json) => [number, title])).toEqual([
          [3, "Three"],
          [2, "Two"],
          [1, "One"]
        ])
        expect((yield* callsOf(story, run)).map(({ result }) => result.task_id)).toEqual([1, 2, 3])
        expect((yield* story.post("/tasks", { title: "Four" })).number).toBe(4)
      })
    )
  )
})
