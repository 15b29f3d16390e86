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
import type { ClientTool, DefinedTool } from "@tropism/domain/context-config"
import { isJsonObject } from "@tropism/domain/json"
import { madeCall, type MadeCall } from "@tropism/domain/defined-tool"
import type { ProjectId } from "@tropism/domain/ids"
import type { SpokenCall, ToolCall } from "@tropism/domain/message"
import { exitLoopTool } from "@tropism/domain/flow"
import { findToolsTool, toolsInUseBounds } from "@tropism/domain/tools-in-use"
import { workedFor } from "@tropism/domain/speakers"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { allows } from "@tropism/domain/tool-pattern"
import { Context, Effect, Exit, Layer, type Schema, Scope } from "effect"
import type { LogEnd } from "../agent/appending.ts"
import type { OfferedTool } from "../model/model-request.ts"
import {
  type BuiltInServer,
  builtInServerNames,
  type BuiltInToolName,
  changesNothing,
  isBuiltInTool,
  toolsOf,
  withReasoningRequired
} from "./built-in-tools.ts"
import { fitArguments } from "./coerced-arguments.ts"
import { findClientTool, findMisuse, withDefined, withoutGiven } from "./defined-tools.ts"
import { findArgumentsFault, withoutPatterns } from "./foreign-arguments.ts"
import { toolLimits } from "../limits.ts"
import { FindTools, findTools } from "./find-tools.ts"
import { ForeignCalls, type Way } from "./foreign-calls.ts"
import { type ForeignOffer, ForeignOffers, isForeignName } from "./foreign-offers.ts"
import type { AttemptLost, RunPrincipal } from "./principal.ts"
import { read } from "./read-arguments.ts"
import type { CallTraits } from "./side-by-side.ts"
import { type Beside, type Outcome, readsOnly, Toolbox } from "./toolbox.ts"
import { inBacktest } from "./would-be.ts"
import type { JsonSchema } from "./schema-refs.ts"
import { noTool, unreadable } from "./wrong-calls.ts"

/** A call on its way through the protocol, for whom it is made, and where its caller last saw the log end. */
interface UnderWay {
  readonly call: MadeCall
  readonly caller: RunPrincipal
  readonly end: LogEnd
  readonly beside: Beside | undefined
}

/** What goes on beside a call. */
interface Circumstances extends Way {
  /** Asked in the transaction of the call. */
  readonly beside: Beside | undefined
}

/** An open connection to the tools that an agent may use. */
export interface ConnectedTools {
  readonly offered: ReadonlyArray<OfferedTool>
  /**
   * Makes a call for the person whose words the turn reads, or answers one of a tool that is not offered with what is. What is asked
   * beside it is asked where the call is made in one transaction. A foreign call ends when `abort` does; the answer is undefined where
   * it had not begun.
   */
  readonly call: (
    call: SpokenCall,
    askedBy: RunPrincipal["askedBy"],
    circumstances: Circumstances
  ) => Effect.Effect<Outcome | undefined, AttemptLost>
  /** What decides for which calls of its answer a call waits. */
  readonly traitsOf: (call: ToolCall) => CallTraits
  /** The same tools with those that a context defines. */
  readonly defining: (defined: ReadonlyArray<DefinedTool>) => ConnectedTools
}

/** The built-in tools of an agent. */
interface Offer {
  /** With the schemas by which a call is judged. */
  readonly judged: ReadonlyArray<OfferedTool>
  /** With those that a model is shown. */
  readonly offered: ReadonlyArray<OfferedTool>
}

/** What decides about the tools of the `run` server beside an agent's patterns. */
export interface ToolTerms {
  /** Whether the run goes round in a loop that it may end. */
  readonly isLoop: boolean
  /** Whether the agent may spawn any other. */
  readonly maySpawn: boolean
  /** Whether the agent may suggest: it is asked for its reasoning with every change then. */
  readonly maySuggest: boolean
}

