/**
 * What a token that spans several projects finds at the root: the lists, and where to call.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Which project a call is for is never an argument, so here there is none that a
 * call could be for. Every call is told the address that has one.
 */
import { ProtocolErrorCode } from "@modelcontextprotocol/server"
import { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { mcpLimits } from "./mcp-limits.ts"
import { fault } from "./door-server.ts"
import type { Offer } from "./part.ts"

/** No project has this id: parts are asked what they list, and nothing that they would do is ever begun. */
export const nowhere = ProjectId.make("00000000-0000-0000-0000-000000000000")

/** The addresses, as a client is told them. */
export const addressesOf = (origin: string, projectIds: ReadonlyArray<string> | null): string => {
  const shown = projectIds?.slice(0, mcpLimits.toldProjects) ?? []
  const names = shown.length === 0 ? ["{projectId}"] : shown
  const more = shown.length < (projectIds?.length ?? 0) ? " (and others)" : ""
  return `This token reaches several projects. Connect to the address of one of them: ${names
    .map((id) => `${origin}/api/projects/${id}/mcp`)
    .join(" or ")}${more}. GET ${origin}/api/projects lists them.`
}

/** The same offer, of which only the lists remain. */
export const listsOnly =
  (advice: string) =>
  (offer: Offer): Offer => {
    const refuse = Effect.fail(fault(ProtocolErrorCode.InvalidRequest, advice))
    const { prompts, resources, tools } = offer
    return {
      ...(tools && {
        tools: tools.map(({ listed }) => ({
          listed,
          call: () => Effect.succeed({ isError: true, content: [{ type: "text" as const, text: advice }] })
        }))
      }),
      ...(prompts && { prompts: prompts.map(({ listed }) => ({ listed, get: () => refuse })) }),
      ...(resources && {
        resources: {
          list: () => Effect.succeed({ resources: [] }),
          templates: resources.templates,
          read: () => refuse
        }
      })
    }
  }
