/**
 * Whether foreign servers may be programs of this machine, or lie in its network.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Whoever may add a server could otherwise run any program as this server's
 * account, and reach what only this machine reaches. The operator decides; a
 * server that only this machine can call allows it by itself (decision 0028).
 */
import { isIP } from "node:net"
import type { McpTransport } from "@tropism/domain/mcp-server"
import { Context, Effect } from "effect"
import { isPublicAddress } from "../agent/addresses.ts"
import { type ForeignFault, unmade } from "./foreign-fault.ts"

export class LocalMcpServers extends Context.Reference<boolean>("@tropism/server/tool/LocalMcpServers", {
  defaultValue: () => false
}) {}

const howTo = "the operator allows it with TROPISM_LOCAL_MCP_SERVERS=true"

/** Refuses a program, and an address that says itself that it is local; a name is looked up when it is called. */
export const checkPermit = Effect.fnUntraced(function* (
  transport: McpTransport
): Effect.fn.Return<void, ForeignFault> {
  if (yield* LocalMcpServers) return
  if (transport.type === "stdio") return yield* unmade(`This server runs no programs for MCP: ${howTo}`)
  const host = new URL(transport.url).hostname.replace(/^\[|\]$/g, "")
  const isLocal =
    isIP(host) === 0 ? host === "localhost" || host.endsWith(".localhost") : !isPublicAddress(host)
  if (isLocal) return yield* unmade(`This server calls no MCP server in its own network: ${howTo}`)
})
