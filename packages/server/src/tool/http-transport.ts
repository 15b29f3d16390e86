/**
 * A server at an address, over Streamable HTTP.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * The SDK's transport would wait for an answer whose stream has ended, go on
 * reading what nobody waits for any more, and open a stream again as fast as it is
 * closed. Here a stream that ends without its answer is an answer that says so, a
 * request that is given up is hung up, and a stream is opened again with pauses.
 */
import {
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type RequestId,
  StreamableHTTPClientTransport
} from "@modelcontextprotocol/client"
import { Effect, Fiber, type Scope } from "effect"
import { type Network, OutsideNetwork } from "../agent/outside-network.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { sayWhoMayMend } from "./credentials-wanted.ts"
import { endedUnanswered } from "./foreign-fault.ts"
import { judgedFetch } from "./judged-fetch.ts"

export interface AddressToReach {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the address may lead into this machine or its network. */
  readonly isLocalAllowed: boolean
}

/** Speaks to a server; at the end of the scope its session is ended where it has one. */
export const httpTransport = Effect.fnUntraced(function* ({ headers, isLocalAllowed, url }: AddressToReach) {
  const network: Network = yield* OutsideNetwork
  const fetch = judgedFetch(isLocalAllowed ? { ...network, mayReach: () => true } : network)
  const { heard, scheduler } = yield* makePauses
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: (address, init) => fetch(address, init).then((response) => sayWhoMayMend(response, headers)),
    reconnectionScheduler: scheduler
  })
  watchStreams(transport, heard)
  yield* Effect.addFinalizer(() =>
    Effect.tryPromise(() => transport.terminateSession()).pipe(
      Effect.timeoutOption(foreignLimits.endGraceMs),
      Effect.ignore
    )
  )
  return transport
}) satisfies (address: AddressToReach) => Effect.Effect<StreamableHTTPClientTransport, never, Scope.Scope>

/** When a stream that has ended is opened again: each time later, until something is heard. */
const makePauses = Effect.gen(function* () {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let times = 0
  return {
    heard: () => {
      times = 0
    },
    scheduler: (reconnect: () => void, wantedMs: number) => {
      const leastMs = foreignLimits.reopenMinMs * 2 ** Math.min(times++, 20)
      const pauseMs = Math.min(foreignLimits.reopenMaxMs, Math.max(leastMs, wantedMs))
      const fiber = run(Effect.delay(Effect.sync(reconnect), pauseMs))
      return () => void run(Fiber.interrupt(fiber))
    }
  }
})

type Options = Parameters<StreamableHTTPClientTransport["send"]>[1]

/** Knows which requests wait for their answers, and hangs up what is given up. */
const watchStreams = (transport: StreamableHTTPClientTransport, heard: () => void): void => {
  const waiting = new Map<RequestId, AbortController>()
  const send = transport.send.bind(transport)
  const hangUp = (id: RequestId | undefined) => {
    if (id === undefined) return
    waiting.get(id)?.abort()
    waiting.delete(id)
  }
  const sendWatched = (message: JSONRPCMessage, options: Options = {}): Promise<void> => {
    if ("method" in message && message.method === "notifications/cancelled")
      return send(message, options).finally(() =>
        hangUp(message.params?.["requestId"] as RequestId | undefined)
      )
    if (!isJSONRPCRequest(message)) return send(message, options)
    const { id } = message
    const given = new AbortController()
    waiting.set(id, given)
    options.requestSignal?.addEventListener("abort", () => waiting.delete(id), { once: true })
    const requestSignal = options.requestSignal
      ? AbortSignal.any([options.requestSignal, given.signal])
      : given.signal
    const onRequestStreamEnd = () => {
      options.onRequestStreamEnd?.()
      if (waiting.delete(id)) transport.onmessage?.({ jsonrpc: "2.0", id, error: endedUnanswered })
    }
    return send(message, { ...options, requestSignal, onRequestStreamEnd }).catch((error: unknown) => {
      waiting.delete(id)
      return Promise.reject(error)
    })
  }
  const onmessage = (message: JSONRPCMessage) => {
    heard()
    const isAnswer = isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)
    if (isAnswer && message.id !== undefined) waiting.delete(message.id)
  }
  // The SDK calls a listener that was there before its own, with the same message.
  Object.assign(transport, { send: sendWatched, onmessage })
}
