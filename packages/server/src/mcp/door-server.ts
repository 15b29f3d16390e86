/**
 * One server of the official SDK for one caller, made of what all parts offer.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * It knows nothing of HTTP, tokens or sessions. A name is looked up among the
 * offers in their order; whatever goes wrong is answered as the protocol says,
 * and nothing of the program's insides is told.
 */
import {
  type JSONRPCRequest,
  mergeCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  type Result,
  Server,
  type ServerCapabilities,
  type ServerContext
} from "@modelcontextprotocol/server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Predicate } from "effect"
import { mcpLimits } from "./mcp-limits.ts"
import type { Offer, PartCall, PartResources, RunForServer } from "./part.ts"

/** What a server says of itself to whoever connects. */
export interface ServerWords {
  readonly name: string
  readonly title: string
  readonly version: string
  readonly instructions: string
}

const listHint = { ttlMs: mcpLimits.listTtlMs, cacheScope: "private" } as const

/** Makes a server that offers all of this to one caller. */
export const doorServer = (words: ServerWords, offers: ReadonlyArray<Offer>, run: RunForServer): Server => {
  const { instructions, ...implementation } = words
  const server = new QuietServer(implementation, {
    instructions,
    capabilities: capabilitiesOf(offers),
    cacheHints: {
      "tools/list": listHint,
      "prompts/list": listHint,
      "resources/list": { ...listHint, ttlMs: 0 },
      "resources/templates/list": listHint,
      "resources/read": { ...listHint, ttlMs: 0 },
      "server/discover": listHint
    }
  })
  serveTools(server, offers, run)
  serveResources(server, offers, run)
  serveSubscriptions(server, offers, run)
  servePrompts(server, offers, run)
  serveCompletions(server, offers, run)
  for (const offer of offers) offer.extend?.(server, run)
  return server
}

/** What may be said of a fault, in the protocol's own words. */
export const fault = (code: ProtocolErrorCode, message: string, data?: unknown): ProtocolError =>
  new ProtocolError(code, message, data)

export const badParams = (message: string, data?: unknown): ProtocolError =>
  fault(ProtocolErrorCode.InvalidParams, message, data)

/** A server whose faults are the caller's, or nobody's: parameters that do not fit are `invalid params`. */
class QuietServer extends Server {
  protected override _wrapHandler(
    method: string,
    handler: (request: JSONRPCRequest, context: ServerContext) => Promise<Result>
  ) {
    return super._wrapHandler(method, (request, context) =>
      // The SDK judges the shape before it promises anything.
      new Promise<Result>((resolve) => resolve(handler(request, context))).catch((error: unknown) => {
        // Effects end in protocol errors alone: any other is the SDK's, about the shape of the parameters.
        throw error instanceof ProtocolError
          ? error
          : badParams(`Invalid params for ${method}`, error instanceof Error ? { detail: error.message } : {})
      })
    )
  }
}

const capabilitiesOf = (offers: ReadonlyArray<Offer>): ServerCapabilities =>
  offers.reduce<ServerCapabilities>(
    (all, { capabilities, complete, newerCapabilities = {}, prompts, resources }) =>
      mergeCapabilities(
        mergeCapabilities(all, {
          ...(resources && { resources: resources.subscribe ? { subscribe: true } : {} }),
          ...(prompts && { prompts: {} }),
          ...(complete && { completions: {} }),
          ...capabilities
        }),
        newerCapabilities
      ),
    { tools: {}, logging: {} }
  )

const serveTools = (server: Server, offers: ReadonlyArray<Offer>, run: RunForServer) => {
  const tools = offers.flatMap((offer) => offer.tools ?? [])
  const named = new Map(tools.toReversed().map((tool) => [tool.listed.name, tool]))
  server.setRequestHandler("tools/list", () => ({ tools: tools.map(({ listed }) => listed) }))
  server.setRequestHandler("tools/call", ({ params }, context) => {
    const tool = named.get(params.name)
    if (!tool) throw badParams(`Unknown tool: ${beginningOf(params.name, mcpLimits.toldNameMaxChars)}`)
    const call: PartCall = {
      name: params.name,
      args: (params.arguments ?? {}) as PartCall["args"],
      asksForTask: Predicate.hasProperty(params, "task") && params.task !== undefined,
      make: (args) => tool.call(args, context)
    }
    for (const { answerCall } of offers) {
      const answer = answerCall?.(call, context)
      if (answer) return run(answer)
    }
    return run(call.make(call.args))
  })
}

