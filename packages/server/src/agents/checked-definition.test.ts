/**
 * What was saved before a rule was made never stands in the way of another change.
 */
import { describe, expect, it } from "@effect/vitest"
import { defineAgent, patchAgent } from "@tropism/domain/agent"
import { Effect } from "effect"
import { checkDefinition } from "./definition-checks.ts"

const measure = { now: new Date(0), minScheduleSeconds: 60, servers: [], offering: [] }

const old = defineAgent({
  name: "old",
  prompt: "  ",
  triggerType: "manual",
  flowType: "loop",
  tools: ["graph.nope", "run.spawn_agent"],
  repeatableTools: ["run.nope"],
  steps: [{ name: "a", prompt: " ", tools: ["run.nope"], model: { provider: "scripted", name: "nobody" } }],
  model: { provider: "scripted", name: "nobody" }
})

describe("An agent that would be refused today", () => {
  it.effect("is changed in what is right", () =>
    Effect.gen(function* () {
      const changed = patchAgent(old, { role: "Cook", enabled: false })
      expect(yield* checkDefinition(changed, old, measure)).toBe(changed)
    })
  )

  it.effect("is refused where the change says what is wrong again", () =>
    Effect.gen(function* () {
      const places: ReadonlyArray<readonly [string, Parameters<typeof patchAgent>[1]]> = [
        ["/prompt", { prompt: " \t" }],
        ["/tools/0", { tools: ["graph.nope"] }],
        ["/repeatableTools/1", { repeatableTools: ["graph.*", "run.nope"] }],
        ["/model/script", { model: { provider: "scripted", name: "none" } }]
      ]
      for (const [pointer, patch] of places) {
        const refusal = yield* Effect.flip(checkDefinition(patchAgent(old, patch), old, measure))
        expect(refusal.pointer).toBe(pointer)
      }
    })
  )

  it.effect("keeps no tool that spawns when nobody is left to spawn", () =>
    Effect.gen(function* () {
      const before = defineAgent({ ...old, prompt: "Work.", tools: ["run.spawn_agent"], subAgents: ["cook"] })
      const refusal = yield* Effect.flip(
        checkDefinition(patchAgent(before, { subAgents: [] }), before, measure)
      )
      expect(refusal.pointer).toBe("/subAgents")
    })
  )

  it.effect("may be spoken for by the script of its own name", () =>
    Effect.gen(function* () {
      const own = defineAgent({
        name: "daily-digest",
        prompt: "Tell.",
        triggerType: "manual",
        model: { provider: "scripted", name: "any" }
      })
      expect(yield* checkDefinition(own, undefined, measure)).toBe(own)
    })
  )
})