export class ToolServers extends Context.Service<
  ToolServers,
  {
    /** The tools that an agent's patterns stand for now, and those that its runs bring along. */
    readonly offered: (
      projectId: ProjectId,
      patterns: ReadonlyArray<string>,
      terms: ToolTerms
    ) => Effect.Effect<ReadonlyArray<OfferedTool>>
    /** Connects a principal to the tools that its agent's patterns name, and to those that its run brings along. */
    readonly connect: (
      principal: RunPrincipal,
      patterns: ReadonlyArray<string>,
      terms: ToolTerms
    ) => Effect.Effect<ConnectedTools, never, Scope.Scope>
  }
>()("@tropism/server/tool/ToolServers") {
  static readonly layer = Layer.effect(
    ToolServers,
    Effect.gen(function* () {
      const toolbox = yield* Toolbox
      const foreignCalls = yield* ForeignCalls
      const foreignOffers = yield* ForeignOffers

      /** What the servers list; they list the same for everybody, so they are asked once. */
      const listings = yield* Effect.forEach(builtInServerNames, (name) =>
        Effect.scoped(
          Effect.flatMap(
            open(
              builtInServer(name, () => Promise.reject(new Error("Nobody calls through this connection")))
            ),
            (client) =>
              Effect.map(
                Effect.promise(() => client.listTools()),
                ({ tools }) => ({ name, tools })
              )
          )
        )
      )

      /** By the patterns of an agent's version, so that all of its runs offer one and the same list. */
      const offers = new WeakMap<ReadonlyArray<string>, Map<string, Offer>>()

      const offeredTo = (patterns: ReadonlyArray<string>, terms: ToolTerms): Offer => {
        const lists = offers.get(patterns) ?? new Map<string, Offer>()
        offers.set(patterns, lists)
        const key = `${terms.isLoop} ${terms.maySpawn} ${terms.maySuggest}`
        const known = lists.get(key)
        if (known) return known
        const judged = listings.flatMap(({ name: server, tools }) =>
          tools
            .filter(({ name }) => isOffered(patterns, terms, server, name))
            .map(({ name, description, inputSchema }): OfferedTool => ({
              name,
              ...(description === undefined ? {} : { description }),
              inputSchema
            }))
        )
        const offered = terms.maySuggest
          ? judged.map((tool) => ({ ...tool, inputSchema: withReasoningRequired(tool.inputSchema) }))
          : judged
        lists.set(key, { judged, offered })
        return { judged, offered }
      }

      /** What is offered, and where the foreign part of it comes from. */
      const lookUp = Effect.fnUntraced(function* (
        projectId: ProjectId,
        patterns: ReadonlyArray<string>,
        terms: ToolTerms
      ) {
        const foreign = yield* foreignOffers.of(projectId, patterns)
        const builtIn = offeredTo(patterns, terms)
        const withForeign = (tools: ReadonlyArray<OfferedTool>) =>
          foreign.offered.length === 0 ? tools : [...tools, ...foreign.offered]
        return { foreign, judged: withForeign(builtIn.judged), offered: withForeign(builtIn.offered) }
      })

      const connect = Effect.fn("ToolServers.connect")(function* (
        principal: RunPrincipal,
        patterns: ReadonlyArray<string>,
        terms: ToolTerms
      ) {
        const underWay = new Map<string, UnderWay>()
        const outcomes = new Map<string, Exit.Exit<Outcome, AttemptLost>>()
        const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
        const scope = yield* Effect.scope
        const { foreign, judged, offered } = yield* lookUp(principal.projectId, patterns, terms)
        const handle: Handler = (name, args, callId) => {
          const { beside, call, caller = principal, end } = underWay.get(callId) ?? {}
          const made = { ...call, id: callId, name, arguments: args }
          return run(toolbox.call(caller, made, end, beside)).then((exit) => {
            outcomes.set(callId, exit)
            return exit
          })
        }
        // Many runs call no tool: the first call of a server connects.
        const connections = new Map<BuiltInServer, Effect.Effect<Client>>()
        for (const { name } of listings)
          connections.set(name, yield* Effect.cached(Scope.provide(open(builtInServer(name, handle)), scope)))

        const connectionFor = (tool: string): Effect.Effect<Client> => {
          const server = listings.find(({ tools }) => tools.some(({ name }) => name === tool))
          const connection = server && connections.get(server.name)
          return connection ?? Effect.die(new Error(`No server has the tool ${tool}`))
        }

        const throughClient = (wanted: UnderWay): Effect.Effect<Outcome, AttemptLost> =>
          Effect.suspend(() => {
            const { call } = wanted
            underWay.set(call.id, wanted)
            const request = {
              name: call.name,
              arguments: call.arguments as Record<string, unknown>,
              _meta: { [callIdKey]: call.id }
            }
            const noRecord = Effect.die(new Error("The tool server answered without a record"))
            return Effect.flatMap(
              Effect.exit(
                Effect.flatMap(connectionFor(call.name), (client) =>
                  Effect.promise(() => client.callTool(request, { timeout: toolLimits.sdkTimeoutMs }))
                )
              ),
              (answered): Effect.Effect<Outcome, AttemptLost> => {
                const exit = outcomes.get(call.id)
                outcomes.delete(call.id)
                underWay.delete(call.id)
                return exit ?? (Exit.isFailure(answered) ? Effect.failCause(answered.cause) : noRecord)
              }
            )
          })

        const call = (
          sent: SpokenCall,
          caller: RunPrincipal,
          shown: ReadonlyArray<OfferedTool>,
          { beside, client, ...way }: Circumstances & { readonly client: ClientTool | undefined }
        ): Effect.Effect<Outcome | undefined, AttemptLost> => {
          const name = sent.standsFor?.tool ?? sent.name
          const tool = judged.find((each) => each.name === name)
          const outside = isForeignName(name) ? foreign.find(name) : undefined
          // What a model is shown of a foreign tool, or of a client's, is not what its calls are judged by.
          const own = outside && "tool" in outside ? outside.tool : tool
          const isReadOnly = outside && "tool" in outside ? outside.tool.isReadOnly : changesNothing(name)
          const schema = client ? withoutPatterns(client.inputSchema) : own?.inputSchema
          const wanted = schema === undefined ? sent : fitted(sent, schema, isReadOnly)
          const { write } = way.log
          const refuse = (refusal: ChangeRefused) => write(() => toolbox.refuse(caller, made, refusal))
          const made = madeCall(wanted)
          if (client) {
            const refusal = caller.backtest ? inBacktest(made.name) : clientFaultOf(wanted, client)
            return refusal
              ? refuse(refusal)
              : write((end) => toolbox.hold(caller, made, client.timeoutMs, end))
          }
          if (made.name === findToolsTool && shown.length > toolsInUseBounds.perRequest) {
            const answer = Effect.map(read(FindTools, made.arguments), ({ query }) => findTools(query, shown))
            return write((end) => toolbox.tell(caller, made, answer, end, beside))
          }
          const fault = tool && faultOf(wanted, tool)
          // A foreign tool that is not shown any more may have a call that was begun: its record is asked first.
          if (isForeignName(made.name)) {
            if (caller.backtest) return refuse(inBacktest(made.name))
            return foreignCalls.call(caller, made, fault ?? outside ?? notOffered(wanted, shown), way)
          }
          const refusal = tool ? fault : notOffered(wanted, shown)
          return refusal
            ? refuse(refusal)
            : write((end) => throughClient({ call: made, caller, end, beside }))
        }
        const defining = (defined: ReadonlyArray<DefinedTool>): ConnectedTools => {
          const shown = withDefined(offered, defined)
          return {
            offered: shown,
            traitsOf: (wanted) => traitsOf(madeCall(wanted).name, foreign),
            call: (wanted, askedBy, circumstances) => {
              const caller = { ...principal, userId: workedFor(askedBy, principal.userId), askedBy }
              const client = wanted.standsFor ? undefined : findClientTool(defined, wanted.name)
              return Effect.uninterruptible(call(wanted, caller, shown, { ...circumstances, client }))
            },
            defining
          }
        }
        return defining([])
      })

      return ToolServers.of({
        connect,
        offered: (projectId, patterns, terms) =>
          Effect.map(lookUp(projectId, patterns, terms), ({ offered }) => offered)
      })
    })
  )
}

