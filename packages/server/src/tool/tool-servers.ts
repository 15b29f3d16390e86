/**
 * The tools that one attempt of a run may use.
 *
 * Built-in tools have the definitions that MCP clients are listed and are called directly behind the gate; foreign ones are called
 * over MCP. An agent's list of tools is an allow-list; an empty one means no tools. A call that has begun is finished, also
 * when its caller goes away.
 */
import type { ClientTool, DefinedTool } from "@tropism/domain/context-config"
import { isJsonObject } from "@tropism/domain/json"
import { madeCall } from "@tropism/domain/defined-tool"
import type { ProjectId } from "@tropism/domain/ids"
import type { SpokenCall, ToolCall } from "@tropism/domain/message"
import { exitLoopTool } from "@tropism/domain/flow"
import { findToolsTool, toolsInUseBounds } from "@tropism/domain/tools-in-use"
import { workedFor } from "@tropism/domain/speakers"
import { type ChangeRefused, refused } from "../graph/refused.ts"
import { allows } from "@tropism/domain/tool-pattern"
import { Context, Effect, Layer, type Schema } from "effect"
import type { OfferedTool } from "../model/model-request.ts"
import {
  type BuiltInServer,
  builtInServerNames,
  changesNothing,
  toolsOf,
  withReasoningRequired
} from "./built-in-tools.ts"
import { fitArguments } from "./coerced-arguments.ts"
import { findClientTool, findMisuse, withDefined, withoutGiven } from "./defined-tools.ts"
import { findArgumentsFault, withoutPatterns } from "./foreign-arguments.ts"
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
    /** The tools that a principal's agent names by patterns, and those that its run brings along, bound to the principal. */
    readonly connect: (
      principal: RunPrincipal,
      patterns: ReadonlyArray<string>,
      terms: ToolTerms
    ) => Effect.Effect<ConnectedTools>
  }
>()("@tropism/server/tool/ToolServers") {
  static readonly layer = Layer.effect(
    ToolServers,
    Effect.gen(function* () {
      const toolbox = yield* Toolbox
      const foreignCalls = yield* ForeignCalls
      const foreignOffers = yield* ForeignOffers

      /** By the patterns of an agent's version, so that all of its runs offer one and the same list. */
      const offers = new WeakMap<ReadonlyArray<string>, Map<string, Offer>>()

      const offeredTo = (patterns: ReadonlyArray<string>, terms: ToolTerms): Offer => {
        const lists = offers.get(patterns) ?? new Map<string, Offer>()
        offers.set(patterns, lists)
        const key = `${terms.isLoop} ${terms.maySpawn} ${terms.maySuggest}`
        const known = lists.get(key)
        if (known) return known
        const judged = builtInServerNames.flatMap((server) =>
          toolsOf(server)
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
        const { foreign, judged, offered } = yield* lookUp(principal.projectId, patterns, terms)

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
          return refusal ? refuse(refusal) : write((end) => toolbox.call(caller, made, end, beside))
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
