/**
 * The words in which stories define agents and look at what they did.
 *
 * What wakes an agent is decided in the transaction that gives an event its
 * place in the feed. So a story that says "it was not woken" waits for the
 * event's place first, and then looks: it never waits for nothing to happen.
 */
import { Effect } from "effect"
import { eventually, type Json, promptWithObject, scripted, type Story } from "./platform.ts"

/** An agent that reacts to created Persons, may do everything and says one sentence. */
export const watcher = (overrides: Record<string, unknown> = {}) => ({
  name: "watcher",
  prompt: promptWithObject,
  triggerType: "reaction",
  executionMode: "execute",
  tools: ["graph.*"],
  reactionConfig: { objectTypes: ["Person"], events: ["created"] },
  model: scripted([{ say: "Seen." }]),
  ...overrides
})

/** A call that a scripted model makes. */
export interface ScriptedCall {
  readonly tool: string
  readonly arguments: Record<string, unknown>
}

/** A model that makes these calls at once and then ends its turn. */
export const calling = (...calls: ReadonlyArray<ScriptedCall>) =>
  scripted([{ when: "step == 0", calls }, { say: "Done." }])

/** A model that says a text, a Liquid template over what woke the agent. */
export const saying = (text: string) => scripted([{ say: text }])

/** A model that is silent for so long and then ends its turn. */
export const silentFor = (latencyMs: number) => scripted([{ say: "Done.", latencyMs }])

/** The feed, once it has so many events; what they wake has its entry by then. */
export const feedOf = (story: Story, count: number): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(
    eventually(story.get("/events?limit=200"), (page) => page.items.length >= count),
    (page) => page.items
  )

/** An agent's processing entries, oldest first. */
export const entriesOf = (story: Story, agent: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/agents/${agent.id}/processing-log?limit=200`), (page) => page.items.toReversed())

/** The entries, once all of them satisfy and there are so many. */
export const entriesWhen = (
  story: Story,
  agent: Json,
  count: number,
  satisfies: (entry: Json) => boolean = isOver
): Effect.Effect<ReadonlyArray<Json>> =>
  eventually(
    entriesOf(story, agent),
    (entries) => entries.length >= count && entries.every((entry) => satisfies(entry))
  )

/** Whether nothing more will happen to an entry. */
export const isOver = (entry: Json): boolean => !["pending", "processing"].includes(entry.status)

/** An agent's runs, oldest first. */
export const runsOf = (story: Story, agent: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs?agentId=${agent.id}&limit=200`), (page) => page.items.toReversed())

/** The runs, once there are so many and all have ended. */
export const endedRuns = (story: Story, agent: Json, count: number): Effect.Effect<ReadonlyArray<Json>> =>
  eventually(
    runsOf(story, agent),
    (runs) => runs.length >= count && runs.every((run) => run.completedAt !== null)
  )

/** The recorded tool calls of a run, oldest first. */
export const callsOf = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/tool-calls`), (page) => page.items.toReversed())

/** The agents that a story has made, newest first; each project begins with one that it has not. */
export const agentsOf = (story: Story): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get("/agents?limit=200"), ({ items }) =>
    items.filter(({ name }: Json) => name !== "TodoAssistant")
  )

/** Pending suggestions, oldest first, once there are so many. */
export const suggestionsOf = (story: Story, count: number): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(
    eventually(story.get("/tasks?status=pending&limit=200"), (page) => page.items.length >= count),
    (page) => page.items.toReversed()
  )

/** Makes an object of a type. */
export const make = (story: Story, type: string, properties: Record<string, unknown> = {}) =>
  story.post("/objects", { type, properties })

/** Changes an object's properties, one request after the other. */
export const change = (story: Story, object: Json, ...states: ReadonlyArray<Record<string, unknown>>) =>
  Effect.forEach(states, (properties) => story.patch(`/objects/${object.id}`, { properties }))

/** The versions of the events that a run handled, oldest first. */
export const versionsOf = (run: Json): ReadonlyArray<number> =>
  run.trigger.events.map((event: Json) => event.version)

/** Why an event did or did not wake an agent. */
export const explained = (story: Story, agent: Json, event: Json) =>
  story.get(`/agents/${agent.id}/explain?eventId=${event.id}`)
