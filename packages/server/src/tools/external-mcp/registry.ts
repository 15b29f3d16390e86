/**
 * Adds, changes and refreshes foreign servers on request.
 *
 * A probe connects and lists before the transaction that stores its result. An unreachable server is stored with the
 * reason and keeps its former pins; a new one has none.
 */
import type { DefineToolEvent } from "@tropism/domain/config-event"
import {
  type ClientTool,
  type DefinedTool,
  isClientTool,
  type NamedTool
} from "@tropism/domain/context-config"
import { definedToolBounds, isOwnToolName } from "@tropism/domain/defined-tool"
import { exitLoopTool } from "@tropism/domain/flow"
import type { McpServerId, ProjectId, UserId } from "@tropism/domain/ids"
import { canonicalJson, isJsonObject, type JsonFault, pointerStep } from "@tropism/domain/json"
import { growthNote, keptBytes } from "@tropism/domain/kept-size"
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
import { Context, Effect, Layer, type Scope } from "effect"
import type { ProjectTransaction } from "../../database/database.ts"
import { Ids } from "../../ids.ts"
import type { OfferedTool } from "../../models/model-request.ts"
import { Notifier } from "../../outbox/notifier.ts"
import { findArgumentsFault, isIdentity, whyUnusable, noToolOf } from "../arguments.ts"
import { findGivenFault, isBuiltInTool } from "../toolbox.ts"
import { ExternalConnections } from "./connections.ts"
import { leftOutFor, leftOutLine, checkPermit } from "./faults.ts"
import { externalLimits } from "./limits.ts"
import type { Whom } from "./oauth-grants.ts"
import { changedMeanwhile, type KeptServer, type Look, McpServerRefused, McpServers } from "./servers.ts"
import { pinTools } from "./tool-listing.ts"

/** Stores a probe's result, in the caller's transaction. */
export type Keeping = Effect.Effect<McpServer, McpServerRefused, ProjectTransaction>

export class ServerRegistry extends Context.Service<
  ServerRegistry,
  {
    // When the scope ends, connections to a definition that was not stored or was replaced are closed.
    /** Probes a new server and returns the effect that stores it. */
    readonly add: (
      projectId: ProjectId,
      input: McpServerInput,
      by: UserId
    ) => Effect.Effect<Keeping, McpServerRefused, Scope.Scope>
    /** Probes again when the server's definition or name changed, or when it is enabled and has no tools yet. */
    readonly change: (
      before: KeptServer,
      patch: McpServerPatch,
      by: UserId,
      terms: { readonly expectedVersion?: number }
    ) => Effect.Effect<Keeping, McpServerRefused, Scope.Scope>
    /** Probes again and pins the current list. */
    readonly refresh: (
      before: KeptServer,
      by: UserId
    ) => Effect.Effect<Keeping, McpServerRefused, Scope.Scope>
  }
