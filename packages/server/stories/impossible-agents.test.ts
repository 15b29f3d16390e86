/**
 * Agents that name what is not there, or say nothing: refused when they are saved, not by their first run.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { agentsOf } from "../testing/story-words.ts"

/** What a definition says, the place that is wrong, and a value that the refusal names. */
const impossible: ReadonlyArray<readonly [string, Record<string, unknown>, string, string?]> = [
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
    "graph."
  ],
  [
    "a tool of a step that does not exist",
    { flowType: "loop", steps: [{ name: "a", prompt: "A", tools: ["run.exit"] }] },
    "/steps/0/tools/0",
    "run.exit_loop"
  ],
  ["a tool that spawns, and nobody to spawn", { tools: ["run.spawn_agent"], subAgents: [] }, "/subAgents"],
  ["a prompt of blanks", { prompt: " \n\t" }, "/prompt"],
  [
    "a step's prompt of blanks",
    { flowType: "sequential", steps: [{ name: "a", prompt: "  " }] },
    "/steps/0/prompt"
  ],
  [
    "a scripted model without a script",
    { model: { provider: "scripted", name: "nobody" } },
    "/model/script",
    "nobody"
  ],
  [
    "a step's scripted model without a script",
    {
      flowType: "loop",
      steps: [{ name: "a", prompt: "A", model: { provider: "scripted", name: "nobody" } }]
    },
    "/steps/0/model/script",
    "nobody"
  ],
  [
    "a scripted fallback without a script",
    { model: { provider: "openai", name: "x", fallback: { provider: "scripted", name: "nobody" } } },
    "/model/fallback/name",
    "nobody"
  ]
]

layer(SharedServer.layer)((it) => {
  describe("An agent that names what is not there is refused when it is saved", () => {
    it.effect.each(impossible)("%s", ([, overrides, pointer, value = ""]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = { name: "somebody", prompt: "Look.", triggerType: "manual" }
        const someone = yield* story.post("/agents", agent)
        const refused = yield* story.ask("POST", "/agents", { ...agent, name: "other", ...overrides })
        expectProblem(refused, 422, pointer)
        expect(refused.body.detail).toContain(value)
        expectProblem(yield* story.ask("PATCH", `/agents/${someone.id}`, overrides), 422, pointer)
        expect(yield* agentsOf(story)).toEqual([someone])
      })
    )
  })
})
