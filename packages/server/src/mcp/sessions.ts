/**
 * The sessions of the revisions up to 2025-11-25, without anything that a session could lose.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A session keeps a server and its open streams for as long as somebody uses
 * them, and nothing else: its id says by itself for which credential and which
 * address it was given out, and whether its client shows forms. So any server program takes a session that another
 * began, or that it has let go of, and goes on with it; a client notices nothing
 * but a stream that it has to open again.
 */
import {
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport
} from "@modelcontextprotocol/server"
import { Clock, Effect, Schema } from "effect"
import { streamLimits } from "../http/stream-limits.ts"
import { Ids } from "../ids.ts"
import { mcpLimits } from "./mcp-limits.ts"
import { digestOf } from "../task/digest.ts"
import { rpcFault } from "./answers.ts"
import { showsForms } from "./tasks-extension.ts"

/** One request of a session, whose credential was judged already. */
export interface SessionRequest {
  readonly request: Request
  /** The message; undefined where the request has no body. */
  readonly body: unknown
  /** The credential and the address together, as text. */
  readonly bearer: string
  /** What the server is bound to; when it changes, another server takes the session over. */
  readonly binding: string
  readonly newServer: () => Server
}

interface Session {
  readonly id: string
  readonly binding: string
  readonly server: Server
  readonly transport: WebStandardStreamableHTTPServerTransport
  usedAt: number
}

/** Serves sessions until the scope ends. */
export const makeSessions = Effect.gen(function* () {
  const ids = yield* Ids
  const clock = yield* Clock.Clock
  const sessions = new Map<string, Promise<Session>>()
  const ended = new Set<string>()

  const close = (id: string) => {
    const session = sessions.get(id)
    sessions.delete(id)
    return session?.then(({ server }) => server.close()).catch(() => {})
  }

  const open = (id: string, { binding, newServer }: SessionRequest): Promise<Session> => {
    const server = newServer()
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      keepAliveMs: streamLimits.heartbeatIntervalMs,
      onsessionclosed: () => {
        sessions.delete(id)
        ended.add(id)
        for (const first of ended) if (ended.size > mcpLimits.endedSessions) ended.delete(first)
      }
    })
    return server
      .connect(transport)
      .then(() => ({ id, binding, server, transport, usedAt: clock.currentTimeMillisUnsafe() }))
  }

  const keep = (id: string, session: Promise<Session>) => {
    sessions.set(id, session)
    for (const oldest of sessions.keys()) if (sessions.size > mcpLimits.sessions) void close(oldest)
  }

  const handle = (session: Promise<Session>, { body, request }: SessionRequest) =>
    Effect.promise(() =>
      session.then((opened) => {
        opened.usedAt = clock.currentTimeMillisUnsafe()
        return opened.transport.handleRequest(request, body === undefined ? {} : { parsedBody: body })
      })
    )

  const begin = Effect.fnUntraced(function* (asked: SessionRequest) {
    const nonce = `${showsFormsIn(asked.body) ? formsMark : ""}${yield* ids.secret}`
    const id = `${nonce}.${yield* sealOf(nonce, asked.bearer)}`
    const session = open(id, asked)
    keep(id, session)
    return yield* handle(session, asked)
  })

  /** A session that this program has no server for: it is begun once more, as its client began it. */
  const adopt = (id: string, asked: SessionRequest): Promise<Session> =>
    open(id, asked).then((session) =>
      session.transport
        .handleRequest(...openingOf(id, asked.request))
        .then((answer) => answer.text())
        .then(() => session)
    )

  const goOn = Effect.fnUntraced(function* (id: string, asked: SessionRequest) {
    const known = sessions.get(id)
    if (known && (yield* Effect.promise(() => known)).binding !== asked.binding) void close(id)
    const session = sessions.get(id) ?? adopt(id, asked)
    sessions.delete(id)
    keep(id, session)
    return yield* handle(session, asked)
  })

  const serve = Effect.fn("mcp.Sessions.serve")(function* (asked: SessionRequest) {
    if (isInitializeRequest(asked.body)) return yield* begin(asked)
    const id = asked.request.headers.get("mcp-session-id")
    if (id === null)
      return rpcFault(
        400,
        -32_000,
        "Bad Request: send initialize first, then the Mcp-Session-Id that it answers"
      )
    const [nonce = "", seal] = id.split(".", 2)
    const isOurs = seal !== undefined && seal === (yield* sealOf(nonce, asked.bearer))
    return isOurs && !ended.has(id) ? yield* goOn(id, asked) : rpcFault(404, -32_001, "Session not found")
  })

  const sweep = Effect.gen(function* () {
    const before = (yield* Clock.currentTimeMillis) - mcpLimits.sessionIdleMs
    for (const session of yield* Effect.promise(() => Promise.all(sessions.values())))
      if (session.usedAt < before) void close(session.id)
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(sweep, mcpLimits.sessionSweepIntervalMs)))
  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...sessions.keys()].map(close))))
  return { serve }
})

/** What the id of a session begins with whose client shows forms: any server program can tell. */
const formsMark = "~"

const Opening = Schema.Struct({
  params: Schema.Struct({ capabilities: Schema.Struct({ elicitation: Schema.Unknown }) })
})

const showsFormsIn = (message: unknown): boolean =>
  Schema.is(Opening)(message) && showsForms(message.params.capabilities.elicitation)

/** Only who has the credential can have been given this id, and only at this address. */
const sealOf = (nonce: string, bearer: string) => digestOf(`An MCP session\n${nonce}\n${bearer}`)

/** The handshake that the client of a session once made, as far as it is still known. */
const openingOf = (id: string, { headers, url }: Request): [Request, { readonly parsedBody: unknown }] => [
  new Request(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" }
  }),
  {
    parsedBody: {
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: {
        protocolVersion: headers.get("mcp-protocol-version") ?? "2025-11-25",
        capabilities: id.startsWith(formsMark) ? { elicitation: {} } : {},
        clientInfo: { name: "unknown", version: "0" }
      }
    }
  }
]
