/**
 * Adds, changes and looks again at foreign servers, as people ask for it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A look connects and lists before the transaction that keeps what it came to.
 * A server that cannot be reached is kept with the reason and offers what was
 * pinned before: nothing, when it is new.
 */
import type { McpServerId, ProjectId, UserId } from "@tropism/domain/ids"
import {
  defineMcpServer,
  findCollision,
  leftOutWords,
  type McpServer,
  type McpServerConfig,
  type McpServerInput,
  type McpServerPatch,
  offeredBy,
  patchMcpServer,
  type PinnedTool
} from "@tropism/domain/mcp-server"
import { findMcpServerFault } from "@tropism/domain/mcp-server-faults"
import { canonicalJson } from "@tropism/domain/json"
import { Context, Effect, Layer, type Scope } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { ForeignConnections } from "./foreign-connections.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { checkPermit } from "./foreign-permit.ts"
import type { Whom } from "./oauth-grants.ts"
import { changedMeanwhile, type KeptServer, type Look, McpServerRefused, McpServers } from "./mcp-servers.ts"
import { pinTools } from "./pinning.ts"

/** Keeps what a look came to, in a transaction of the caller's. */
export type Keeping = Effect.Effect<McpServer, McpServerRefused, ProjectTransaction>

export class ServerRegistry extends Context.Service<
  ServerRegistry,
  {
    // What is not as it is kept when the scope ends, because the keeping was refused or another took its place, is ended then.
    /** Looks at a new server and answers how it is kept. */
    readonly add: (
      projectId: ProjectId,
      input: McpServerInput,
      by: UserId
    ) => Effect.Effect<Keeping, McpServerRefused, Scope.Scope>
    /** Looks again where the server is another one now, has another name, or is enabled and offers nothing so far. */
    readonly change: (
      before: KeptServer,
      patch: McpServerPatch,
      by: UserId,
      terms: { readonly expectedVersion?: number }
    ) => Effect.Effect<Keeping, McpServerRefused, Scope.Scope>
    /** Looks again, and pins what is listed now. */
    readonly refresh: (
      before: KeptServer,
      by: UserId
    ) => Effect.Effect<Keeping, McpServerRefused, Scope.Scope>
  }
>()("@tropism/server/tool/ServerRegistry") {
  static readonly layer = Layer.effect(
    ServerRegistry,
    Effect.gen(function* () {
      const connections = yield* ForeignConnections
      const servers = yield* McpServers
      const ids = yield* Ids
      const wakeUps = yield* WakeUps
      const context = yield* Effect.context<never>()

      /** Lets connections to a server be judged by what is kept of it, here and at other servers, whatever the request comes to. */
      const tellAtEnd = (id: McpServerId) => Effect.addFinalizer(() => wakeUps.signal(`server:${id}`))

      /** Connects anew, lists and lets go. Of what the list lacks, for it is not whole, the pins `before` stay. */
      const look = Effect.fn("ServerRegistry.look")(function* (
        whom: Whom & Pick<KeptServer, "config">,
        before: ReadonlyArray<PinnedTool>
      ) {
        const { config } = whom
        yield* connections.dropOf(whom)
        const listed = Effect.scoped(
          Effect.flatMap(connections.get(whom), ({ client }) =>
            Effect.map(client.listTools, (tools) => ({
              tools,
              unfit: client.unfit(),
              missing: client.missing?.()
            }))
          )
        )
        return yield* Effect.match(listed, {
          onFailure: ({ message }): Look => ({ error: message }),
          onSuccess: ({ missing, tools: all, unfit }): Look => {
            const { leftOut, tools } = pinTools(config.name, all)
            const names = new Set(all.map(({ name }) => name))
            const kept = missing === undefined ? [] : before.filter(({ name }) => !names.has(name))
            const lacking = missing === undefined ? [] : [`further tools (${missing.message})`]
            const without = [...lacking, ...leftOut, ...unfit]
            return {
              tools: [...tools, ...kept].slice(0, foreignLimits.tools),
              error: without.length === 0 ? null : `${leftOutWords} ${without.join(", ")}`
            }
          }
        })
      })

      const check = Effect.fnUntraced(function* (config: McpServerConfig) {
        const fault = findMcpServerFault(config)
        if (fault) return yield* invalid(fault.pointer, fault.message)
        yield* checkPermit(config.transport).pipe(
          Effect.provideContext(context),
          Effect.mapError(
            ({ message }) => new McpServerRefused({ reason: "state", pointer: "/transport", detail: message })
          )
        )
      })

      const checkNames = (
        config: McpServerConfig,
        found: Look | undefined,
        before: KeptServer | undefined
      ) => {
        const collision = findCollision(config, found?.tools ?? before?.tools ?? [])
        return collision
          ? invalid(
              "/allowedTools",
              `A model could not tell ${collision[0]} and ${collision[1]} apart: allow one of them`
            )
          : Effect.void
      }

      const add = Effect.fn("ServerRegistry.add")(function* (
        projectId: ProjectId,
        input: McpServerInput,
        by: UserId
      ) {
        const config = defineMcpServer(input)
        yield* check(config)
        const id = (yield* ids.next) as McpServerId
        yield* tellAtEnd(id)
        const found = config.enabled ? yield* look({ id, projectId, config, member: by }, []) : undefined
        yield* checkNames(config, found, undefined)
        return servers.create(id, config, found, by)
      })

      const change = Effect.fn("ServerRegistry.change")(function* (
        before: KeptServer,
        patch: McpServerPatch,
        by: UserId,
        { expectedVersion = before.version }: { readonly expectedVersion?: number }
      ) {
        if (before.version !== expectedVersion) return yield* changedMeanwhile()
        const config = patchMcpServer(before.config, patch)
        // What was allowed once never stands in the way of disabling it.
        if (config.enabled || patch.transport !== undefined || patch.name !== undefined) yield* check(config)
        yield* tellAtEnd(before.id)
        const isRenamed = config.name !== before.config.name
        const isOther = canonicalJson(config.transport) !== canonicalJson(before.config.transport)
        const isSignedInOtherwise =
          canonicalJson(config.authorization ?? null) !== canonicalJson(before.config.authorization ?? null)
        // While it was disabled nobody looked.
        const isUnseen = !before.config.enabled && before.tools.length === 0
        const isToBeSeen = config.enabled && (isOther || isRenamed || isUnseen || isSignedInOtherwise)
        const pins = isOther ? [] : before.tools.map(offeredBy(config.name))
        const found = isToBeSeen ? yield* look({ ...before, config, member: by }, pins) : undefined
        // What another server listed says nothing of this one; one with another name has listed it itself.
        const kept: Look | undefined = isOther ? { tools: [], error: null, ...found } : found
        yield* checkNames(config, kept, { ...before, tools: before.tools.map(offeredBy(config.name)) })
        return servers.replace(before, config, kept, by)
      })

      const refresh = Effect.fn("ServerRegistry.refresh")(function* (before: KeptServer, by: UserId) {
        if (!before.config.enabled)
          return yield* new McpServerRefused({
            reason: "state",
            pointer: "",
            detail: `The server ${before.config.name} is disabled: enable it first`
          })
        yield* tellAtEnd(before.id)
        const found = yield* look({ ...before, member: by }, before.tools)
        yield* checkNames(before.config, found, before)
        return servers.replace(before, before.config, found, by)
      })

      return ServerRegistry.of({ add, change, refresh })
    })
  )
}

const invalid = (pointer: string, detail: string) =>
  Effect.fail(new McpServerRefused({ reason: "invalid", pointer, detail }))
