/**
 * How the agents of a project fare, read at once for all, and when a schedule would fire.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { creating, decideEach, earner } from "../testing/autonomy-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { saying, watcher } from "../testing/story-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Requirement: a person sees how each agent fares", () => {
    it.effect("each agent is told with its latest runs, the newest first, and when it fires next", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const manual = { triggerType: "manual", reactionConfig: null }
        const asked = yield* story.post(
          "/agents",
          watcher({ name: "asked", ...manual, model: saying("Here.") })
        )
        const failing = yield* story.post(
          "/agents",
          watcher({
            name: "failing",
            ...manual,
            model: { provider: "anthropic", name: "none" }
          })
        )
        const nightly = yield* story.post(
          "/agents",
          watcher({
            name: "nightly",
            triggerType: "schedule",
            reactionConfig: null,
            cronSchedule: "0 3 * * *"
          })
        )
        const runs = []
        for (let count = 0; count < 11; count++) runs.push(yield* story.post(`/agents/${asked.id}/trigger`))
        yield* story.post(`/agents/${failing.id}/trigger`)
        const { items } = yield* story.get("/agents/health")
        const told = items.filter(
          ({ agentName }: { readonly agentName: string }) => agentName !== "TodoAssistant"
        )
        expect(told).toMatchObject([
          { id: nightly.id, triggerType: "schedule", nextFireAt: nightly.nextFireAt, latest: [] },
          {
            id: failing.id,
            enabled: true,
            modelMissing: expect.stringContaining("ANTHROPIC_API_KEY"),
            latest: [{ status: "failed" }],
            nextFireAt: null
          },
          { id: asked.id, disabledReason: null, modelMissing: null, weekCostUsd: 0 }
        ])
        expect(told[2].latest).toEqual(
          runs
            .toReversed()
            .slice(0, 10)
            .map(({ id, status, createdAt }) => ({ id, status, createdAt }))
        )
        const page = yield* story.get("/agents/health?limit=1")
        expect(page.items).toEqual([items[0]])
        expect((yield* story.get(`/agents/health?limit=1&cursor=${page.nextCursor}`)).items).toEqual([
          items[1]
        ])
      })
    )

    it.effect("each agent is told with how many of its present version's suggestions were taken", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // It always asks, however often it was right.
        const agent = yield* story.post(
          "/agents",
          earner({ note: creating("Note") }, { executionMode: "suggest", hybridPolicy: null })
        )
        const acceptance = Effect.map(
          story.get(`/agents/health?agentId=${agent.id}`),
          ({ items }) => items[0].acceptance
        )
        expect(yield* acceptance).toEqual({ decided: 0, rate: null })
        yield* decideEach(story, agent, "note", ["accept", "edit", "reject", "accept"])
        expect(yield* acceptance).toEqual({ decided: 4, rate: 0.5 })
        yield* story.patch(`/agents/${agent.id}`, { role: "Somebody else" })
        expect(yield* acceptance).toEqual({ decided: 0, rate: null })
      })
    )

    it.effect("when a schedule would fire is told before anybody has it, as it is told of who has it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const schedule = { cronSchedule: "30 9 * * 1-5", timezone: "Europe/Berlin" }
        const agent = yield* story.post(
          "/agents",
          watcher({ triggerType: "schedule", reactionConfig: null, ...schedule })
        )
        const { fires } = yield* story.get(`/agents/fires?${new URLSearchParams(schedule)}`)
        expect(fires).toHaveLength(5)
        expect(fires).toEqual((yield* story.get(`/agents/${agent.id}/schedule`)).fires)
        for (const wrong of [
          "cronSchedule=0+0+30+2+*",
          "cronSchedule=nine",
          "cronSchedule=0+9+*+*+*&timezone=Mars"
        ]) {
          const answer = yield* story.ask("GET", `/agents/fires?${wrong}`)
          expect([wrong, answer.status, answer.body.errors?.length]).toEqual([wrong, 422, 1])
        }
      })
    )
  })
})
