/**
 * The agents of a simulation: one that suggests, and by chance others beside it.
 *
 * Each object that a person writes has a `mood`, and the scripts answer by it:
 * read and suggest, several calls in one message, a call that is refused, a tool
 * that does not exist, a model that fails before or in the middle of its answer.
 * A script's answers follow from the log alone, so any attempt goes on where the
 * last one was.
 */
import type { AgentInput } from "@tropism/domain/agent"
import type { ScriptRule } from "@tropism/domain/script"
import type { Chance } from "./chance.ts"
import { guardName } from "./guards.ts"
import { radioEvent, radioName } from "./radio.ts"
import { shopName } from "./shop.ts"
import { drawReaction, note, prompt, reasoning, sometimes } from "./reacting.ts"

/** What a person's object asks of the agents. */
export const moods = [
  "plain",
  "plain",
  "double",
  "many",
  "refused",
  "unknown",
  "wrong",
  "silent",
  "faulty",
  "faultyLater",
  "cut",
  "relate"
] as const

export type Mood = (typeof moods)[number]

const onMood = (mood: Mood, step: number): string =>
  `input.object.properties.mood == "${mood}" and step == ${step}`

const read = { tool: "get_object", arguments: { objectId: "{{ input.object.id }}" } }
const search = { tool: "search_objects", arguments: { type: "Note", limit: 5 } }

const suggesterRules: ReadonlyArray<ScriptRule> = [
  { when: onMood("plain", 0), calls: [read] },
  { when: onMood("plain", 1), say: "I have read it.", calls: [note("seen")] },
  { when: onMood("double", 0), calls: [read, note("seen")] },
  {
    when: onMood("many", 0),
    calls: [
      search,
      note("seen"),
      {
        tool: "create_object",
        arguments: { type: "Note", properties: { about: "{{ input.object.id }}" }, reasoning }
      },
      { tool: "neighbors", arguments: { objectId: "{{ input.object.id }}" } }
    ]
  },
  { when: onMood("refused", 0), calls: [{ tool: "delete_object", arguments: read.arguments }, read] },
  { when: onMood("unknown", 0), calls: [{ tool: "divine", arguments: {} }] },
  { when: onMood("wrong", 0), calls: [{ tool: "get_object", arguments: { id: 1 } }, note("seen")] },
  { when: onMood("faulty", 0), fault: { kind: "error", message: "The model is not there" } },
  { when: onMood("faultyLater", 0), calls: [read] },
  { when: onMood("faultyLater", 1), fault: { kind: "rateLimited", message: "Too many requests" } },
  {
    when: onMood("cut", 0),
    say: "This answer will break off somewhere",
    fault: { kind: "cut", message: "Broken off" }
  },
  { when: onMood("relate", 0), calls: [search] },
  {
    when: `${onMood("relate", 1)} and results[0].result.items.size > 1`,
    calls: [
      {
        tool: "create_relationship",
        arguments: {
          type: "resembles",
          fromId: "{{ results[0].result.items[0].id }}",
          toId: "{{ results[0].result.items[1].id }}",
          reasoning
        }
      }
    ]
  },
  { say: "Done after {{ step }}." }
]

/** The agent that may only suggest. */
export const suggester = (chance: Chance): AgentInput => ({
  name: "suggester",
  prompt,
  ...(chance.oneIn(2) ? { systemPrompt: "You look after notes." } : {}),
  triggerType: "reaction",
  executionMode: "suggest",
  tools: ["graph.*"],
  reactionConfig: drawReaction(chance, {
    objectTypes: chance.oneIn(2) ? ["Note"] : chance.oneIn(2) ? ["Note", "Person"] : [],
    events: chance.pick([["created", "updated"], ["created", "updated", "deleted"], ["updated"]]),
    relationshipTypes: chance.oneIn(4) ? [] : null,
    where: chance.oneIn(8) ? { changedProperties: ["mood"] } : null,
    ignoreAgentTriggered: chance.oneIn(4)
  }),
  capabilities: { canDeleteObjects: false },
  ...(chance.oneIn(4) ? { maxSteps: 1 } : {}),
  maxPendingRuns: sometimes(chance, 8, () => chance.between(1, 2)),
  disableAfterFailures: sometimes(chance, 8, () => chance.between(1, 3)),
  reviewPolicy: sometimes(chance, 2, () => ({
    maxPending: chance.between(1, 4),
    expiresAfterMs: chance.oneIn(2) ? chance.between(300, 3_000) : null
  })),
  retryPolicy: sometimes(chance, 4, () => ({
    maxAttempts: chance.between(2, 3),
    backoffMs: chance.between(0, 1_500)
  })),
  model: { provider: "scripted", name: "suggester", script: { rules: suggesterRules } }
})

