/**
 * TodoAssistant as every project has it, and what becomes of it in people's hands.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

const specification = readFileSync(join(import.meta.dirname, "../../../specs/agent-layer.md"), "utf8")

/** The role and the system prompt of the specification, word for word. */
const [specifiedRole, specifiedPrompt] = [/^description: "(.*)"$/m, /^### 3\.2 .*?^```\n(.*?)\n```$/ms].map(
  (pattern) => pattern.exec(specification)?.[1] ?? expect.unreachable()
)

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
            role: specifiedRole,
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
