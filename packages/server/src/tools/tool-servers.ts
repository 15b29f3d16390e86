/**
 * The tools that one attempt of a run may use.
 *
 * Built-in tools have the definitions that MCP clients are listed and are called directly behind the gate; foreign ones are called
 * over MCP. An agent's list of tools is an allow-list; an empty one means no tools. A call that has begun is finished, also
 * when its caller goes away.
 */
import {
  type ClientTool,
  type DefinedTool,
  isClientTool,
  type NamedTool
} from "@tropism/domain/context-config"
import { madeCall, isOwnToolName } from "@tropism/domain/defined-tool"
import { exitLoopTool } from "@tropism/domain/flow"
import type { ProjectId } from "@tropism/domain/ids"
import { isJsonObject, pointerStep } from "@tropism/domain/json"
import { isAllowedTool, patternedNameOf } from "@tropism/domain/mcp-server"
import type { SpokenCall, ToolCall, StandsFor } from "@tropism/domain/message"
import { workedFor } from "@tropism/domain/speakers"
import { shortened } from "@tropism/domain/text-beginning"
import { allows, isBuiltInPattern } from "@tropism/domain/tool-pattern"
import { findToolsTool, toolsInUseBounds } from "@tropism/domain/tools-in-use"
import { Context, Effect, Layer, Schema } from "effect"
import { Database } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/change-refused.ts"
import { toolLimits } from "../limits.ts"
import type { OfferedTool } from "../models/model-request.ts"
import {
  fitArguments,
  findArgumentsFault,
  withoutPatterns,
  readArguments,
  noTool,
  unreadable,
  unfit,
  inputSchemaOf
} from "./arguments.ts"
import { ExternalCalls, type Way, type ExternalTool } from "./external-mcp/calls.ts"
import { McpServers } from "./external-mcp/servers.ts"
import { inBacktest } from "./graph-effects.ts"
import { type JsonSchema, offeredSchema } from "./json-schemas.ts"
import type { AttemptLost, RunPrincipal } from "./principal.ts"
import {
  type BuiltInServer,
  builtInServerNames,
  changesNothing,
  toolsOf,
  withReasoningRequired,
  type CallTraits,
  type Beside,
  type Outcome,
  readsOnly,
  Toolbox
} from "./toolbox.ts"

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
      const foreignCalls = yield* ExternalCalls
      const foreignOffers = yield* ExternalOffers

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
            const answer = Effect.map(readArguments(FindTools, made.arguments), ({ query }) =>
              findTools(query, shown)
            )
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

// The tools that a context defines: what a model is shown of them, and which calls of them do not fit.
//
// A defined tool is shown with the schema of the tool that it stands for, without
// what was given. Whether it may be called is asked of that tool alone: here no
// right is added, and none is taken away. A client tool has a schema of its own, and reaches nothing here: a client
// answers its calls.

/** By what they are made of, so that a conversation offers one and the same list while nothing is defined anew. */
const lists = new WeakMap<
  ReadonlyArray<OfferedTool>,
  WeakMap<ReadonlyArray<DefinedTool>, ReadonlyArray<OfferedTool>>
>()

/** The tools of an agent with those that its context makes of them; a name whose tool is not offered is not either. */
const withDefined = (
  offered: ReadonlyArray<OfferedTool>,
  defined: ReadonlyArray<DefinedTool>
): ReadonlyArray<OfferedTool> => {
  if (defined.length === 0) return offered
  const known = lists.get(offered) ?? new WeakMap<ReadonlyArray<DefinedTool>, ReadonlyArray<OfferedTool>>()
  lists.set(offered, known)
  const list = known.get(defined) ?? [
    ...offered,
    ...defined.flatMap((each) => {
      if (isClientTool(each)) return isOwnToolName(each.name) ? [] : [shownOfClient(each)]
      const tool = offered.find(({ name }) => name === each.tool)
      return tool === undefined || isOwnToolName(each.name) ? [] : [shown(each, tool)]
    })
  ]
  known.set(defined, list)
  return list
}

