/**
 * What a foreign server lists, kept as it was when a person looked.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The hash covers every word that a model, or this program's rules, go by. A
 * server that says something else later has changed, whatever the change is:
 * what is compared is the hash, and nobody judges the new words by then.
 */
import { createHash } from "node:crypto"
import type { Tool } from "@modelcontextprotocol/client"
import { canonicalJson, findFault, isJsonObject } from "@tropism/domain/json"
import { keptChars } from "@tropism/domain/kept-size"
import { offeredNameOf, type PinnedTool } from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { foreignLimits } from "./foreign-limits.ts"
import { whyUnjudgeable } from "./foreign-arguments.ts"
import { lineOf } from "./foreign-fault.ts"
import { findLostRef, type JsonSchema } from "./schema-refs.ts"

/** What was listed, and the names of what cannot be offered. */
export interface Pins {
  readonly tools: ReadonlyArray<PinnedTool>
  readonly leftOut: ReadonlyArray<string>
}

/** Pins everything that a server lists and that can be kept and called. */
export const pinTools = (server: string, listed: ReadonlyArray<Tool>): Pins => {
  const tools = new Map<string, PinnedTool>()
  const leftOut: Array<string> = []
  for (const tool of listed) {
    const pinned = pinOf(server, tool)
    const fault =
      typeof pinned === "string"
        ? pinned
        : tools.size >= foreignLimits.tools
          ? `a server has at most ${foreignLimits.tools} tools`
          : tools.has(tool.name)
            ? "it is listed twice"
            : undefined
    if (fault === undefined && typeof pinned !== "string") tools.set(tool.name, pinned)
    else leftOut.push(`${beginningOf(lineOf(tool.name), foreignLimits.leftOutNameMaxChars)} (${fault})`)
  }
  return { tools: [...tools.values()], leftOut }
}

/** A tool as it is pinned, or why it is none that anybody could offer. */
const pinOf = (server: string, tool: Tool): PinnedTool | string => {
  const said = saidOf(tool)
  if (typeof said === "string") return said
  const misfit = whyUncallable(tool, said.inputSchema)
  if (misfit !== undefined) return misfit
  return {
    ...said,
    offeredName: offeredNameOf(server, tool.name),
    hash: hashOf(wholeOf(said, tool)),
    changedAt: null
  }
}

type Said = Pick<PinnedTool, "name" | "description" | "inputSchema" | "isReadOnly" | "isIdempotent">

/** What is kept of a tool's words, or why they cannot be kept. */
const saidOf = (tool: Tool): Said | string => {
  const description = tool.description ?? null
  const inputSchema: unknown = JSON.parse(JSON.stringify(tool.inputSchema))
  if (!/^[^\0\s]{1,200}$/.test(tool.name)) return "its name is empty, too long or has spaces"
  if (description !== null && description.length > foreignLimits.descriptionMaxChars)
    return `its description is longer than ${foreignLimits.descriptionMaxChars} characters`
  const fault = findFault([tool.name, description, inputSchema])
  if (fault !== undefined) return `it cannot be kept: ${lineOf(fault.message)}`
  if (!isJsonObject(inputSchema)) return "its inputSchema is no object"
  const said = {
    name: tool.name,
    description,
    inputSchema,
    isReadOnly: tool.annotations?.readOnlyHint === true,
    isIdempotent: tool.annotations?.idempotentHint === true
  }
  return keptChars(said) > foreignLimits.schemaMaxChars
    ? `it is described in more than ${foreignLimits.schemaMaxChars} characters`
    : said
}

/** Everything that a pin stands for; what a tool says of its answers is not kept, and null where it says nothing. */
const wholeOf = (said: Said, tool: Tool): unknown => {
  const { outputSchema = null }: { readonly outputSchema?: unknown } = tool
  // What is nested deeper than JSON may be here is compared as text.
  const isPlain = findFault(outputSchema) === undefined
  return { ...said, outputSchema: isPlain ? outputSchema : JSON.stringify(outputSchema) }
}

const hashOf = (words: unknown): string =>
  createHash("sha256").update(canonicalJson(words), "utf8").digest("hex")

/** Why no call of a tool could be made, or its arguments not be judged. */
const whyUncallable = (tool: Tool, inputSchema: JsonSchema): string | undefined => {
  if (isTaskOnly(tool))
    return "it is called as a task of the revision 2025-11-25 only, which nobody does here"
  const lost = findLostRef(inputSchema)
  if (lost !== undefined)
    return `its inputSchema refers to ${beginningOf(lineOf(lost), 200)}, which is not in it`
  return whyUnjudgeable(inputSchema)
}

const isTaskOnly = ({ execution }: Tool): boolean => execution?.taskSupport === "required"

/** The pinned tools about which the server says something else now. */
export const changedTools = (
  pinned: ReadonlyArray<PinnedTool>,
  listed: ReadonlyArray<Tool>
): ReadonlyArray<string> => {
  const byName = new Map(listed.map((tool) => [tool.name, tool]))
  return pinned.flatMap((tool) => {
    const now = byName.get(tool.name)
    if (tool.changedAt !== null || now === undefined) return []
    const said = saidOf(now)
    const isSame =
      typeof said !== "string" &&
      !isTaskOnly(now) &&
      (tool.hash === hashOf(wholeOf(said, now)) || tool.hash === hashOf(said))
    return isSame ? [] : [tool.name]
  })
}

/**
 * The tool by whose words the answers of a pinned one are judged: what its server says now, where all of it is pinned.
 *
 * **Gotchas** A pin from before `outputSchema` was pinned has a hash without it, which is still compared. Nobody
 * goes by what such a tool says of its answers until an admin refreshes.
 */
export const answeringTool = (pinned: PinnedTool, listed: ReadonlyArray<Tool>): Tool | undefined => {
  const now = listed.find(({ name }) => name === pinned.name)
  const said = now === undefined ? undefined : saidOf(now)
  return now !== undefined && typeof said === "object" && hashOf(wholeOf(said, now)) === pinned.hash
    ? now
    : undefined
}
