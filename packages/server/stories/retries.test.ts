/**
 * What was abandoned or failed can be tried again, by a person and once at a time.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask, holding } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { lockWaits } from "../testing/server-connections.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  entriesOf,
  entriesWhen,
  isOver,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"

// A provider without a key fails a run at once.
const unreachable = { provider: "anthropic", name: "none" }

const retry = (story: Story, agent: Json, entry: Json) =>
  story.ask("POST", `/agents/${agent.id}/processing-log/${entry.id}/retry`)

/** An agent that has failed on so many objects, with the entries. */
const failedOf = Effect.fnUntraced(function* (
  story: Story,
  count: number,
  reactionConfig: { readonly objectTypes: ReadonlyArray<string> } & Record<string, unknown>
) {
  const [type = ""] = reactionConfig.objectTypes
  const agent = yield* story.post("/agents", watcher({ name: type, model: unreachable, reactionConfig }))
  for (let made = 0; made < count; made += 1) yield* make(story, type)
  return { agent, failed: yield* entriesWhen(story, agent, count, ({ status }) => status === "failed") }
})

/** Lets time pass until all entries are over, and says how many at most had a run at one look. */
const overAsTimePasses = Effect.fnUntraced(function* (story: Story, agent: Json, count: number) {
  let most = 0
  const look = Effect.tap(entriesOf(story, agent), (now) =>
    Effect.sync(() => {
      most = Math.max(most, now.filter((entry) => entry.runId !== null && !isOver(entry)).length)
    })
  )
  const entries = yield* asTimePasses(15_000, look, (now) => now.length === count && now.every(isOver))
  return { entries, most }
})

