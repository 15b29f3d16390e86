/**
 * How the agents of a simulation react: drawn rules, and a prompt that their scripts can read.
 */
import type { ReactionInput } from "@tropism/domain/reaction"
import type { Chance } from "./chance.ts"

/** Shows a script the event and its object as JSON. */
export const prompt =
  '```json\n{"event": {% if event %}{{ event | json }}{% else %}null{% endif %}, "object": {% if object %}{{ object | json }}{% else %}null{% endif %}}\n```'

/** Runs that a simulated server works on at once: so few that a crowd fills them. */
export const simulatedSlots = 16

/** Who decides on a change needs a reason. */
export const reasoning = "It was not noted yet"

/** The tool call by which an agent notes the event's version on the object. */
export const note = (property: string, confidence = "0.9") => ({
  tool: "update_object",
  arguments: {
    objectId: "{{ input.object.id }}",
    properties: { [property]: "{{ input.event.version }}" },
    reasoning,
    confidence: Number(confidence)
  }
})

/** The longest window of a rate limit. */
export const longestWindowSeconds = 15

export const sometimes = <A>(chance: Chance, n: number, draw: () => A): A | null =>
  chance.oneIn(n) ? draw() : null

/** How an agent reacts to objects of some types, what is left open drawn. */
export const drawReaction = (
  chance: Chance,
  rule: Pick<ReactionInput, "objectTypes" | "events"> & Partial<ReactionInput>
): ReactionInput => ({
  concurrencyStrategy: chance.pick(["skip", "parallel", "latest", "queue"]),
  debounceMs: sometimes(chance, 5, () => chance.between(100, 1_200)),
  // Never shorter than a debounce, which the definition refuses.
  maxWaitMs: sometimes(chance, 4, () => chance.between(1_200, 3_500)),
  batchSize: sometimes(chance, 6, () => chance.between(2, 3)),
  rateLimit: sometimes(chance, 8, () => ({
    maxRuns: chance.between(1, 2),
    perSeconds: chance.between(1, longestWindowSeconds)
  })),
  maxConcurrency: sometimes(chance, 8, () => chance.between(1, 2)),
  ...rule
})
