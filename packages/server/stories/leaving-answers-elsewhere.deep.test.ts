/**
 * What a server that leaves still does for answers between servers: for those that it makes and others tell, and the other way round.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { chatChunk, chatEnd, type FakeAnswer, serveAnswers, toEvent } from "../testing/fake-model-server.ts"
import { contextOf, newAssistant } from "../testing/chat-words.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { openStream } from "../testing/event-stream.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { closedTo, inPieces, piece, restOf, serverWith, streamOf, wordsIn } from "../testing/leaving-words.ts"
import { says, wireModel } from "../testing/model-words.ts"
import { eventually, newProject, storyIn } from "../testing/platform.ts"

/** An answer that goes on whenever the story wants it, for as long as servers take to find each other. */
const endless: FakeAnswer = {
  kind: "stream",
  chunks: [piece("Hm.")],
  ending: "hang",
  rest: Array.from({ length: 3_000 }, () => piece(" Hm."))
}

/** The same in two steps: behind its first piece it asks for a tool, which there is none of. */
const withCall: ReadonlyArray<FakeAnswer> = [
  {
    kind: "stream",
    chunks: [piece("One.")],
    ending: "hang",
    rest: [
      [
        chatChunk({
          tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "count", arguments: "{}" } }]
        }),
        ...chatEnd("tool_calls")
      ]
        .map(toEvent)
        .join("")
    ]
  },
  {
    kind: "stream",
    chunks: [piece(" Two.")],
    ending: "hang",
    rest: [[piece(" Three."), ...chatEnd("stop").map(toEvent)].join("")]
  }
]

/**
 * An answer that one server of a cluster makes and that is told at another one: there somebody has said
 * something more, which breaks into the run where it is at work.
 */
const toldElsewhere = Effect.fnUntraced(function* (...answers: ReadonlyArray<FakeAnswer>) {
  const access = { ...(yield* freshDatabase), embedded: false }
  const models = yield* serveAnswers(endless, ...answers)
  const others = yield* serveAnswers(says("Who takes it over asks here."))
  const writer = yield* Scope.make()
  const teller = yield* Scope.make()
  const there = yield* newProject(yield* serverWith(access, models, writer, yield* freeAddress), access)
  const agent = yield* newAssistant(there, wireModel)
  const first = yield* streamOf(there, "/chat", { agentId: agent.id, message: "Count" })
  yield* first.until((heard) => wordsIn(heard) === "Hm.")
  const { conversationId } = first.heard[0]?.json ?? {}

  const here = storyIn(yield* serverWith(access, others, teller, yield* freeAddress), access, there.projectId)
  const path = `/api/projects/${here.projectId}/contexts/${contextOf(conversationId)}/events?after=start`
  const log = yield* openStream(here, path)
  yield* eventually(Effect.as(models.letGoOn, log.heard), (heard) =>
    heard.some(({ name }) => name === "TextDeltaEvent")
  )
  const stream = yield* streamOf(here, "/chat", { conversationId, message: "Louder" })
  yield* stream.until((heard) => wordsIn(heard) === "One.")
  return { here, models, others, stream, teller, there, writer }
})

describe("An answer that one server makes and another tells", () => {
  it.live("is told word by word, to its end, when the one that tells it leaves", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { here, models, stream, teller, writer } = yield* toldElsewhere(inPieces)
        const left = yield* Effect.forkScoped(Scope.close(teller, Exit.void))
        yield* closedTo(here)
        yield* restOf(models, stream)
        yield* Fiber.join(left)
        yield* Scope.close(writer, Exit.void)
      })
    )
  )

  it.live("is made to its end, and asked for once, when the one that makes it leaves", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { models, others, stream, teller, there, writer } = yield* toldElsewhere(inPieces)
        const left = yield* Effect.forkScoped(Scope.close(writer, Exit.void))
        yield* closedTo(there)
        const heard = yield* restOf(models, stream)
        expect(heard.at(-1)?.json).toMatchObject({ status: "completed", response: "One. Two. Three." })
        expect(models.requests).toHaveLength(2)
        expect(others.requests).toEqual([])
        yield* Fiber.join(left)
        yield* Scope.close(teller, Exit.void)
      })
    )
  )

  it.live("is made to its end, also past a call of a tool, when the one that makes it leaves", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { models, others, stream, teller, there, writer } = yield* toldElsewhere(...withCall)
        const left = yield* Effect.forkScoped(Scope.close(writer, Exit.void))
        yield* closedTo(there)
        yield* restOf(models, stream)
        expect(models.requests).toHaveLength(3)
        expect(others.requests).toEqual([])
        yield* Fiber.join(left)
        yield* Scope.close(teller, Exit.void)
      })
    )
  )
})
