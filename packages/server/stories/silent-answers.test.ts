/**
 * An agent that acts and says nothing of it: whoever asked is told what came of it, the same at every door.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answered, newAssistant, streamed } from "../testing/chat-words.ts"
import { messagesOf } from "../testing/conversation-words.ts"
import { chunksOf, openAiClient, outcomeOf } from "../testing/openai-words.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Calls a tool, with these words, and then says nothing. */
const silent = (say: string, tool: string, args: Json) =>
  scripted([{ when: "step == 0", say, calls: [{ tool, arguments: args }] }, { say: "" }])

/** What each door tells of an answer; the agent is asked anew at each. */
const toldBy = Effect.fnUntraced(function* (story: Story, agent: Json) {
  const { conversationId, response } = yield* answered(story, { agentId: agent.id, message: "Go" })
  const { items } = yield* messagesOf(story, { id: conversationId })
  const listed = items.filter(({ role }) => role === "assistant").map(({ content }) => content)
  const events = yield* streamed(story, { agentId: agent.id, message: "Go" })
  const done = events.find(({ name }) => name === "done")?.json
  const messages = [{ role: "user" as const, content: "Go" }]
  const { completions } = openAiClient(story).chat
  const whole: Json = yield* outcomeOf(() => completions.create({ model: agent.name, messages }))
  const { words } = yield* chunksOf(
    yield* outcomeOf(() => completions.create({ model: agent.name, messages, stream: true as const }))
  )
  return {
    response,
    listed: listed.join("\n\n"),
    streamed: done?.response,
    completion: whole.choices[0]?.message.content,
    words
  }
})

const everywhere = (told: string) => ({
  response: told,
  listed: told,
  streamed: told,
  completion: told,
  words: told
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("S003-R50 what an agent leaves unsaid", () => {
    it.effect("a tool that failed is told as what it means, with what to do instead", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, silent("", "complete_task", { task_id: 999 }))
        const told = yield* toldBy(story, agent)
        expect(told.response).toMatch(/^.*#999.*$/)
        expect(told).toEqual(everywhere(told.response))
      })
    )

    it.effect("the same behind words that were said before it failed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, silent("Let me see.", "complete_task", { task_id: 999 }))
        const told = yield* toldBy(story, agent)
        expect(told.response).toMatch(/^Let me see\.\n\n.*#999.*$/)
        expect(told).toEqual(everywhere(told.response))
      })
    )

    it.effect("what was done is confirmed", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, silent("", "add_task", { title: "Milk" }))
        const told = yield* toldBy(story, agent)
        expect(told.response).toMatch(/\S/)
        expect(told).toEqual(everywhere(told.response))
      })
    )
  })
})
