/**
 * Events of foreign MCP servers: what an agent listens for, and what was told.
 *
 * A source is one kind of event of one server, narrowed by arguments; agents that
 * name the same share it. An occurrence is one thing that the server told of it.
 * What it says is data from outside, so whatever it wakes is tainted by its server.
 */
import { Schema } from "effect"
import { GraphEventId, Timestamp } from "./ids.ts"
import { canonicalJson, findFault } from "./json.ts"
import { keptChars } from "./kept-size.ts"
import { isAllowedEvent, McpServerName } from "./mcp-server.ts"
import type { Taint } from "./taint.ts"

export const mcpEventBounds = {
  /** Sources that one agent listens to. */
  maxListened: 20,
  nameMaxChars: 200,
  /** Of the arguments that narrow a source, in canonical JSON. */
  argumentsMaxChars: 4_000
} as const

/** A kind of event of a foreign server that an agent listens to, by the names that both have. */
export const McpEventListener = Schema.Struct({
  server: McpServerName,
  name: Schema.String.check(
    Schema.isPattern(/^[^\0\s]{1,200}$/, { message: "Expected the name of an event, as its server lists it" })
  ),
  /** The server's own filter; `events/list` of the server says what it may be. */
  arguments: Schema.optional(Schema.NullOr(Schema.Record(Schema.String, Schema.Json)))
}).annotate({ identifier: "McpEventListener" })
export type McpEventListener = typeof McpEventListener.Type

export const McpEventListeners = Schema.Array(McpEventListener).check(
  Schema.isMaxLength(mcpEventBounds.maxListened)
)

/** What narrows a source; saying nothing is {}. */
export const argumentsOf = ({ arguments: args }: McpEventListener): Readonly<Record<string, Schema.Json>> =>
  args ?? {}

/** What makes two listeners one source. */
export const sourceKey = (listener: McpEventListener): string =>
  canonicalJson([listener.server, listener.name, argumentsOf(listener)])

/** An occurrence as a run's trigger names it. */
export const TriggeringOccurrence = Schema.Struct({
  id: GraphEventId,
  server: Schema.String,
  name: Schema.String,
  /** The server's own id of it. */
  eventId: Schema.String,
  timestamp: Timestamp
}).annotate({ identifier: "TriggeringOccurrence" })
export type TriggeringOccurrence = typeof TriggeringOccurrence.Type

/** One thing that a foreign server told. */
export const Occurrence = Schema.Struct({
  ...TriggeringOccurrence.fields,
  /** Null where it was larger than is kept, or could not be. */
  payload: Schema.Json,
  /** Whether the payload, or a key in it that cannot be kept, is left out. */
  payloadOmitted: Schema.Boolean,
  /** When it was told here. */
  createdAt: Timestamp
}).annotate({ identifier: "Occurrence" })
export type Occurrence = typeof Occurrence.Type

/** What a context begins with that occurrences woke: one source for each server. */
export const taintOfOccurrences = (
  occurrences: ReadonlyArray<Pick<TriggeringOccurrence, "server">>
): ReadonlyArray<Taint> =>
  [...new Set(occurrences.map(({ server }) => server))].map((id) => ({ kind: "mcpServer", id, at: 0 }))

/** A foreign server as far as a rule may name its events. */
export interface EventServer {
  readonly name: string
  readonly allowedEvents: ReadonlyArray<string>
}

/** The first listener that could never hear anything; `pointer` is its place in a definition. */
export const findListenerFault = (
  listeners: ReadonlyArray<McpEventListener>,
  servers: ReadonlyArray<EventServer>
): { readonly pointer: string; readonly message: string } | undefined => {
  const keys = listeners.map(sourceKey)
  for (const [index, listener] of listeners.entries()) {
    const pointer = `/reactionConfig/mcpEvents/${index}`
    const server = servers.find(({ name }) => name === listener.server)
    if (server === undefined)
      return {
        pointer: `${pointer}/server`,
        message: `The project has no MCP server named ${listener.server}: ${servers.map(({ name }) => name).join(", ") || "it has none"}`
      }
    if (!isAllowedEvent(server, listener.name))
      return {
        pointer: `${pointer}/name`,
        message: `Agents may not listen to ${listener.name} of ${server.name}: an admin names it in the server's allowedEvents, which has ${server.allowedEvents.join(", ") || "none"}`
      }
    const fault = findFault(argumentsOf(listener), `${pointer}/arguments`)
    if (fault) return fault
    if (keptChars(argumentsOf(listener)) > mcpEventBounds.argumentsMaxChars)
      return {
        pointer: `${pointer}/arguments`,
        message: `Arguments have at most ${mcpEventBounds.argumentsMaxChars} characters`
      }
    if (keys.indexOf(keys[index] ?? "") < index)
      return { pointer, message: "The agent listens to this already: name it once" }
  }
  return undefined
}

/** An occurrence as a trigger names it. */
export const triggeringOf = ({ eventId, id, name, server, timestamp }: Occurrence): TriggeringOccurrence => ({
  id,
  server,
  name,
  eventId,
  timestamp
})
