/**
 * The words in which stories speak of chains: what they may use, and what came of them.
 */
import { Effect } from "effect"
import { eventually, type Json, type Story } from "./platform.ts"
import { calling, watcher } from "./story-words.ts"

/** Sets caps for every chain of the project. */
export const limitChains = (story: Story, chainLimits: Record<string, unknown>) =>
  story.patch("/settings", { chainLimits })

/** A chain, as many links of it as one page shows. */
export const chainOf = (story: Story, rootEventId: string): Effect.Effect<Json> =>
  story.get(`/chains/${rootEventId}?limit=200`)

/** The events, runs or tasks of a chain, oldest first. */
export const linksOf = (chain: Json, type: "event" | "run" | "task"): ReadonlyArray<Json> =>
  chain.items.flatMap((link: Json) => (link.type === type ? [link[type]] : []))

/** The chain once nothing more comes of it: every event is dispatched, every run at rest, and none came meanwhile. */
export const chainAtRest = (story: Story, rootEventId: string): Effect.Effect<Json> =>
  eventually(chainOf(story, rootEventId), (chain) => {
    const [events, runs] = [linksOf(chain, "event"), linksOf(chain, "run")]
    return (
      events.length === chain.counts.events &&
      runs.length === chain.counts.runs &&
      events.every((event) => event.position !== null) &&
      runs.every((run) => run.completedAt !== null || run.status === "paused")
    )
  })

/** The event with which an object's creation began a chain. */
export const rootOf = (story: Story, object: Json): Effect.Effect<string> =>
  Effect.map(
    eventually(story.get("/events?limit=200"), (page) => page.items.some(begins(object))),
    (page) => page.items.find(begins(object)).id
  )

const begins = (object: Json) => (event: Json) => event.entityId === object.id && event.version === 1

/** An agent that creates objects of these types, one after the other, for each object of a type. */
export const answering = (
  story: Story,
  heard: string,
  made: ReadonlyArray<string>,
  overrides: Record<string, unknown> = {}
) =>
  story.post(
    "/agents",
    watcher({
      name: `${heard}-to-${made.join("-")}`,
      reactionConfig: { objectTypes: [heard], events: ["created"], ignoreSelfTriggered: false },
      model: calling(...made.map((type) => ({ tool: "create_object", arguments: { type, properties: {} } }))),
      // What it makes may be the same several times over.
      repeatableTools: ["graph.create_object"],
      ...overrides
    })
  )
