/**
 * What was abandoned or failed can be tried again, by a person and once at a time.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "../src/database/postgres-access.ts"
import { ask } from "../testing/owner-rows.ts"
import { askAsServer } from "../testing/couriers.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { entriesOf, entriesWhen, make, saying, silentFor, watcher } from "../testing/story-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Decision: Stuck Job Handling", () => {
    it.effect("S001-R43 an abandoned entry is tried again, as a new attempt beside the old one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // A provider without a key fails a run at once.
        const unreachable = { provider: "anthropic", name: "none" }
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
        const superseded = "The entry was tried again already: see attempt 2"
        for (const answer of [
          ...answers.filter(({ status }) => status === 409),
          yield* story.ask("POST", path)
        ])
          expect(answer.body).toMatchObject({ reason: "state", detail: superseded })
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
          body: { detail: "The agent is at work on this object: try again when its run has ended" }
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

          const retrier = yield* Effect.orDie(connect(story.access.ownerUrl))
          const inRetrier = (statement: string, id: string) =>
            Effect.orDie(retrier.queryValues(statement, [id]))
          yield* Effect.orDie(retrier.query("begin"))
          yield* inRetrier("select from kb.agents where id = $1 for no key update", agent.id)
          const waiting = askAsServer(
            story.access,
            "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
          )
          yield* asTimePasses(5_000, waiting, ({ length }) => length > 0)
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
