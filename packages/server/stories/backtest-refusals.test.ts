/**
 * What is not run over what happened, and why; and what ends it before its time.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { askBacktest, backtested, backtestRuns, beginBacktest, resultsOf } from "../testing/backtest-words.ts"
import { logOf } from "../testing/context-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { price } from "../testing/spending-words.ts"
import {
  calling,
  callsOf,
  change,
  endedRuns,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"
import { approve } from "../testing/suggestion-words.ts"
import { naming } from "../testing/naming.ts"

/** A run of a backtest that has looked at somebody, who was changed since, and has no step left. */
const pausedRun = Effect.fnUntraced(function* (story: Story) {
  const anna = yield* make(story, "Friend", { mood: "calm" })
  const agent = yield* story.post(
    "/agents",
    watcher({
      maxSteps: 1,
      model: scripted([{ calls: [{ tool: "get_object", arguments: { objectId: anna.id } }] }]),
      enabled: false
    })
  )
  yield* make(story, "Person")
  yield* change(story, anna, { mood: "angry" })
  yield* feedOf(story, 3)
  const [run] = yield* backtestRuns(story, yield* backtested(story, agent))
  expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit" })
  yield* story.patch(`/agents/${agent.id}`, { enabled: true })
  return { agent, anna, run }
})

