/**
 * Which graph events wake an agent, and the reason when they do not.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { Actor } from "./actor.ts"
import { ChangeType } from "./graph.ts"
import { AgentId } from "./ids.ts"
import type { Properties } from "./json.ts"
import {
  defineReaction,
  type JudgedEvent,
  ReactionConfig,
  type ReactionFilter,
  type Refusal,
  refusalSentences,
  refuses
} from "./reaction.ts"

const self = AgentId.make("01990000-0000-7000-8000-00000000000a")
const other = AgentId.make("01990000-0000-7000-8000-00000000000b")
const maxChainDepth = 16

const config: ReactionConfig = defineReaction({
  objectTypes: ["Person"],
  events: ["created", "updated", "deleted"]
})

const event: JudgedEvent = {
  entityType: "graphObject",
  objectType: "Person",
  type: "created",
  changedProperties: [],
  snapshot: { properties: {} },
  actorType: "user",
  actorId: "ada",
  depth: 0
}
const by = (agentId: AgentId): Partial<JudgedEvent> => ({ actorType: "agent", actorId: agentId, depth: 1 })

const judge = (rule: Partial<ReactionConfig>, what: Partial<JudgedEvent>) =>
  refuses(self, { ...config, ...rule }, { ...event, ...what }, maxChainDepth)

type Row = readonly [
  title: string,
  rule: Partial<ReactionConfig>,
  what: Partial<JudgedEvent>,
  refusal: Refusal | undefined
]

const rows: ReadonlyArray<Row> = [
  [
    "S000-R03 an agent for Person is not woken by a Company that is created",
    {},
    { objectType: "Company" },
    "objectType"
  ],
  ["S000-R04 an agent for Person is woken by a Person that is created", {}, {}, undefined],
  [
    "S000-R05 an agent for created only is not woken by an update",
    { events: ["created"] },
    { type: "updated" },
    "eventType"
  ],
  [
    "S000-R05 an agent for created only is not woken by a delete",
    { events: ["created"] },
    { type: "deleted" },
    "eventType"
  ],
  [
    "S000-R06 an agent for created only is woken by a create",
    { events: ["created"] },
    { type: "created" },
    undefined
  ],
  [
    "S000-R11 S001-R14 an agent that ignores itself is not woken by its own create",
    {},
    by(self),
    "selfTriggered"
  ],
  [
    "S000-R12 S001-R14 an agent that ignores itself is not woken by its own update",
    {},
    { ...by(self), type: "updated" },
    "selfTriggered"
  ],
  [
    "S001-R14 an agent that does not ignore itself is woken by its own change",
    { ignoreSelfTriggered: false },
    by(self),
    undefined
  ],
  [
    "S001-R14 a user whose id is the agent's is no agent",
    {},
    { actorType: "user", actorId: self },
    undefined
  ],
  [
    "S001-R15 ignoreAgentTriggered ignores another agent's change",
    { ignoreAgentTriggered: true },
    by(other),
    "agentTriggered"
  ],
  [
    "S001-R15 ignoreAgentTriggered ignores any agent, itself too",
    { ignoreAgentTriggered: true, ignoreSelfTriggered: false },
    by(self),
    "agentTriggered"
  ],
  ["S001-R15 ignoreAgentTriggered leaves users heard", { ignoreAgentTriggered: true }, {}, undefined],
  [
    "S001-R15 ignoreAgentTriggered leaves the system heard",
    { ignoreAgentTriggered: true },
    { actorType: "system", actorId: null },
    undefined
  ],
  ["S001-R16 without ignoreAgentTriggered another agent's change wakes it", {}, by(other), undefined],
  [
    "S001-R48 an empty list of types is all types",
    { objectTypes: [] },
    { objectType: "Anything" },
    undefined
  ],
  ["a type is one of several", { objectTypes: ["Company", "Person"] }, {}, undefined],
  [
    "a type is compared whole and with its case",
    { objectTypes: ["Person"] },
    { objectType: "person" },
    "objectType"
  ],
  [
    "S001-R04 the last depth below the cap wakes it",
    {},
    { ...by(other), depth: maxChainDepth - 1 },
    undefined
  ],
  [
    "S001-R04 the cap of the chain's depth ends the chain",
    {},
    { ...by(other), depth: maxChainDepth },
    "chainDepth"
  ],
  ["S001-R04 a chain beyond the cap is ended, whoever acts", {}, { depth: maxChainDepth + 5 }, "chainDepth"],
  [
    "the type is named before the kind of event",
    { events: ["created"] },
    { objectType: "Company", type: "updated" },
    "objectType"
  ],
  [
    "the kind of event is named before the actor",
    { events: ["created"] },
    { ...by(self), type: "updated" },
    "eventType"
  ],
  ["the actor is named before the depth", {}, { ...by(self), depth: maxChainDepth }, "selfTriggered"]
]

describe("refuses", () => {
  it.each(rows)("%s", (_, rule, what, refusal) => {
    expect(judge(rule, what)).toBe(refusal)
  })

  const where = (conditions: ReactionFilter): Partial<ReactionConfig> => ({ where: conditions })
  const state = (properties: Properties, changed: ReadonlyArray<string> = []): Partial<JudgedEvent> => ({
    type: "updated",
    snapshot: { properties },
    changedProperties: changed
  })

  it("S001-F04 conditions on properties are judged on the state after the change", () => {
    const severe = where({ properties: [{ property: "severity", op: "gte", value: 7 }] })
    expect(judge(severe, state({ severity: 7 }))).toBeUndefined()
    expect(judge(severe, state({ severity: 6 }))).toBe("properties")
    expect(judge(severe, state({}))).toBe("properties")
    expect(judge(severe, { ...state({ severity: 9 }), type: "deleted" })).toBeUndefined()
    expect(judge(severe, { snapshot: null })).toBe("properties")
  })

  it("S001-F04 of the properties that are looked at, one must have changed", () => {
    const looking = where({ changedProperties: ["license", "severity"] })
    expect(judge(looking, state({ license: "MIT" }, ["license"]))).toBeUndefined()
    expect(judge(looking, state({ license: "MIT" }, ["name"]))).toBe("changedProperties")
    expect(judge(looking, { ...state({ license: "MIT" }), type: "deleted" })).toBe("changedProperties")
  })

  it("S001-F04 both conditions must hold, and none is no condition", () => {
    const both = where({
      properties: [{ property: "license", op: "eq", value: "MIT" }],
      changedProperties: ["license"]
    })
    expect(judge(both, state({ license: "MIT" }, ["license"]))).toBeUndefined()
    expect(judge(both, state({ license: "GPL" }, ["license"]))).toBe("properties")
    expect(judge(both, state({ license: "MIT" }, ["name"]))).toBe("changedProperties")
    expect(judge(where({ properties: null, changedProperties: null }), state({}))).toBeUndefined()
  })

  it("S001-R47 relationships wake an agent that names them, and objects one that names those", () => {
    const edge: Partial<JudgedEvent> = { entityType: "relationship", objectType: "dependsOn" }
    expect(judge({}, edge)).toBe("relationshipType")
    expect(judge({ relationshipTypes: [] }, edge)).toBeUndefined()
    expect(judge({ relationshipTypes: ["dependsOn"] }, edge)).toBeUndefined()
    expect(judge({ relationshipTypes: ["owns"] }, edge)).toBe("relationshipType")
    expect(judge({ objectTypes: ["dependsOn"] }, edge)).toBe("relationshipType")
    expect(judge({ relationshipTypes: ["Company"] }, { objectType: "Company" })).toBe("objectType")
  })

  it("has a sentence for each refusal", () => {
    for (const sentence of Object.values(refusalSentences)) expect(sentence).toMatch(/^[A-Z].+\.$/)
  })

  // What an agent hears of foreign servers has no part in what it makes of changes.
  const { mcpEvents: _foreign, ...ofGraph } = ReactionConfig.fields
  const anyRule = Arbitrary.all({
    rule: Arbitrary.schema(
      Schema.Struct({ ...ofGraph, events: ofGraph.events.check(Schema.isMinLength(1)) })
    ),
    type: Arbitrary.schema(ChangeType),
    actor: Arbitrary.schema(Actor),
    depth: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 32 })))
  })

  it.prop(
    "S001-K01 no rule that ignores itself is woken by its own change, whatever else it says",
    [anyRule],
    ([{ rule, type, depth }]) => {
      const own: JudgedEvent = {
        ...event,
        objectType: rule.objectTypes[0] ?? "Person",
        type: rule.events[0] ?? type,
        actorType: "agent",
        actorId: self,
        depth
      }
      expect(refuses(self, { ...rule, ignoreSelfTriggered: true }, own, maxChainDepth)).toBe("selfTriggered")
    }
  )

  it.prop(
    "a refusal does not depend on the strategy for concurrent events",
    [anyRule],
    ([{ rule, type, actor, depth }]) => {
      const heard: JudgedEvent = { ...event, type, ...actor, depth }
      expect(refuses(self, { ...rule, concurrencyStrategy: "skip" }, heard, maxChainDepth)).toBe(
        refuses(self, { ...rule, concurrencyStrategy: "parallel" }, heard, maxChainDepth)
      )
    }
  )
})

describe("ReactionConfig", () => {
  const isValid = Schema.is(ReactionConfig)

  it("S001-R49 events are a subset of created, updated and deleted, none twice", () => {
    expect(isValid(config)).toBe(true)
    expect(isValid({ ...config, events: ["renamed"] })).toBe(false)
    expect(isValid({ ...config, events: ["created", "created"] })).toBe(false)
  })

  it("S000-R02 events are not empty, while no type at all is every type", () => {
    expect(isValid({ ...config, events: [] })).toBe(false)
    expect(isValid({ ...config, events: [], mcpEvents: [] })).toBe(false)
    expect(isValid({ ...config, events: [], mcpEvents: [{ server: "shop", name: "order.placed" }] })).toBe(
      true
    )
    expect(isValid({ ...config, objectTypes: [] })).toBe(true)
  })

  it("refuses a type that no object can have", () => {
    expect(isValid({ ...config, objectTypes: ["no spaces"] })).toBe(false)
  })
})
