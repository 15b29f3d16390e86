/**
 * What a model is shown of a conversation, read at the model server, and what people are told when it fails.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { answered, contextOf, newAssistant } from "../testing/chat-words.ts"
import { messagesOf } from "../testing/conversation-words.ts"
import { contentsOf, firstOf, logOf, quietLog } from "../testing/context-words.ts"
import {
  calls,
  receivedChat,
  receivedTools,
  refuses,
  says,
  wiredStory,
  wireModel
} from "../testing/model-words.ts"
import type { Json } from "../testing/platform.ts"

const adding = calls({ id: "c1", tool: "add_task", arguments: { title: "Milk" } })

/** The messages of each request, as they arrived. */
const promptsOf = ({ requests }: { readonly requests: ReadonlyArray<{ readonly body: unknown }> }) =>
  requests.map(({ body }) => receivedChat(body))

const rolesOf = (prompt: ReadonlyArray<Json> | undefined) => prompt?.map(({ role }) => role)

describe("Message format", () => {
  it.live(
    "S003-R26 S003-R27 S003-R29 S003-R30 S003-R60 the system prompt first, the history in order with calls and results, the message last and once",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { models, story } = yield* wiredStory([
            adding,
            says("Added task #1."),
            says("It is still there.")
          ])
          const agent = yield* newAssistant(story, wireModel)
          const first = yield* answered(story, { agentId: agent.id, message: "Add milk" })
          const { conversationId } = first
          const second = yield* answered(story, { conversationId, message: "Is it there?" })
          expect([first.response, second.response]).toEqual(["Added task #1.", "It is still there."])
          const system = { role: "system", content: "You keep todos." }
          const user = { role: "user", content: "Add milk" }
          const called = {
            role: "assistant",
            text: "",
            calls: [{ id: expect.any(String), name: "add_task", arguments: { title: "Milk" } }]
          }
          const result = {
            role: "tool",
            id: expect.any(String),
            result: { task_id: 1, status: "created", title: "Milk" }
          }
          expect(promptsOf(models)).toEqual([
            [system, user],
            [system, user, called, result],
            [
              system,
              user,
              called,
              result,
              { role: "assistant", text: "Added task #1.", calls: [] },
              { role: "user", content: "Is it there?" }
            ]
          ])
          expect(new Set(receivedTools(models.requests[0]?.body).map(({ name }) => name))).toEqual(
            new Set(["add_task", "list_tasks", "complete_task", "delete_task", "update_task"])
          )
        })
      )
  )
})

describe("Error handling", () => {
  it.live(
    "S003-R54 S003-R59 a model that fails is told as trouble, in no log and in no prompt, and nothing is tried again",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { models, story } = yield* wiredStory([
            adding,
            refuses(400, "The engine is on fire"),
            says("All is well.")
          ])
          const agent = yield* newAssistant(story, wireModel)
          const failed = yield* answered(story, { agentId: agent.id, message: "Add milk" })
          expect(failed).toMatchObject({ status: "failed", response: expect.stringMatching(/^\S.*$/) })
          expect(failed.response).not.toMatch(/on fire|400/)
          // What was done before stands, is told, and is not done again.
          expect(failed.toolCalls).toMatchObject([{ tool: "add_task", result: { task_id: 1 } }])
          const { conversationId } = failed
          const log = yield* quietLog(story, contextOf(conversationId))
          expect(firstOf(log, "AgentTurnFailedEvent")).toMatchObject({
            error: expect.stringContaining("The engine is on fire"),
            reason: "model"
          })
          // Who reads the conversation later is told what was told then.
          const { items } = yield* messagesOf(story, { id: conversationId })
          expect(items.at(-1)).toMatchObject({
            role: "assistant",
            content: failed.response,
            toolCalls: failed.toolCalls
          })
          expect((yield* answered(story, { conversationId, message: "And now?" })).response).toBe(
            "All is well."
          )
          expect(
            JSON.stringify([promptsOf(models), yield* logOf(story, contextOf(conversationId))])
          ).not.toContain(failed.response)
          expect(rolesOf(promptsOf(models).at(-1))).toEqual(["system", "user", "assistant", "tool", "user"])
          expect((yield* story.get("/tasks")).items).toHaveLength(1)
        })
      )
  )

  it.live(
    "S003-R50 S003-R51 S003-R52 S003-R57 S003-R58 S003-A05 a tool that failed is told where the agent says nothing of it",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const missing = calls({ id: "c1", tool: "complete_task", arguments: { task_id: 999 } })
          const long = calls({ id: "c2", tool: "add_task", arguments: { title: "x".repeat(201) } })
          const { models, story } = yield* wiredStory([
            missing,
            refuses(400, "gone"),
            long,
            refuses(400, "gone"),
            missing,
            says("There is no task #999. Shall I list them?")
          ])
          const agent = yield* newAssistant(story, wireModel)
          const first = yield* answered(story, { agentId: agent.id, message: "Complete 999" })
          // What the tool found, and behind it that the model failed.
          const [missed, trouble, ...more] = first.response.split("\n\n")
          expect([missed, more]).toEqual([expect.stringContaining("#999"), []])
          expect(first.toolCalls).toMatchObject([{ result: { error: expect.any(String), task_id: 999 } }])
          const { items } = yield* messagesOf(story, { id: first.conversationId })
          expect(items.at(-1).content).toBe(first.response)
          const { conversationId } = first
          const second = yield* answered(story, { conversationId, message: "Add a long one" })
          expect(second.response.split("\n\n")).toEqual([expect.stringContaining("200"), trouble])
          const third = yield* answered(story, { conversationId, message: "Complete 999" })
          expect(third).toMatchObject({
            status: "completed",
            response: "There is no task #999. Shall I list them?"
          })
          expect(models.requests).toHaveLength(6)
        })
      )
  )

  it.live(
    "an agent that may take no further step tells so behind what it has, and goes on when it is told to",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { story } = yield* wiredStory([adding, says("One is added."), says("Now the rest.")])
          const agent = yield* newAssistant(story, wireModel, { maxSteps: 1 })
          const first = yield* answered(story, { agentId: agent.id, message: "Add many" })
          expect(first.status).toBe("interrupted")
          expect(first.response).toMatch(/^One is added\.\n\n\S/)
          const { conversationId } = first
          const second = yield* answered(story, { conversationId, message: "Go on" })
          expect(second).toMatchObject({ status: "completed", response: "Now the rest." })
        })
      )
  )
})

