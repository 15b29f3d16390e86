/**
 * Agents that name what is not there, or say nothing: refused when they are saved, not by their first run.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { agentsOf } from "../testing/story-words.ts"

/** What a definition says, the place that is wrong, and what is told of it. */
const impossible: ReadonlyArray<readonly [string, Record<string, unknown>, string, string]> = [
  ["a built-in tool that does not exist", { tools: ["graph.*", "run.ask"] }, "/tools/1", "run.ask_user"],
  [
    "a glob of built-in tools that stands for none",
    { tools: ["graph.getobj*"] },
    "/tools/0",
    "graph.get_object"
  ],
  [
    "a repeatable tool that does not exist",
    { repeatableTools: ["graph.nope"] },
    "/repeatableTools/0",
    "nearest"
  ],
  [
    "a tool of a step that does not exist",
    { flowType: "loop", steps: [{ name: "a", prompt: "A", tools: ["run.exit"] }] },
    "/steps/0/tools/0",
    "run.exit_loop"
  ],
  [
    "a tool that spawns, and nobody to spawn",
    { tools: ["run.spawn_agent"], subAgents: [] },
    "/subAgents",
    "name whom it may spawn"
  ],
  ["a prompt of blanks", { prompt: " \n\t" }, "/prompt", "only blanks"],
  [
    "a step's prompt of blanks",
    { flowType: "sequential", steps: [{ name: "a", prompt: "  " }] },
    "/steps/0/prompt",
    "only blanks"
  ],
  [
    "a scripted model without a script",
    { model: { provider: "scripted", name: "nobody" } },
    "/model/script",
    "no built-in script named nobody"
  ],
  [
    "a step's scripted model without a script",
    {
      flowType: "loop",
      steps: [{ name: "a", prompt: "A", model: { provider: "scripted", name: "nobody" } }]
    },
    "/steps/0/model/script",
    "no built-in script named nobody"
  ],
  [
    "a scripted fallback without a script",
    { model: { provider: "openai", name: "x", fallback: { provider: "scripted", name: "nobody" } } },
    "/model/fallback/name",
    "no built-in script named nobody"
  ]
]

layer(SharedServer.layer)((it) => {
  describe("An agent that names what is not there is refused when it is saved", () => {
    it.effect.each(impossible)("%s", ([, overrides, pointer, sentence]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = { name: "somebody", prompt: "Look.", triggerType: "manual" }
        const someone = yield* story.post("/agents", agent)
        const refused = yield* story.ask("POST", "/agents", { ...agent, name: "other", ...overrides })
        expectProblem(refused, 422, pointer)
        expect(refused.body.detail).toContain(sentence)
        expectProblem(yield* story.ask("PATCH", `/agents/${someone.id}`, overrides), 422, pointer)
        expect(yield* agentsOf(story)).toEqual([someone])
      })
    )
  })
})
