/**
 * Sessions of the revisions up to 2025-11-25, without server-side state that could be lost.
 *
 * **Invariant**: a session's id alone proves its credential and address, and whether its client shows forms. A session holds a server and
 * open streams only while it is used. So any server can continue a session that another started or dropped; the client only has to reopen a
 * stream.
 */
import {
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport
} from "@modelcontextprotocol/server"
import { Clock, Effect, Schema, Stream } from "effect"
import { streamLimits } from "../http/limits.ts"
import { Closing } from "../http/listener.ts"
import { Ids } from "../ids.ts"
import { digestOf } from "../review/task-digest.ts"
import { mcpLimits } from "./limits.ts"
import { type Listening, ResourceUpdates } from "./resources.ts"
import { rpcFault, type Streaming } from "./server.ts"
import { showsForms } from "./tasks.ts"

/** A request of a session, already authenticated. */
export interface SessionRequest {
  readonly request: Request
  /** The message; undefined where the request has no body. */
  readonly body: unknown
  /** The credential and the address, as one string. */
  readonly bearer: string
  /** What the server is bound to; when it changes, a new server takes over the session. */
  readonly binding: string
  readonly newServer: () => Server
}

interface Session {
  readonly binding: string
  readonly server: Server
  readonly transport: WebStandardStreamableHTTPServerTransport
}

/** A session with a server in this process, and its usage. */
interface Kept {
  readonly session: Promise<Session>
  usedAtMs: number
  /** Requests whose answer has not ended: calls, and separately endless streams. */
  calls: number
  streams: number
}

/** Serves sessions until the scope ends. */
export const makeSessions = Effect.gen(function* () {
  const ids = yield* Ids
  const clock = yield* Clock.Clock
  const sessions = new Map<string, Kept>()
  const ended = new Set<string>()

  const close = (id: string) => {
    const kept = sessions.get(id)
    sessions.delete(id)
    return kept?.session.then(({ server }) => server.close()).catch(() => {})
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
    return server.connect(transport).then(() => ({ binding, server, transport }))
  }

  const newlyKept = (session: Promise<Session>): Kept => ({
    session,
    usedAtMs: clock.currentTimeMillisUnsafe(),
    calls: 0,
    streams: 0
  })

  /** Stores a session and drops the oldest above the limit, but none with a running call, which would lose its answer. */
  const keep = (id: string, kept: Kept) => {
    sessions.set(id, kept)
    for (const [oldest, { calls }] of sessions)
      if (sessions.size > mcpLimits.sessions && calls === 0 && oldest !== id) void close(oldest)
  }

  /** Counts a running request; the returned function counts it down once. */
  const enter = (kept: Kept, kind: "calls" | "streams"): (() => void) => {
    let isUnderWay = true
    kept[kind] += 1
    kept.usedAtMs = clock.currentTimeMillisUnsafe()
    return () => {
      if (!isUnderWay) return
      isUnderWay = false
      kept[kind] -= 1
      kept.usedAtMs = clock.currentTimeMillisUnsafe()
    }
  }

  const handle = (kept: Kept, { body, request }: SessionRequest) =>
    Effect.promise(() => {
      const leave = enter(kept, request.method === "GET" ? "streams" : "calls")
      // The SDK does not report a disconnected client, so the handler learns it from this signal.
      const client = new AbortController()
      const live = new Request(request, { signal: client.signal })
      return kept.session
        .then(({ transport }) =>
          transport.handleRequest(live, body === undefined ? {} : { parsedBody: body })
        )
        .then(
          (answer) => untilEnded(answer, leave, () => client.abort()),
          (fault) => {
            leave()
            return Promise.reject(fault)
          }
        )
    })

  const begin = Effect.fnUntraced(function* (asked: SessionRequest) {
    const nonce = `${showsFormsIn(asked.body) ? formsMark : ""}${yield* ids.secret}`
    const id = `${nonce}.${yield* sealOf(nonce, asked.bearer)}`
    const kept = newlyKept(open(id, asked))
    keep(id, kept)
    return yield* handle(kept, asked)
  })

  /** Recreates a session without a server here, as its client started it. */
  const adopt = (id: string, asked: SessionRequest): Promise<Session> =>
    open(id, asked).then((session) =>
      session.transport
        .handleRequest(...openingOf(id, asked.request))
        .then((answer) => answer.text())
        .then(() => session)
    )

  const goOn = Effect.fnUntraced(function* (id: string, asked: SessionRequest) {
    const known = sessions.get(id)
    if (known && (yield* Effect.promise(() => known.session)).binding !== asked.binding) void close(id)
    const kept = sessions.get(id) ?? newlyKept(adopt(id, asked))
    sessions.delete(id)
    keep(id, kept)
    return yield* handle(kept, asked)
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
    const nowMs = yield* Clock.currentTimeMillis
    for (const [id, { calls, streams, usedAtMs }] of sessions) {
      const longestMs = calls + streams > 0 ? mcpLimits.sessionBusyMs : mcpLimits.sessionIdleMs
      if (nowMs - usedAtMs > longestMs) void close(id)
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(sweep, mcpLimits.sessionSweepIntervalMs)))
  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...sessions.keys()].map(close))))
  return { serve }
})