/** How a tool goes with others: those of foreign servers as their definitions say, all else is answered here. */
const traitsOf = (name: string, foreign: ForeignOffer): CallTraits => {
  const found = foreign.find(name)
  if (found === undefined) {
    const isReading = readsOnly(name)
    return { server: null, isReading, mayTaint: isReading, mindsTaint: !isReading }
  }
  const { server, tool } = found
  return {
    server: server.config.name,
    isReading: tool.isReadOnly,
    mayTaint: server.config.untrusted === true,
    mindsTaint: server.config.allowUntrusted !== true
  }
}

/** Nothing of this name is offered, or not what it stands for. */
const notOffered = ({ name, standsFor }: ToolCall, offered: ReadonlyArray<OfferedTool>): ChangeRefused => {
  const words = noTool(standsFor?.tool ?? name, offered)
  return refused(
    "notPermitted",
    standsFor === undefined ? words : `${name} stands for ${standsFor.tool}. ${words}`
  )
}

/** Why the arguments of a call cannot be used, as far as that shows before it is made. */
const faultOf = (
  call: ToolCall,
  tool: Pick<OfferedTool, "name" | "inputSchema">
): ChangeRefused | undefined => {
  const { arguments: args, fault, standsFor } = call
  const isObject = typeof args === "object" && args !== null && !Array.isArray(args)
  if (fault === undefined && isObject) return standsFor && findMisuse(call, standsFor, tool)
  return refused("invalid", unreadable(fault ?? "The arguments of a tool must be one JSON object"))
}

