/**
 * The words in which stories call tools as people do: through the MCP door, each for themselves.
 */
import type { Client } from "@modelcontextprotocol/client"
import { Effect } from "effect"
import { connect } from "./mcp-clients.ts"
import type { Json, Story } from "./platform.ts"

/** What a call came to. */
export interface Told {
  readonly isError: boolean
  readonly result: Json
}

/** A person at the door of a project, until the scope ends. */
export interface Person {
  readonly client: Client
  readonly call: (
    tool: string,
    args?: Record<string, unknown>,
    meta?: Record<string, unknown>
  ) => Effect.Effect<Told>
}

/** Comes to the project's own address with the token of whoever's story it is. */
export const atTheDoor = (story: Story) =>
  Effect.map(connect(story, `/api/projects/${story.projectId}/mcp`, "2026-07-28"), (client): Person => ({
    client,
    call: (tool, args = {}, meta) =>
      Effect.map(
        Effect.promise(() =>
          client.callTool({ name: tool, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) })
        ),
        ({ content, isError }) => {
          const [first] = content as ReadonlyArray<Json>
          return { isError: isError === true, result: JSON.parse(first.text) }
        }
      )
  }))