/** The client tool of this name, if the context defines one. */
const findClientTool = (defined: ReadonlyArray<DefinedTool>, name: string): ClientTool | undefined =>
  defined.filter(isClientTool).find((each) => each.name === name && !isOwnToolName(name))

const shownOfClient = ({ description, inputSchema, name }: ClientTool): OfferedTool => ({
  name,
  ...(description === undefined || description === null ? {} : { description }),
  inputSchema: offeredSchema(inputSchema)
})

const shown = (
  { arguments: given, description, name, tool }: NamedTool,
  { description: original, inputSchema }: OfferedTool
): OfferedTool => ({
  name,
  description: description ?? derived(tool, given, original),
  inputSchema: withoutGiven(inputSchema, Object.keys(given))
})

/** What a tool is that nobody described: the one that it stands for, and what was given. */
const derived = (tool: string, given: NamedTool["arguments"], original = ""): string => {
  const values = Object.entries(given).map(([name, value]) => `${name} = ${inShort(value)}`)
  const first = values.length === 0 ? tool : `${tool} with ${values.join(", ")} given`
  return original === "" ? first : `${first}. ${original}`
}

const inShort = (value: unknown): string => {
  return shortened(JSON.stringify(value), 80).toWellFormed()
}

/** What a schema demands of the arguments together cannot be told of a part of them: the call itself is judged by it. */
const ofTheWhole: ReadonlySet<string> = new Set([
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependencies",
  "dependentRequired",
  "dependentSchemas",
  "minProperties",
  "maxProperties"
])

/** A schema of the arguments that are still to be said. */
const withoutGiven = (
  schema: OfferedTool["inputSchema"],
  given: ReadonlyArray<string>
): OfferedTool["inputSchema"] => {
  if (given.length === 0) return schema
  const { properties, required, ...rest } = schema as Record<string, unknown>
  const isOpen = (name: string) => !given.includes(name)
  return {
    ...Object.fromEntries(Object.entries(rest).filter(([keyword]) => !ofTheWhole.has(keyword))),
    type: "object",
    properties: Object.fromEntries(
      Object.entries(isJsonObject(properties) ? properties : {}).filter(([name]) => isOpen(name))
    ),
    ...(Array.isArray(required) ? { required: required.filter(isOpen) } : {})
  }
}

/** What is wrong with a call of a defined tool: it names what was given, or does not fit what is left. */
const findMisuse = (
  { arguments: said, name }: ToolCall,
  { given }: StandsFor,
  { inputSchema }: Pick<OfferedTool, "inputSchema">
): ChangeRefused | undefined => {
  const open = withoutGiven(inputSchema, given)
  const named = isJsonObject(said) ? given.find((each) => Object.hasOwn(said, each)) : undefined
  if (named === undefined) return findArgumentsFault({ inputSchema: open }, said)
  const message = `${name} has this given already: leave it out`
  return refused("invalid", unfit([{ pointer: pointerStep(named), message }], open), pointerStep(named))
}

// The stand-in for tools that do not fit into a request: a model searches them by words.
//
// What is found is in the result of the call, so the log decides what is offered from the next step on.

const FindTools = Schema.Struct({
  query: Schema.String.check(Schema.isBetweenLength(1, 1_000)).annotate({
    description: "Words for what the tool should do: send mail, invoice, calendar"
  })
})

const standIn: OfferedTool = {
  name: findToolsTool,
  description:
    "Searches the tools that you have and are not shown, by words of their names and descriptions. You may call what it finds from your next message on.",
  inputSchema: inputSchemaOf(FindTools)
}

/** The lists that were made of one list, so that an unchanged request names the same tools in the same order. */
const known = new WeakMap<ReadonlyArray<OfferedTool>, Map<string, ReadonlyArray<OfferedTool>>>()

