/**
 * The MCP endpoint: serves both protocol revisions from the same offers.
 *
 * A request of 2026-07-28 is independent and has its own server; one of 2025-11-25 belongs to a session. The official SDK tells them apart.
 * The caller was authenticated before; credentials are read here only to separate sessions.
 */
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  type Server,
  isJsonContentType,
  SUBSCRIPTION_ID_META_KEY
} from "@modelcontextprotocol/server"
import { OriginNotAllowed } from "@tropism/api/problems"
import { findFault, isJsonObject } from "@tropism/domain/json"
import { Cause, Effect, Exit, FiberSet, Option, Deferred, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { passingFault } from "../database/connection-errors.ts"
import { streamLimits } from "../http/limits.ts"
import { Closing } from "../http/listener.ts"
import { findStranger, originOf, type Standing } from "../http/origins.ts"
import { judgeBody, judgeEncoding } from "../http/request-validation.ts"
import type { Answering, Offer, RunForServer, ListenFilter, Notify } from "./capability.ts"
import { mcpLimits } from "./limits.ts"
import {
  doorServer,
  fault,
  type ServerWords,
  rpcFault,
  badParams,
  anyParams,
  gone,
  makeStreamSlots
} from "./server.ts"
import { makeSessions } from "./sessions.ts"

/** An authenticated request. */
export interface LetIn {
  readonly request: Request
  /** The message; undefined where the request has no body. */
  readonly body: unknown
  /** The credential and the address, as one string. */
  readonly bearer: string
  /** What a server is bound to, as a string. */
  readonly binding: string
  /** The caller and the project, as a string; its streams are counted together. */
  readonly owner: string
  readonly words: ServerWords
  readonly offers: () => ReadonlyArray<Offer>
}

/** Serves both revisions until the scope ends; running calls get time to finish. */
export const makeEndpoint = Effect.gen(function* () {
  const sessions = yield* makeSessions
  const calls = yield* FiberSet.make<unknown, ProtocolError>()
  const runCall = yield* FiberSet.runtime(calls)<never>()
  const servers = new WeakMap<Request, Server>()
  const modern = createMcpHandler(
    ({ requestInfo }) => {
      const server = requestInfo && servers.get(requestInfo)
      return server ?? Promise.reject(new Error("No server was made for this request"))
    },
    {
      legacy: "reject",
      keepAliveMs: streamLimits.heartbeatIntervalMs
    }
  )
  yield* Effect.addFinalizer(() =>
    FiberSet.awaitEmpty(calls).pipe(
      Effect.timeoutOption(mcpLimits.drainTimeoutMs),
      Effect.andThen(Effect.promise(() => modern.close()))
    )
  )

  // Its streams end before running calls are awaited.
  const serveListeners = yield* makeListening

  const run: RunForServer = (effect) =>
    new Promise((resolve, reject) => {
      runCall(told(effect)).addObserver((exit) =>
        Exit.isSuccess(exit)
          ? resolve(exit.value as never)
          : reject(Option.getOrElse(Cause.findErrorOption(exit.cause), () => internal))
      )
    })

  const serve = Effect.fn("mcp.Door.serve")(function* (letIn: LetIn) {
    const { offers, owner, request, words } = letIn
    if (yield* Effect.promise(() => isLegacyRequest(request, letIn.body)))
      return yield* sessions.serve({
        ...letIn,
        newServer: () => doorServer(words, offers().map(withoutNewer), run)
      })
    const listening = renamed(request, letIn.body)
    const { message: body, request: named } = listening ?? { message: letIn.body, request }
    return yield* Effect.promise((signal) => {
      const live = new Request(named, { signal })
      const offered = offers()
      const server = doorServer(words, offered, run)
      if (listening) serveListeners(server, owner, offered, run)
      servers.set(live, server)
      return modern.fetch(live, body === undefined ? {} : { parsedBody: body })
    })
  })
  return { serve }
})

/** The offer for a client of 2025-11-25. */
const withoutNewer = ({ newerCapabilities: _newer, ...offer }: Offer): Offer => offer

const internal = fault(ProtocolErrorCode.InternalError, "The server failed; its log says why")

/** A defect goes to the log; the caller learns only that one happened, or that it is transient. */
const told = <A>(effect: Answering<A>): Answering<A> =>
  Effect.catchDefect(effect, (defect) => {
    const passing = passingFault(defect)
    return passing === undefined
      ? Effect.andThen(Effect.logError("An MCP request failed", defect), Effect.fail(internal))
      : Effect.fail(fault(ProtocolErrorCode.InternalError, passing))
  })

// Checks an HTTP request before its message is parsed.
//
// In this order, so that nothing of an unauthorized request is read: Host and Origin, caller, project, size of the body, and whether the
// body can be stored as sent. Cookies are not accepted here.

/** Refuses a foreign Host or Origin. */
export const judgeStranger = Effect.fnUntraced(function* (standing: Standing["Service"]) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const detail = findStranger(standing, { host: headers["host"], origin: headers["origin"] })
  if (detail !== undefined) return yield* new OriginNotAllowed({ detail })
})

/** A message, or the JSON-RPC error in its place. */
export type Message = { readonly body: unknown } | { readonly refusal: Response }

