/**
 * Agents whose runs take long: in several steps, in a loop, against the clock, on a budget.
 */
import type { AgentInput } from "@tropism/domain/agent"
import type { ScriptRule } from "@tropism/domain/script"
import type { Chance } from "./chance.ts"
import type { Part } from "./places.ts"
import { drawReaction, note, prompt, reasoning, sometimes } from "./reacting.ts"

const read = { tool: "get_object", arguments: { objectId: "{{ input.object.id }}" } }
const search = { tool: "search_objects", arguments: { type: "Note", limit: 2 } }

const reacting = (name: string, chance: Chance, rules: ReadonlyArray<ScriptRule>) => ({
  name,
  prompt,
  triggerType: "reaction" as const,
  executionMode: chance.pick(["execute", "suggest"] as const),
  tools: ["graph.*"],
  reactionConfig: drawReaction(chance, {
    objectTypes: [chance.pick(["Note", "Person"])],
    events: ["created"]
  }),
  model: { provider: "scripted" as const, name, script: { rules } }
})

/** One that goes through steps one after another, each of which sees the object again. */
export const walker = (chance: Chance): AgentInput => ({
  ...reacting("walker", chance, [
    { when: "step == 0", calls: chance.oneIn(2) ? [read] : [read, note("walked")] },
    { say: "Step after {{ turn }} messages." }
  ]),
  flowType: "sequential",
  steps: ["first", "second", "third"].slice(0, chance.between(1, 3)).map((name, index) => ({
    name,
    prompt: `${name}: ${index === 0 ? "nothing yet" : "{{ steps.first.output }}"}\n\n${prompt}`
  })),
  maxSteps: sometimes(chance, 5, () => chance.between(1, 4))
})

/** One that goes round until it has had enough, or has gone round often enough. */
export const rounder = (chance: Chance): AgentInput => ({
  ...reacting("rounder", chance, [
    {
      when: `step == 0 and turn >= ${chance.between(1, 4)}`,
      say: "Enough.",
      calls: [{ tool: "exit_loop", arguments: {} }]
    },
    { when: "step == 0", calls: [search] },
    { say: "Once more." }
  ]),
  flowType: "loop",
  maxIterations: chance.between(1, 3)
})

/** One that is slow, and whose time is soon up. */
export const dawdler = (chance: Chance): AgentInput => ({
  ...reacting("dawdler", chance, [
    { when: "step == 0", say: "I begin.", latencyMs: chance.between(1, 2_000), calls: [read] },
    { when: "step == 1", say: "I go on.", latencyMs: chance.between(1, 4_000), calls: [search] },
    { say: "That is all for now.", latencyMs: chance.pick([1, 500, 60_000]) }
  ]),
  defaultTimeoutMs: chance.between(200, 5_000)
})

/** One that does not stop to repeat itself, unless it may. */
export const repeater = (chance: Chance): AgentInput => ({
  ...reacting("repeater", chance, [
    { when: `step < ${chance.between(2, 6)}`, calls: [search] },
    { say: "Found." }
  ]),
  ...(chance.oneIn(2) ? { repeatableTools: ["graph.search_objects"] } : {})
})

/** One that asks a person, sometimes twice at once, and goes on when it knows. */
export const asker = (chance: Chance): AgentInput => ({
  ...reacting("asker", chance, [
    {
      when: "step == 0",
      say: "I must ask.",
      calls: [
        ...(chance.oneIn(2) ? [read] : []),
        ask("Which?"),
        ...(chance.oneIn(4) ? [ask("And how?")] : [])
      ]
    },
    { when: "step == 1", calls: [note("asked")] },
    { say: "Now I know." }
  ]),
  tools: ["graph.*", "run.ask_user"],
  defaultTimeoutMs: sometimes(chance, 4, () => chance.between(500, 5_000))
})

/** One that asks two models at once; the other one is a script of the server's own, which answers after 150 ms. */
export const racer = (chance: Chance): AgentInput => {
  const base = reacting("racer", chance, [
    { when: "step == 0", latencyMs: chance.pick([1, 100, 149, 151, 400]), calls: [read, note("raced")] },
    ...(chance.oneIn(4) ? [{ fault: { kind: "error" as const, message: "The model is not there" } }] : []),
    { say: "Run.", latencyMs: chance.between(1, 300) }
  ])
  return {
    ...base,
    model: { ...base.model, fallback: { provider: "scripted", name: "daily-digest" }, race: true }
  }
}

