/**
 * The tools that one attempt of a run may use, reached through MCP.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Our own agents come in by the same protocol as anybody else: an MCP client
 * and a server on an in-process transport, the server bound to the principal
 * when it is made. An agent's list of tools is an allow-list; an empty one means
 * no tools. A call that has begun is finished, also when its caller goes away.
 */
import { Client } from "@modelcontextprotocol/client"
import { InMemoryTransport, Server } from "@modelcontextprotocol/server"
import type { ToolCall } from "@tropism/domain/message"
import { Context, Effect, Exit, Layer, type Schema, Scope } from "effect"
import type { LogEnd } from "../agent/appending.ts"
import type { OfferedTool } from "../model/model-request.ts"
import { graphTools, type GraphToolName, inputSchemaOf, isGraphTool } from "./graph-tools.ts"
import type { AttemptLost, RunPrincipal } from "./principal.ts"
import { type Outcome, Toolbox } from "./toolbox.ts"

/** An open connection to the tools that an agent may use. */
export interface ConnectedTools {
  readonly offered: ReadonlyArray<OfferedTool>
  /** Makes a call, or answers one of a tool that is not offered with what is. */
  readonly call: (call: ToolCall, end: LogEnd) => Effect.Effect<Outcome, AttemptLost>
}

export class ToolServers extends Context.Service<
  ToolServers,
  {
    /** Connects a principal to the tools that its agent's patterns name. */
    readonly connect: (
      principal: RunPrincipal,
      patterns: ReadonlyArray<string>
    ) => Effect.Effect<ConnectedTools, never, Scope.Scope>
  }
>()("@tropism/server/tool/ToolServers") {
  static readonly layer = Layer.effect(
    ToolServers,
    Effect.gen(function* () {
      const toolbox = yield* Toolbox

      /** What the server lists; it lists the same for everybody, so it is asked once. */
      const listing = yield* Effect.scoped(
        Effect.flatMap(
          open(graphServer(() => Promise.reject(new Error("Nobody calls through this connection")))),
          (client) => Effect.promise(() => client.listTools())
        )
      )

      /** By the patterns of an agent's version, so that all of its runs offer one and the same list. */
      const offers = new WeakMap<ReadonlyArray<string>, ReadonlyArray<OfferedTool>>()

      const offeredTo = (patterns: ReadonlyArray<string>): ReadonlyArray<OfferedTool> => {
        const known = offers.get(patterns)
        if (known) return known
        const offered = listing.tools
          .filter((tool) => allows(patterns, `graph.${tool.name}`))
          .map(({ name, description, inputSchema }): OfferedTool => ({
            name,
            ...(description === undefined ? {} : { description }),
            inputSchema
          }))
        offers.set(patterns, offered)
        return offered
      }

      const connect = Effect.fn("ToolServers.connect")(function* (
        principal: RunPrincipal,
        patterns: ReadonlyArray<string>
      ) {
        const ends = new Map<string, LogEnd>()
        const outcomes = new Map<string, Exit.Exit<Outcome, AttemptLost>>()
        const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
        const scope = yield* Effect.scope
        const offered = offeredTo(patterns)
        // Many runs call no tool: the first call connects.
        const connected = yield* Effect.cached(
          Scope.provide(
            open(
              graphServer((name, args, callId) =>
                run(toolbox.call(principal, { id: callId, name, arguments: args }, ends.get(callId))).then(
                  (exit) => {
                    outcomes.set(callId, exit)
                    return exit
                  }
                )
              )
            ),
            scope
          )
        )

        const throughClient = (call: ToolCall, end: LogEnd): Effect.Effect<Outcome, AttemptLost> =>
          Effect.suspend(() => {
            ends.set(call.id, end)
            const request = {
              name: call.name,
              arguments: call.arguments as Record<string, unknown>,
              _meta: { [callIdKey]: call.id }
            }
            const noRecord = Effect.die(new Error("The tool server answered without a record"))
            return Effect.flatMap(
              Effect.exit(
                Effect.flatMap(connected, (client) => Effect.promise(() => client.callTool(request)))
              ),
              (answered): Effect.Effect<Outcome, AttemptLost> => {
                const exit = outcomes.get(call.id)
                outcomes.delete(call.id)
                ends.delete(call.id)
                return exit ?? (Exit.isFailure(answered) ? Effect.failCause(answered.cause) : noRecord)
              }
            )
          })

        const call = (wanted: ToolCall, end: LogEnd): Effect.Effect<Outcome, AttemptLost> => {
          if (!offered.some((tool) => tool.name === wanted.name)) {
            const names = offered.map((tool) => tool.name).join(", ")
            return toolbox.refuse(
              principal,
              wanted,
              `There is no tool ${wanted.name} for you. ${names === "" ? "You have no tools." : `You have: ${names}.`}`
            )
          }
          if (
            typeof wanted.arguments !== "object" ||
            wanted.arguments === null ||
            Array.isArray(wanted.arguments)
          ) {
            return toolbox.refuse(principal, wanted, "The arguments of a tool must be one JSON object")
          }
          return throughClient(wanted, end)
        }
        return { offered, call: (wanted: ToolCall, end: LogEnd) => Effect.uninterruptible(call(wanted, end)) }
      })

      return ToolServers.of({ connect })
    })
  )
}

/** Where our own client says which call of the model this is; no server reads it from anybody else. */
const callIdKey = "tropism/callId"

type Handler = (
  name: GraphToolName,
  args: Schema.Json,
  callId: string
) => Promise<Exit.Exit<Outcome, AttemptLost>>

/** The tools as MCP lists them; they are the same for everybody. */
const listed = Object.keys(graphTools)
  .filter(isGraphTool)
  .map((name) => ({ name, description: graphTools[name].description, inputSchema: inputSchemaOf(name) }))

/** The `graph` server, bound to whoever `handle` acts for. */
const graphServer = (handle: Handler): Server => {
  const server = new Server({ name: "graph", version: "1" }, { capabilities: { tools: {} } })
  server.setRequestHandler("tools/list", () => Promise.resolve({ tools: [...listed] }))
  server.setRequestHandler("tools/call", ({ params }) =>
    isGraphTool(params.name)
      ? handle(
          params.name,
          (params.arguments ?? {}) as Schema.Json,
          String(params._meta?.[callIdKey] ?? "")
        ).then(toolResult)
      : Promise.reject(new Error(`There is no tool ${params.name}`))
  )
  return server
}

/** An outcome in MCP's words; a call that could not be made at all is a protocol error. */
const toolResult = (exit: Exit.Exit<Outcome, AttemptLost>) => {
  if (Exit.isFailure(exit)) throw new Error("The call could not be made")
  return {
    content: [{ type: "text" as const, text: JSON.stringify(exit.value.result) }],
    isError: exit.value.status !== "completed"
  }
}

/** Connects a client to a server inside this process, until the scope ends. */
const open = (server: Server): Effect.Effect<Client, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => {
      const [here, there] = InMemoryTransport.createLinkedPair()
      const client = new Client({ name: "tropism", version: "1" })
      return Promise.all([server.connect(there), client.connect(here)]).then(() => client)
    }),
    (client) => Effect.promise(() => client.close())
  )

/** Whether a list of names and globs (`graph.*`, `graph.get_object`) has a tool. */
export const allows = (patterns: ReadonlyArray<string>, tool: string): boolean =>
  patterns.some((pattern) => {
    const source = pattern
      .split("*")
      .map((part) => part.replace(/[.\\+?^${}()|[\]]/g, "\\$&"))
      .join(".*")
    return new RegExp(`^${source}$`).test(tool)
  })
