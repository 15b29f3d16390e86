/**
 * What a run and an agent may spend on models, and where they stop.
 *
 * The budgets of chains are told in `chains.test.ts`.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, type Json, newProject, scripted, startServer, type Story } from "../testing/platform.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { whileServing } from "../testing/restarts.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { dayBefore, fourSteps, price, priced, restingRun, tokensOf } from "../testing/spending-words.ts"
import { calling, entriesOf, make, runsOf, saying, watcher } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

describe("Requirement: what was spent is known after a restart", () => {
  it.live(
    "a run goes on after its last step and stops where it would have stopped, and so does its agent",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const { projectId } = yield* Effect.scoped(
          Effect.flatMap(startServer(access), (doors) => newProject(doors, access))
        )
        const slowSecond = (latencyMs: number) =>
          scripted([
            {
              when: "step == 0",
              calls: [{ tool: "create_object", arguments: { type: "Note", properties: {} } }]
            },
            { when: "step == 1", latencyMs, calls: [{ tool: "search_objects", arguments: {} }] },
            { say: "Done." }
          ])
        const define = (name: string, budget: Json, latencyMs = 4_000) =>
          watcher({ name, model: slowSecond(latencyMs), budget })
        const [measured, bounded, daily] = yield* whileServing(access, projectId, (before) =>
          Effect.gen(function* () {
            const measuring = yield* before.post("/agents", define("measuring", null, 600_000))
            yield* make(before, "Person")
            const afterOne = yield* eventually(runsOf(before, measuring), ([run]) => run?.stepCount === 1)
            const budget = { maxTokens: tokensOf(afterOne[0]) + 1 }
            const found = [
              yield* before.post("/agents", define("bounded", { perRun: budget })),
              yield* before.post("/agents", define("daily", { perDay: budget }))
            ]
            yield* make(before, "Person")
            for (const agent of found)
              yield* eventually(runsOf(before, agent), ([run]) => run?.stepCount >= 1)
            return [tokensOf(afterOne[0]), ...found]
          })
        )
        yield* whileServing(access, projectId, (after) =>
          Effect.gen(function* () {
            for (const agent of [bounded, daily]) {
              const run = yield* restingRun(after, agent)
              expect(run).toMatchObject({ status: "paused", pauseReason: "budget", stepCount: 2 })
              expect(tokensOf(run)).toBeGreaterThan(measured)
              expect(run.total.usage).toEqual(run.usage)
              expect(run.errorMessage).toEqual(naming(tokensOf(run), measured + 1))
            }
          })
        )
      })
  )
})

layer(SharedServer.layer)((it) => {
  describe("Requirement: a run has a budget", () => {
    it.effect("a token budget that is reached in the middle of a run stops it before the next request", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: fourSteps, budget: { perRun: { maxTokens: 1 } } })
        )
        yield* make(story, "Person")
        const run = yield* restingRun(story, agent)
        const reason = naming(tokensOf(run), 1)
        expect(run).toMatchObject({
          status: "paused",
          pauseReason: "budget",
          stepCount: 1,
          summary: "Step 0.",
          errorMessage: reason,
          completedAt: null,
          limits: { maxTokens: 1, maxCostUsd: null }
        })
        expect(tokensOf(run)).toBeGreaterThan(1)
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "completed", reason }])
        // What the step had asked for was done before the budget was looked at again.
        expect((yield* story.get("/objects?type=Note")).items).toHaveLength(1)
        const log = yield* story.get(`/runs/${run.id}/events`)
        expect(log.items.slice(-2)).toMatchObject([
          { type: "AgentTurnInterruptedEvent", reason: "budget" },
          { type: "SessionEndedEvent" }
        ])
      })
    )

    it.effect("money is counted by the model's price, and stops a run as tokens do", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const stopped = yield* story.post(
          "/agents",
          watcher({ name: "stopped", model: priced, budget: { perRun: { maxCostUsd: 0.000_001 } } })
        )
        const free = yield* story.post(
          "/agents",
          watcher({ name: "free", model: fourSteps, budget: { perRun: { maxCostUsd: 0.000_001 } } })
        )
        const ample = yield* story.post(
          "/agents",
          watcher({
            name: "ample",
            model: priced,
            budget: { perRun: { maxCostUsd: 100, maxTokens: 1_000_000 } }
          })
        )
        yield* make(story, "Person")
        const run = yield* restingRun(story, stopped)
        expect(run).toMatchObject({ status: "paused", pauseReason: "budget", stepCount: 1 })
        expect(run.costUsd).toBeCloseTo((run.usage.inputTokens * 3 + run.usage.outputTokens * 15) / 1e6, 5)
        expect(run.errorMessage).toEqual(naming(`$${run.costUsd.toFixed(6)}`, "$0.000001"))
        // No price is no money: nothing is known to have been spent.
        expect(yield* restingRun(story, free)).toMatchObject({
          status: "completed",
          stepCount: 4,
          costUsd: 0
        })
        expect(yield* restingRun(story, ample)).toMatchObject({ status: "completed", stepCount: 4 })
      })
    )

    it.effect("a budget of nothing asks no model at all", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ budget: { perRun: { maxTokens: 0 } } }))
        yield* make(story, "Person")
        const run = yield* restingRun(story, agent)
        expect(run).toMatchObject({ status: "paused", pauseReason: "budget", stepCount: 0, summary: null })
        expect(run.errorMessage).toEqual(naming(0, 0))
      })
    )

    it.effect("what a run tells of its cost is the sum of its steps", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: priced }))
        yield* make(story, "Person")
        const run = yield* restingRun(story, agent)
        const log = yield* story.get(`/runs/${run.id}/events?limit=200`)
        const steps = log.items.filter((event: Json) => event.type === "AssistantMessageEvent")
        expect(steps).toHaveLength(4)
        const sum = (of: (usage: Json) => number) =>
          steps.reduce((total: number, { usage }: Json) => total + of(usage), 0)
        const usage = {
          inputTokens: sum(({ inputTokens }) => inputTokens),
          outputTokens: sum(({ outputTokens }) => outputTokens)
        }
        const costUsd =
          sum((each) =>
            Math.ceil(each.inputTokens * price.inputPerMillion + each.outputTokens * price.outputPerMillion)
          ) / 1_000_000
        expect(run).toMatchObject({ usage, costUsd, total: { usage, costUsd } })
        const chain = yield* story.get(`/chains/${run.rootEventId}`)
        expect(chain.use).toMatchObject({ ...usage, costUsd, runs: 1 })
      })
    )
  })

  describe("Requirement: an agent has a budget for each day", () => {
    it.effect("all runs of the agent spend it, and the next one asks no model", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ budget: { perDay: { maxTokens: 1 } } }))
        const other = yield* story.post("/agents", watcher({ name: "other" }))
        yield* make(story, "Person")
        const first = yield* restingRun(story, agent)
        expect(first).toMatchObject({ status: "completed", stepCount: 1 })
        yield* make(story, "Person")
        const second = yield* restingRun(story, agent, 2)
        expect(second).toMatchObject({
          status: "paused",
          pauseReason: "budget",
          stepCount: 0,
          errorMessage: naming(tokensOf(first), 1)
        })
        // Nobody else pays for it.
        expect(yield* restingRun(story, other, 2)).toMatchObject({ status: "completed" })
      })
    )

    it.effect("a day's money stops as well, and a higher budget lets the next run go on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: { ...saying("Seen."), price }, budget: { perDay: { maxCostUsd: 0.000_001 } } })
        )
        yield* make(story, "Person")
        const { costUsd } = yield* restingRun(story, agent)
        yield* make(story, "Person")
        expect(yield* restingRun(story, agent, 2)).toMatchObject({
          status: "paused",
          errorMessage: naming(`$${costUsd.toFixed(6)}`, "$0.000001")
        })
        yield* story.patch(`/agents/${agent.id}`, { budget: { perDay: { maxCostUsd: 5 } } })
        yield* make(story, "Person")
        expect(yield* restingRun(story, agent, 3)).toMatchObject({ status: "completed", stepCount: 1 })
      })
    )

    it.effect("a new day begins with nothing spent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ budget: { perDay: { maxTokens: 1 } } }))
        yield* make(story, "Person")
        yield* restingRun(story, agent)
        yield* agedByADay(story)
        yield* make(story, "Person")
        const run = yield* restingRun(story, agent, 2)
        expect(run).toMatchObject({ status: "completed", stepCount: 1 })
        const usage = yield* story.get(`/agents/${agent.id}/usage?days=2`)
        expect(usage.items).toEqual([
          { date: yield* dayBefore(story, 0), runs: 1, usage: run.usage, costUsd: 0 },
          { date: yield* dayBefore(story, 1), runs: 1, usage: run.usage, costUsd: 0 }
        ])
        expect((yield* story.get(`/agents/${agent.id}/usage?days=1`)).items).toHaveLength(1)
      })
    )

    it.effect(
      "what an agent has used is told by the day, a run counted once however many steps it takes",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: priced }))
          expect((yield* story.get(`/agents/${agent.id}/usage`)).items).toEqual([])
          for (const _ of [1, 2, 3, 4, 5]) yield* make(story, "Person")
          const runs = yield* eventually(
            runsOf(story, agent),
            (found) => found.length === 5 && found.every(({ status }) => status === "completed")
          )
          const sum = (of: (run: Json) => number) => runs.reduce((total, run) => total + of(run), 0)
          const { items } = yield* story.get(`/agents/${agent.id}/usage`)
          expect(items).toEqual([
            {
              date: yield* dayBefore(story, 0),
              runs: 5,
              usage: {
                inputTokens: sum(({ usage }) => usage.inputTokens),
                outputTokens: sum(({ usage }) => usage.outputTokens)
              },
              costUsd: expect.closeTo(
                sum(({ costUsd }) => costUsd),
                6
              )
            }
          ])
          const elsewhere = yield* newStoryHere
          expect((yield* elsewhere.ask("GET", `/agents/${agent.id}/usage`)).status).toBe(404)
          for (const days of ["0", "367", "1.5", "many"]) {
            const refused = yield* story.ask("GET", `/agents/${agent.id}/usage?days=${days}`)
            expect([days, refused.status, refused.body.errors?.[0]?.pointer]).toEqual([days, 422, "days"])
          }
        })
    )
  })

  describe("Requirement: runs that are at work at once overrun a budget by one request each", () => {
    it.effect("an agent's four runs each end the step that they had begun, and none begins another", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const slow = scripted(
          [0, 1, 2].map((step) => ({
            when: `step == ${step}`,
            latencyMs: 60_000,
            say: `Step ${step}.`,
            calls: [{ tool: "create_object", arguments: { type: "Note", properties: { step } } }]
          }))
        )
        const agent = yield* story.post(
          "/agents",
          watcher({ model: slow, budget: { perDay: { maxTokens: 1 } }, maxSteps: 5 })
        )
        for (const _ of [1, 2, 3, 4]) yield* make(story, "Person")
        yield* eventually(
          runsOf(story, agent),
          (runs) => runs.length === 4 && runs.every(({ status }) => status === "running")
        )
        const runs = yield* asTimePasses(20_000, runsOf(story, agent), (found) =>
          found.every(({ status }) => status === "paused")
        )
        expect(runs.map((run) => [run.pauseReason, run.stepCount])).toEqual(runs.map(() => ["budget", 1]))
      })
    )
  })

  describe("Requirement: a budget is a bound that can be kept", () => {
    it.effect("one that is none is refused with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const refused = [
          [{ perRun: { maxTokens: -1 } }, "/budget/perRun/maxTokens"],
          [{ perRun: { maxTokens: 1.5 } }, "/budget/perRun/maxTokens"],
          [{ perDay: { maxCostUsd: "much" } }, "/budget/perDay/maxCostUsd"],
          [{ perDay: { maxCostUsd: 1e9 } }, "/budget/perDay/maxCostUsd"],
          [{ perWeek: { maxTokens: 1 } }, "/budget/perWeek"],
          [{ perRun: { tokens: 1 } }, "/budget/perRun/tokens"],
          [3, "/budget"]
        ] as const
        for (const [budget, pointer] of refused) {
          const answer = yield* story.ask("POST", "/agents", watcher({ budget }))
          expect([budget, answer.status, answer.body.errors?.[0]?.pointer]).toEqual([budget, 422, pointer])
        }
        const agent = yield* story.post(
          "/agents",
          watcher({ model: calling(), budget: { perRun: null, perDay: { maxTokens: 5, maxCostUsd: null } } })
        )
        expect(agent.budget).toEqual({ perRun: null, perDay: { maxTokens: 5, maxCostUsd: null } })
      })
    )
  })
})

/** Lets a day pass for everything that the project has spent. */
const agedByADay = ({ access, projectId }: Story) =>
  ask(
    access,
    `update kb.budgets set period = to_char(left(period, 10)::date - 1, 'YYYY-MM-DD') || substr(period, 11)
     where project_id = $1 and scope = 'agent'`,
    [projectId]
  )
