/**
 * Appends of runs are written in batches, and no run notices the others in its batch.
 *
 * Twenty runs of one project answer in the same moment. One of them says what a row refuses, or another transaction holds
 * its row: the others end as if it were not there. `write-counts.deep.test.ts` counts the transactions.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, entriesWhen, runsOf, saying, silentFor, watcher } from "../testing/story-words.ts"

const words = Array.from({ length: 20 }, (_, index) => `word ${index}`)

const wake = (story: Story, names: ReadonlyArray<string>) =>
  Effect.forEach(names, (name) => story.post("/objects", { type: "Person", properties: { name } }), {
    concurrency: names.length
  })

/** How often each kind of event is in the log of a run. */
const kindsOf = (story: Story, run: Json) =>
  Effect.map(story.get(`/contexts/${run.contextName}/events?limit=100`), ({ items }) =>
    items.map(({ type }: Json) => type).filter((type: string) => type !== "SetLlmConfigEvent")
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Appends of runs in batches", () => {
    it.effect("each run has its own answer, log, usage and entry", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: saying("I saw {{ input.object.properties.name }}.") })
        )
        const objects = yield* wake(story, words)
        const runs = yield* endedRuns(story, agent, words.length)
        const nameOf = new Map(objects.map(({ id, properties }) => [id, properties.name]))
        expect(runs.map(({ status }) => status)).toEqual(words.map(() => "completed"))
        for (const run of runs)
          expect(run.summary).toBe(`I saw ${nameOf.get(run.trigger.events[0].objectId)}.`)
        expect(new Set(runs.map(({ stepCount }) => stepCount))).toEqual(new Set([1]))
        const [first] = yield* Effect.forEach(runs, (run) => kindsOf(story, run)).pipe(
          Effect.tap((all) =>
            Effect.sync(() => expect(new Set(all.map((kinds) => kinds.join()))).toHaveLength(1))
          )
        )
        expect(first?.at(-1)).toBe("SessionEndedEvent")
        const entries = yield* entriesWhen(story, agent, words.length)
        expect(entries.map(({ status }) => status)).toEqual(words.map(() => "completed"))
        const calls = yield* ask(
          story.access,
          "select count(*)::int, count(distinct run_id)::int from kb.model_calls where agent_id = $1",
          [agent.id]
        )
        expect(calls).toEqual([[20, 20]])
        // What the steps used is what their budgets hold.
        const [[used, counted, steps] = []] = yield* ask(
          story.access,
          `select (select sum((usage ->> 'outputTokens')::int)::int from kb.agent_runs where agent_id = $1),
            sum(output_tokens)::int, sum(runs)::int from kb.budgets where scope = 'agent' and scope_id = $1`,
          [agent.id]
        )
        expect([counted, steps]).toEqual([used, 20])
      })
    )

    it.effect("an answer that a row refuses fails its own run alone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: saying("{{ input.object.properties.name }}") })
        )
        yield* ask(
          story.access,
          `alter table kb.context_events add constraint refused_word check (
            project_id <> '${story.projectId}' or type <> 'AssistantMessageEvent' or payload ->> 'content' <> 'word 7') not valid`
        )
        yield* Effect.gen(function* () {
          yield* wake(story, words)
          const runs = yield* endedRuns(story, agent, words.length)
          const failed = runs.filter(({ status }) => status !== "completed")
          expect(failed.map(({ failureReason, status }) => [status, failureReason])).toEqual([
            ["failed", "refused"]
          ])
          expect(runs.filter(({ summary }) => summary === "word 7")).toEqual([])
          const entries = yield* entriesWhen(story, agent, words.length)
          expect(entries.filter(({ status }) => status === "completed")).toHaveLength(19)
        }).pipe(
          Effect.ensuring(ask(story.access, "alter table kb.context_events drop constraint refused_word"))
        )
      })
    )

    it.effect("a run whose row another transaction holds waits alone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: silentFor(300) }))
        yield* wake(story, words.slice(0, 8))
        const [held] = yield* eventually(
          runsOf(story, agent),
          (runs) => runs.length === 8 && runs.every(({ status }) => status === "running")
        )
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* holding(
              story.access,
              `select id from kb.agent_runs where id = '${held?.id}' for no key update`
            )
            const others = yield* eventually(
              Effect.map(runsOf(story, agent), (runs) => runs.filter(({ id }) => id !== held?.id)),
              (runs) => runs.every(({ status }) => status === "completed")
              // A batch that waits for the row is given up by the database only after half a minute.
            ).pipe(Effect.timeout("20 seconds"))
            expect(others).toHaveLength(7)
            const run = yield* story.get(`/runs/${held?.id}`)
            expect(run.status).toBe("running")
          })
        )
        const runs = yield* endedRuns(story, agent, 8)
        expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => "completed"))
      })
    )
  })
})
