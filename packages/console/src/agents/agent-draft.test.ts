/**
 * What a form makes of a definition, and a definition of a form: nothing is lost on the way.
 */
import { defineAgent, type AgentInput } from "@tropism/domain/agent"
import { leanAgent } from "@tropism/domain/agent-version"
import { Result } from "effect"
import { expect, it } from "vitest"
import { changesOf, draftOf, emptyDraft, sentOf } from "./agent-draft.ts"
import { partsOf } from "./draft-texts.ts"

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
    where: {
      changedProperties: ["name", "a, b"],
      properties: [
        { property: "license", op: "eq", value: "MIT" },
        { property: "size", op: "gte", value: 3 },
        { property: "code", op: "eq", value: "3" },
        { property: "note", op: "contains", value: "two\nlines" },
        { property: "/author/name", op: "in", value: ["Ada", "7", 7, null, "x, y"] },
        { property: "author", op: "exists", value: false },
        { property: "tags", op: "ne", value: ["a"] },
        { property: "title", op: "startsWith", value: "" }
      ]
    },
    concurrencyStrategy: "latest",
    debounceMs: 500,
    maxWaitMs: 5_000,
    batchSize: 10,
    rateLimit: { maxRuns: 10, perSeconds: 60 },
    maxConcurrency: 2,
    relationshipTypes: ["knows"],
    ignoreAgentTriggered: true
  },
  executionMode: "hybrid",
  hybridPolicy: { confidenceThreshold: 0.9, alwaysSuggest: ["delete"] },
  capabilities: { canDeleteObjects: false, allowedObjectTypes: ["Person"] },
  maxSteps: 7,
  subAgents: ["helper-*", "scribe"],
  budget: { perRun: { maxTokens: 5_000 }, perDay: { maxTokens: 100_000, maxCostUsd: 0.5 } },
  enabled: false
}
const nightly: AgentInput = {
  name: "nightly",
  prompt: "Sum up.",
  triggerType: "schedule",
  cronSchedule: "0 3 * * *",
  timezone: "Europe/Berlin"
}

/** A property whose name has two lines fits in no line of a form. */
const odd: AgentInput = {
  name: "odd",
  prompt: "Look.",
  triggerType: "reaction",
  reactionConfig: {
    objectTypes: [],
    events: ["updated"],
    where: { changedProperties: ["a\nb"], properties: [{ property: "a", op: "eq", value: 1 }] }
  }
}

it.each([rich, nightly, odd])("a definition that is opened and saved is the same: $name", (input) => {
  const lean = leanAgent(defineAgent(input))
  const sent = Result.getOrThrow(sentOf(draftOf(lean)))
  expect(defineAgent(sent as never)).toEqual(defineAgent(input))
})

it("sends what was changed, null for what was emptied, and nothing of what is not shown", () => {
  const before = draftOf(leanAgent(defineAgent(rich)))
  const changed = (changes: object) =>
    changesOf(Result.getOrThrow(sentOf(before)), Result.getOrThrow(sentOf({ ...before, ...changes })))
  expect(changed({})).toEqual({})
  expect(changed({ role: "", subAgents: "scribe", name: "tidier" })).toEqual({
    role: null,
    subAgents: ["scribe"],
    name: "tidier"
  })
  expect(changed({ triggerType: "manual", executionMode: "suggest" })).toEqual({
    triggerType: "manual",
    executionMode: "suggest"
  })
})

it("says in which field something is no JSON, and sends a wrong number as it was written", () => {
  expect(sentOf({ ...emptyDraft, reactionRest: "[1]" })).toMatchObject({ failure: { field: "reactionRest" } })
  expect(sentOf({ ...emptyDraft, rest: "{" })).toMatchObject({ failure: { field: "rest" } })
  expect(Result.getOrThrow(sentOf({ ...emptyDraft, maxSteps: "many" }))).toMatchObject({ maxSteps: "many" })
  expect(Result.getOrThrow(sentOf({ ...emptyDraft, runTokens: "Infinity" }))).toMatchObject({
    budget: { perRun: { maxTokens: "Infinity" } }
  })
  expect(partsOf(" a, b,\n c ,")).toEqual(["a", "b", "c"])
})
