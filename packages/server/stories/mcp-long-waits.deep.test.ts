/**
 * A person takes his time, and whoever waits for him through a session of 2025-11-25 has his answer all the same.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { poolLimits } from "../src/database/limits.ts"
import { mcpLimits } from "../src/mcp/limits.ts"
import { taskBounds } from "../src/mcp/run-task.ts"
import { asking } from "../testing/mcp-clients.ts"
import { taskClient } from "../testing/mcp-task-clients.ts"
import { eventually } from "../testing/platform.ts"
import { answer, asker, asking as question, askingModel, questionsOf } from "../testing/question-words.ts"
import { newStoryHere, passing, SharedServer } from "../testing/shared-server.ts"

layer(SharedServer.layer)((it) => {
  describe("A client of 2025-11-25 that waits for the end of a task", () => {
    it.effect("is told it after longer than a session may be idle", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // Its person has the form open, and does not answer.
        const client = yield* taskClient(story, "2025-11-25", () => new Promise(() => {}) as never)
        const agent = yield* asker(story, askingModel(question("Which shade?")))
        const { task } = yield* asking(client, "tools/call", {
          name: "trigger_agent",
          arguments: { agent: agent.name },
          task: { ttl: 60_000 }
        })
        const waiting = yield* Effect.forkChild(asking(client, "tasks/result", { taskId: task.taskId }))
        const [waits] = yield* eventually(questionsOf(story), (items) => items.length === 1)
        const { sessionIdleMs } = mcpLimits
        expect(2 * sessionIdleMs).toBeLessThan(taskBounds.waitMaxMs)
        // In long steps a statement that is under way would seem to be silent, and its connection be given up: between two
        // of them the database answers.
        yield* passing(2 * sessionIdleMs, poolLimits.silenceLookMs, story.get("/kill-switch"))
        yield* answer(story, { id: task.taskId }, "red", waits)
        expect(yield* Fiber.join(waiting)).toMatchObject({
          content: [{ text: expect.stringContaining("red") }]
        })
      })
    )
  })
})
