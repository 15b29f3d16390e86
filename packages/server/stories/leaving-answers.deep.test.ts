/**
 * What whoever waits for an answer is told by a server that leaves.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { serveAnswers } from "../testing/fake-model-server.ts"
import { answered, chat, keyed, newAssistant } from "../testing/chat-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { closedTo, inPieces, restOf, serverWith, streamOf, wordsIn } from "../testing/leaving-words.ts"
import { resultOf } from "../testing/mcp-extension-words.ts"
import { says, wireModel } from "../testing/model-words.ts"
import { newModel, sendCompletion } from "../testing/openai-words.ts"
import { type Answer, eventually, newProject, storyIn } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"

/** An answer that a server which leaves is making. */
const beingMade = Effect.gen(function* () {
  const access = yield* freshDatabase
  const models = yield* serveAnswers(inPieces)
  const leaving = yield* Scope.make()
  const story = yield* newProject(yield* serverWith(access, models, leaving), access)
  const agent = yield* newAssistant(story, wireModel)
  const stream = yield* streamOf(story, "/chat", { agentId: agent.id, message: "Count" })
  yield* stream.until((heard) => wordsIn(heard) === "One.")
  return { leaving, models, story, stream }
})

const hello = [{ role: "user", content: "Hello" }]

/** Everybody who may wait for an agent, at a server whose model says nothing. */
const waitingForSilence = Effect.gen(function* () {
  const access = yield* freshDatabase
  const leaving = yield* Scope.make()
  const story = yield* newProject(
    yield* serverWith(access, yield* serveAnswers({ kind: "silence" }), leaving),
    access
  )
  const agent = yield* newModel(story, "helper", wireModel)
  const said = { agentId: agent.id, message: "Hello" }
  const completion = { model: "helper", messages: hello }
  const asked = yield* Effect.forEach(
    [
      chat(story, said, keyed("whole")),
      sendCompletion(story, completion, keyed("whole")),
      sendCompletion(story, completion),
      story.send("POST", `/api/projects/${story.projectId}/agents/${agent.id}/trigger`, {}, keyed("run")),
      chat(story, said),
      story.ask("POST", `/agents/${agent.id}/trigger`, {})
    ],
    (request) => Effect.forkScoped(request)
  )
  const call = { name: "trigger_agent", arguments: { agent: "helper" } }
  const called = yield* Effect.forkScoped(resultOf(story, "tools/call", call, {}))
  const stream = yield* streamOf(story, "/chat", said)
  const chunks = yield* streamOf(story, "/v1/chat/completions", { ...completion, stream: true })
  yield* eventually(story.get("/runs?status=running"), ({ items }) => items.length === asked.length + 3)
  return { access, asked, called, chunks, leaving, said, story, stream }
})

describe("An answer that a server which leaves is making", () => {
  it.live("goes on being told word by word, to its end", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { leaving, models, story, stream } = yield* beingMade
        const left = yield* Effect.forkScoped(Scope.close(leaving, Exit.void))
        yield* closedTo(story)
        const heard = yield* restOf(models, stream)
        expect(heard.at(-1)?.json).toMatchObject({ status: "completed", response: "One. Two. Three." })
        yield* Fiber.join(left)
      })
    )
  )

  it.live("that is not there in time is told at each door as one that goes on at another server", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { access, asked, called, chunks, leaving, said, story, stream } = yield* waitingForSilence
        yield* Scope.close(leaving, Exit.void)

        const [whole, keyedCompletion, completion, triggered, ...keyless] = yield* Effect.forEach(
          asked,
          Fiber.join
        )
        expectProblem(whole as Answer, 503)
        expect(whole?.body.detail).toContain("Idempotency-Key")
        expectProblem(triggered as Answer, 503)
        expect(triggered?.body.detail).toContain("Idempotency-Key")
        for (const answer of [whole, keyedCompletion, triggered])
          expect(answer?.headers.get("retry-after")).toBe("1")
        const fault = { type: "server_error", param: null, code: "server_leaving" }
        expect(keyedCompletion).toMatchObject({ status: 503, body: { error: fault } })
        // A client sends 503 again by itself, and without a key the agent would do it twice.
        expect(completion).toMatchObject({ status: 422, body: { error: fault } })
        expect(completion?.headers.get("x-tropism-conversation")).toMatch(/^completion-/)
        // So do others: where nothing is at fault, nobody asks again.
        expect(keyless).toMatchObject([
          { status: 202, body: { status: "working", conversationId: expect.any(String) } },
          { status: 202, body: { status: "queued", id: expect.any(String) } }
        ])

        expect((yield* Fiber.join(called)).structuredContent).toMatchObject({
          id: expect.any(String),
          status: "queued"
        })

        yield* stream.ended
        expect(stream.heard.map(({ name }) => name)).toEqual(["begun", "error"])
        const { detail, status, title, type } = (whole as Answer).body
        expect(stream.heard[1]?.json).toEqual({ detail, status, title, type })
        yield* chunks.ended
        expect(chunks.heard.at(-1)?.json).toEqual({ error: completion?.body.error })

        const other = yield* serverWith(access, yield* serveAnswers(says("Done.")), yield* Effect.scope)
        const answer = yield* answered(storyIn(other, access, story.projectId), said, keyed("whole"))
        expect(answer).toMatchObject({ status: "completed", response: "Done." })
      })
    )
  )
})
