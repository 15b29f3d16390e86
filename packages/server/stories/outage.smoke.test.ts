/**
 * A database that is away for longer than whoever waits is let wait: nobody is told what would let them begin the same again.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { chatChunk, type FakeAnswer, toEvent } from "../testing/fake-model-server.ts"
import { sendCompletion } from "../testing/openai-words.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newProviderStory } from "../testing/provider-story.ts"
import { asTimePasses } from "../testing/shared-server.ts"

/** An answer that has begun and comes to no end. */
const begun: FakeAnswer = {
  kind: "stream",
  chunks: [toEvent(chatChunk({ content: "One." }))],
  ending: "hang"
}

/** All that a stream of events says. */
const streamOf = ({ projectId, token, url }: Story, path: string, body: Json) =>
  Effect.promise(() =>
    fetch(`${url}/api/projects/${projectId}${path}`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "text/event-stream"
      },
      body: JSON.stringify(body)
    }).then((answer) => answer.text())
  )

describe("Whoever waits for an answer while the database is away for longer", () => {
  it.effect("is told that the agent goes on, and not to ask again without a key", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([begun, begun])
        const { become } = yield* operatedDatabase(story.access)
        const body = { model: agent.name, messages: [{ role: "user", content: "Hello" }] }
        const keyed = yield* Effect.forkScoped(sendCompletion(story, body, { "idempotency-key": "k" }))
        const other = yield* Effect.forkScoped(sendCompletion(story, body))
        yield* asTimePasses(
          50,
          Effect.sync(() => provider.requests.length),
          (count) => count === 2
        )
        yield* become("connection limit 0")
        const answered = Effect.sync(() => [keyed, other].every((one) => one.pollUnsafe() !== undefined))
        yield* asTimePasses(500, answered, (isAnswered) => isAnswered)
        yield* become("connection limit -1")
        expect(yield* Fiber.join(keyed)).toMatchObject({
          status: 503,
          body: { error: { code: "unavailable" } }
        })
        const { body: told, headers, status } = yield* Fiber.join(other)
        expect(status).toBe(422)
        expect(told.error.message).toContain("x-tropism-conversation")
        expect(headers.get("x-tropism-conversation")).toBeTruthy()
      })
    )
  )

  it.effect("at every other door as well, with where its answer or its run will be", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([begun, begun, begun, begun], {
          triggerType: "manual"
        })
        const { become } = yield* operatedDatabase(story.access)
        const spoken = { message: "Hello", agentId: agent.id }
        const body = { model: agent.name, stream: true, messages: [{ role: "user", content: "Hello" }] }
        const all = yield* Effect.forEach(
          [
            story.ask("POST", `/agents/${agent.id}/trigger`, {}),
            story.ask("POST", "/chat", spoken),
            streamOf(story, "/chat", spoken),
            streamOf(story, "/v1/chat/completions", body)
          ],
          (asked) => Effect.forkScoped(asked)
        )
        yield* asTimePasses(
          50,
          Effect.sync(() => provider.requests.length),
          (count) => count === 4
        )
        yield* become("connection limit 0")
        const answered = Effect.sync(() => all.every((one) => one.pollUnsafe() !== undefined))
        yield* asTimePasses(500, answered, (isAnswered) => isAnswered)
        yield* become("connection limit -1")
        const [triggered, said, chat, completion] = yield* Effect.forEach(all, (one) =>
          Fiber.join<Json, never>(one)
        )
        expect(triggered).toMatchObject({ status: 202, body: { status: "queued", agentId: agent.id } })
        expect((yield* story.ask("GET", `/runs/${triggered.body.id}`)).status).toBe(200)
        expect(said).toMatchObject({ status: 202, body: { status: "working" } })
        expect((yield* story.ask("GET", `/conversations/${said.body.conversationId}`)).status).toBe(200)
        expect(chat).toContain('"type":"/problems/unavailable"')
        expect(completion).toContain("x-tropism-conversation")
        expect(completion).toContain('"code":"unavailable"')
      })
    )
  )
})
