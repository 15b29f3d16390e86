/**
 * Builds an SDK server for one caller from the offers of all modules.
 *
 * It knows no HTTP, tokens or sessions. A name is looked up in the offers in their order; failures become protocol errors and reveal no
 * internals.
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
import { type Principal, roleIn } from "@tropism/api/authorization"
import { type InputFault, ServerFault, Unauthorized } from "@tropism/api/problems"
import { ProjectId } from "@tropism/domain/ids"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, Predicate, Schema, type Scope, Stream, Option, Redacted } from "effect"
import { HttpServerRespondable, HttpServerResponse } from "effect/http"
import { passingFault } from "../database/connection-errors.ts"
import { Database } from "../database/database.ts"
import { noProject, principalIn } from "../http/access.ts"
import { stoppedResponse } from "../http/listener.ts"
import { Tokens } from "../http/tokens.ts"
import { Projects } from "../tenancy/projects.ts"
import { argumentsAreStrict } from "../tools/arguments.ts"
import type { Offer, CapabilityCall, CapabilityResources, RunForServer } from "./capability.ts"
import { mcpLimits } from "./limits.ts"

/** The server's description of itself. */
export interface ServerWords {
  readonly name: string
  readonly title: string
  readonly version: string
  readonly instructions: string
}

const listHint = { ttlMs: mcpLimits.listTtlMs, cacheScope: "private" } as const

/** Creates a server with all offers for one caller. */
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

/** A protocol error. */
export const fault = (code: ProtocolErrorCode, message: string, data?: unknown): ProtocolError =>
  new ProtocolError(code, message, data)

export const badParams = (message: string, data?: unknown): ProtocolError =>
  fault(ProtocolErrorCode.InvalidParams, message, data)

