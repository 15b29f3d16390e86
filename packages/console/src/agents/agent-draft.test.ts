/**
 * What a form makes of a definition, and a definition of a form: nothing is lost on the way.
 */
import { defineAgent, type AgentInput } from "@tropism/domain/agent"
import { leanAgent } from "@tropism/domain/agent-version"
import { Result } from "effect"
import { expect, it } from "vitest"
import { draftOf, emptyDraft, partsOf, sentOf, wholeOf } from "./agent-draft.ts"

const rich: AgentInput = {
  name: "tidy",
  role: "Keeps things tidy",
  prompt: "Tidy {{ object.key }}.",
  systemPrompt: "Be brief.",
  model: {
    provider: "openai",
    name: "gpt-4o",
    temperature: 0.2,
    fallback: { provider: "anthropic", name: "c" }
  },
  triggerType: "reaction",
  tools: ["graph.*", "tasks.add_task"],
  reactionConfig: {
    objectTypes: ["Person", "Note"],
    events: ["created", "updated"],
    where: { changedProperties: ["name"] },
    concurrencyStrategy: "latest",
    debounceMs: 500,
    maxConcurrency: 2
  },
  executionMode: "hybrid",
  hybridPolicy: { confidenceThreshold: 0.9, alwaysSuggest: ["delete"] },
  capabilities: { canDeleteObjects: false, allowedObjectTypes: ["Person"] },
  maxSteps: 7,
  subAgents: ["helper-*"],
  budget: { perDay: { maxCostUsd: 1 } },
  enabled: false
}
const nightly: AgentInput = {
  name: "nightly",
  prompt: "Sum up.",
  triggerType: "schedule",
  cronSchedule: "0 3 * * *",
  timezone: "Europe/Berlin"
}

it.each([rich, nightly])("a definition that is opened and saved is the same: $name", (input) => {
  const lean = leanAgent(defineAgent(input))
  const sent = Result.getOrThrow(sentOf(draftOf(lean)))
  expect(defineAgent(sent as never)).toEqual(defineAgent(input))
})

it("what the form leaves out goes back to its default", () => {
  const sent = wholeOf(Result.getOrThrow(sentOf({ ...emptyDraft, name: "a", prompt: "b" })))
  expect(sent).toMatchObject({ name: "a", role: null, budget: null, subAgents: null, capabilities: null })
})

it("says in which field something is no JSON, and sends a wrong number as it was written", () => {
  expect(sentOf({ ...emptyDraft, where: "[1]" })).toMatchObject({ failure: { field: "where" } })
  expect(sentOf({ ...emptyDraft, rest: "{" })).toMatchObject({ failure: { field: "rest" } })
  expect(Result.getOrThrow(sentOf({ ...emptyDraft, maxSteps: "many" }))).toMatchObject({ maxSteps: "many" })
  expect(partsOf(" a, b,\n c ,")).toEqual(["a", "b", "c"])
})
