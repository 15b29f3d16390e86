/**
 * Which flows are taken, and where one that is refused is wrong.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { scripted } from "../testing/platform.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const step = (name: string, overrides: Record<string, unknown> = {}) => ({
  name,
  prompt: `Do ${name}.`,
  ...overrides
})

const flow = (overrides: Record<string, unknown>) => ({
  name: "worker",
  prompt: "Work.",
  triggerType: "manual",
  flowType: "sequential",
  steps: [step("draft"), step("check")],
  ...overrides
})

/** A definition that is refused: what is wrong with it, where, and a value that the refusal names. */
const wrong: ReadonlyArray<readonly [string, Record<string, unknown>, string, string?]> = [
  ["no such flow", { flowType: "parallel" }, "/flowType", "sequential"],
  ["a sequence of nothing", { steps: [] }, "/steps"],
  ["steps of a single flow", { flowType: "single" }, "/steps"],
  ["iterations of a sequence", { maxIterations: 3 }, "/maxIterations"],
  ["no iteration", { flowType: "loop", maxIterations: 0 }, "/maxIterations", "1"],
  ["too many iterations", { flowType: "loop", maxIterations: 1_001 }, "/maxIterations", "1000"],
  ["a name that no template can speak of", { steps: [step("re-view")] }, "/steps/0/name"],
  ["a name twice", { steps: [step("a"), step("b"), step("a")] }, "/steps/2/name"],
  ["a step without a prompt", { steps: [step("a", { prompt: "" })] }, "/steps/0/prompt", "1"],
  ["too many steps", { steps: Array.from({ length: 51 }, (_, n) => step(`s${n}`)) }, "/steps", "50"],
  ["a tool that is none", { steps: [step("a", { tools: ["graph"] })] }, "/steps/0/tools/0"],
  [
    "a tool twice",
    { steps: [step("a"), step("b", { tools: ["graph.*", "graph.*"] })] },
    "/steps/1/tools/1",
    "graph.*"
  ],
  [
    "a template that speaks of nothing we know",
    { steps: [step("a"), step("b", { prompt: "{{ objekt.id }}" })] },
    "/steps/1/prompt",
    "objekt"
  ],
  [
    "a template that cannot be read",
    { steps: [step("a"), step("b", { prompt: "{% if event %}" })] },
    "/steps/1/prompt"
  ],
  [
    "a step that does not exist",
    { steps: [step("draft"), step("check", { prompt: "{{ steps.darft.output }}" })] },
    "/steps/1/prompt",
    "draft"
  ],
  [
    "a step that comes later",
    { steps: [step("draft", { prompt: "{{ steps.check.output }}" }), step("check")] },
    "/steps/0/prompt",
    "check"
  ],
  [
    "itself, in a sequence",
    { steps: [step("draft"), step("check", { prompt: "{{ steps['check'].output }}" })] },
    "/steps/1/prompt",
    "check"
  ],
  ["a step, before any has begun", { prompt: "{{ steps.draft.output }}" }, "/prompt", "draft"],
  ["a step, in what the system says", { systemPrompt: "{{ steps.draft }}" }, "/systemPrompt", "draft"],
  [
    "a script that cannot be read",
    { steps: [step("a"), step("b", { model: scripted([{ say: "Ok." }, { when: "step ==" }]) })] },
    "/steps/1/model/script/rules/1/when"
  ]
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: A flow that cannot work is refused when it is saved", () => {
    it.effect.each(wrong)("%s", ([, overrides, pointer, value = ""]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const before = yield* countRows(story)
        const answer = yield* story.ask("POST", "/agents", flow(overrides))
        expectProblem(answer, 422, pointer)
        expect(JSON.stringify(answer.body)).toContain(value)
        const applied = yield* story.ask("POST", "/agents/apply", {
          agents: [flow({}), flow({ name: "second", ...overrides })]
        })
        expectProblem(applied, 422, `/agents/1${pointer}`)
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("a change that makes it wrong leaves the agent as it was", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const back = step("draft", { prompt: "{{ steps.check.output }}" })
        const loop = yield* story.post("/agents", flow({ flowType: "loop", steps: [back, step("check")] }))
        const path = `/agents/${loop.id}`
        // What a loop may say of its last round, a sequence may not.
        expectProblem(yield* story.ask("PATCH", path, { flowType: "sequential" }), 422, "/steps/0/prompt")
        expectProblem(yield* story.ask("PATCH", path, { steps: [back] }), 422, "/steps/0/prompt")
        expectProblem(yield* story.ask("PATCH", path, { flowType: "single" }), 422, "/steps")
        expect(yield* story.get(path)).toEqual(loop)
        // A sequence keeps its steps and has no iterations: only its type changes, and that is judged.
        const sequence = yield* story.post("/agents", flow({ name: "other" }))
        const other = `/agents/${sequence.id}`
        expectProblem(yield* story.ask("PATCH", other, { flowType: "single" }), 422, "/steps")
        expect(yield* story.get(other)).toEqual(sequence)
      })
    )

    it.effect("a step is kept with all that it leaves to the agent, and is versioned with it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", flow({}))
        const kept = [
          { name: "draft", prompt: "Do draft.", tools: null, model: null },
          { name: "check", prompt: "Do check.", tools: null, model: null }
        ]
        expect(agent).toMatchObject({ flowType: "sequential", steps: kept, maxIterations: null })
        const changed = yield* story.patch(`/agents/${agent.id}`, {
          flowType: "loop",
          steps: [step("only", { tools: ["graph.get_object"] })]
        })
        expect(changed).toMatchObject({ version: 2, flowType: "loop", maxIterations: 10 })
        const restored = yield* story.post(`/agents/${agent.id}/versions/1/restore`)
        expect(restored).toMatchObject({
          version: 3,
          flowType: "sequential",
          steps: kept,
          maxIterations: null
        })
      })
    )

    it.effect("what a template speaks of in steps may depend on what it is given", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const steps = [
          step("draft"),
          step("check", {
            prompt: "{{ steps[input.step].output }}{% for each in steps %}{{ each[0] }}{% endfor %}"
          })
        ]
        const agent = yield* story.post("/agents", flow({ steps }))
        expect(agent.steps[1].prompt).toContain("input.step")
      })
    )
  })
})