/** An SDK server that reports parameters of a wrong shape as `invalid params`. */
class QuietServer extends Server {
  protected override _wrapHandler(
    method: string,
    handler: (request: JSONRPCRequest, context: ServerContext) => Promise<Result>
  ) {
    return super._wrapHandler(method, (request, context) =>
      // The SDK checks the shape before it returns a promise.
      new Promise<Result>((resolve) => resolve(handler(request, context))).catch((error: unknown) => {
        // Effects fail only with protocol errors, so any other error is the SDK's about the shape of parameters.
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
    const call: CapabilityCall = {
      name: params.name,
      args: (params.arguments ?? {}) as CapabilityCall["args"],
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

/** For sessions only: a client of 2026-07-28 listens over a stream (`endpoint.ts`). */
const serveSubscriptions = (server: Server, offers: ReadonlyArray<Offer>, run: RunForServer) => {
  const kind = offers.find(({ resources }) => resources?.subscribe)?.resources
  if (kind === undefined) return
  const asked = (change: CapabilityResources["subscribe"], uri: string, sessionId: string | undefined) =>
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

/** Pages through the modules in order; the cursor names the module to continue with. */
const pageOf = Effect.fnUntraced(function* (
  kinds: ReadonlyArray<CapabilityResources>,
  cursor: string | undefined
) {
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

// Reads parameters of extension methods.
//
// Unknown fields are refused, as with tools: a parameter cannot name the caller.

/** Parameters of any shape; they are validated where a fault can name its place. */
export const anyParams = { params: Schema.toStandardSchemaV1(Schema.Record(Schema.String, Schema.Unknown)) }

/** Validates a method's parameters strictly; the first fault is the message. */
export const readParams = <A>(
  schema: Schema.ConstraintDecoder<A>,
  { _meta, ...params }: Readonly<Record<string, unknown>>
): Effect.Effect<A, ProtocolError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema, argumentsAreStrict)(params), ({ issue }) => {
    const errors = schemaFaults(issue)
    const [first] = errors
    return badParams(
      first === undefined ? "Invalid params" : `Invalid params: ${first.pointer}: ${first.message}`,
      { errors }
    )
  })

// HTTP answers: of the SDK, and those before it.
//
// A fault of the request (caller, project, size) is a problem document as at every endpoint; a fault of the message is a JSON-RPC error.

/** A JSON-RPC error without a message id. */
export const rpcFault = (
  status: number,
  code: number,
  message: string,
  errors?: ReadonlyArray<InputFault>,
  headers: Record<string, string> = {}
): Response =>
  Response.json(
    {
      jsonrpc: "2.0",
      error: { code, message, ...(errors === undefined ? {} : { data: { errors } }) },
      id: null
    },
    { status, headers }
  )

/** A comment that opens a stream which may be quiet for long. */
const begun = new TextEncoder().encode(": open\n\n")

/** Whether the stream that answers this message, or no message, is endless. */
const isOpenEnded = (message: unknown): boolean =>
  message === undefined || isMethod(message, "subscriptions/listen")

const isMethod = (message: unknown, method: string): boolean =>
  Predicate.hasProperty(message, "method") && message.method === method

/** The lifetime and extra content of a stream. */
export interface Streaming {
  /** Completes when the stream must end, endless or not. */
  readonly over: Effect.Effect<unknown>
  /** Events of an endless stream beside the SDK's, which wait until this has started; it may end the stream. */
  readonly told: Effect.Effect<Stream.Stream<Uint8Array>, never, Scope.Scope>
}

/** The HTTP answer for an SDK answer to a message. */
export const asHttp = (
  response: Response,
  message: unknown,
  streaming: Streaming
): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body === null || response.headers.get("content-type") !== "text/event-stream")
    return HttpServerResponse.fromWeb(response)
  const sent = Stream.fromReadableStream({ evaluate: () => body, onError: (error) => error })
  return HttpServerResponse.stream(
    isOpenEnded(message)
      ? Stream.concat(Stream.succeed(begun), untilOver(sent, streaming))
      : Stream.interruptWhen(sent, streaming.over),
    {
      status: response.status,
      headers: {
        ...Object.fromEntries(response.headers),
        // A kept-alive connection would hold up a stopping server.
        ...(isOpenEnded(message) || isMethod(message, "events/stream") ? { connection: "close" } : {})
      }
    }
  )
}

const untilOver = <E>(sent: Stream.Stream<Uint8Array, E>, { over, told }: Streaming) =>
  Stream.unwrap(Effect.map(told, (more) => Stream.merge(sent, more, { haltStrategy: "either" }))).pipe(
    Stream.interruptWhen(over)
  )

/** A server fault goes to the log; a transient one is named. */
export const toServerFault = (defect: unknown) => {
  const detail = passingFault(defect)
  return detail === undefined
    ? Effect.logError("An MCP request failed", defect).pipe(
        Effect.andThen(
          HttpServerRespondable.toResponse(new ServerFault({ detail: "The server failed; its log says why" }))
        )
      )
    : stoppedResponse(detail)
}

// Resolves the caller and the project, from the token and the address alone.
//
// A project's address serves every token that reaches it. The root serves a token of exactly one project; a token that reaches several may
// connect and list, and each call gets the addresses to use. A foreign project and a missing one look the same.

/** The scope of a request: one project, or none because its token reaches several. */
export type Place =
  | { readonly principal: Principal; readonly projectId: ProjectId }
  | { readonly principal: Principal; readonly projectId: null }

/** The principal of a token, in the project of the address; null is the root. */
export const findPlace = Effect.fn("mcp.findPlace")(function* (
  secret: Redacted.Redacted,
  wanted: string | null
) {
  const principal = Redacted.value(secret) === "" ? undefined : yield* (yield* Tokens).find(secret)
  if (!principal)
    return yield* new Unauthorized({
      detail: "Send a valid token with every request: Authorization: Bearer …"
    })
  if (wanted === null) {
    const [only, ...others] = principal.projectIds ?? []
    if (only === undefined || others.length > 0) return { principal, projectId: null } satisfies Place
    return { principal: yield* principalIn(principal, only), projectId: only } satisfies Place
  }
  const projectId = Option.getOrUndefined(Schema.decodeUnknownOption(ProjectId)(wanted))
  if (projectId === undefined) return yield* noProject()
  const { role, userId } = yield* principalIn(principal, projectId)
  const database = yield* Database
  const projects = yield* Projects
  if (!(yield* database.inProject(projectId, projects.find))) return yield* noProject()
  const projectIds = principal.projectIds === null ? null : [projectId]
  return { principal: { userId, role, projectIds, roles: null }, projectId } satisfies Place
})

/** The current rights of a token in a project; undefined when it has none any more. */
export const whoIs = Effect.fnUntraced(function* (
  tokens: Tokens["Service"],
  { projectId, tokenHash }: { readonly projectId: ProjectId; readonly tokenHash: string }
) {
  const principal = yield* tokens.findByHash(tokenHash)
  const role = principal && roleIn(principal, projectId)
  return principal && role && { ...principal, role }
})

// Shared by all streams to MCP clients: a bounded number, and each ends with its client.

/** Open streams, per owner and in all; above the limit the next is refused. */
export const makeStreamSlots = <E>(
  bounds: { readonly ofOwner: number; readonly inAll: number },
  refuse: () => E
) => {
  const open = new Map<string, number>()
  let openInAll = 0
  return {
    enter: (owner: string): Effect.Effect<string, E> =>
      Effect.suspend(() => {
        const count = open.get(owner) ?? 0
        if (count >= bounds.ofOwner || openInAll >= bounds.inAll) return Effect.fail(refuse())
        open.set(owner, count + 1)
        openInAll += 1
        return Effect.succeed(owner)
      }),
    leave: (owner: string): Effect.Effect<void> =>
      Effect.sync(() => {
        openInAll -= 1
        const left = (open.get(owner) ?? 1) - 1
        if (left === 0) open.delete(owner)
        else open.set(owner, left)
      })
  }
}

/** Completes when the client has cancelled its request, or its session or connection has ended. */
export const gone = ({ http, mcpReq }: ServerContext): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const signals = [mcpReq.signal, ...(http?.req === undefined ? [] : [http.req.signal])]
    const leave = () => resume(Effect.void)
    for (const signal of signals) signal.addEventListener("abort", leave, { once: true })
    if (signals.some(({ aborted }) => aborted)) leave()
    return Effect.sync(() => {
      for (const signal of signals) signal.removeEventListener("abort", leave)
    })
  })
