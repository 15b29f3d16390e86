/**
 * The walking journey: one real event from graph write to approved suggestion.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, newStory, promptWithObject, scripted } from "../testing/platform.ts"
import { entriesWhen } from "../testing/story-words.ts"

describe("The walking journey", () => {
  it.live("leads from a graph write to an approved suggestion, and the agent is not woken by it", () =>
    Effect.gen(function* () {
      const story = yield* newStory
      const agent = yield* story.post("/agents", {
        name: "reviewer",
        prompt: promptWithObject,
        triggerType: "reaction",
        executionMode: "suggest",
        tools: ["graph.*"],
        reactionConfig: { objectTypes: ["Person"], events: ["created", "updated"] },
        model: scripted([
          {
            when: "step == 0",
            calls: [
              {
                tool: "update_object",
                arguments: {
                  objectId: "{{ input.object.id }}",
                  properties: { seen: true },
                  reasoning: "Nobody has looked at it"
                }
              }
            ]
          },
          { say: "I suggested it." }
        ])
      })
      const object = yield* story.post("/objects", {
        type: "Person",
        key: "ada",
        properties: { name: "Ada" }
      })
      const tasks = yield* eventually(story.get("/tasks?status=pending"), (page) => page.items.length === 1)
      const [task] = tasks.items
      expect((yield* story.get(`/objects/${object.id}`)).version).toBe(1)

      const approved = yield* story.post(`/tasks/${task.id}/approve`, { digest: task.digest })
      expect(approved.status).toBe("completed")
      const after = yield* story.get(`/objects/${object.id}`)
      expect(after).toMatchObject({
        version: 2,
        properties: { name: "Ada", seen: true },
        actorType: "agent",
        actorId: agent.id
      })
      const history = yield* story.get(`/objects/${object.id}/history`)
      expect(history.items[0]).toMatchObject({
        version: 2,
        actorType: "agent",
        actorId: agent.id,
        approvedBy: "admin",
        taskId: task.id
      })

      const feed = yield* eventually(story.get("/events"), (page) => page.items.length === 2)
      expect(feed.items[1].refusals).toEqual([
        { agentId: agent.id, rule: "selfTriggered", reason: expect.any(String) }
      ])
      // Its run goes on for a moment behind the suggestion.
      const entries = yield* entriesWhen(story, agent, 1)
      expect(entries.map(({ objectVersion, status }) => [objectVersion, status])).toEqual([[1, "completed"]])
    })
  )
})
