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
import { streamLimits } from "../http/stream-limits.ts"
import { mcpLimits } from "./mcp-limits.ts"
import { fault } from "./door-server.ts"
import type { Answering, RunForServer } from "./part.ts"
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
  readonly newServer: (run: RunForServer) => Server
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
      keepAliveMs: streamLimits.heartbeatIntervalMs,
      maxSubscriptions: mcpLimits.streams
    }
  )
  yield* Effect.addFinalizer(() =>
    FiberSet.awaitEmpty(calls).pipe(
      Effect.timeoutOption(mcpLimits.drainTimeoutMs),
      Effect.andThen(Effect.promise(() => modern.close()))
    )
  )

  const run: RunForServer = (effect) =>
    new Promise((resolve, reject) => {
      runCall(told(effect)).addObserver((exit) =>
        Exit.isSuccess(exit)
          ? resolve(exit.value as never)
          : reject(Option.getOrElse(Cause.findErrorOption(exit.cause), () => internal))
      )
    })

  const serve = Effect.fn("mcp.Door.serve")(function* (letIn: LetIn) {
    const { body, request } = letIn
    const newServer = () => letIn.newServer(run)
    if (yield* Effect.promise(() => isLegacyRequest(request, body)))
      return yield* sessions.serve({ ...letIn, newServer })
    return yield* Effect.promise((signal) => {
      const live = new Request(request, { signal })
      servers.set(live, newServer())
      return modern.fetch(live, body === undefined ? {} : { parsedBody: body })
    })
  })
  return { serve, notify: modern.notify }
})

const internal = fault(ProtocolErrorCode.InternalError, "The server failed; its log says why")

/** A defect is for the log, and the caller learns only that there was one. */
const told = <A>(effect: Answering<A>): Answering<A> =>
  Effect.catchDefect(effect, (defect) =>
    Effect.andThen(Effect.logError("An MCP request failed", defect), Effect.fail(internal))
  )
