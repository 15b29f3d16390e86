/**
 * The words in which stories hold conversations that belong to one person.
 */
import { Effect } from "effect"
import { addEvent, quietLog } from "./context-words.ts"
import { type Json, scripted, type Story } from "./platform.ts"
import { asUser } from "./token-words.ts"

/** An agent that answers people, with these rules. */
export const talker = (
  story: Story,
  rules: ReadonlyArray<Json>,
  overrides: Record<string, unknown> = {}
): Effect.Effect<Json> =>
  story.post("/agents", {
    name: `talker-${crypto.randomUUID().slice(0, 8)}`,
    prompt: "Answer.",
    triggerType: "manual",
    tools: ["tasks.*"],
    model: scripted(rules),
    ...overrides
  })

/** Begins a conversation of a person with an agent. */
export const newConversation = Effect.fnUntraced(function* (
  story: Story,
  agent: Json,
  title: string,
  of = "admin"
) {
  const person = yield* asUser(story, "editor", null, of)
  return yield* person.post("/conversations", { agentId: agent.id, title })
})

/** Says something in a conversation and waits for the answer. */
export const talk = Effect.fnUntraced(function* (story: Story, { contextName }: Json, message: string) {
  yield* addEvent(story, contextName, message)
  return yield* quietLog(story, contextName)
})

/** What was said, as a chat shows it: who and what. */
export const messagesOf = (
  story: Story,
  { id }: Json,
  query = ""
): Effect.Effect<{ readonly items: ReadonlyArray<Json>; readonly nextCursor: string | null }> =>
  story.get(`/conversations/${id}/messages${query}`)
