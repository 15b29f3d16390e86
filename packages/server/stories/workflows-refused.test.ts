/**
 * Workflows that are refused when they are sent, in the places that a definition of an agent has.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newContext } from "../testing/context-words.ts"
import { defineWorkflow, draftAndCheck } from "../testing/define-words.ts"
import { scripted } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const step = (name: string, overrides: Record<string, unknown> = {}) => ({
  name,
  prompt: `Do ${name}.`,
  ...overrides
})

/** A workflow that is refused: what is wrong with it, where, and a value that the refusal names. */
const wrong: ReadonlyArray<readonly [string, Record<string, unknown>, string, string?]> = [
  ["no such flow", { flowType: "parallel" }, "/flowType", "sequential"],
  ["no flow at all", { flowType: undefined }, "/flowType"],
  ["a sequence of nothing", { steps: [] }, "/steps"],
  ["steps of a single flow", { flowType: "single" }, "/steps"],
  ["iterations of a sequence", { maxIterations: 3 }, "/maxIterations"],
  ["no iteration", { flowType: "loop", maxIterations: 0 }, "/maxIterations", "1"],
  ["too many iterations", { flowType: "loop", maxIterations: 1_001 }, "/maxIterations", "1000"],
  ["too many steps", { steps: Array.from({ length: 51 }, (_, n) => step(`s${n}`)) }, "/steps", "50"],
  ["a name that no template can speak of", { steps: [step("re-view")] }, "/steps/0/name"],
  ["a name twice", { steps: [step("a"), step("b"), step("a")] }, "/steps/2/name"],
  ["a prompt of blanks", { steps: [step("a"), step("b", { prompt: " \n" })] }, "/steps/1/prompt"],
  ["a field that no step has", { steps: [step("a", { promt: "b" })] }, "/steps/0/promt"],
  [
    "a template that speaks of nothing we know",
    { steps: [step("a", { prompt: "{{ message }}" })] },
    "/steps/0/prompt",
    "message"
  ],
  [
    "a step that comes later",
    { steps: [step("a", { prompt: "{{ steps.b.output }}" }), step("b")] },
    "/steps/0/prompt",
    "steps.b"
  ],
  [
    "a tool that is none",
    { steps: [step("a", { tools: ["graph.got"] })] },
    "/steps/0/tools/0",
    "graph.get_object"
  ],
  [
    "a tool twice",
    { steps: [step("a", { tools: ["graph.get_object", "graph.get_object"] })] },
    "/steps/0/tools/1",
    "graph.get_object"
  ],
  [
    "a tool that the agent does not have",
    { steps: [step("a"), step("b", { tools: ["graph.get_object", "graph.delete_object"] })] },
    "/steps/1/tools/1",
    "graph.delete_object"
  ],
  ["a glob that is wider", { steps: [step("a", { tools: ["graph.*"] })] }, "/steps/0/tools/0", "graph.*"],
  ["a foreign tool", { steps: [step("a", { tools: ["shop.charge"] })] }, "/steps/0/tools/0", "shop.charge"],
  [
    "a script that cannot be read",
    { steps: [step("a", { model: scripted([{ say: "Ok." }, { when: "step ==" }]) })] },
    "/steps/0/model/script/rules/1/when"
  ],
  [
    "a script that nobody has written",
    { steps: [step("a"), step("b", { model: { provider: "scripted", name: "nobody" } })] },
    "/steps/1/model/script",
    "nobody"
  ],
  [
    "a provider that has no key here",
    { steps: [step("a", { model: { provider: "anthropic", name: "claude" } })] },
    "/steps/0/model/provider",
    "ANTHROPIC_API_KEY"
  ],
  [
    "a run that is not there to be replayed",
    { steps: [step("a", { model: { provider: "replay", name: "nothing" } })] },
    "/steps/0/model/name"
  ]
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A workflow that cannot work is refused when it is sent, and nothing is kept", () => {
    it.effect.each(wrong)("S004-F03 %s", ([, overrides, pointer, value = ""]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk", undefined, { tools: ["graph.get_*", "graph.create_object"] })
        const before = yield* countRows(story)
        const answer = yield* defineWorkflow(story, "talk", { ...draftAndCheck, ...overrides })
        expectProblem(answer, 422, pointer)
        expect(JSON.stringify(answer.body)).toContain(value)
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("tools within the agent's own are taken, by name and by glob", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk", undefined, {
          tools: ["graph.get_*", "graph.create_object", "shop.*"]
        })
        const tools = ["graph.get_object", "graph.get_*", "graph.create_object", "shop.ch*"]
        const workflow = { ...draftAndCheck, steps: [step("a", { tools }), step("b", { tools: [] })] }
        expect((yield* defineWorkflow(story, "talk", workflow)).status).toBe(204)
      })
    )
  })
})
