/**
 * A version of an agent is run over what happened, and compared with what people decided.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  askBacktest,
  backtested,
  backtestNow,
  backtestOver,
  backtestRuns,
  beginBacktest,
  resultsOf
} from "../testing/backtest-words.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  calling,
  callsOf,
  change,
  endedRuns,
  entriesOf,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"
import { approve, reject } from "../testing/suggestion-words.ts"

/** An agent that would set properties of each Person that is created. */
const setter = (properties: Record<string, unknown>, overrides: Record<string, unknown> = {}) =>
  watcher({
    executionMode: "suggest",
    model: calling({
      tool: "update_object",
      arguments: {
        objectId: "{{ input.object.id }}",
        properties,
        confidence: 0.9,
        reasoning: "Everybody has it"
      }
    }),
    ...overrides
  })

/** The agent, and a suggestion for each of so many Persons, oldest first. */
const suggestedFor = Effect.fnUntraced(function* (story: Story, count: number) {
  const agent = yield* story.post("/agents", setter({ team: "green" }))
  const persons = yield* Effect.forEach(Array.from({ length: count }), (_, n) => make(story, "Person", { n }))
  yield* endedRuns(story, agent, count)
  const tasks = yield* suggestionsOf(story, count)
  const taskOf = (person: Json): Json =>
    tasks.find((task) => task.payload.suggestedChanges.objectId === person.id)
  return { agent, persons, tasks: persons.map(taskOf) }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Backtest", () => {
    it.effect("what was accepted should be suggested again, and what was rejected should not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, persons, tasks } = yield* suggestedFor(story, 4)
        yield* approve(story, tasks[0])
        yield* approve(story, tasks[1], { suggestedChanges: { data: { team: "blue" } } })
        yield* reject(story, tasks[2], { reason: "No" })
        const same = yield* backtested(story, agent)
        expect(same).toMatchObject({
          status: "completed",
          agentVersion: 1,
          events: { matched: 4, chosen: 4, done: 4 },
          report: {
            // The first is accepted and suggested again; the edited one is as it was, and the rejected one comes again.
            agreement: { agreed: 1, judged: 3, rate: 1 / 3 },
            edited: { asEdited: 0, asSuggested: 1, neither: 0 },
            properties: { same: 1, suggested: 2, accepted: 2, precision: 0.5, recall: 0.5 },
            byOperation: [{ objectType: "Person", operation: "update", agreed: 1, judged: 3 }],
            undecided: 1,
            newSuggestions: 0,
            runs: { completed: 4, failed: 0, cancelled: 0, paused: 0 }
          }
        })
        const results = yield* resultsOf(story, same)
        expect(results.map(({ event, number }) => [number, event.objectId])).toEqual(
          persons.map(({ id }, index) => [index + 1, id])
        )
        expect(
          results.map(({ earlier }) => [
            earlier[0].status,
            earlier[0].isEdited,
            earlier[0].now,
            earlier[0].agrees
          ])
        ).toEqual([
          ["completed", false, "same", true],
          ["completed", true, "same", false],
          ["rejected", false, "same", false],
          ["pending", false, "same", null]
        ])
        expect(results[0].now).toEqual([
          {
            change: { type: "update", objectId: persons[0].id, data: { team: "green" } },
            confidence: 0.9,
            reasoning: "Everybody has it",
            isNew: false
          }
        ])
      })
    )

    it.effect("another version is measured against the same decisions", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, tasks } = yield* suggestedFor(story, 3)
        yield* approve(story, tasks[0])
        yield* approve(story, tasks[1], { suggestedChanges: { data: { team: "blue" } } })
        yield* reject(story, tasks[2])
        const { model } = setter({ team: "blue" })
        yield* story.patch(`/agents/${agent.id}`, { model })
        const second = yield* backtested(story, agent)
        expect(second).toMatchObject({
          agentVersion: 2,
          report: {
            agreement: { agreed: 2, judged: 3 },
            edited: { asEdited: 1, asSuggested: 0, neither: 0 },
            // What was rejected is not suggested in that form; what is suggested in its place is new.
            newSuggestions: 1
          }
        })
        yield* story.patch(`/agents/${agent.id}`, { model: saying("Nothing.") })
        expect((yield* backtested(story, agent)).report).toMatchObject({
          agreement: { agreed: 1, judged: 3 },
          edited: { neither: 1 },
          properties: { suggested: 0, accepted: 2, precision: null, recall: 0 },
          newSuggestions: 0
        })
        // An earlier version, by its number.
        expect((yield* backtested(story, agent, { version: 1 })).report.agreement).toMatchObject({
          agreed: 1
        })
      })
    )

    it.effect(
      "its events are those that would have woken the version, the newest of them, told oldest first",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            setter(
              { team: "green" },
              {
                enabled: false,
                reactionConfig: {
                  objectTypes: ["Person"],
                  events: ["created", "updated"],
                  where: { properties: [{ property: "n", op: "gte", value: 1 }] },
                  ignoreAgentTriggered: true
                }
              }
            )
          )
          const writer = yield* story.post(
            "/agents",
            watcher({
              name: "writer",
              reactionConfig: { objectTypes: ["Start"], events: ["created"] },
              model: calling({ tool: "create_object", arguments: { type: "Person", properties: { n: 9 } } })
            })
          )
          const persons = yield* Effect.forEach([0, 1, 2, 3], (n) => make(story, "Person", { n }))
          yield* make(story, "Start")
          yield* make(story, "Place", { n: 5 })
          yield* endedRuns(story, writer, 1)
          yield* change(story, persons[1], { n: 7 })
          yield* feedOf(story, 8)
          const backtest = yield* backtested(story, agent, { maxEvents: 3 })
          expect(backtest.events).toEqual({ looked: 8, matched: 4, chosen: 3, done: 3 })
          const results = yield* resultsOf(story, backtest)
          expect(results.map(({ event }) => [event.objectId, event.type, event.version])).toEqual([
            [persons[2]?.id, "created", 1],
            [persons[3]?.id, "created", 1],
            [persons[1]?.id, "updated", 2]
          ])
          // A disabled agent may be tried out, and what it says is new.
          expect(backtest.report).toMatchObject({ newSuggestions: 3, agreement: { judged: 0, rate: null } })
          expect((yield* story.get(`/agents/${agent.id}`)).enabled).toBe(false)
        })
    )

    it.effect("an event counts from its commit on, whether the dispatcher has come to it or not", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", setter({ team: "green" }, { enabled: false }))
        const early = [yield* make(story, "Person"), yield* make(story, "Person")]
        yield* feedOf(story, 2)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const feed = `select from kb.feeds where project_id = '${story.projectId}' for update`
            const holder = yield* holding(story.access, feed)
            const late = [yield* make(story, "Person"), yield* make(story, "Person")]
            const places = (yield* ask(
              story.access,
              "select position from kb.graph_events where project_id = $1 order by seq",
              [story.projectId]
            )).map(([place]) => Number(place ?? 0))
            expect(places).toEqual([1, 2, 0, 0])
            const backtest = yield* backtested(story, agent, { maxEvents: 3 })
            expect(backtest.events).toEqual({ looked: 4, matched: 4, chosen: 3, done: 3 })
            expect((yield* resultsOf(story, backtest)).map(({ event }) => event.objectId)).toEqual(
              [early[1], ...late].map(({ id }: Json) => id)
            )
            yield* holder.query("rollback")
          }).pipe(Effect.orDie)
        )
      })
    )

    it.effect("its runs are told apart from those that work for real", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent } = yield* suggestedFor(story, 2)
        const entries = yield* entriesOf(story, agent)
        const backtest = yield* backtested(story, agent)
        const runs = yield* backtestRuns(story, backtest)
        expect(runs).toHaveLength(2)
        for (const run of runs)
          expect(run).toMatchObject({
            backtestId: backtest.id,
            agentVersion: 1,
            trigger: { type: "reaction" },
            status: "completed"
          })
        expect((yield* runsOf(story, agent)).map((run) => run.backtestId)).toEqual([null, null])
        expect((yield* story.get(`/runs/${runs[0].id}`)).backtestId).toBe(backtest.id)
        expect(yield* entriesOf(story, agent)).toEqual(entries)
        expect((yield* story.get(`/agents/${agent.id}/backtests`)).items.map(({ id }: Json) => id)).toEqual([
          backtest.id
        ])
        const [call] = yield* callsOf(story, runs[0])
        expect(call).toMatchObject({ decision: "suggest", result: { status: "suggested" } })
        expect((yield* story.get(`/chains/${runs[0].id}`)).runs?.items ?? []).toEqual([])
      })
    )

    it.effect("one of an agent is under way at a time; another agent has its own", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000), enabled: false }))
        const other = yield* story.post(
          "/agents",
          watcher({ name: "other", model: saying("Seen."), enabled: false })
        )
        yield* Effect.forEach([1, 2, 3], () => make(story, "Person"))
        yield* feedOf(story, 3)
        const first = yield* beginBacktest(story, agent)
        const second = yield* askBacktest(story, agent, { days: 1 })
        expect([second.status, second.body.reason]).toEqual([409, "state"])
        expect((yield* backtested(story, other)).status).toBe("completed")
        const cancelled = yield* story.ask("POST", `/agents/${agent.id}/backtests/${first.id}/cancel`)
        expect([cancelled.status, cancelled.body.status]).toEqual([200, "cancelled"])
        const again = yield* story.ask("POST", `/agents/${agent.id}/backtests/${first.id}/cancel`)
        expect([again.status, again.body.reason]).toEqual([409, "state"])
        expect((yield* askBacktest(story, agent, { days: 1, maxCostUsd: 0 })).status).toBe(202)
      })
    )

    it.effect("cancelled, it ends the runs that wait and those at work, and tells what was done", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000), enabled: false }))
        yield* Effect.forEach(Array.from({ length: 12 }), () => make(story, "Person"), { concurrency: 6 })
        yield* feedOf(story, 12)
        const begun = yield* beginBacktest(story, agent)
        yield* story.post(`/agents/${agent.id}/backtests/${begun.id}/cancel`)
        const ended = yield* backtestOver(story, begun)
        expect(ended).toMatchObject({ status: "cancelled", detail: null })
        for (const run of yield* backtestRuns(story, begun)) expect(run.status).toBe("cancelled")
        expect((yield* backtestNow(story, begun)).report.runs.completed).toBe(0)
      })
    )
  })
})
