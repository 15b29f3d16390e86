/**
 * What a foreign server lists, kept as it was when a person looked.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The hash covers every word that a model, or this program's rules, go by. A
 * server that says something else later has changed, whatever the change is.
 */
import { createHash } from "node:crypto"
import type { Tool } from "@modelcontextprotocol/client"
import { canonicalJson, findFault, isJsonObject } from "@tropism/domain/json"
import { offeredNameOf, type PinnedTool } from "@tropism/domain/mcp-server"
import { foreignLimits } from "../limits.ts"

/** What was listed, and the names of what cannot be offered. */
export interface Pins {
  readonly tools: ReadonlyArray<PinnedTool>
  readonly leftOut: ReadonlyArray<string>
}

/** Pins everything that a server lists and that can be kept. */
export const pinTools = (server: string, listed: ReadonlyArray<Tool>): Pins => {
  const tools = new Map<string, PinnedTool>()
  const leftOut: Array<string> = []
  for (const tool of listed) {
    const pinned = tools.size < foreignLimits.tools && !tools.has(tool.name) ? pinOf(server, tool) : undefined
    if (pinned) tools.set(tool.name, pinned)
    else leftOut.push(tool.name.slice(0, 200))
  }
  return { tools: [...tools.values()], leftOut }
}

/** A tool as it is pinned; nothing for one whose words cannot be kept or are more than any model should read. */
const pinOf = (server: string, tool: Tool): PinnedTool | undefined => {
  const description = tool.description ?? null
  const inputSchema: unknown = JSON.parse(JSON.stringify(tool.inputSchema))
  const isKeepable =
    /^[^\0\s]{1,200}$/.test(tool.name) &&
    (description === null || description.length <= foreignLimits.descriptionMaxChars) &&
    findFault([tool.name, description, inputSchema]) === undefined
  if (!isKeepable || !isJsonObject(inputSchema)) return undefined
  const said = {
    name: tool.name,
    description,
    inputSchema,
    isReadOnly: tool.annotations?.readOnlyHint === true,
    isIdempotent: tool.annotations?.idempotentHint === true
  }
  const text = canonicalJson(said)
  if (text.length > foreignLimits.schemaMaxChars) return undefined
  return {
    ...said,
    offeredName: offeredNameOf(server, tool.name),
    hash: createHash("sha256").update(text, "utf8").digest("hex"),
    changedAt: null
  }
}

/** The pinned tools about which the server says something else now. */
export const changedTools = (
  server: string,
  pinned: ReadonlyArray<PinnedTool>,
  listed: ReadonlyArray<Tool>
): ReadonlyArray<string> => {
  const byName = new Map(listed.map((tool) => [tool.name, tool]))
  return pinned.flatMap(({ changedAt, hash, name }) => {
    const now = byName.get(name)
    return changedAt === null && now !== undefined && pinOf(server, now)?.hash !== hash ? [name] : []
  })
}
