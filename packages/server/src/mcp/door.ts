/**
 * The MCP door behind its address: both revisions, each served in its own way, from the same offers.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * A request of 2026-07-28 stands for itself and has a server of its own; one of
 * 2025-11-25 belongs to a session. Which it is, the official SDK says. Whoever
 * asks was let in before; nothing here reads a credential but to tell sessions
 * apart.
 */
import {
  createMcpHandler,
  isLegacyRequest,
  ProtocolError,
  ProtocolErrorCode,
  type Server
} from "@modelcontextprotocol/server"
import { Cause, Effect, Exit, FiberSet, Option } from "effect"
import { passingFault } from "../database/database-away.ts"
import { streamLimits } from "../http/stream-limits.ts"
import { mcpLimits } from "./mcp-limits.ts"
import { doorServer, fault, type ServerWords } from "./door-server.ts"
import { makeListening, renamed } from "./listening.ts"
import type { Answering, Offer, RunForServer } from "./part.ts"
import { makeSessions } from "./sessions.ts"

/** One request that was let in. */
export interface LetIn {
  readonly request: Request
  /** The message; undefined where the request has no body. */
  readonly body: unknown
  /** The credential and the address together, as text. */
  readonly bearer: string
  /** What a server is bound to, as text. */
  readonly binding: string
  /** Who asks, and in which project, as text: their streams are counted together. */
  readonly owner: string
  readonly words: ServerWords
  readonly offers: () => ReadonlyArray<Offer>
}

/** Serves both revisions until the scope ends; calls under way may end first. */
export const makeDoor = Effect.gen(function* () {
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

  // Its streams end before the calls under way are waited for.
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

/** What is offered to a client of 2025-11-25. */
const withoutNewer = ({ newerCapabilities: _newer, ...offer }: Offer): Offer => offer

const internal = fault(ProtocolErrorCode.InternalError, "The server failed; its log says why")

/** A defect is for the log, and the caller learns only that there was one, or that it passes. */
const told = <A>(effect: Answering<A>): Answering<A> =>
  Effect.catchDefect(effect, (defect) => {
    const passing = passingFault(defect)
    return passing === undefined
      ? Effect.andThen(Effect.logError("An MCP request failed", defect), Effect.fail(internal))
      : Effect.fail(fault(ProtocolErrorCode.InternalError, passing))
  })
