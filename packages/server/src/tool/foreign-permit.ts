/**
 * Whether foreign servers may be programs of this machine, or lie in its network.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Whoever may add a server could otherwise run any program as this server's
 * account, and reach what only this machine reaches. The operator decides; where
 * nobody has, a server that only this machine can call allows it to whoever has
 * the server anyway, by addresses that say themselves that they are local (decision 0028).
 */
import { isIP } from "node:net"
import type { McpTransport } from "@tropism/domain/mcp-server"
import { Context, Effect } from "effect"
import { isPublicAddress } from "../agent/addresses.ts"
import { type ForeignFault, unmade } from "./foreign-fault.ts"

/** Who may name programs of this machine and addresses of its network. */
export type LocalPermit = "nobody" | "serverTokens" | "admins"

export class LocalMcpServers extends Context.Reference<LocalPermit>("@tropism/server/tool/LocalMcpServers", {
  defaultValue: () => "nobody"
}) {}

const howTo = "the operator allows it with TROPISM_LOCAL_MCP_SERVERS=true"

/** Refuses a program, and an address that says itself that it is local; a name is looked up when it is called. */
export const checkPermit = Effect.fnUntraced(function* (
  transport: McpTransport
): Effect.fn.Return<void, ForeignFault> {
  if ((yield* LocalMcpServers) !== "nobody") return
  if (transport.type === "stdio") return yield* unmade(`This server runs no programs for MCP: ${howTo}`)
  if (isLocal(transport)) return yield* unmade(`This server calls no MCP server in its own network: ${howTo}`)
})

/** Why somebody may not name what is local; undefined when they may. `isServerToken` is whether their token reaches every project. */
export const localFault = Effect.fnUntraced(function* (transport: McpTransport, isServerToken: boolean) {
  const isOpen = isServerToken || (yield* LocalMcpServers) !== "serverTokens"
  return isOpen || !isLocal(transport)
    ? undefined
    : `Programs and addresses of the server's own machine are for the server's admin to add: ${howTo} to admins of projects, too`
})

/** Whether a call of this address may end in this machine's network. */
export const mayEndHere = Effect.fnUntraced(function* (transport: McpTransport) {
  const permit = yield* LocalMcpServers
  return permit === "admins" || (permit === "serverTokens" && isLocal(transport))
})

const isLocal = (transport: McpTransport): boolean => {
  if (transport.type === "stdio") return true
  const host = new URL(transport.url).hostname.replace(/^\[|\]$/g, "")
  return isIP(host) === 0 ? host === "localhost" || host.endsWith(".localhost") : !isPublicAddress(host)
}