layer(SharedServer.layer)((it) => {
  describe("Decision: Stuck Job Handling", () => {
    it.effect("S001-R43 an abandoned entry is tried again, as a new attempt beside the old one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: unreachable }))
        yield* make(story, "Person")
        const [failed] = yield* entriesWhen(story, agent, 1, (entry) => entry.status === "failed")
        yield* ask(story.access, "update kb.agent_processing_log set status = 'abandoned' where id = $1", [
          failed.id
        ])
        yield* story.patch(`/agents/${agent.id}`, { model: saying("Done.") })

        const path = `/agents/${agent.id}/processing-log/${failed.id}/retry`
        const answers = yield* Effect.all(
          Array.from({ length: 8 }, () => story.ask("POST", path)),
          { concurrency: "unbounded" }
        )
        expect(answers.map((answer) => answer.status).toSorted()).toEqual([
          201,
          ...Array.from({ length: 7 }, () => 409)
        ])
        const [old, done] = yield* entriesWhen(story, agent, 2)
        expect(old).toMatchObject({ id: failed.id, status: "abandoned", attempt: 1 })
        expect(done).toMatchObject({
          status: "completed",
          attempt: 2,
          objectVersion: 1,
          eventId: failed.eventId
        })
        for (const answer of [
          ...answers.filter(({ status }) => status === 409),
          yield* story.ask("POST", path)
        ])
          expect(answer.body).toMatchObject({ reason: "state", detail: expect.stringMatching(/\b2\b/) })
        const run = yield* story.get(`/runs/${done.runId}`)
        expect(run).toMatchObject({ status: "completed", agentVersion: 2, trigger: { type: "reaction" } })
      })
    )

    it.effect("S001-R43 while the agent is at work on the object nothing is tried again beside it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactionConfig = { objectTypes: ["Person"], events: ["created", "updated"] }
        const agent = yield* story.post(
          "/agents",
          watcher({ reactionConfig, model: { provider: "anthropic", name: "none" } })
        )
        const person = yield* make(story, "Person")
        const [failed] = yield* entriesWhen(story, agent, 1)
        yield* story.patch(`/agents/${agent.id}`, { model: silentFor(600_000) })
        yield* story.patch(`/objects/${person.id}`, { properties: { age: 1 } })
        const [, working] = yield* entriesWhen(story, agent, 2, ({ status }) => status !== "pending")
        const answer = yield* story.ask("POST", `/agents/${agent.id}/processing-log/${failed.id}/retry`)
        expect(answer).toMatchObject({
          status: 409,
          body: { reason: "state" }
        })
        yield* story.post(`/runs/${working.runId}/cancel`)
      })
    )

    it.effect("S001-R43 what was completed is not tried again, and nothing is retried by itself", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: saying("Done.") }))
        yield* make(story, "Person")
        const [entry] = yield* entriesWhen(story, agent, 1, (found) => found.status === "completed")
        const answer = yield* story.ask("POST", `/agents/${agent.id}/processing-log/${entry.id}/retry`)
        expect(answer).toMatchObject({ status: 409, body: { reason: "state" } })
        expect(yield* entriesOf(story, agent)).toHaveLength(1)
      })
    )

    it.effect(
      "S001-R43 S001-K03 beyond what the agent may begin a retry waits, says for what, and begins in time",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          // The first three attempts count as begun, so that one place is left by either bound.
          for (const [bound, sentence, loosened] of [
            [{ maxConcurrency: 1 }, "maxConcurrency", { maxConcurrency: 1 }],
            [{ rateLimit: { maxRuns: 4, perSeconds: 3_600 } }, "rateLimit", { maxConcurrency: 1 }]
          ] as const) {
            const reacting = { objectTypes: [sentence], events: ["created"] }
            const { agent, failed } = yield* failedOf(story, 3, reacting)
            const slow = { model: silentFor(60_000), reactionConfig: { ...reacting, ...bound } }
            yield* story.patch(`/agents/${agent.id}`, slow)
            const answers = yield* Effect.forEach(failed, (entry) => retry(story, agent, entry))
            expect(answers.map(({ status }) => status)).toEqual([201, 201, 201])
            const waits = { status: "pending", runId: null, reason: expect.stringContaining(sentence) }
            const begins = { status: "pending", runId: expect.any(String), reason: null }
            expect(answers.map(({ body }) => body)).toMatchObject([begins, waits, waits])
            // Neither a second wish nor a look of the releaser gives it a run.
            expect((yield* retry(story, agent, failed[1])).status).toBe(409)
            yield* entriesWhen(story, agent, 6, ({ status }) => status !== "abandoned")
            expect(yield* runsOf(story, agent)).toHaveLength(4)

            yield* story.patch(`/agents/${agent.id}`, { reactionConfig: { ...reacting, ...loosened } })
            const { entries, most } = yield* overAsTimePasses(story, agent, 6)
            expect(most).toBe(1)
            expect(entries.slice(3).map(({ attempt, status }) => [attempt, status])).toEqual(
              failed.map(() => [2, "completed"])
            )
          }
        })
    )

    it.effect(
      "S001-R43 a retry that would wait is refused as well while the agent is at work on the object",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const reacting = { objectTypes: ["Person"], events: ["created", "updated"], maxConcurrency: 1 }
          const { agent, failed } = yield* failedOf(story, 1, reacting)
          yield* story.patch(`/agents/${agent.id}`, { model: silentFor(60_000) })
          yield* story.patch(`/objects/${failed[0].graphObjectId}`, { properties: { age: 1 } })
          yield* entriesWhen(story, agent, 2, ({ status }) => status !== "pending")
          expect(yield* retry(story, agent, failed[0])).toMatchObject({
            status: 409,
            body: { reason: "state" }
          })
        })
    )

    it.effect(
      "a run that ends takes its agent before its entry and its budgets, as whoever retries does",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: saying("Done.") }))
          yield* make(story, "Person")
          yield* entriesWhen(story, agent, 1)
          yield* story.patch(`/agents/${agent.id}`, { model: { provider: "anthropic", name: "none" } })
          yield* make(story, "Person")
          yield* entriesWhen(story, agent, 2)
          yield* story.patch(`/agents/${agent.id}`, { model: silentFor(60_000) })
          yield* make(story, "Person")
          const [, , working] = yield* entriesWhen(story, agent, 3, ({ status }) => status !== "pending")

          const counts = `select from kb.agents where id = '${agent.id}' for no key update`
          const retrier = yield* holding(story.access, counts)
          yield* asTimePasses(5_000, lockWaits(story.access), (waits) => waits > 0)
          const inRetrier = (statement: string, id: string) =>
            Effect.orDie(retrier.queryValues(statement, [id]))
          expect(
            yield* inRetrier(
              "select run_id from kb.agent_processing_log where id = $1 for no key update nowait",
              working.id
            )
          ).toEqual([[working.runId]])
          expect(
            yield* inRetrier("select from kb.budgets where scope_id = $1 for no key update nowait", agent.id)
          ).not.toEqual([])
          yield* Effect.orDie(retrier.query("commit"))
          const ended = yield* entriesWhen(story, agent, 3)
          expect(ended.map(({ status }) => status)).toEqual(["completed", "failed", "completed"])
        }).pipe(Effect.scoped)
    )
  })
})
