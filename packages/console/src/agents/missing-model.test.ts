/**
 * Who is asked before an agent is saved for which nobody can think.
 */
import { describe, expect, it } from "vitest"
import { emptyDraft } from "./agent-draft.ts"
import { emptyModel } from "./model-draft.ts"
import { missingOf, wouldWakeInVain } from "./missing-model.ts"

const models = {
  default: null,
  defaultMissing: "nothing thinks here: set MODEL",
  prices: [],
  providers: [
    { provider: "openai", defaultModel: "gpt-4o", missing: "needs OPENAI_API_KEY" },
    { provider: "scripted", defaultModel: "", missing: null }
  ]
} as const

const byOpenai = { ...emptyDraft, model: { ...emptyModel, provider: "openai", name: "gpt-4o" } }
const byScript = { ...emptyDraft, model: { ...emptyModel, provider: "scripted", name: "story" } }

describe("what is missing, as a sentence", () => {
  it.each([
    ["a new agent by default", emptyDraft, undefined, "Nothing thinks here: set MODEL."],
    ["a new agent by a provider without a key", byOpenai, undefined, "Needs OPENAI_API_KEY."],
    ["a new agent by a script", byScript, undefined, null],
    // Agents there are who have a script whatever is configured: the server knows.
    ["a saved one as it is saved", emptyDraft, { draft: emptyDraft, missing: null }, null],
    [
      "a saved one whose model is changed",
      byOpenai,
      { draft: byScript, missing: null },
      "Needs OPENAI_API_KEY."
    ]
  ] as const)("%s", (_name, draft, saved, said) => {
    expect(missingOf(draft, saved, models)).toBe(said)
  })

  it("nothing is said while nobody knows", () => {
    expect(missingOf(byOpenai, undefined, undefined)).toBe(null)
  })
})

describe("who would wake in vain", () => {
  const off = { ...byOpenai, enabled: false }
  it.each([
    ["a new one", byOpenai, undefined, "x", true],
    ["a new one that somebody can think for", byOpenai, undefined, null, false],
    ["one that stays disabled", off, { draft: off, missing: "x" }, "x", false],
    ["one that is enabled now", byOpenai, { draft: off, missing: "x" }, "x", true],
    ["one that was so before", { ...byOpenai, prompt: "y" }, { draft: byOpenai, missing: "x" }, "x", false],
    ["one that changes to a model nobody has", byOpenai, { draft: byScript, missing: null }, "x", true]
  ] as const)("%s", (_name, draft, saved, missing, would) => {
    expect(wouldWakeInVain(draft, saved, missing)).toBe(would)
  })
})
