/**
 * The tools module: call records, effects, external servers, and the tool set of one attempt.
 */
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
import { ExternalOffers, ToolServers } from "./offered-tools.ts"
import { Toolbox } from "./toolbox.ts"
/** Records of calls and denials. They require the graph. */
export const toolRecords = Layer.merge(ToolCalls.layer, Denials.layer)

/** Effects of the built-in tools. */
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

/** The tools offered to a run. They require the effects, the records and the ports that runs fill. */
export const toolsLayer = Layer.provideMerge(
  ToolServers.layer,
  Layer.provideMerge(Toolbox.layer, externalMcp)
)