/** The call with arguments that nearly fit put right; as it was sent where it names what is given already. */
const fitted = (call: SpokenCall, schema: JsonSchema, isReadOnly: boolean): SpokenCall => {
  const { arguments: sent, fault, standsFor } = call
  const given = standsFor?.given ?? []
  const isMisused = isJsonObject(sent) && given.some((name) => Object.hasOwn(sent, name))
  if (fault !== undefined || isMisused) return call
  const { arguments: args, coerced } = fitArguments(withoutGiven(schema, given), sent, isReadOnly)
  if (coerced === undefined) return call
  if (standsFor === undefined) return { ...call, arguments: args, coerced }
  const values = isJsonObject(standsFor.arguments) ? standsFor.arguments : {}
  const merged = {
    ...(args as object),
    ...Object.fromEntries(Object.entries(values).filter(([name]) => given.includes(name)))
  } as Schema.Json
  return { ...call, arguments: args, coerced, standsFor: { ...standsFor, arguments: merged } }
}

/** The same for a client tool, by its own schema. */
const clientFaultOf = (call: ToolCall, client: ClientTool): ChangeRefused | undefined =>
  faultOf(call, client) ??
  findArgumentsFault({ inputSchema: withoutPatterns(client.inputSchema) }, call.arguments)

/** Where our own client says which call of the model this is; no server reads it from anybody else. */
const callIdKey = "tropism/callId"

type Handler = (
  name: BuiltInToolName,
  args: Schema.Json,
  callId: string
) => Promise<Exit.Exit<Outcome, AttemptLost>>

/** A tool of an allow-list; ending a loop comes with the loop, and spawning with somebody to spawn. */
const isOffered = (
  patterns: ReadonlyArray<string>,
  { isLoop, maySpawn }: ToolTerms,
  server: BuiltInServer,
  tool: string
): boolean => {
  if (tool === exitLoopTool) return isLoop
  if ((tool === "spawn_agent" || tool === "list_agents") && !maySpawn) return false
  return allows(patterns, `${server}.${tool}`)
}

/** One of our own servers, bound to whoever `handle` acts for. */
const builtInServer = (name: BuiltInServer, handle: Handler): Server => {
  const server = new Server({ name, version: "1" }, { capabilities: { tools: {} } })
  const listed = listedBy[name]
  server.setRequestHandler("tools/list", () => Promise.resolve({ tools: [...listed] }))
  server.setRequestHandler("tools/call", ({ params }) =>
    isBuiltInTool(params.name)
      ? handle(
          params.name,
          (params.arguments ?? {}) as Schema.Json,
          String(params._meta?.[callIdKey] ?? "")
        ).then(toolResult)
      : Promise.reject(new Error(`There is no tool ${params.name}`))
  )
  return server
}

const listedBy = { graph: toolsOf("graph"), run: toolsOf("run"), tasks: toolsOf("tasks") }

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