/** The tools of a request: all of them where they fit, else those of this program, the stand-in, and of foreign servers those in use, the oldest dropped first. */
export const withinLimit = (
  tools: ReadonlyArray<OfferedTool>,
  max: number | null,
  inUse: ReadonlyArray<string>
): ReadonlyArray<OfferedTool> => {
  if (max === null || tools.length <= max) return tools
  const lists = known.get(tools) ?? new Map<string, ReadonlyArray<OfferedTool>>()
  known.set(tools, lists)
  const key = `${max} ${inUse.join(" ")}`
  const before = lists.get(key)
  if (before !== undefined) return before
  const own = tools.filter(({ name }) => !isForeignName(name)).slice(0, max - 1)
  const free = max - own.length - 1
  const there = new Set(tools.map(({ name }) => name))
  const used = new Set(
    inUse
      .filter((name) => there.has(name))
      .toReversed()
      .slice(0, free)
  )
  const list = [...own, standIn, ...tools.filter(({ name }) => isForeignName(name) && used.has(name))]
  if (lists.size >= toolLimits.rememberedOffers) lists.clear()
  lists.set(key, list)
  return list
}

/** The foreign tools that fit words best, with their schemas as far as these have room. */
const findTools = (query: string, tools: ReadonlyArray<OfferedTool>): Schema.Json => {
  const words = [...new Set(wordsOf(query))]
  const ranked = tools
    .filter(({ name }) => isForeignName(name))
    .map((tool) => ({ tool, score: scoreOf(words, tool) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
  let room: number = toolLimits.foundMaxChars
  const found = ranked.slice(0, toolLimits.foundTools).map(({ tool }) => {
    const { description = "", inputSchema, name } = tool
    const whole = { name, description, inputSchema: inputSchema as Schema.JsonObject }
    const { length } = JSON.stringify(whole)
    if (length > room) return { name }
    room -= length
    return whole
  })
  return { tools: found, matching: ranked.length }
}

const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .replaceAll(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word.length > 1)

/** A word in the name counts for more than one in the description, and a whole word for more than a beginning. */
const scoreOf = (words: ReadonlyArray<string>, { description = "", name }: OfferedTool): number => {
  const [inName, inDescription] = [wordsOf(name), wordsOf(description)]
  return words.reduce((sum, word) => sum + 3 * likeness(word, inName) + likeness(word, inDescription), 0)
}

const likeness = (word: string, among: ReadonlyArray<string>): number =>
  among.includes(word)
    ? 2
    : among.some(
          (other) => other.length > 2 && word.length > 2 && (other.startsWith(word) || word.startsWith(other))
        )
      ? 1
      : 0

// Which tools of foreign servers a run is shown: the agent's patterns within each server's allow-list.
//
// They come from the pins, so a server that is down is offered like any other
// and nobody is connected to for a run that calls nothing. A tool that has
// changed since a person looked is not shown.

/** What a run may use of the project's foreign servers. */
interface ForeignOffer {
  readonly offered: ReadonlyArray<OfferedTool>
  readonly find: (offeredName: string) => ExternalTool | undefined
}

export class ExternalOffers extends Context.Service<
  ExternalOffers,
  {
    readonly of: (projectId: ProjectId, patterns: ReadonlyArray<string>) => Effect.Effect<ForeignOffer>
  }
>()("@tropism/server/tool/ExternalOffers") {
  static readonly layer = Layer.effect(
    ExternalOffers,
    Effect.gen(function* () {
      const database = yield* Database
      const servers = yield* McpServers

      const of = Effect.fn("ExternalOffers.of")(function* (
        projectId: ProjectId,
        patterns: ReadonlyArray<string>
      ) {
        // Most agents name servers of this program only: for them nobody is asked.
        if (patterns.every(isBuiltInPattern)) return nothing
        const tools = new Map<string, ExternalTool>()
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

      return ExternalOffers.of({ of })
    })
  )
}

const nothing: ForeignOffer = { offered: [], find: () => undefined }

/** A model sees a foreign tool by the name of its server, too. */
const isForeignName = (name: string): boolean => name.includes("__")
