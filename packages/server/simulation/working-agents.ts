/**
 * Agents whose runs take long: in several steps, in a loop, against the clock, on a budget.
 */
import type { AgentInput } from "@tropism/domain/agent"
import type { ScriptRule } from "@tropism/domain/script"
import type { Chance } from "./chance.ts"
import { drawReaction, note, prompt, sometimes } from "./reacting.ts"

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

/** What an agent may spend: often less than it needs. */
export const drawBudget = (chance: Chance): AgentInput["budget"] => ({
  perRun: sometimes(chance, 2, () => ({ maxTokens: chance.between(0, 900) })),
  perDay: sometimes(chance, 2, () => ({ maxTokens: chance.between(100, 3_000) }))
})

/** Some of them, each on its own luck. */
export const drawWorkers = (chance: Chance): ReadonlyArray<AgentInput> =>
  [walker, rounder, dawdler, repeater].flatMap((make, index) => {
    const own = chance.fork(String(index))
    if (!own.oneIn(4)) return []
    const agent = make(own)
    return [own.oneIn(3) ? { ...agent, budget: drawBudget(own) } : agent]
  })