const servePrompts = (server: Server, offers: ReadonlyArray<Offer>, run: RunForServer) => {
  const prompts = offers.flatMap((offer) => offer.prompts ?? [])
  if (!offers.some((offer) => offer.prompts)) return
  const named = new Map(prompts.toReversed().map((prompt) => [prompt.listed.name, prompt]))
  server.setRequestHandler("prompts/list", () => ({ prompts: prompts.map(({ listed }) => listed) }))
  server.setRequestHandler("prompts/get", ({ params }, context) => {
    const prompt = named.get(params.name)
    if (!prompt) throw badParams(`Unknown prompt: ${beginningOf(params.name, mcpLimits.toldNameMaxChars)}`)
    const given = params.arguments ?? {}
    const missing = prompt.listed.arguments?.find(({ name, required }) => required && !(name in given))
    if (missing) throw badParams(`The prompt ${params.name} needs the argument ${missing.name}`)
    return run(prompt.get(given, context))
  })
}

const serveResources = (server: Server, offers: ReadonlyArray<Offer>, run: RunForServer) => {
  const kinds = offers.flatMap(({ resources }) => resources ?? [])
  if (kinds.length === 0) return
  server.setRequestHandler("resources/list", ({ params }) => run(pageOf(kinds, params?.cursor)))
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: kinds.flatMap(({ templates }) => [...templates])
  }))
  server.setRequestHandler("resources/read", ({ params }, context) =>
    run(
      Effect.gen(function* () {
        for (const { read } of kinds) {
          const found = yield* read(params.uri, context)
          if (found) return found
        }
        return yield* Effect.fail(new ResourceNotFoundError(params.uri))
      })
    )
  )
}

/** In sessions alone: a client of 2026-07-28 listens over a stream (`listening.ts`). */
const serveSubscriptions = (server: Server, offers: ReadonlyArray<Offer>, run: RunForServer) => {
  const kind = offers.find(({ resources }) => resources?.subscribe)?.resources
  if (kind === undefined) return
  const asked = (change: PartResources["subscribe"], uri: string, sessionId: string | undefined) =>
    sessionId === undefined || !change
      ? Promise.reject(fault(ProtocolErrorCode.InvalidRequest, "Only a session can be subscribed"))
      : run(Effect.as(change(uri, sessionId), {}))
  server.setRequestHandler("resources/subscribe", ({ params }, { sessionId }) =>
    asked(kind.subscribe, params.uri, sessionId)
  )
  server.setRequestHandler("resources/unsubscribe", ({ params }, { sessionId }) =>
    asked(kind.unsubscribe, params.uri, sessionId)
  )
}

/** One kind after the other; a cursor says in which of them to go on. */
const pageOf = Effect.fnUntraced(function* (kinds: ReadonlyArray<PartResources>, cursor: string | undefined) {
  const { index, rest } = /^(?<index>\d{1,3}):(?<rest>.*)$/su.exec(cursor ?? "0:")?.groups ?? {}
  const kind = kinds[Number(index)]
  if (kind === undefined || rest === undefined) return yield* Effect.fail(badParams("Invalid cursor"))
  const { nextCursor, resources } = yield* kind.list(rest === "" ? undefined : rest)
  const isLast = Number(index) === kinds.length - 1
  const next =
    nextCursor === undefined ? (isLast ? undefined : `${Number(index) + 1}:`) : `${index}:${nextCursor}`
  return { resources: [...resources], ...(next === undefined ? {} : { nextCursor: next }) }
})

const serveCompletions = (server: Server, offers: ReadonlyArray<Offer>, run: RunForServer) => {
  const completers = offers.flatMap(({ complete }) => complete ?? [])
  if (completers.length === 0) return
  server.setRequestHandler("completion/complete", ({ params }) =>
    run(
      Effect.gen(function* () {
        const completing = {
          ref: params.ref,
          argument: params.argument,
          given: params.context?.arguments ?? {}
        }
        for (const complete of completers) {
          const values = yield* complete(completing)
          if (values === undefined) continue
          const shown = values.slice(0, mcpLimits.completionValues)
          return {
            completion: { values: shown, total: values.length, hasMore: values.length > shown.length }
          }
        }
        return { completion: { values: [] } }
      })
    )
  )
}
