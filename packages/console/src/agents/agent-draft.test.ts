/**
 * What a form makes of a definition, and a definition of a form: nothing is lost on the way.
 */
import { AgentInput, defineAgent, RetryPolicy, ReviewPolicy } from "@tropism/domain/agent"
import { leanAgent } from "@tropism/domain/agent-version"
import { Budget, SpendingLimit } from "@tropism/domain/budget"
import { Capabilities, HybridPolicy, PromotionPolicy } from "@tropism/domain/capability"
import type { EventSource } from "@tropism/domain/event-source"
import { FlowStepInput } from "@tropism/domain/flow"
import { UserId } from "@tropism/domain/ids"
import { McpEventListener } from "@tropism/domain/mcp-event"
import { GuardRef, ModelConfig, ModelRef } from "@tropism/domain/model-config"
import { ModelPrice } from "@tropism/domain/model-price"
import { RateLimit, ReactionFilter, ReactionInput } from "@tropism/domain/reaction"
import { expect, it } from "vitest"
import { definitionFaults } from "./definition-faults.ts"
import {
  type AgentDraft,
  changesOf,
  draftAfterSave,
  draftOf,
  emptyDraft,
  isPermitted,
  permitting,
  sentOf
} from "./agent-draft.ts"
import { partsOf } from "./draft-texts.ts"
import { emptyStep } from "./flow-draft.ts"
import { allowedWords, knownEvents } from "./listener-rows.ts"
import { emptyModel } from "./model-draft.ts"
import { toggled } from "./policy-draft.ts"

