/**
 * The tools that a person finds at the MCP door: `graph`, `tasks` and `agents`, by their bare names.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Who calls comes from the token. What the client puts into `_meta` is not read.
 */
import type { CallToolResult } from "@modelcontextprotocol/server"
import { isJsonObject } from "@tropism/domain/json"
import { Effect } from "effect"
import type { ListedTool, PersonPrincipal } from "../tool/person-tool.ts"
import { type PersonOutcome, PersonTools } from "../tool/person-tools.ts"
import type { McpCaller, McpPart } from "./part.ts"

/** A caller as the stages below know one. */
export const personOf = ({ principal: { role, userId }, projectId }: McpCaller): PersonPrincipal => ({
  projectId,
  role,
  userId
})

export const peopleTools: Effect.Effect<McpPart, never, PersonTools> = Effect.map(
  PersonTools,
  (tools): McpPart => {
    const listed = tools.listed.map(asListed)
    return {
      name: "people",
      offerTo: (caller) => ({
        tools: listed.map((tool) => ({
          listed: tool,
          call: (args) => Effect.map(tools.call(personOf(caller), tool.name, args), toldResult)
        }))
      })
    }
  }
)

const asListed = (tool: ListedTool) => ({ ...tool, annotations: { ...tool.annotations, title: tool.title } })

/** An outcome in MCP's words: as text, and as it is where it is an object; an error has not the form that a tool's output has. */
const toldResult = ({ isError, result }: PersonOutcome): CallToolResult => ({
  content: [{ type: "text", text: JSON.stringify(result) }],
  ...(!isError && isJsonObject(result) ? { structuredContent: result } : {}),
  isError
})
