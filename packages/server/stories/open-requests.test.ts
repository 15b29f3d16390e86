/**
 * The request that a model is being asked, and the one that a cancel broke off, word for word, though nothing of it is kept.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatChunk, events, type FakeAnswer } from "../testing/fake-model-server.ts"
import { asChat, calls, receivedChat, says, wiredStory, wireModel } from "../testing/model-words.ts"
import { eventually, type Json, newStory, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { silentFor } from "../testing/story-words.ts"

/** The request once it is under way, or whatever else is told of. */
const openOf = (story: Story, run: Json): Effect.Effect<Json> =>
  Effect.map(story.get(`/runs/${run.id}/open-request`), ({ request }) => request)

/** An answer that is begun and never ends. */
const begins = (content: string): FakeAnswer => {
  const answer = events(chatChunk({ content }))
  return answer.kind === "stream" ? { ...answer, ending: "hang" } : answer
}

const begin = (story: Story, agent: Json) => story.post(`/agents/${agent.id}/trigger?wait=false`)

describe("An open request", () => {
  it.live(
    "is what the model was sent, while it is asked and after a cancel, and none when it is answered",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { models, story } = yield* wiredStory([
            calls({ id: "a", tool: "search_objects", arguments: { type: "Note" } }),
            begins("I thi"),
            says("Done.")
          ])
          const agent = yield* story.post("/agents", {
            name: "writer",
            prompt: "Write about tea.",
            systemPrompt: "Be brief.",
            triggerType: "manual",
            tools: ["graph.search_objects"],
            model: { ...wireModel, price: { inputPerMillion: 3, outputPerMillion: 15 } }
          })
          const run = yield* begin(story, agent)
          const open = yield* eventually(openOf(story, run), (request) => request?.said === "I thi")
          expect(asChat(open.messages)).toEqual(receivedChat(models.requests[1]?.body as Json))
          expect(open).toMatchObject({
            isUnderWay: true,
            step: 2,
            model: "openai-compatible:wire-1",
            price: { inputPerMillion: 3, outputPerMillion: 15 },
            toolChoice: "auto"
          })
          expect(open.tools.map(({ name }: Json) => name)).toEqual(["search_objects"])
          expect(open.estimatedInputTokens).toBe(Math.ceil(JSON.stringify(open.messages).length / 4))
          // It is not on record: that has what is over.
          expect((yield* story.get(`/runs/${run.id}/model-calls`)).items).toHaveLength(1)

          yield* story.post(`/runs/${run.id}/cancel`)
          expect(yield* openOf(story, run)).toEqual({ ...open, isUnderWay: false })

          const done = yield* story.post(`/agents/${agent.id}/trigger`)
          expect([done.status, yield* openOf(story, done)]).toEqual(["completed", null])
        })
      )
  )

  it.live("is a conversation's own, and none of a run that waited for something else", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const story = yield* newStory
        const slow = yield* story.post("/agents", {
          name: "slow",
          prompt: "Speak.",
          triggerType: "manual",
          model: silentFor(600_000)
        })
        yield* story.post("/contexts", { name: "desk", agentId: slow.id })
        const runs: Array<Json> = []
        for (const content of ["First", "Second"]) {
          yield* story.post("/contexts/desk/events", { type: "UserMessageEvent", content })
          const run = yield* eventually(
            Effect.map(story.get("/runs?status=running"), ({ items }) => items[0] as Json),
            (found) => found !== undefined
          )
          yield* eventually(openOf(story, run), (request) => request !== null)
          yield* story.post(`/runs/${run.id}/cancel`)
          runs.push(run)
        }
        const asked = yield* Effect.forEach(runs, (run) => openOf(story, run))
        expect(asked.map(({ messages }) => messages.at(-1).content)).toEqual(["First", "Second"])

        const asking = yield* story.post("/agents", {
          name: "asking",
          prompt: "Ask.",
          triggerType: "manual",
          tools: ["run.ask_user"],
          model: scripted([{ calls: [{ tool: "ask_user", arguments: { question: "Which?" } }] }])
        })
        const waiting = yield* story.post(`/agents/${asking.id}/trigger`)
        expect([waiting.status, yield* openOf(story, waiting)]).toEqual(["paused", null])
        yield* story.post(`/runs/${waiting.id}/cancel`)
        expect(yield* openOf(story, waiting)).toBeNull()
        expectProblem(yield* story.ask("GET", `/runs/${crypto.randomUUID()}/open-request`), 404)
      })
    )
  )
})