/** Reads the message of a POST, once; other methods have none. */
export const readMessage = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  if (request.method !== "POST") return { body: undefined }
  if (!isJsonContentType(request.headers["content-type"]))
    return {
      refusal: rpcFault(415, -32_000, "Unsupported Media Type: Content-Type must be application/json")
    }
  yield* judgeEncoding
  yield* judgeBody
  const body: unknown = JSON.parse(yield* Effect.orDie(request.text))
  const found = findFault(body)
  if (found !== undefined)
    return { refusal: rpcFault(400, -32_600, `Invalid Request: ${found.message}`, [found]) }
  return { body }
}).pipe(
  Effect.catchTag("MalformedRequest", ({ detail }) =>
    Effect.succeed({ refusal: rpcFault(400, -32_700, `Parse error: ${detail}`) })
  ),
  Effect.catchTag("InvalidInput", ({ detail, errors }) =>
    Effect.succeed({ refusal: rpcFault(400, -32_600, `Invalid Request: ${detail}`, errors) })
  ),
  Effect.catchDefect((defect) =>
    defect instanceof SyntaxError
      ? Effect.succeed({ refusal: rpcFault(400, -32_700, "Parse error: the request has no JSON body") })
      : Effect.die(defect)
  ),
  Effect.map((message): Message => message)
)

/** The request as the SDK takes it, without its body, which was already read. */
export const webRequest = (request: HttpServerRequest.HttpServerRequest): Request =>
  new Request(new URL(request.url, originOf(request)), {
    method: request.method,
    headers: { ...request.headers }
  })

// `subscriptions/listen` of 2026-07-28: streams of changes from every module.
//
// The SDK's own handler has one bus for all callers and knows four kinds of changes; here each module decides per caller. The method is
// renamed before the SDK sees it, so that the SDK still validates the request and creates its server. Only these servers know the new name;
// a client that uses it gets "method not found".

export const listenMethod = "subscriptions/listen"
const servedAs = "tropism/subscriptions/listen"

/** A listen request under its internal name; undefined for any other method, and if the header names another one. */
const renamed = (
  request: Request,
  message: unknown
): { readonly request: Request; readonly message: unknown } | undefined => {
  if (!isJsonObject(message) || message["method"] !== listenMethod) return undefined
  const headers = new Headers(request.headers)
  if (headers.get("mcp-method") !== listenMethod) return undefined
  headers.set("mcp-method", servedAs)
  return { request: new Request(request, { headers }), message: { ...message, method: servedAs } }
}

const Filter = Schema.Struct({
  toolsListChanged: Schema.optional(Schema.Boolean),
  promptsListChanged: Schema.optional(Schema.Boolean),
  resourcesListChanged: Schema.optional(Schema.Boolean),
  resourceSubscriptions: Schema.optional(Schema.Array(Schema.String)),
  taskIds: Schema.optional(Schema.Array(Schema.String))
})
const readFilter = Schema.decodeUnknownEffect(Filter)

/** Serves listeners until the server stops; then every stream ends so that its client reconnects. */
const makeListening = Effect.gen(function* () {
  const closing = yield* Closing
  const places = makeStreamSlots({ ofOwner: mcpLimits.listensPerUser, inAll: mcpLimits.streams }, () =>
    fault(ProtocolErrorCode.InternalError, "Subscription limit reached: end one first")
  )

  /** Registers the listen handler for these offers, all of one owner. */
  return (server: Server, owner: string, offers: ReadonlyArray<Offer>, run: RunForServer): void =>
    server.setRequestHandler(servedAs, anyParams, ({ notifications }, context) =>
      run(
        Effect.gen(function* () {
          const { id, notify: send } = context.mcpReq
          const filter: ListenFilter = yield* Effect.mapError(readFilter(notifications), () =>
            badParams("Invalid params: 'notifications' is required and must be a valid SubscriptionFilter")
          )
          yield* Effect.acquireRelease(places.enter(owner), places.leave)
          const told = yield* Effect.forEach(
            offers,
            ({ listen }) => listen?.(filter, context) ?? Effect.undefined
          )
          const tellings = told.filter((telling) => telling !== undefined)
          const _meta = { [SUBSCRIPTION_ID_META_KEY]: id }
          const full = yield* Deferred.make<void>()
          let chars = 0
          const notify: Notify = (method, params = {}) =>
            Effect.promise(() => send({ method, params: { ...params, _meta } })).pipe(
              Effect.andThen(
                Effect.suspend(() => {
                  chars += JSON.stringify(params).length
                  return chars > mcpLimits.listenMaxChars ? Deferred.succeed(full, undefined) : Effect.void
                })
              )
            )
          yield* notify("notifications/subscriptions/acknowledged", {
            notifications: Object.assign({}, ...tellings.map(({ honored }) => honored))
          })
          const telling = Effect.forEach(tellings, ({ tell }) => tell(notify), {
            concurrency: mcpLimits.tellersOfStream,
            discard: true
          })
          yield* Effect.raceAllFirst([telling, closing.begun, Deferred.await(full), gone(context)])
          return { _meta }
        }).pipe(Effect.scoped)
      )
    )
})

/** Registers the listen handler on a server. */
export type ServeListeners = Effect.Success<typeof makeListening>