describe("Context window management", () => {
  const set = (conversationId: string, reducer: Json) => ({
    path: `/contexts/${contextOf(conversationId)}/events`,
    body: { type: "SetReducerEvent", reducer }
  })

  it.live("S003-R61 S003-R63 the oldest go first, the system prompt stays, and the last N are shown", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { models, story } = yield* wiredStory([says("Yes.")])
        const agent = yield* newAssistant(story, wireModel)
        const { conversationId } = yield* answered(story, { agentId: agent.id, message: "Message 1" })
        const { body, path } = set(conversationId, { type: "truncating", maxMessages: 5, maxTokens: null })
        expect((yield* story.ask("POST", path, body)).status).toBe(204)
        for (let n = 2; n <= 6; n += 1) yield* answered(story, { conversationId, message: `Message ${n}` })
        const prompt = promptsOf(models).at(-1)
        expect(prompt?.[0]).toEqual({ role: "system", content: "You keep todos." })
        const shown: ReadonlyArray<string> = (prompt ?? [])
          .slice(1)
          .map(({ content, text }) => content ?? text)
        const said = [1, 2, 3, 4, 5].flatMap((n) => [`Message ${n}`, "Yes."])
        // The newest, no more of them than N, and no answer without its question.
        expect(shown).toEqual([...said, "Message 6"].slice(-shown.length))
        expect(shown.length).toBeLessThanOrEqual(5)
        expect(shown.length).toBeGreaterThanOrEqual(3)
        expect(shown[0]).toMatch(/^Message/)
        // The log has them all.
        expect(
          contentsOf(yield* quietLog(story, contextOf(conversationId)), "UserMessageEvent")
        ).toHaveLength(6)
      })
    )
  )

  it.live("S003-R62 a very long conversation is summed up before anything is let go", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const long = "w ".repeat(1_000)
        const { models, story } = yield* wiredStory([
          says(`Noted ${long}`),
          says("They spoke of milk."),
          says("More is noted."),
          says("Of milk.")
        ])
        const agent = yield* newAssistant(story, wireModel)
        const { conversationId } = yield* answered(story, { agentId: agent.id, message: `Milk ${long}` })
        const { body, path } = set(conversationId, { type: "summarizing", maxTokens: 1_500, keepTokens: 500 })
        expect((yield* story.ask("POST", path, body)).status).toBe(204)
        yield* answered(story, { conversationId, message: `More milk ${long}` })
        const last = yield* answered(story, { conversationId, message: "What did we speak of?" })
        expect(last.response).toBe("Of milk.")
        const log = yield* quietLog(story, contextOf(conversationId))
        expect(firstOf(log, "ContextSummarizedEvent").content).toBe("They spoke of milk.")
        const prompt = promptsOf(models).at(-1)
        expect(prompt?.[0]?.content).toContain("You keep todos.")
        expect(JSON.stringify(prompt)).toContain("They spoke of milk.")
        expect(prompt?.at(-1)).toEqual({ role: "user", content: "What did we speak of?" })
      })
    )
  )
})
