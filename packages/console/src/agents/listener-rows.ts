/**
 * Events of foreign MCP servers as a form holds them: a server, an event, and what narrows it as JSON.
 *
 * Pure.
 */
import { type McpServer, isAllowedEvent } from "@tropism/domain/mcp-server"
import type { McpEventListener } from "@tropism/domain/mcp-event"
import { Result } from "effect"
import { type DraftFault, jsonText, objectGiven, type Sent } from "./draft-texts.ts"

export interface ListenerRow {
  readonly server: string
  readonly name: string
  /** JSON; empty is everything. */
  readonly args: string
}

export const listenerRowOf = ({ server, name, arguments: args }: McpEventListener): ListenerRow => ({
  server,
  name,
  args: jsonText(args)
})

/** A source as it is sent, or what is no JSON in it. */
export const listenerOf = (
  { server, name, args }: ListenerRow,
  index: number
): Result.Result<Sent, DraftFault> =>
  objectGiven("arguments", args, `/reactionConfig/mcpEvents/${index}/arguments`, '{"type": "Order"}').pipe(
    Result.map((narrowed) => ({ server, name, ...narrowed }))
  )

type Server = Pick<McpServer, "name" | "allowedEvents" | "eventSources">

/** The events of a server of which the project knows a name: what an admin allowed by name, and what agents hear already. */
export const knownEvents = ({ allowedEvents = [], eventSources }: Server): ReadonlyArray<string> =>
  [
    ...new Set([
      ...allowedEvents.filter((pattern) => !pattern.includes("*")),
      ...eventSources.map(({ name }) => name).filter((name) => isAllowedEvent({ allowedEvents }, name))
    ])
  ].toSorted()

/** What agents may hear of a server, in a sentence. */
export const allowedWords = ({ allowedEvents = [] }: Pick<Server, "allowedEvents">): string =>
  allowedEvents.length === 0
    ? "Agents cannot receive events from this server. An admin can allow them in the settings"
    : `Allowed events: ${allowedEvents.join(", ")}`