>()("@tropism/server/tool/ServerRegistry") {
  static readonly layer = Layer.effect(
    ServerRegistry,
    Effect.gen(function* () {
      const connections = yield* ExternalConnections
      const servers = yield* McpServers
      const ids = yield* Ids
      const notifier = yield* Notifier
      const context = yield* Effect.context<never>()

      /** Notifies this and other servers at the scope's end to check their connections, whatever the request's outcome. */
      const tellAtEnd = (id: McpServerId) => Effect.addFinalizer(() => notifier.signal(`server:${id}`))

      /** Connects, lists and disconnects. For an incomplete list the pins in `before` that it lacks are kept. */
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
            const lacking = missing === undefined ? [] : [leftOutFor("further tools", missing.message)]
            const without = [...lacking, ...leftOut, ...unfit]
            return {
              tools: [...tools, ...kept].slice(0, externalLimits.tools),
              error: without.length === 0 ? null : leftOutLine(leftOutWords, without)
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
        // Disabling is always allowed, also when the definition is not permitted any more.
        if (config.enabled || patch.transport !== undefined || patch.name !== undefined) yield* check(config)
        yield* tellAtEnd(before.id)
        const isRenamed = config.name !== before.config.name
        const isOther = canonicalJson(config.transport) !== canonicalJson(before.config.transport)
        const isSignedInOtherwise =
          canonicalJson(config.authorization ?? null) !== canonicalJson(before.config.authorization ?? null)
        // It was not probed while it was disabled.
        const isUnseen = !before.config.enabled && before.tools.length === 0
        const isToBeSeen = config.enabled && (isOther || isRenamed || isUnseen || isSignedInOtherwise)
        const pins = isOther ? [] : before.tools.map(offeredBy(config.name))
        const found = isToBeSeen ? yield* look({ ...before, config, member: by }, pins) : undefined
        // Another definition's list is not valid for this one; after a rename the server is listed again under its new name.
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

// Refuses the definition of a tool that could never be called or whose name is taken.
//
// Checked when it is sent, against the tools of the agent at that time; later changes of the agent are checked with each call.

/** What a definition is checked against. */
export interface ToolSurroundings {
  readonly agentName: string
  /** The agent's tools. */
  readonly offered: ReadonlyArray<OfferedTool>
  /** The tools that the context already defines. */
  readonly defined: ReadonlyArray<DefinedTool>
}

/** Returns the first fault of a new tool. */
export const findToolDefinitionFault = (
  tool: DefinedTool,
  { agentName, defined, offered }: ToolSurroundings
): JsonFault | undefined => {
  const { name } = tool
  if (isOwnToolName(name))
    return {
      pointer: "/name",
      message: `${name} is the name of a tool, or of a foreign server's: choose another`
    }
  const fault = isClientTool(tool)
    ? findSchemaFault(tool)
    : findNamedFault(tool, { agentName, defined, offered })
  if (fault) return fault
  const { perContext } = definedToolBounds
  return defined.filter((each) => each.name !== name).length < perContext
    ? undefined
    : {
        pointer: "/name",
        message: `The context has ${perContext} defined tools, as many as it may have: take one back with tool null`
      }
}

/** Returns the fields of a definition that contradict each other; undefined when there are none. */
export const findMixedFault = ({
  arguments: given,
  inputSchema,
  timeoutMs,
  tool
}: Pick<DefineToolEvent, "arguments" | "inputSchema" | "timeoutMs" | "tool">): JsonFault | undefined => {
  const isNamed = tool !== null && tool !== undefined
  if (inputSchema === null || inputSchema === undefined) {
    if (tool === undefined)
      return {
        pointer: "/tool",
        message:
          "Name one of the agent's tools in tool, or give an inputSchema for a tool that a client answers; tool null takes the name back"
      }
    return timeoutMs === null || timeoutMs === undefined
      ? undefined
      : {
          pointer: "/timeoutMs",
          message: "Only a tool with an inputSchema waits for a client: leave timeoutMs out"
        }
  }
  if (isNamed)
    return {
      pointer: "/inputSchema",
      message: `Give either tool or inputSchema: ${tool} has a schema already`
    }
  return given === undefined
    ? undefined
    : {
        pointer: "/arguments",
        message: "Arguments are given to one of the agent's tools: leave them out beside inputSchema"
      }
}

/** Returns why a client tool's schema cannot validate calls. */
const findSchemaFault = ({ inputSchema }: ClientTool): JsonFault | undefined => {
  if (inputSchema["type"] !== "object")
    return {
      pointer: "/inputSchema/type",
      message: 'The arguments of a tool are one object: this must be "object"'
    }
  const why = whyUnusable(inputSchema)
  return why === undefined ? undefined : { pointer: "/inputSchema", message: why }
}

const findNamedFault = (
  { arguments: given, name, tool }: NamedTool,
  { agentName, defined, offered }: ToolSurroundings
): JsonFault | undefined => {
  const chained = tool === name ? undefined : defined.find((each) => each.name === tool)
  if (chained)
    return {
      pointer: "/tool",
      message: isClientTool(chained)
        ? `${tool} is a client tool of this context: define it again under this name instead`
        : `${tool} is defined in this context itself: name ${chained.tool} here`
    }
  if (tool === exitLoopTool)
    return { pointer: "/tool", message: `${exitLoopTool} comes with a loop and goes by its own name alone` }
  const original = offered.find((each) => each.name === tool)
  if (!original) return { pointer: "/tool", message: noToolOf(agentName, tool, offered) }
  const fault = findUnfit(given, original)
  return fault && { pointer: `/arguments${fault.pointer}`, message: fault.message }
}

/** Returns the first preset argument that the tool does not take. */
const findUnfit = (
  given: NamedTool["arguments"],
  { inputSchema, name: tool }: OfferedTool
): JsonFault | undefined => {
  const size = keptBytes(given)
  const { argumentsMaxBytes } = definedToolBounds
  if (size > argumentsMaxBytes)
    return {
      pointer: "",
      message: `The arguments have ${size} bytes; at most ${argumentsMaxBytes} can be given${growthNote(given)}`
    }
  const names = Object.keys(given)
  const identity = names.find(isIdentity)
  if (identity !== undefined)
    return {
      pointer: pointerStep(identity),
      message: `Nobody says who is calling in an argument: leave ${identity} out`
    }
  const known = isJsonObject(inputSchema["properties"]) ? inputSchema["properties"] : {}
  const unknown = names.find((name) => !Object.hasOwn(known, name))
  if (unknown !== undefined)
    return {
      pointer: pointerStep(unknown),
      message: `${tool} has no argument ${unknown}; it has ${Object.keys(known).join(", ")}`
    }
  const properties = Object.fromEntries(names.map((name) => [name, known[name]]))
  const { $defs, definitions } = inputSchema
  const part = {
    type: "object",
    properties,
    ...($defs ? { $defs } : {}),
    ...(definitions ? { definitions } : {})
  }
  const fault = findArgumentsFault({ inputSchema: part }, given as never)
  if (fault) return { pointer: fault.pointer ?? "", message: fault.detail }
  // A schema checks less than the tool's own decoder, which may also refuse a format or a length.
  return isBuiltInTool(tool) ? findGivenFault(tool, given) : undefined
}