const rich: AgentInput = {
  name: "tidy",
  role: "Keeps things tidy",
  prompt: "Tidy {{ object.key }}.",
  systemPrompt: "Be brief.",
  model: {
    provider: "openai",
    name: "gpt-4o",
    price: {
      inputPerMillion: 2.5,
      outputPerMillion: 10,
      cachedInputPerMillion: 0,
      cacheWritePerMillion: 3,
      longPrompts: {
        overTokens: 200_000,
        inputPerMillion: 5,
        outputPerMillion: 15,
        cachedInputPerMillion: 1,
        cacheWritePerMillion: 6
      }
    },
    contextWindow: 128_000,
    silenceTimeoutMs: 90_000,
    temperature: 0,
    maxOutputTokens: 900,
    maxConcurrency: 4,
    reasoning: "high",
    providerOptions: { serviceTier: "flex" },
    // Of a provider that reads none, it is kept all the same.
    script: { values: { names: ["Ada"] }, rules: [{ say: "Hello." }] },
    fallback: {
      provider: "anthropic",
      name: "c",
      price: { inputPerMillion: 1, outputPerMillion: 2 },
      contextWindow: 8_000,
      silenceTimeoutMs: 30_000
    },
    race: true,
    guard: { provider: "google", name: "g", instructions: "Look for\nspam." }
  },
  triggerType: "reaction",
  tools: ["graph.*", "tasks.add_task"],
  reactionConfig: {
    objectTypes: ["Person", "Note"],
    events: ["created", "updated"],
    where: {
      changedProperties: ["name", "a, b", "a\nb", '"quoted', " spaced "],
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
    mcpEvents: [
      { server: "orders", name: "order.placed", arguments: { big: true, of: ["a"] } },
      { server: "orders", name: "order.placed" },
      { server: "gone", name: "order.placed", arguments: {} }
    ],
    ignoreSelfTriggered: false,
    ignoreAgentTriggered: true
  },
  executionMode: "hybrid",
  hybridPolicy: {
    confidenceThreshold: 0.9,
    alwaysSuggest: ["delete"],
    promotion: { minReviews: 20, minRate: 0.95 }
  },
  capabilities: {
    canCreateObjects: true,
    canUpdateObjects: true,
    canDeleteObjects: false,
    canCreateRelationships: false,
    canUpdateRelationships: false,
    canDeleteRelationships: true,
    allowedObjectTypes: ["Person"]
  },
  maxSteps: 7,
  defaultTimeoutMs: 60_000,
  repeatableTools: ["mail.poll"],
  reducer: { type: "summarizing", maxTokens: 2_000, keepTokens: 500, instructions: "In Latin." },
  retryPolicy: { maxAttempts: 3, backoffMs: 0 },
  reviewPolicy: { maxPending: 5, expiresAfterMs: 86_400_000, assignee: UserId.make("ada") },
  maxPendingRuns: 50,
  disableAfterFailures: 3,
  subAgents: ["helper-*", "scribe"],
  budget: { perRun: { maxTokens: 5_000 }, perDay: { maxTokens: 100_000, maxCostUsd: 0.5 } },
  enabled: false
}
const nightly: AgentInput = {
  name: "nightly",
  prompt: "Sum up.",
  triggerType: "schedule",
  cronSchedule: "0 3 * * *",
  timezone: "Europe/Berlin",
  reducer: { type: "truncating", maxMessages: null, maxTokens: 9_000 },
  catchUp: "all",
  overlapPolicy: "allow",
  executionMode: "hybrid",
  hybridPolicy: { alwaysSuggest: [] },
  flowType: "loop",
  maxIterations: 3,
  steps: [
    { name: "find", prompt: "Find one.", tools: [], model: { provider: "scripted", name: "s" } },
    { name: "judge", prompt: "Judge {{ steps.find.output }}." }
  ]
}

/** It hears foreign servers alone. */
const listening: AgentInput = {
  name: "listening",
  prompt: "Look.",
  triggerType: "reaction",
  reducer: { type: "whole" },
  flowType: "sequential",
  steps: [{ name: "a", prompt: "b", tools: ["graph.*"] }],
  reactionConfig: {
    objectTypes: [],
    events: [],
    relationshipTypes: [],
    mcpEvents: [{ server: "s", name: "e" }]
  }
}

const examples = [rich, nightly, listening]

it.each(examples)("a definition that is opened and saved is the same: $name", (input) => {
  const lean = leanAgent(defineAgent(input))
  const sent = sentOf(draftOf(lean)).sent
  expect(defineAgent(sent as never)).toEqual(defineAgent(input))
})

/** The names of all fields that are said anywhere in some values. */
const said = (values: ReadonlyArray<unknown>): ReadonlySet<string> => {
  const objects = values.filter((value) => typeof value === "object" && value !== null)
  return new Set(objects.flatMap((value) => Object.keys(value)))
}

it("the examples above say each field that a definition may have, so the form has one for each", () => {
  const reactions = examples.map(({ reactionConfig }) => reactionConfig)
  const steps = examples.flatMap((example) => example.steps ?? [])
  const models = examples.map(({ model }) => model)
  const prices = models.map((model) => model?.price)
  const parts: ReadonlyArray<readonly [fields: object, values: ReadonlyArray<unknown>]> = [
    [AgentInput.fields, examples],
    [ReactionInput.fields, reactions],
    [ReactionFilter.fields, reactions.map((reaction) => reaction?.where)],
    [RateLimit.fields, reactions.map((reaction) => reaction?.rateLimit)],
    [McpEventListener.fields, reactions.flatMap((reaction) => reaction?.mcpEvents ?? [])],
    [FlowStepInput.fields, steps],
    [ModelConfig.fields, models],
    [ModelRef.fields, models.map((model) => model?.fallback)],
    [GuardRef.fields, models.map((model) => model?.guard)],
    [ModelPrice.fields, prices],
    [
      { ...ModelPrice.fields, longPrompts: 0 },
      [{ longPrompts: 0 }, ...prices.map((price) => price?.longPrompts)]
    ],
    [Capabilities.fields, examples.map(({ capabilities }) => capabilities)],
    [HybridPolicy.fields, examples.map(({ hybridPolicy }) => hybridPolicy)],
    [PromotionPolicy.fields, examples.map(({ hybridPolicy }) => hybridPolicy?.promotion)],
    [RetryPolicy.fields, examples.map(({ retryPolicy }) => retryPolicy)],
    [ReviewPolicy.fields, examples.map(({ reviewPolicy }) => reviewPolicy)],
    [Budget.fields, examples.map(({ budget }) => budget)],
    [SpendingLimit.fields, examples.flatMap(({ budget }) => [budget?.perRun, budget?.perDay])]
  ]
  for (const [fields, values] of parts) {
    const names = said(values)
    expect(Object.keys(fields).filter((name) => !names.has(name))).toEqual([])
  }
})

it("sends what was changed, null for what was emptied, and nothing of what is not shown", () => {
  const before = draftOf(leanAgent(defineAgent(rich)))
  const changed = (changes: object) => changesOf(sentOf(before).sent, sentOf({ ...before, ...changes }).sent)
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

it("a flag for relationships that is missing follows that for objects, until it is set by itself", () => {
  const before = { ...emptyDraft, denied: ["canDeleteObjects"] as const, granted: [] }
  expect(isPermitted(before, "deleteRelationship")).toBe(false)
  expect(isPermitted(before, "updateRelationship")).toBe(true)
  const granted = permitting(before, "canDeleteRelationships", "deleteRelationship", true)
  expect(granted).toEqual({ denied: ["canDeleteObjects"], granted: ["canDeleteRelationships"] })
  expect(isPermitted(granted, "deleteRelationship")).toBe(true)
  const denied = permitting(granted, "canDeleteRelationships", "deleteRelationship", false)
  expect(sentOf({ ...before, ...denied }).sent).toMatchObject({
    capabilities: { canDeleteObjects: false, canDeleteRelationships: false }
  })
  expect(permitting(before, "canDeleteObjects", "delete", true)).toEqual({ denied: [], granted: [] })
})

it("a flow that becomes single leaves its steps and iterations, and what is always asked is said only where it differs", () => {
  const before = draftOf(leanAgent(defineAgent(nightly)))
  const changed = (changes: object) => changesOf(sentOf(before).sent, sentOf({ ...before, ...changes }).sent)
  expect(changed({ flowType: "single" })).toEqual({ flowType: null, steps: null, maxIterations: null })
  expect(changed({ triggerType: "manual" })).toEqual({ triggerType: "manual" })
  expect(sentOf({ ...emptyDraft, executionMode: "hybrid" }).sent).toMatchObject({
    hybridPolicy: {}
  })
  expect(toggled(["delete"], "create", true)).toEqual(["create", "delete"])
})

it("says where something cannot be sent, and sends a wrong number as it was written", () => {
  const model = { ...emptyModel, provider: "scripted", name: "s" }
  const row = { server: "orders", name: "order.placed", args: "" }
  const faults: ReadonlyArray<readonly [changes: object, pointer: string]> = [
    [{ model: { ...model, script: "{" } }, "/model/script"],
    [{ listeners: [row, { ...row, args: "[1]" }] }, "/reactionConfig/mcpEvents/1/arguments"],
    // An empty list would be all of them.
    [{ relationships: "these", relationshipTypes: " , " }, "/reactionConfig/relationshipTypes"],
    [
      { flowType: "loop", steps: [emptyStep, { ...emptyStep, model: { ...model, script: "7" } }] },
      "/steps/1/model/script"
    ]
  ]
  for (const [changes, pointer] of faults)
    expect(sentOf({ ...emptyDraft, ...changes })).toMatchObject({ faults: [{ pointer }] })
  expect(sentOf({ ...emptyDraft, maxSteps: "many" }).sent).toMatchObject({ maxSteps: "many" })
  // What would be rounded is refused at its own place, and hides nothing else.
  expect(sentOf({ ...emptyDraft, maxSteps: "9007199254740993" }).sent).toMatchObject({
    maxSteps: "9007199254740993"
  })
  expect(sentOf({ ...emptyDraft, runTokens: "Infinity" }).sent).toMatchObject({
    budget: { perRun: { maxTokens: "Infinity" } }
  })
  expect(partsOf(" a, b,\n c ,")).toEqual(["a", "b", "c"])
})

it("tells all that is wrong at once, and nothing of what was saved so and left alone", () => {
  const wrong = { ...emptyDraft, name: "not a name", prompt: "Greet.", objectTypes: "Person", maxSteps: "0" }
  const places = (...given: Parameters<typeof definitionFaults>) =>
    definitionFaults(...given).map(({ pointer }) => pointer)
  expect(places(sentOf(wrong).sent, undefined)).toEqual(["/name", "/maxSteps"])
  expect(places(sentOf(wrong).sent, sentOf({ ...wrong, name: "tidy" }).sent)).toEqual(["/name"])
  expect(places(sentOf({ ...wrong, name: "tidy", maxSteps: "3" }).sent, undefined)).toEqual([])
})

it("offers the events of a server that the project knows by name, as far as agents may hear them", () => {
  const source = { name: "order.placed" } as EventSource
  const gone = { name: "stock.low" } as EventSource
  const orders = { name: "orders", allowedEvents: ["order.*", "bag.packed"], eventSources: [source, gone] }
  expect(knownEvents(orders)).toEqual(["bag.packed", "order.placed"])
  expect(allowedWords(orders)).toContain("order.*, bag.packed")
  expect(allowedWords({})).toBe(allowedWords({ allowedEvents: [] }))
})

it("what was written since a draft was sent stays, on top of what was saved", () => {
  const sent: AgentDraft = { ...draftOf(rich), role: "Mine", tools: " graph.* " }
  const saved = { ...draftOf(rich), role: "Mine" }
  expect(draftAfterSave(sent, sent, saved)).toBe(saved)
  expect(draftAfterSave({ ...sent, prompt: "More." }, sent, saved)).toEqual({ ...saved, prompt: "More." })
  // Written and taken back is what was sent, which the server has made neat.
  expect(draftAfterSave({ ...sent }, sent, saved)).toEqual(saved)
})
