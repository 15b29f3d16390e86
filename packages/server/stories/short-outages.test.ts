/**
 * A database that is away for some seconds, as at its own restart: what has nothing to do with it goes on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { chatChunk, chatEnd, type FakeAnswer, toEvent } from "../src/model/fake-model-server.ts"
import { operatedDatabase } from "../testing/operated-database.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { answering, newProviderStory } from "../testing/provider-story.ts"
import { asTimePasses, passing } from "../testing/shared-server.ts"
import { endedRuns } from "../testing/story-words.ts"
import { begin, partialOf } from "../testing/time-words.ts"

const piece = (text: string): string => toEvent(chatChunk({ content: text }))

/** An answer in three pieces, each when the story wants it. */
const inPieces: FakeAnswer = {
  kind: "stream",
  chunks: [piece("One.")],
  ending: "hang",
  rest: [piece(" Two."), [piece(" Three."), ...chatEnd("stop").map(toEvent)].join("")]
}

const leaseOf = (story: Story, run: Json) =>
  Effect.map(
    ask(story.access, "select lease_expires_at::text from kb.agent_runs where id = $1", [run.id]),
    ([row]) => row?.[0]
  )

describe("A model request under way while the database is away for less than a lease", () => {
  it.effect("goes on in the same attempt, and what is shown of it and its lease are kept afterwards", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([inPieces])
        const { become } = yield* operatedDatabase(story.access)
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* asTimePasses(50, partialOf(story, run), (text) => text === "One.")
        const lease = yield* leaseOf(story, run)

        yield* become("connection limit 0")
        yield* provider.letGoOn
        // Long enough for looks at who breaks in, for texts that are to be kept, and for heartbeats.
        yield* passing(2 * runLimits.heartbeatIntervalMs, 200)
        yield* become("connection limit -1")

        yield* asTimePasses(50, partialOf(story, run), (text) => text === "One. Two.")
        yield* asTimePasses(250, leaseOf(story, run), (found) => found !== lease)
        expect(yield* Deferred.isDone(provider.hungUp)).toBe(false)
        yield* provider.letGoOn
        expect(yield* endedRuns(story, agent, 1)).toMatchObject([
          { id: run.id, status: "completed", attempt: 1, summary: "One. Two. Three." }
        ])
        expect(provider.requests).toHaveLength(1)
      })
    )
  )
})

describe("A model request under way while the database is away for longer than a lease", () => {
  it.effect("is aborted when the lease is over, and another attempt asks again", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { agent, provider, story } = yield* newProviderStory([inPieces, answering("All.")])
        const { become } = yield* operatedDatabase(story.access)
        const run = yield* begin(story, agent)
        yield* Deferred.await(provider.asked)
        yield* become("connection limit 0")
        yield* asTimePasses(250, Deferred.isDone(provider.hungUp), (isDone) => isDone)
        yield* become("connection limit -1")
        // The database has a clock of its own.
        yield* ask(story.access, "update kb.agent_runs set lease_expires_at = now() where id = $1", [run.id])
        const [ended] = yield* asTimePasses(250, endedOf(story, agent), ({ length }) => length === 1)
        expect(ended).toMatchObject({ status: "completed", attempt: 2, summary: "All." })
        expect(provider.requests).toHaveLength(2)
      })
    )
  )
})

const endedOf = (story: Story, agent: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.ask("GET", `/runs?agentId=${agent.id}`), ({ body }) =>
    (body.items ?? []).filter(({ completedAt }: Json) => completedAt !== null)
  )