/** The answer, with a callback at its end, and an earlier one if the client stops reading. */
const untilEnded = (answer: Response, ended: () => void, dropped: () => void): Response => {
  const { body, headers, status } = answer
  if (body === null || headers.get("content-type") !== "text/event-stream") {
    ended()
    return answer
  }
  const reader = body.getReader()
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>) =>
    reader.read().then(
      ({ done, value }) => {
        if (!done) return controller.enqueue(value)
        ended()
        controller.close()
      },
      (fault) => {
        ended()
        controller.error(fault)
      }
    )
  const cancel = (reason: unknown) => {
    ended()
    dropped()
    return reader.cancel(reason)
  }
  return new Response(new ReadableStream({ pull, cancel }, { highWaterMark: 0 }), { status, headers })
}

/** The first character of a session id whose client shows forms, readable by any server. */
const formsMark = "~"

const Opening = Schema.Struct({
  params: Schema.Struct({ capabilities: Schema.Struct({ elicitation: Schema.Unknown }) })
})

const showsFormsIn = (message: unknown): boolean =>
  Schema.is(Opening)(message) && showsForms(message.params.capabilities.elicitation)

/** Only a holder of the credential can have received this id, and only at this address. */
const sealOf = (nonce: string, bearer: string) => digestOf(`An MCP session\n${nonce}\n${bearer}`)

/** The client's original handshake, as far as it is still known. */
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

// The stream of a session of 2025-11-25: SDK messages and resource changes.
//
// A session may listen on another server than the one where it subscribed, so this reads its rows by its id. When the server stops the
// stream just closes, as that revision specifies, and the client reconnects.

/** The lifetime of an answer: a GET opens the stream of its session. */
export const makeSessionStream = Effect.gen(function* () {
  const updates = yield* ResourceUpdates
  const closing = yield* Closing
  return (
    method: string,
    listening: Listening | undefined,
    sessionId: string | undefined,
    lost: Effect.Effect<unknown>
  ): Streaming => {
    // The handler of a 2026-07-28 stream ends it itself when the server stops.
    if (method !== "GET") return { over: lost, told: Effect.succeed(Stream.never) }
    return {
      over: Effect.raceFirst(lost, closing.begun),
      told:
        listening === undefined || sessionId === undefined
          ? Effect.succeed(Stream.never)
          : Effect.map(updates.ofSession(listening, sessionId), Stream.map(frameOf))
    }
  }
})

const encoder = new TextEncoder()

/** A resource change as a stream frame. */
const frameOf = (uri: string): Uint8Array =>
  encoder.encode(
    `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } })}\n\n`
  )