/** One that writes by itself, so that agents wake agents. */
export const executor = (chance: Chance): AgentInput => ({
  name: "executor",
  prompt,
  triggerType: "reaction",
  executionMode: chance.pick(["execute", "hybrid"]),
  tools: ["graph.*"],
  reactionConfig: drawReaction(chance, { objectTypes: ["Note"], events: ["created", "updated"] }),
  model: {
    provider: "scripted",
    name: "executor",
    script: {
      rules: [
        { when: `${onMood("silent", 0)}`, say: "Nothing to do." },
        { when: "step == 0", calls: [read] },
        { when: "step == 1", calls: [note("echoed")] },
        { say: "I wrote it down." }
      ]
    }
  }
})

/** One that asks until people trust it, and is never sure of what it does. */
export const apprentice = (chance: Chance): AgentInput => ({
  name: "apprentice",
  prompt,
  triggerType: "reaction",
  executionMode: "hybrid",
  hybridPolicy: { promotion: { minReviews: chance.between(1, 2), minRate: chance.pick([0, 0.5]) } },
  tools: ["graph.*"],
  reactionConfig: drawReaction(chance, { objectTypes: ["Note", "Person"], events: ["created", "updated"] }),
  model: {
    provider: "scripted",
    name: "apprentice",
    script: {
      rules: [
        {
          when: "step == 0",
          calls: [
            note("learned", "0.1"),
            {
              tool: "create_object",
              arguments: { type: "Draft", properties: { of: "{{ input.object.id }}" }, reasoning }
            }
          ]
        },
        { say: "I tried." }
      ]
    }
  }
})

/** A tool that the clients of one context answer. */
export const clientTool = "pick_colour"

const picking = { tool: clientTool, arguments: { prompt: "Which?" } }

/** Calls of it, where a message has the word "paint". */
const paintRules: ReadonlyArray<ScriptRule> = [
  { when: 'step == 0 and message contains "paint both"', calls: [picking, picking] },
  { when: 'step == 0 and message contains "paint"', calls: [picking] }
]

/** One that is only talked to. */
export const talker = (): AgentInput => ({
  name: "talker",
  prompt: "Talk.",
  triggerType: "manual",
  executionMode: "suggest",
  tools: ["graph.search_objects"],
  model: {
    provider: "scripted",
    name: "talker",
    script: {
      rules: [
        { when: 'step == 0 and message contains "look"', calls: [search] },
        ...paintRules,
        { say: "I heard: {{ message }}" }
      ]
    }
  }
})

/** One that a schedule wakes, and that sometimes writes a note of its own. */
export const riser = (chance: Chance): AgentInput => ({
  name: "riser",
  prompt: "Rise.",
  triggerType: "schedule",
  cronSchedule: "* * * * *",
  executionMode: chance.pick(["suggest", "execute"]),
  catchUp: chance.pick(["none", "one", "all"]),
  overlapPolicy: chance.pick(["skip", "allow"]),
  tools: ["graph.*"],
  model: {
    provider: "scripted",
    name: "riser",
    script: {
      rules: [
        {
          when: "step == 0",
          calls: [
            search,
            { tool: "create_object", arguments: { type: "Note", properties: { mood: "silent" }, reasoning } }
          ]
        },
        { say: "Risen." }
      ]
    }
  }
})

