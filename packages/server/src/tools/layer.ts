/** The tools of runs: records, effects, external servers, and the set that one attempt may use. */
import { Layer } from "effect"
import { Denials } from "./denials.ts"
import { ExternalCalls } from "./external-mcp/calls.ts"
import { ExternalConnections } from "./external-mcp/connections.ts"
import { ExternalEvents } from "./external-mcp/events.ts"
import { OAuthGrants } from "./external-mcp/oauth-grants.ts"
import { ServerRegistry } from "./external-mcp/registry.ts"
import { McpServers } from "./external-mcp/servers.ts"
import { SignIns } from "./external-mcp/sign-ins.ts"
import { GraphEffects } from "./graph-effects.ts"
import { TodoEffects } from "./todo-tools.ts"
import { ToolCalls } from "./tool-calls.ts"
import { ExternalOffers, ToolServers } from "./tool-servers.ts"
import { Toolbox } from "./toolbox.ts"
/** The records of calls that were made and of those that were refused. They need the graph. */
export const toolRecords = Layer.merge(ToolCalls.layer, Denials.layer)

/** What the built-in tools do. */
export const toolEffects = Layer.merge(GraphEffects.layer, TodoEffects.layer)

const externalMcp = Layer.mergeAll(
  ExternalCalls.layer,
  ExternalEvents.layer,
  ExternalOffers.layer,
  ServerRegistry.layer,
  SignIns.layer
).pipe(
  Layer.provideMerge(
    Layer.provideMerge(ExternalConnections.layer, Layer.merge(McpServers.layer, OAuthGrants.layer))
  )
)

/** The tools that a run is offered. They need the effects, the records and what the runs offer to tools. */
export const toolsLayer = Layer.provideMerge(
  ToolServers.layer,
  Layer.provideMerge(Toolbox.layer, externalMcp)
)