const isQuietOrPaused = ({ items }: Json): boolean =>
  items.length > 0 && items.every(({ status }: Json) => status !== "queued" && status !== "running")

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A backtest is refused", () => {
    it.effect("where a number is out of its bounds, with the place where it stands", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: saying("Seen.") }))
        for (const [body, pointer] of [
          [{}, "/days"],
          [{ days: 0 }, "/days"],
          [{ days: 91 }, "/days"],
          [{ days: 1.5 }, "/days"],
          [{ days: "7" }, "/days"],
          [{ days: 1, maxEvents: 0 }, "/maxEvents"],
          [{ days: 1, maxEvents: 1_001 }, "/maxEvents"],
          [{ days: 1, maxCostUsd: -1 }, "/maxCostUsd"],
          [{ days: 1, version: 0 }, "/version"],
          [{ days: 1, version: 2 }, "/version"],
          [{ days: 1, version: 2_147_483_648 }, "/version"],
          [{ days: 1, wait: true }, "/wait"]
        ] as const)
          expectProblem(yield* askBacktest(story, agent, body), 422, pointer)
        expect((yield* story.get(`/agents/${agent.id}/backtests`)).items).toEqual([])
        // What is null is as if it were not there.
        expect(
          (yield* askBacktest(story, agent, { days: 90, version: null, maxEvents: null, maxCostUsd: null }))
            .status
        ).toBe(202)
      })
    )

    it.effect("of a version that no event wakes", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: saying("Seen."), triggerType: "manual", reactionConfig: null })
        )
        const refused = yield* askBacktest(story, agent, { days: 1 })
        expectProblem(refused, 409)
        expect(refused.body.detail).toContain("manual")
      })
    )

    it.effect("where there is none, alike for another project's and another agent's", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: saying("Seen.") }))
        const second = yield* story.post("/agents", watcher({ name: "second", model: saying("Seen.") }))
        const theirs = yield* other.post("/agents", watcher({ model: saying("Seen.") }))
        const backtest = yield* backtested(story, agent)
        for (const [by, path] of [
          [story, `/agents/${theirs.id}/backtests`],
          [other, `/agents/${agent.id}/backtests/${backtest.id}`],
          [other, `/agents/${theirs.id}/backtests/${backtest.id}`],
          [story, `/agents/${second.id}/backtests/${backtest.id}`],
          [story, `/agents/${second.id}/backtests/${backtest.id}/results`],
          [story, `/agents/${agent.id}/backtests/nonsense`]
        ] as const)
          expectProblem(yield* by.ask("GET", path), 404)
        expectProblem(yield* story.ask("POST", `/agents/${second.id}/backtests/${backtest.id}/cancel`), 404)
        expectProblem(
          yield* story.ask("GET", `/agents/${agent.id}/backtests/${backtest.id}/results?cursor=x`),
          422
        )
      })
    )
  })

  describe("The context of a backtest is not for talking", () => {
    it.effect("no door writes into it once a limit has stopped its run, and each says why", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, run } = yield* pausedRun(story)
        const before = yield* logOf(story, run.contextName)
        const context = `/contexts/${run.contextName}`
        for (const [path, body] of [
          [`${context}/events`, { type: "UserMessageEvent", content: "Go on" }],
          [`${context}/events`, { type: "UserMessageEvent", content: "Noted", triggersAgentTurn: false }],
          [`${context}/events`, { type: "SystemPromptEvent", content: "Be another" }],
          [`${context}/events`, { type: "SetTimeoutEvent", timeoutMs: 5_000 }],
          [`${context}/interrupt`, {}],
          [
            `${context}/comparisons`,
            { content: "And now?", allowWrites: true, variants: [{ label: "a" }, { label: "b" }] }
          ]
        ] as const) {
          const refused = yield* story.ask("POST", path, body)
          expectProblem(refused, 409)
          expect(refused.body.reason).toBe("state")
        }
        const resumed = yield* story.ask("POST", `/runs/${run.id}/resume`, { maxSteps: 9 })
        expectProblem(resumed, 409)
        expect(resumed.body.reason).toBe("state")
        expectProblem(yield* story.ask("POST", `/runs/${run.id}/answer`, { answer: "Yes" }), 409)
        expect(yield* logOf(story, run.contextName)).toEqual(before)
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
        expect(yield* runsOf(story, agent)).toEqual([])
      })
    )

    it.effect("nobody breaks into its turn while its model is asked", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ enabled: false, model: silentFor(600_000) }))
        yield* make(story, "Person")
        yield* feedOf(story, 1)
        const backtest = yield* beginBacktest(story, agent)
        const [run] = yield* eventually(
          backtestRuns(story, backtest),
          ([first]) => first?.status === "running" && first.stepCount === 0
        )
        const context = yield* eventually(
          story.get(`/contexts/${run.contextName}`),
          ({ isTurnOpen }) => isTurnOpen
        )
        expectProblem(yield* story.ask("POST", `/contexts/${context.name}/interrupt`), 409)
        const said = { type: "UserMessageEvent", content: "Stop" }
        expectProblem(yield* story.ask("POST", `/contexts/${context.name}/events`, said), 409)
        expect((yield* story.get(`/contexts/${context.name}`)).eventCount).toBe(context.eventCount)
        yield* story.post(`/agents/${agent.id}/backtests/${backtest.id}/cancel`)
      })
    )

    it.effect("a fork of it is a conversation like any other, and reads the graph as it is now", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, anna, run } = yield* pausedRun(story)
        const [before] = yield* callsOf(story, run)
        expect(before.result).toMatchObject({ version: 1, properties: { mood: "calm" } })
        yield* story.post(`/contexts/${run.contextName}/fork`, { name: "desk" })
        yield* story.post("/contexts/desk/events", { type: "UserMessageEvent", content: "And now?" })
        yield* eventually(story.get("/runs?limit=200"), isQuietOrPaused)
        const [real] = yield* runsOf(story, agent)
        expect(real).toMatchObject({ contextName: "desk", backtestId: null, trigger: { type: "context" } })
        expect((yield* callsOf(story, real))[0].result).toMatchObject({
          id: anna.id,
          version: 2,
          properties: { mood: "angry" }
        })
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
      })
    )
  })

  describe("A backtest that has nothing to run, or nothing left to spend", () => {
    it.effect("is over at once, and says that nothing was judged", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: saying("Seen.") }))
        expect(yield* backtested(story, agent)).toMatchObject({
          status: "completed",
          events: { looked: 0, matched: 0, chosen: 0, done: 0 },
          report: { agreement: { agreed: 0, judged: 0, rate: null }, byOperation: [], costUsd: 0 }
        })
      })
    )

    it.effect("begins no further event once its money is spent, and tells how many were not run", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ enabled: false, model: { ...saying("Seen."), price } })
        )
        yield* Effect.forEach(Array.from({ length: 40 }), () => make(story, "Person"), { concurrency: 8 })
        yield* feedOf(story, 40)
        const nothing = yield* backtested(story, agent, { maxCostUsd: 0 })
        expect(nothing).toMatchObject({
          status: "completed",
          events: { chosen: 40, done: 0 },
          detail: naming("$0.00", 40)
        })
        const some = yield* backtested(story, agent, { maxCostUsd: 0.002 })
        expect(some.status).toBe("completed")
        expect(some.detail).toEqual(naming(/\$0\.\d+/, "$0.002", /\b\d+\b/))
        expect(some.events.done).toBeGreaterThan(0)
        expect(some.events.done).toBeLessThan(40)
        expect(some.report.costUsd).toBeGreaterThanOrEqual(0.002)
        // Those that were at work overran it by one request each, at most.
        const costs = (yield* backtestRuns(story, some)).map(({ costUsd }) => costUsd)
        expect(some.report.costUsd).toBeLessThan(0.002 + 8 * Math.max(...costs))
        expect(some.report.costUsd).toBeCloseTo(
          costs.reduce((sum, cost) => sum + cost, 0),
          9
        )
        const days = yield* story.get(`/agents/${agent.id}/usage`)
        expect(days.items).toEqual([])
      })
    )

    it.effect("what is decided later counts later", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({
            executionMode: "suggest",
            model: calling({
              tool: "create_object",
              arguments: { type: "Note", properties: { text: "Hello" } }
            })
          })
        )
        yield* make(story, "Person")
        yield* endedRuns(story, agent, 1)
        const [task] = yield* suggestionsOf(story, 1)
        const backtest = yield* backtested(story, agent)
        expect(backtest.report).toMatchObject({ agreement: { judged: 0 }, undecided: 1, newSuggestions: 0 })
        yield* approve(story, task)
        const later = yield* story.get(`/agents/${agent.id}/backtests/${backtest.id}`)
        expect(later.report).toMatchObject({
          agreement: { agreed: 1, judged: 1, rate: 1 },
          byOperation: [{ objectType: "Note", operation: "create" }],
          undecided: 0
        })
        const [result] = yield* resultsOf(story, backtest)
        expect(result.earlier[0]).toMatchObject({
          status: "completed",
          isEdited: false,
          now: "same",
          agrees: true
        })
      })
    )
  })
})