const ask = (question: string) => ({ tool: "ask_user", arguments: { question } })

/** One that hands on tasks and waits for what becomes of them; and those who do them. */
export const family = (chance: Chance): ReadonlyArray<AgentInput> => {
  const spawn = (agent: string) => ({
    tool: "spawn_agent",
    arguments: {
      agent,
      task: "Help with it.",
      ...(chance.oneIn(4) ? { timeoutMs: chance.between(100, 3_000) } : {})
    }
  })
  const helper = (name: string, rules: ReadonlyArray<ScriptRule>): AgentInput => ({
    name,
    prompt: "Help.",
    triggerType: "manual",
    executionMode: chance.pick(["execute", "suggest"] as const),
    tools: ["graph.*", "run.*"],
    ...(chance.oneIn(4) ? { maxSteps: 1 } : {}),
    budget: sometimes(chance, 4, () => drawBudget(chance)),
    model: { provider: "scripted", name, script: { rules } }
  })
  const made = { tool: "create_object", arguments: { type: "Help", properties: { n: 1 }, reasoning } }
  return [
    {
      ...reacting("boss", chance, [
        {
          when: "step == 0",
          say: "I hand it on.",
          calls: [
            ...(chance.oneIn(3) ? [search] : []),
            spawn("helper"),
            ...(chance.oneIn(2) ? [spawn(chance.pick(["helper", "asks"]))] : [])
          ]
        },
        { when: "step == 1 and results.size > 1", calls: [spawn("helper")] },
        { say: "They have done it." }
      ]),
      tools: ["graph.*", "run.*"],
      subAgents: chance.oneIn(8) ? ["helper"] : ["helper", "asks"],
      budget: sometimes(chance, 4, () => drawBudget(chance)),
      defaultTimeoutMs: sometimes(chance, 4, () => chance.between(500, 6_000))
    },
    {
      ...helper("helper", [
        { when: "step == 0", latencyMs: chance.pick([0, 300, 2_500]), say: "I look.", calls: [search] },
        { when: "step == 1", calls: [chance.oneIn(3) ? spawn("asks") : made] },
        ...(chance.oneIn(5)
          ? [{ fault: { kind: "error" as const, message: "The model is not there" } }]
          : []),
        { say: "Helped." }
      ]),
      subAgents: chance.oneIn(2) ? ["asks"] : []
    },
    helper("asks", [{ when: "step == 0", calls: [ask("May I?")] }, { say: "I asked." }])
  ]
}

/** What an agent may spend: often less than it needs. */
export const drawBudget = (chance: Chance): AgentInput["budget"] => ({
  perRun: sometimes(chance, 2, () => ({ maxTokens: chance.between(0, 900) })),
  perDay: sometimes(chance, 2, () => ({ maxTokens: chance.between(100, 3_000) }))
})

/** Some of them, each on its own luck; some are there for the sake of a world's part. */
export const drawWorkers = (chance: Chance, part?: Part): ReadonlyArray<AgentInput> =>
  makers.flatMap(({ make, of }, index) => {
    const own = chance.fork(String(index))
    if (!own.oneIn(4) && (of === undefined || of !== part)) return []
    const [agent, ...others] = make(own)
    return agent === undefined
      ? []
      : [own.oneIn(3) ? { ...agent, budget: drawBudget(own) } : agent, ...others]
  })

const alone = (make: (chance: Chance) => AgentInput) => (chance: Chance) => [make(chance)]

const makers: ReadonlyArray<{
  readonly make: (chance: Chance) => ReadonlyArray<AgentInput>
  readonly of?: Part
}> = [
  { make: alone(walker), of: "walker" },
  { make: alone(rounder) },
  { make: alone(dawdler) },
  { make: alone(repeater) },
  { make: alone(asker) },
  { make: family, of: "family" },
  { make: alone(racer) }
]
