/**
 * The words in which stories speak of agents that listen to foreign servers.
 */
import { Effect } from "effect"
import { eventSource } from "./mcp-event-source.ts"
import { addServer } from "./mcp-words.ts"
import { ask } from "./owner-rows.ts"
import { eventually, type Json, type Story } from "./platform.ts"
import { newStoryHere } from "./shared-server.ts"
import { saying } from "./story-words.ts"

/** Adds a server whose events agents may listen to. */
export const addSource = (story: Story, url: string, overrides: Record<string, unknown> = {}) =>
  addServer(story, { type: "http", url }, { name: "orders", allowedEvents: ["*"], ...overrides })

/** An agent that hears what is ordered, and says which. */
export const listener = ({ reactionConfig, ...overrides }: Json = {}) => ({
  name: "clerk",
  prompt: "Look at {{ event.server }} {{ event.name }} {{ event.id }}: {{ event.payload.title }}",
  triggerType: "reaction",
  executionMode: "execute",
  tools: ["graph.*"],
  reactionConfig: {
    objectTypes: [],
    events: [],
    mcpEvents: [{ server: "orders", name: "order.placed" }],
    ...reactionConfig
  },
  model: saying("{{ message }}"),
  ...overrides
})

/** What agents listen to of the project's one server. */
export const sourcesOf = (story: Story): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get("/mcp-servers"), ({ items }) => items[0].eventSources)

/** The one source, once it is as wanted. */
export const sourceWhen = (story: Story, satisfies: (source: Json) => boolean): Effect.Effect<Json> =>
  Effect.map(
    eventually(sourcesOf(story), ([source]) => source !== undefined && satisfies(source)),
    ([source]) => source
  )

/** The source, once the server has said where its events begin. */
export const listening = (story: Story): Effect.Effect<Json> =>
  sourceWhen(story, ({ status }) => status === "listening")

/** The ids that runs are about, in the order of the runs. */
export const idsOf = (runs: ReadonlyArray<Json>): ReadonlyArray<string> =>
  runs.flatMap(({ trigger }) => trigger.mcpEvents.map(({ eventId }: Json) => eventId))

/** A project whose clerk hears a source, and has begun to. */
export const newListener = (overrides: Json = {}) =>
  Effect.gen(function* () {
    const story = yield* newStoryHere
    const source = yield* eventSource()
    yield* addSource(story, source.url)
    const agent = yield* story.post("/agents", listener(overrides))
    yield* listening(story)
    return { agent, source, story }
  })

/** Lets the instant come at which the sources of a project are asked next. */
export const askNow = ({ access, projectId }: Pick<Story, "access" | "projectId">) =>
  ask(access, "update kb.mcp_event_sources set due_at = now() where project_id = $1 and due_at is not null", [
    projectId
  ])
