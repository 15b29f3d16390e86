/**
 * Which tools of foreign servers a run is shown: the agent's patterns within each server's allow-list.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * They come from the pins, so a server that is down is offered like any other
 * and nobody is connected to for a run that calls nothing. A tool that has
 * changed since a person looked is not shown.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { isAllowedTool, patternedNameOf } from "@tropism/domain/mcp-server"
import { allows, isBuiltInPattern } from "@tropism/domain/tool-pattern"
import { Context, Effect, Layer } from "effect"
import { Database } from "../database/database.ts"
import type { OfferedTool } from "../model/model-request.ts"
import type { ForeignTool } from "./foreign-calls.ts"
import { McpServers } from "./mcp-servers.ts"
import { offeredSchema } from "./offered-schema.ts"

/** What a run may use of the project's foreign servers. */
export interface ForeignOffer {
  readonly offered: ReadonlyArray<OfferedTool>
  readonly find: (offeredName: string) => ForeignTool | undefined
}

export class ForeignOffers extends Context.Service<
  ForeignOffers,
  {
    readonly of: (projectId: ProjectId, patterns: ReadonlyArray<string>) => Effect.Effect<ForeignOffer>
  }
>()("@tropism/server/tool/ForeignOffers") {
  static readonly layer = Layer.effect(
    ForeignOffers,
    Effect.gen(function* () {
      const database = yield* Database
      const servers = yield* McpServers

      const of = Effect.fn("ForeignOffers.of")(function* (
        projectId: ProjectId,
        patterns: ReadonlyArray<string>
      ) {
        // Most agents name servers of this program only: for them nobody is asked.
        if (patterns.every(isBuiltInPattern)) return nothing
        const tools = new Map<string, ForeignTool>()
        for (const server of yield* database.inProject(projectId, servers.enabled))
          for (const tool of server.tools)
            if (
              isAllowedTool(server.config, tool.name) &&
              allows(patterns, patternedNameOf(server.config.name, tool.name))
            )
              tools.set(tool.offeredName, { server, tool })
        const offered = [...tools.values()].flatMap(({ tool }) =>
          tool.changedAt === null
            ? [
                {
                  name: tool.offeredName,
                  ...(tool.description === null ? {} : { description: tool.description }),
                  inputSchema: offeredSchema(tool.inputSchema)
                }
              ]
            : []
        )
        return { offered, find: (name: string) => tools.get(name) }
      })

      return ForeignOffers.of({ of })
    })
  )
}

const nothing: ForeignOffer = { offered: [], find: () => undefined }

/** A model sees a foreign tool by the name of its server, too. */
export const isForeignName = (name: string): boolean => name.includes("__")
