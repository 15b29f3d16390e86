/**
 * Workflows of conversations, through the end of servers.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { logOf, newContext, say } from "../testing/context-words.ts"
import { defineTool, defineWorkflow, loud, newestRun } from "../testing/define-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { serveUntil } from "../testing/frozen-servers.ts"
import { eventually, type Json, newProject, scripted, type Story } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import { stepsOf } from "../testing/run-words.ts"
import { callsOf } from "../testing/story-words.ts"

describe("A workflow goes on where a server left it", () => {
  const workflow = {
    flowType: "loop",
    maxIterations: 2,
    steps: [
      {
        name: "write",
        prompt: "{{ input }} {{ iteration }}",
        model: scripted([
          {
            when: "step == 0",
            calls: [{ tool: "note_page", arguments: { properties: { of: "{{ message }}" } } }]
          },
          { say: "wrote {{ message }}" }
        ])
      },
      { name: "read", prompt: "read {{ steps.write.output }}" }
    ]
  }

  const begun = Effect.fnUntraced(function* (story: Story) {
    yield* newContext(story, "talk", loud)
    yield* defineTool(story, "talk", {
      name: "note_page",
      tool: "create_object",
      arguments: { type: "Page" }
    })
    yield* defineWorkflow(story, "talk", workflow)
    yield* say(story, "talk", "one")
    return story.projectId
  })

  it.live.each([
    ["after each beginning of a step", "run.afterFlowStep", 1],
    ["after each answer of its model", "run.afterStep", 1],
    ["before each second request of its model, and after the call between them", "run.beforeModel", 2]
  ] as const)("S004-F03 one that ends %s", ([, place, times]) =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const projectId = yield* serveUntil(access, place, times, (doors) =>
        Effect.flatMap(newProject(doors, access), begun)
      )
      for (let ended = 0; ended < 2; ended++) yield* serveUntil(access, place, times, () => Effect.void)
      yield* whileServing(access, projectId, (story) =>
        Effect.gen(function* () {
          const run = yield* eventually(newestRun(story), ({ status }) => status === "completed")
          expect(run).toMatchObject({ summary: "READ WROTE ONE 2", stepCount: 6 })
          expect(stepsOf(yield* logOf(story, "talk"))).toEqual([
            ["write", 1, "one 1"],
            ["read", 1, "read wrote one 1"],
            ["write", 2, "one 2"],
            ["read", 2, "read wrote one 2"]
          ])
          const calls = yield* callsOf(story, run)
          expect(calls.map(({ status, tool }) => [tool, status])).toEqual([
            ["create_object", "completed"],
            ["create_object", "completed"]
          ])
          const { items } = yield* story.get("/objects?type=Page")
          expect(items.map(({ properties }: Json) => properties.of).toSorted()).toEqual(["one 1", "one 2"])
          expect((yield* story.get("/verify")).differences).toEqual([])
        })
      )
    })
  )
})
