/**
 * Budgets that are raised, and budgets that a run shares with those below it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { dayBefore, fourSteps, price, priced, restingRun, tokensOf } from "../testing/spending-words.ts"
import { calling, make, runsOf, watcher } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

layer(SharedServer.layer)((it) => {
  describe("Requirement: a run whose budget is spent goes on when somebody raises it", () => {
    it.effect(
      "resumed with a higher budget it goes on after its last step, with one that is spent it is refused and stays as it was",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post(
            "/agents",
            watcher({ model: fourSteps, budget: { perRun: { maxTokens: 1 } } })
          )
          yield* make(story, "Person")
          const paused = yield* restingRun(story, agent)
          const log = yield* story.get(`/contexts/${paused.contextName}/events`)
          for (const body of [undefined, { message: "Go on." }, { maxTokens: tokensOf(paused) }]) {
            const refused = yield* story.ask("POST", `/runs/${paused.id}/resume`, body)
            expectProblem(refused, 409)
            const bound = body?.maxTokens ?? 1
            expect(refused.body.detail).toEqual(naming(tokensOf(paused), bound))
          }
          expect(yield* story.get(`/runs/${paused.id}`)).toEqual(paused)
          expect(yield* story.get(`/contexts/${paused.contextName}/events`)).toEqual(log)
          yield* story.post(`/runs/${paused.id}/resume`, { maxTokens: 1_000_000 })
          const [done] = yield* eventually(runsOf(story, agent), ([run]) => run?.status === "completed")
          expect(done).toMatchObject({
            id: paused.id,
            errorMessage: null,
            limits: { maxTokens: 1_000_000 },
            total: { usage: done.usage }
          })
          expect(done.stepCount).toBeGreaterThan(paused.stepCount)
          expect(tokensOf(done)).toBeGreaterThan(tokensOf(paused))
        })
    )

    it.effect("a run that its agent's day had stopped goes on when the agent may spend more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          watcher({ model: fourSteps, budget: { perDay: { maxTokens: 1 } } })
        )
        yield* make(story, "Person")
        const paused = yield* restingRun(story, agent)
        expect(paused).toMatchObject({ status: "paused", pauseReason: "budget" })
        const refused = yield* story.ask("POST", `/runs/${paused.id}/resume`, { maxTokens: 1_000_000 })
        expectProblem(refused, 409)
        expect(refused.body.detail).toContain("watcher")
        expect(yield* story.get(`/runs/${paused.id}`)).toEqual(paused)
        yield* story.patch(`/agents/${agent.id}`, { budget: { perDay: { maxTokens: 1_000_000 } } })
        yield* story.post(`/runs/${paused.id}/resume`)
        const [done] = yield* eventually(runsOf(story, agent), ([run]) => run?.status === "completed")
        expect(done).toMatchObject({ id: paused.id, agentVersion: paused.agentVersion })
      })
    )
  })

  describe("Requirement: what a sub-agent spends counts for the runs that it works for", () => {
    /** An agent that hands on a task, and the one that does it. */
    const family = (story: Story, overrides: Record<string, unknown> = {}) =>
      Effect.gen(function* () {
        const helper = yield* story.post(
          "/agents",
          watcher({ name: "helper", triggerType: "manual", reactionConfig: null, model: priced })
        )
        const lead = yield* story.post(
          "/agents",
          watcher({
            name: "lead",
            tools: ["run.*"],
            subAgents: ["helper"],
            model: {
              ...calling({ tool: "spawn_agent", arguments: { agent: "helper", task: "Help." } }),
              price
            },
            ...overrides
          })
        )
        return { helper, lead }
      })

    it.effect("a run's total is its own steps and those of the runs below it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { helper, lead } = yield* family(story)
        yield* make(story, "Person")
        const [parent] = yield* eventually(runsOf(story, lead), ([run]) => run?.status === "completed")
        const [child] = yield* runsOf(story, helper)
        expect(child).toMatchObject({ parentRunId: parent.id, status: "completed", stepCount: 4 })
        expect(child.total).toEqual({ usage: child.usage, costUsd: child.costUsd })
        expect(parent.total).toEqual({
          usage: {
            inputTokens: parent.usage.inputTokens + child.usage.inputTokens,
            outputTokens: parent.usage.outputTokens + child.usage.outputTokens
          },
          costUsd: expect.closeTo(parent.costUsd + child.costUsd, 6)
        })
        const chain = yield* story.get(`/chains/${parent.rootEventId}`)
        expect(chain.use).toMatchObject({ ...parent.total.usage, costUsd: parent.total.costUsd, runs: 2 })
        // Each agent's day has its own.
        for (const [agent, { costUsd, usage }] of [
          [lead, parent],
          [helper, child]
        ] as const)
          expect((yield* story.get(`/agents/${agent.id}/usage`)).items).toEqual([
            { date: yield* dayBefore(story, 0), runs: 1, usage, costUsd }
          ])
      })
    )

    it.effect("a spent budget of the parent stops the child, and the child's end the parent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { helper, lead } = yield* family(story, { budget: { perRun: { maxTokens: 1 } } })
        yield* make(story, "Person")
        const [parent] = yield* eventually(
          runsOf(story, lead),
          ([run]) => run?.status === "paused" && run.pauseReason === "budget"
        )
        const [child] = yield* runsOf(story, helper)
        expect(child).toMatchObject({
          status: "paused",
          pauseReason: "budget",
          stepCount: 0,
          errorMessage: naming(parent.id, "lead", tokensOf(parent), 1)
        })
        expect(parent).toMatchObject({ stepCount: 1, total: { usage: parent.usage } })
      })
    )

    it.effect("a child that spends its parent's budget stops before its next request", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const measuring = yield* family(story)
        yield* make(story, "Person")
        const [whole] = yield* eventually(
          runsOf(story, measuring.lead),
          ([run]) => run?.status === "completed"
        )
        const [before] = yield* runsOf(story, measuring.helper)
        const firstStep = (yield* story.get(`/runs/${whole.id}/events?limit=200`)).items.find(
          (event: Json) => event.type === "AssistantMessageEvent"
        )
        // What the lead needs for its first step, and a little of what the helper does.
        const maxTokens = tokensOf(firstStep) + 1
        yield* story.patch(`/agents/${measuring.lead.id}`, { budget: { perRun: { maxTokens } } })
        yield* make(story, "Person")
        const [, parent] = yield* eventually(
          runsOf(story, measuring.lead),
          (runs) => runs[1]?.status === "paused" && runs[1].pauseReason === "budget"
        )
        const [, child] = yield* runsOf(story, measuring.helper)
        expect(child).toMatchObject({ status: "paused", pauseReason: "budget", stepCount: 1 })
        expect(before.stepCount).toBe(4)
        expect(parent.errorMessage).toMatch(new RegExp(`\\b${maxTokens}\\b`))
        expect(parent.total.usage.inputTokens).toBe(parent.usage.inputTokens + child.usage.inputTokens)
      })
    )
  })
})
