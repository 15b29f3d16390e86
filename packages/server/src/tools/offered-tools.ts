/**
 * The tools that one attempt of a run may use.
 *
 * Built-in tools have the definitions listed to MCP clients and are called directly behind the gate; foreign ones are
 * called over MCP. An agent's tool list is an allow-list; an empty one allows nothing. A started call runs to its end,
 * even when its caller goes away.
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

/** The context of a call. */
interface Circumstances extends Way {
  /** Runs in the transaction of the call. */
  readonly beside: Beside | undefined
}

/** An open connection to the agent's tools. */
export interface ConnectedTools {
  readonly offered: ReadonlyArray<OfferedTool>
  /**
   * Makes a call for the author of the turn's messages, or answers that the tool is not offered. `beside` runs only where the
   * call is made in one transaction. A foreign call ends when `abort` does; undefined when it had not begun.
   */
  readonly call: (
    call: SpokenCall,
    askedBy: RunPrincipal["askedBy"],
    circumstances: Circumstances
  ) => Effect.Effect<Outcome | undefined, AttemptLost>
  /** Returns what determines which other calls of the answer a call waits for. */
  readonly traitsOf: (call: ToolCall) => CallTraits
  /** Adds the tools that a context defines. */
  readonly defining: (defined: ReadonlyArray<DefinedTool>) => ConnectedTools
}

/** The agent's built-in tools. */
interface Offer {
  /** With the schemas that validate calls. */
  readonly judged: ReadonlyArray<OfferedTool>
  /** With the schemas shown to a model. */
  readonly offered: ReadonlyArray<OfferedTool>
}

/** What decides on the `run` server's tools besides an agent's patterns. */
export interface ToolTerms {
  /** Whether the run is in a loop that it may end. */
  readonly isLoop: boolean
  /** Whether the agent may spawn another. */
  readonly maySpawn: boolean
  /** Whether the agent may suggest; its changes then require reasoning. */
  readonly maySuggest: boolean
}

export class ToolServers extends Context.Service<
  ToolServers,
  {
    /** Returns the tools that an agent's patterns match now, and those its runs add. */
    readonly offered: (
      projectId: ProjectId,
      patterns: ReadonlyArray<string>,
      terms: ToolTerms
    ) => Effect.Effect<ReadonlyArray<OfferedTool>>
    /** Connects the tools matched by the agent's patterns, and those its run adds, to the principal. */
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

      /** Cached by the version's patterns, so that all its runs offer the same list object. */
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

      /** Returns the offered tools and the source of the foreign ones. */
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
          // The schema shown to a model for a foreign or client tool differs from the one that validates its calls.
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
          // A foreign tool that is no longer offered may have a started call, so the record is read first.
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

/** Returns a tool's traits: foreign tools by their definitions, all others are answered here. */
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

/** Refuses a name that is not offered, or whose underlying tool is not. */
const notOffered = ({ name, standsFor }: ToolCall, offered: ReadonlyArray<OfferedTool>): ChangeRefused => {
  const words = noTool(standsFor?.tool ?? name, offered)
  return refused(
    "notPermitted",
    standsFor === undefined ? words : `${name} stands for ${standsFor.tool}. ${words}`
  )
}

/** Returns why a call's arguments are unusable, as far as that is known before the call. */
const faultOf = (
  call: ToolCall,
  tool: Pick<OfferedTool, "name" | "inputSchema">
): ChangeRefused | undefined => {
  const { arguments: args, fault, standsFor } = call
  const isObject = typeof args === "object" && args !== null && !Array.isArray(args)
  if (fault === undefined && isObject) return standsFor && findMisuse(call, standsFor, tool)
  return refused("invalid", unreadable(fault ?? "The arguments of a tool must be one JSON object"))
}

/** Repairs a call's arguments; leaves the call as sent when it names a preset argument. */
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

/** Whether an allow-list offers a tool; ending a loop requires a loop, and spawning an agent to spawn. */
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

// Offers the tools that a context defines, and finds calls of them that do not fit.
//
// A defined tool has its underlying tool's schema without the preset arguments. Permission is decided by the underlying tool,
// so a definition neither adds nor removes rights. A client tool has its own schema and no effect here: a client answers its
// calls.

/** Cached by its inputs, so that a conversation offers the same list object until a definition changes. */
const lists = new WeakMap<
  ReadonlyArray<OfferedTool>,
  WeakMap<ReadonlyArray<DefinedTool>, ReadonlyArray<OfferedTool>>
>()

/** Adds a context's definitions to the agent's tools; omits a definition whose underlying tool is not offered. */
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

/** The default description: the underlying tool and the preset arguments. */
const derived = (tool: string, given: NamedTool["arguments"], original = ""): string => {
  const values = Object.entries(given).map(([name, value]) => `${name} = ${inShort(value)}`)
  const first = values.length === 0 ? tool : `${tool} with ${values.join(", ")} given`
  return original === "" ? first : `${first}. ${original}`
}

const inShort = (value: unknown): string => {
  return shortened(JSON.stringify(value), 80).toWellFormed()
}

/** Keywords on all arguments together do not apply to a part of them; the call itself is still validated by them. */
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

/** The schema of the remaining arguments. */
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

/** Returns a fault of a defined tool's call: it names a preset argument, or does not fit the rest. */
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

// The search tool that replaces tools that do not fit into a request.
//
// The log holds its results, so the log determines what is offered from the next step on.

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

/** Cached, so that an unchanged request has the same tools in the same order. */
const known = new WeakMap<ReadonlyArray<OfferedTool>, Map<string, ReadonlyArray<OfferedTool>>>()

/**
 * Selects a request's tools: all when they fit; else the built-in ones, the search tool and the foreign ones in use, dropping
 * the oldest first.
 */
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

/** Finds the best-matching foreign tools, with schemas as far as they fit. */
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

/** A word in the name counts more than in the description, and a whole word more than a prefix. */
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

// Selects the foreign tools of a run: the agent's patterns within each server's allow-list.
//
// They come from the pins, so a server that is down is still offered and a run without calls connects to none. A tool that
// changed since a person last reviewed it is not offered.

/** The project's foreign tools that a run may use. */
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
        // Most agents use built-in servers only and need no query.
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

/** A foreign tool's name includes its server's. */
const isForeignName = (name: string): boolean => name.includes("__")
