/**
 * The sessions of the revisions up to 2025-11-25, without anything that a session could lose.
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
import { Clock, Effect, Schema, Stream } from "effect"
import { streamLimits } from "../http/limits.ts"
import { Closing } from "../http/listener.ts"
import { Ids } from "../ids.ts"
import { digestOf } from "../review/task-digest.ts"
import { mcpLimits } from "./limits.ts"
import { type Listening, ResourceUpdates } from "./resources.ts"
import { rpcFault, type Streaming } from "./server.ts"
import { showsForms } from "./tasks.ts"

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
  readonly binding: string
  readonly server: Server
  readonly transport: WebStandardStreamableHTTPServerTransport
}

/** A session that this program has a server for, and how it is used. */
interface Kept {
  readonly session: Promise<Session>
  usedAtMs: number
  /** What is under way up to the end of its answer: calls, and beside them streams without an end. */
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

  /** Keeps a session, and lets the oldest go when there are too many: whose call is under way would lose its answer. */
  const keep = (id: string, kept: Kept) => {
    sessions.set(id, kept)
    for (const [oldest, { calls }] of sessions)
      if (sessions.size > mcpLimits.sessions && calls === 0 && oldest !== id) void close(oldest)
  }

  /** Notes that a request is under way; what it answers notes, once, that it is not any more. */
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
      // The SDK forgets the stream of whoever goes away and tells nobody: what answers him learns it from his request.
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

/** The answer, of which it is told once that it has ended, and before its end that nobody takes it any more. */
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

// The stream of a session of 2025-11-25: what the SDK says there, and of which resources have changed.
//
// A session may be told at another server than the one at which it subscribed, so
// this knows its id and asks the rows. When the server stops the stream is closed
// without a word, as its revision has it, and the client opens another.

/** What becomes of the answer to a request: a GET opens the stream of its session. */
export const makeSessionStream = Effect.gen(function* () {
  const updates = yield* ResourceUpdates
  const closing = yield* Closing
  return (
    method: string,
    listening: Listening | undefined,
    sessionId: string | undefined,
    lost: Effect.Effect<unknown>
  ): Streaming => {
    // A stream of 2026-07-28 is answered when the server stops, by whoever serves it.
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

/** That a resource has changed, as it stands in a stream. */
const frameOf = (uri: string): Uint8Array =>
  encoder.encode(
    `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } })}\n\n`
  )