/** One that hears a foreign server, and would write by itself what it heard. */
export const dancer = (chance: Chance): AgentInput => ({
  name: "dancer",
  prompt,
  triggerType: "reaction",
  executionMode: "execute",
  tools: ["graph.*"],
  reactionConfig: drawReaction(chance, {
    objectTypes: [],
    events: [],
    mcpEvents: [{ server: radioName, name: radioEvent }]
  }),
  // Who is disabled by itself listens no more, and what it had to hear would not be known.
  disableAfterFailures: 1_000_000,
  model: {
    provider: "scripted",
    name: "dancer",
    script: {
      rules: [
        {
          when: "step == 0",
          calls: [
            {
              tool: "create_object",
              arguments: {
                type: "Dance",
                properties: { to: "{{ input.event.id }}", mood: "silent" },
                reasoning
              }
            }
          ]
        },
        { say: "I danced." }
      ]
    }
  }
})

/** One that looks around at a foreign server and orders from it, sometimes twice at once, and notes it; sometimes against the clock, and then a call may hang. */
export const buyer = (chance: Chance): AgentInput => {
  const ask = (tool: string, what: string) => ({
    tool: `${shopName}__${tool}`,
    arguments: { key: `${what} for {{ input.event.id }}` }
  })
  const hurries = chance.fork("hurry").oneIn(2)
  const looks = Array.from({ length: chance.fork("look").between(0, 3) }, (_, index) =>
    ask("look", `prize ${index}`)
  )
  return {
    name: "buyer",
    defaultTimeoutMs: hurries ? chance.fork("time").between(500, 5_000) : null,
    prompt,
    triggerType: "reaction",
    executionMode: chance.pick(["execute", "execute", "hybrid", "suggest"]),
    tools: ["graph.*", `${shopName}.*`],
    reactionConfig: drawReaction(chance, { objectTypes: ["Note", "Person"], events: ["created", "updated"] }),
    model: {
      provider: "scripted",
      name: "buyer",
      script: {
        rules: [
          {
            when: "step == 0",
            calls: [
              ...looks,
              ask("order", "tea"),
              ...(chance.oneIn(2) ? [ask("put", "money")] : []),
              ...(chance.oneIn(2) ? [ask("order", "cake")] : []),
              ...looks.map((look) => ({ ...look, arguments: { key: `${look.arguments.key}, again` } }))
            ]
          },
          ...(hurries && chance.fork("hang").oneIn(2)
            ? [{ when: "step == 1", calls: [ask("hang", "news")] }]
            : []),
          ...(chance.oneIn(2) ? [{ when: "step == 1", calls: [note("bought")] }] : []),
          { say: "Bought." }
        ]
      }
    }
  }
}

/** One whose model answers only what a guard lets pass. */
export const ward = (chance: Chance): AgentInput => ({
  name: "ward",
  prompt,
  triggerType: "reaction",
  executionMode: chance.pick(["execute", "suggest"]),
  tools: ["graph.*"],
  reactionConfig: drawReaction(chance, {
    objectTypes: [chance.pick(["Note", "Person"])],
    events: ["created", "updated"]
  }),
  retryPolicy: sometimes(chance, 4, () => ({ maxAttempts: 2, backoffMs: chance.between(0, 1_500) })),
  model: {
    provider: "scripted",
    name: "ward",
    guard: { provider: "openai-compatible", name: guardName },
    script: {
      rules: [
        { when: "step == 0", latencyMs: chance.pick([0, 200, 500]), calls: [read] },
        { when: "step == 1", calls: [note("warded")] },
        { say: "It is safe." }
      ]
    }
  }
})

/** One that another system wakes. */
export const porter = (): AgentInput => ({
  name: "porter",
  prompt: "Bring in what was delivered.",
  triggerType: "webhook",
  executionMode: "execute",
  tools: ["graph.*"],
  model: {
    provider: "scripted",
    name: "porter",
    script: {
      rules: [
        {
          when: "step == 0",
          calls: [
            { tool: "create_object", arguments: { type: "Note", properties: { mood: "plain" }, reasoning } }
          ]
        },
        { say: "Brought in." }
      ]
    }
  }
})
