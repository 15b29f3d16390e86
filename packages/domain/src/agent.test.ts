/**
 * What an agent's definition is when little is said, and what contradicts itself.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Exit, Schema } from "effect"
import {
  AgentDefinition,
  AgentInput,
  AgentName,
  AgentPatch,
  defineAgent,
  findDefinitionFault,
  patchAgent
} from "./agent.ts"
import { UserId } from "./ids.ts"

const least: AgentInput = { name: "reviewer", prompt: "Review it.", triggerType: "manual" }

const reacting: AgentInput = {
  ...least,
  triggerType: "reaction",
  reactionConfig: { objectTypes: [], events: ["created"] }
}

const full: AgentInput = {
  name: "reviewer",
  role: "Reviews",
  prompt: "Review it.",
  systemPrompt: "Be brief.",
  model: { provider: "openai", name: "gpt-4o", temperature: 0.7 },
  flowType: "loop",
  steps: [{ name: "look", prompt: "Look.", tools: ["graph.get_object"], model: null }],
  maxIterations: 3,
  tools: ["graph.*"],
  triggerType: "reaction",
  cronSchedule: "0 9 * * 1-5",
  timezone: "Europe/Berlin",
  reactionConfig: {
    objectTypes: ["Person"],
    relationshipTypes: ["knows"],
    events: ["created"],
    where: { properties: [{ property: "age", op: "gte", value: 18 }] },
    concurrencyStrategy: "parallel",
    ignoreSelfTriggered: false,
    ignoreAgentTriggered: true,
    debounceMs: 500,
    maxWaitMs: 5_000,
    batchSize: 10,
    rateLimit: { maxRuns: 10, perSeconds: 60 },
    maxConcurrency: 2
  },
  executionMode: "hybrid",
  hybridPolicy: { confidenceThreshold: 0.5 },
  capabilities: { canDeleteObjects: false },
  maxSteps: 7,
  defaultTimeoutMs: 60_000,
  budget: { perRun: { maxTokens: 1_000 }, perDay: { maxCostUsd: 2 } },
  subAgents: ["reader-*"],
  repeatableTools: ["graph.search_objects"],
  reducer: { type: "truncating", maxMessages: 100, maxTokens: null },
  catchUp: "all",
  overlapPolicy: "allow",
  retryPolicy: { maxAttempts: 3, backoffMs: 1_000 },
  reviewPolicy: { maxPending: 20, expiresAfterMs: 3_600_000, assignee: UserId.make("grace") },
  maxPendingRuns: 20,
  disableAfterFailures: 3,
  enabled: false
}

const decode = Schema.decodeUnknownExit(AgentInput)
const isTaken = (input: unknown): boolean => Exit.isSuccess(decode(input))

describe("defineAgent", () => {
  it("says every default", () => {
    expect(defineAgent(least)).toEqual({
      name: "reviewer",
      role: null,
      prompt: "Review it.",
      systemPrompt: null,
      model: null,
      flowType: "single",
      steps: [],
      maxIterations: null,
      tools: ["graph.*"],
      triggerType: "manual",
      cronSchedule: null,
      timezone: "UTC",
      reactionConfig: null,
      executionMode: "suggest",
      hybridPolicy: null,
      capabilities: null,
      maxSteps: null,
      defaultTimeoutMs: null,
      budget: null,
      subAgents: [],
      repeatableTools: [],
      reducer: null,
      catchUp: "one",
      overlapPolicy: "skip",
      retryPolicy: null,
      reviewPolicy: null,
      maxPendingRuns: 1_000,
      disableAfterFailures: 10,
      enabled: true
    })
  })

  it("S002-R26 an agent that reacts has 15 minutes for a run unless it is given another time", () => {
    expect(defineAgent(reacting).defaultTimeoutMs).toBe(900_000)
    expect(defineAgent({ ...reacting, defaultTimeoutMs: null }).defaultTimeoutMs).toBe(900_000)
    expect(defineAgent({ ...reacting, defaultTimeoutMs: 604_800_000 }).defaultTimeoutMs).toBe(604_800_000)
    expect(defineAgent(least).defaultTimeoutMs).toBe(null)
  })

  it("S001-R23 concurrency is skip unless the agent says otherwise", () => {
    expect(defineAgent(reacting).reactionConfig?.concurrencyStrategy).toBe("skip")
    expect(defineAgent(full).reactionConfig?.concurrencyStrategy).toBe("parallel")
  })

  it("S001-R50 an agent ignores itself unless it says otherwise, and hears other agents", () => {
    expect(defineAgent(reacting).reactionConfig).toMatchObject({
      ignoreSelfTriggered: true,
      ignoreAgentTriggered: false
    })
    expect(defineAgent(full).reactionConfig).toMatchObject({
      ignoreSelfTriggered: false,
      ignoreAgentTriggered: true
    })
  })

  it("S001-R52 S001-R54 what does not concern an agent is null", () => {
    expect(defineAgent(least)).toMatchObject({ reactionConfig: null, capabilities: null })
  })

  it("keeps what was said", () => {
    expect(defineAgent(full)).toEqual(full)
  })

  it.prop(
    "takes null for absent, in every optional field",
    [Arbitrary.schema(Schema.Array(Schema.Literals(Object.keys(full))))],
    ([names]) => {
      const required = ["name", "prompt", "triggerType"]
      const optional = names.filter((name) => !required.includes(name))
      const absent = Object.entries(full).filter(([name]) => !optional.includes(name))
      const decodeInput = Schema.decodeUnknownSync(AgentInput)
      const without = decodeInput(Object.fromEntries(absent))
      const withNull = decodeInput({
        ...Object.fromEntries(absent),
        ...Object.fromEntries(optional.map((name) => [name, null]))
      })
      expect(defineAgent(withNull)).toEqual(defineAgent(without))
    }
  )

  it.prop("makes a definition that is one", [Arbitrary.schema(AgentInput)], ([input]) => {
    expect(Schema.is(AgentDefinition)(defineAgent(input))).toBe(true)
  })
})

describe("patchAgent", () => {
  const definition = defineAgent(full)
  const patchOf = Schema.decodeUnknownSync(AgentPatch)

  it("leaves what the patch does not name", () => {
    expect(patchAgent(definition, {})).toEqual(definition)
    expect(patchAgent(definition, patchOf({ prompt: "Other." }))).toEqual({ ...definition, prompt: "Other." })
  })

  it("null goes back to the default", () => {
    const cleared = patchAgent(
      definition,
      patchOf({
        role: null,
        systemPrompt: null,
        model: null,
        tools: null,
        timezone: null,
        executionMode: null,
        hybridPolicy: null,
        capabilities: null,
        maxSteps: null,
        catchUp: null,
        overlapPolicy: null,
        retryPolicy: null,
        reviewPolicy: null,
        maxPendingRuns: null,
        disableAfterFailures: null,
        enabled: null,
        cronSchedule: null,
        reactionConfig: null,
        flowType: null,
        steps: null,
        defaultTimeoutMs: null,
        budget: null,
        subAgents: null,
        repeatableTools: null,
        reducer: null
      })
    )
    expect(cleared).toEqual(defineAgent({ ...least, triggerType: "reaction" }))
  })

  it("gives a new reactionConfig its defaults", () => {
    expect(
      patchAgent(definition, patchOf({ reactionConfig: { objectTypes: ["Company"], events: ["deleted"] } }))
        .reactionConfig
    ).toEqual({
      objectTypes: ["Company"],
      relationshipTypes: null,
      events: ["deleted"],
      where: null,
      concurrencyStrategy: "skip",
      ignoreSelfTriggered: true,
      ignoreAgentTriggered: false,
      debounceMs: 0,
      maxWaitMs: null,
      batchSize: 1,
      rateLimit: null,
      maxConcurrency: null
    })
  })

  it.each(["name", "prompt", "triggerType"])("%s has no default to go back to", (name) => {
    expect(() => patchOf({ [name]: null })).toThrow(name)
  })
})

describe("S000-R02 a definition that contradicts itself", () => {
  const fault = (input: AgentInput) => findDefinitionFault(defineAgent(input))?.pointer

  it("an agent that reacts needs a reactionConfig", () => {
    expect(fault({ ...least, triggerType: "reaction" })).toBe("/reactionConfig")
    expect(fault({ ...least, triggerType: "reaction", reactionConfig: null })).toBe("/reactionConfig")
    expect(fault(reacting)).toBeUndefined()
  })

  it("also one that comes to react by an update, or loses its reactionConfig", () => {
    expect(findDefinitionFault(patchAgent(defineAgent(least), { triggerType: "reaction" }))?.pointer).toBe(
      "/reactionConfig"
    )
    expect(findDefinitionFault(patchAgent(defineAgent(reacting), { reactionConfig: null }))?.pointer).toBe(
      "/reactionConfig"
    )
    expect(
      findDefinitionFault(patchAgent(defineAgent(reacting), { reactionConfig: null, triggerType: "manual" }))
    ).toBeUndefined()
  })

  it("what an agent was once allowed to say stands in the way of no other change", () => {
    const kept = defineAgent({
      ...reacting,
      tools: ["graph.*", "graph.*"],
      reactionConfig: { objectTypes: [], events: ["created"], debounceMs: 1_000, maxWaitMs: 10 }
    })
    expect(findDefinitionFault(kept)?.pointer).toBe("/reactionConfig/maxWaitMs")
    const disabled = patchAgent(kept, { enabled: false })
    expect(findDefinitionFault(disabled, kept)).toBeUndefined()
    const calmer = { objectTypes: [], events: ["created"] as const, debounceMs: 2_000, maxWaitMs: 10 }
    expect(findDefinitionFault(patchAgent(kept, { reactionConfig: calmer }), kept)?.pointer).toBe(
      "/reactionConfig/maxWaitMs"
    )
    expect(findDefinitionFault(patchAgent(kept, { tools: ["a.b", "a.b"] }), kept)?.pointer).toBe("/tools/1")
  })

  it("a wait as long as the debounce, and changed properties of more than deletions, are right", () => {
    const where = { changedProperties: ["a"], properties: [{ property: "a", op: "in" as const, value: [1] }] }
    const events = ["deleted", "updated"] as const
    const reactionConfig = { objectTypes: [], events, where, debounceMs: 10, maxWaitMs: 10 }
    expect(fault({ ...reacting, reactionConfig })).toBeUndefined()
    expect(fault({ ...reacting, reactionConfig: { ...reactionConfig, where: null } })).toBeUndefined()
  })

  it("a schedule is kept with single spaces, however it was written", () => {
    const cronSchedule = " 0 9\n* *\t  1-5\n"
    expect(defineAgent({ ...least, cronSchedule }).cronSchedule).toBe("0 9 * * 1-5")
  })

  it("an agent with a schedule needs one", () => {
    expect(fault({ ...least, triggerType: "schedule" })).toBe("/cronSchedule")
    expect(fault({ ...least, triggerType: "schedule", cronSchedule: "0 9 * * *" })).toBeUndefined()
  })

  it("a reactionConfig names events, and object types even when it means all of them", () => {
    const withConfig = (reactionConfig: unknown) =>
      isTaken({ ...least, triggerType: "reaction", reactionConfig })
    expect(withConfig({ objectTypes: [], events: ["created", "updated", "deleted"] })).toBe(true)
    expect(withConfig({ objectTypes: [], events: [] })).toBe(false)
    expect(withConfig({ objectTypes: [] })).toBe(false)
    expect(withConfig({ events: ["created"] })).toBe(false)
    expect(withConfig({ objectTypes: null, events: ["created"] })).toBe(false)
    expect(withConfig({ objectTypes: [], events: ["created", "created"] })).toBe(false)
    expect(withConfig({ objectTypes: [], events: ["moved"] })).toBe(false)
  })
})

describe("AgentInput", () => {
  it.each(["a", "A1", "licence-review", "a.b_c-d", "9", "x".repeat(100)])("takes the name %s", (name) => {
    expect(Schema.is(AgentName)(name)).toBe(true)
  })

  it.each(["", "-a", ".a", "_a", "a:b", "a b", "ä", "a\n", "x".repeat(101)])(
    "refuses the name %j",
    (name) => {
      expect(isTaken({ ...least, name })).toBe(false)
    }
  )

  it.each([
    ["graph.*", true],
    ["graph.get_object", true],
    ["github.search_*", true],
    ["*.*", true],
    ["graph", false],
    ["graph.a.b", false],
    ["graph.", false],
    ["graph.get object", false]
  ])("a tool pattern %s is taken: %s", (tool, taken) => {
    expect(isTaken({ ...least, tools: [tool] })).toBe(taken)
  })

  it.each([
    [1, true],
    [10_000, true],
    [0, false],
    [10_001, false],
    [1.5, false]
  ])("maxSteps %d is taken: %s", (maxSteps, taken) => {
    expect(isTaken({ ...least, maxSteps })).toBe(taken)
  })

  it("S001-R51 S001-R53 knows its triggers and modes and no others", () => {
    for (const triggerType of ["reaction", "schedule", "manual"])
      expect(isTaken({ ...least, triggerType })).toBe(true)
    for (const executionMode of ["suggest", "execute", "hybrid"])
      expect(isTaken({ ...least, executionMode })).toBe(true)
    expect(isTaken({ ...least, triggerType: "sometimes" })).toBe(false)
    expect(isTaken({ ...least, executionMode: "whatever" })).toBe(false)
  })
})
