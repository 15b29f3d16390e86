/**
 * TodoAssistant as every project has it, and what becomes of it in people's hands.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

/** The system prompt of spec/agent-layer.md §3.2. */
const specifiedPrompt = `You are TodoAssistant, a helpful AI that manages the user's todo list.

## Your Capabilities (via tools)
- add_task: Create new tasks
- list_tasks: View tasks (all, pending, or completed)
- complete_task: Mark tasks as done
- delete_task: Remove tasks
- update_task: Modify task title or description

## Behavioral Rules
1. ALWAYS use tools to access or modify tasks. Never guess task data.
2. CONFIRM every action with a clear, friendly response.
3. When listing tasks, format them in a readable way.
4. If a task is not found, inform the user politely.
5. Ask for clarification if the user's intent is ambiguous.
6. Never fabricate task information not returned by tools.
7. Refer to tasks by their ID when confirming actions.

## Response Style
- Be concise but friendly
- Use natural language, not technical jargon
- Acknowledge what the user asked for
- Confirm what action was taken`

const assistantsOf = (story: Story): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get("/agents"), ({ items }) => items.filter(({ name }: Json) => name === "TodoAssistant"))

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Agent Identity", () => {
    it.effect(
      "S003-R07 S003-R09 S003-R10 S003-R11 a new project has the agent of the specification, word for word",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const [assistant, ...others] = yield* assistantsOf(story)
          expect(others).toEqual([])
          expect(assistant).toMatchObject({
            name: "TodoAssistant",
            version: 1,
            role: "AI assistant for managing todo tasks via natural language",
            systemPrompt: specifiedPrompt,
            model: { provider: "openai", name: "gpt-4o", temperature: 0.7, maxOutputTokens: 1024 },
            tools: [
              "tasks.add_task",
              "tasks.list_tasks",
              "tasks.complete_task",
              "tasks.delete_task",
              "tasks.update_task"
            ],
            triggerType: "manual",
            executionMode: "suggest",
            enabled: true
          })
        })
    )

    it.effect("each project has one of its own, which is changed and deleted as any other agent", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        const [mine] = yield* assistantsOf(story)
        const [theirs] = yield* assistantsOf(other)
        expect(mine.id).not.toBe(theirs.id)
        const editor = yield* asUser(story, "admin")
        const changed = yield* editor.patch(`/agents/${mine.id}`, { systemPrompt: "Be brief." })
        expect(changed).toMatchObject({ version: 2, systemPrompt: "Be brief.", name: "TodoAssistant" })
        expect((yield* editor.delete(`/agents/${mine.id}`)).status).toBe(204)
        expect(yield* assistantsOf(story)).toEqual([])
        expect(yield* assistantsOf(other)).toEqual([theirs])
      })
    )
  })
})
