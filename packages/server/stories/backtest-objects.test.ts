/**
 * An agent is tried out on objects that somebody chose, whatever its trigger says.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { askBacktest, backtested, backtestRuns, resultsOf } from "../testing/backtest-words.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, change, feedOf, make, watcher } from "../testing/story-words.ts"

const tagging = calling({
  tool: "update_object",
  arguments: { objectId: "{{ input.object.id }}", properties: { seen: "{{ input.object.properties.n }}" } }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A backtest of chosen objects", () => {
    it.effect("runs over the newest change of each, also where the reaction would not have woken", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const person = yield* make(story, "Person", { n: 1 })
        yield* change(story, person, { n: 2 })
        const place = yield* make(story, "Place", { n: 7 })
        yield* feedOf(story, 3)
        const agent = yield* story.post("/agents", watcher({ enabled: false, model: tagging }))
        const backtest = yield* backtested(story, agent, { days: null, objectIds: [place.id, person.id] })
        expect(backtest).toMatchObject({
          status: "completed",
          days: null,
          objectIds: [place.id, person.id],
          // The reaction is to Persons that are created.
          events: { looked: 2, matched: 0, chosen: 2, done: 2 }
        })
        const results = yield* resultsOf(story, backtest)
        expect(results.map(({ event, now }) => [event.objectId, event.type, now[0].change.data])).toEqual([
          [person.id, "updated", { seen: 2 }],
          [place.id, "created", { seen: 7 }]
        ])
        // Nothing came of it in the graph.
        expect((yield* story.get(`/objects/${person.id}`)).properties).toEqual({ n: 2 })
        expect((yield* story.get("/tasks")).items).toEqual([])
      })
    )

    it.effect("tries an agent out that no event wakes, and no more objects than it is told", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const [first, second] = [
          yield* make(story, "Person", { n: 1 }),
          yield* make(story, "Person", { n: 2 })
        ]
        yield* feedOf(story, 2)
        const agent = yield* story.post("/agents", {
          ...watcher({ model: tagging }),
          triggerType: "manual",
          reactionConfig: null
        })
        expectProblem(yield* askBacktest(story, agent, { days: 1 }), 409)
        const backtest = yield* backtested(story, agent, {
          days: null,
          objectIds: [first.id, second.id],
          maxEvents: 1
        })
        expect(backtest.events).toMatchObject({ looked: 2, matched: 0, chosen: 1, done: 1 })
        expect(yield* backtestRuns(story, backtest)).toMatchObject([{ status: "completed" }])
        const [result] = yield* resultsOf(story, backtest)
        expect(result).toMatchObject({ event: { objectId: second.id } })
      })
    )

    it.effect("is refused where it is no choice, with the place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: tagging }))
        const [mine, foreign] = [yield* make(story, "Person"), yield* make(other, "Person")]
        const nobody = "01990000-0000-7000-8000-00000000dead"
        for (const [body, pointer] of [
          [{ objectIds: [] }, "/objectIds"],
          [{ objectIds: [mine.id, mine.id] }, "/objectIds"],
          [{ objectIds: ["x"] }, "/objectIds/0"],
          [{ objectIds: [mine.id, nobody] }, "/objectIds/1"],
          [{ objectIds: [foreign.id] }, "/objectIds/0"],
          [{ days: 1, objectIds: [mine.id] }, "/days"],
          [{ days: null, objectIds: null }, "/days"]
        ] as const)
          expectProblem(yield* askBacktest(story, agent, body), 422, pointer)
        expect((yield* story.get(`/agents/${agent.id}/backtests`)).items).toEqual([])
      })
    )
  })
})
