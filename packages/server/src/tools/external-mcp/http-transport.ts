/**
 * A server at an address, over Streamable HTTP.
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
  StreamableHTTPClientTransport,
  extractWWWAuthenticateParams
} from "@modelcontextprotocol/client"
import { secretPrefix, signedOutText } from "@tropism/domain/mcp-server"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Cause, Effect, Exit, Fiber, Option, Redacted, type Scope } from "effect"
import { type Network, OutsideNetwork } from "../../agents/outside-network.ts"
import { endedUnanswered, ExternalFault, unmade, lineOf } from "./faults.ts"
import { type Fetch, judgedFetch } from "./fetch.ts"
import { externalLimits } from "./limits.ts"
import type { Bearer, BearerToken } from "./oauth-grants.ts"
import { repairingAnswers } from "./tool-listing.ts"

export interface AddressToReach {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the address may lead into this machine or its network. */
  readonly isLocalAllowed: boolean
  /** The tokens of whoever signed in. */
  readonly bearer: Bearer | undefined
}

/** Speaks to a server; at the end of the scope its session is ended where it has one. */
export const httpTransport = Effect.fnUntraced(function* ({
  bearer,
  headers,
  isLocalAllowed,
  url
}: AddressToReach) {
  const network: Network = yield* OutsideNetwork
  const reached = isLocalAllowed ? { ...network, mayReach: () => true } : network
  const plain = judgedFetch(reached)
  const fetch: Fetch =
    bearer === undefined
      ? (address, init) => plain(address, init).then((response) => sayWhoMayMend(response, headers, false))
      : yield* withTokens({ bearer, fetch: judgedFetch(reached, { redirects: 0 }), headers, url })
  const { heard, scheduler } = yield* makePauses
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: repairingAnswers(fetch),
    reconnectionScheduler: scheduler
  })
  watchStreams(transport, heard)
  yield* Effect.addFinalizer(() =>
    Effect.tryPromise(() => transport.terminateSession()).pipe(
      Effect.timeoutOption(externalLimits.endGraceMs),
      Effect.ignore
    )
  )
  return transport
}) satisfies (address: AddressToReach) => Effect.Effect<StreamableHTTPClientTransport, never, Scope.Scope>

/**
 * Sends requests with the token of a sign-in, to the address of the server and to no other.
 *
 * **Details** A token that the server refuses is renewed, once. Where there is none to be had the answer says so, as the server's
 * refusal would. A redirect is not followed: what it leads to is not what the token is for.
 */
const withTokens = Effect.fnUntraced(function* ({
  bearer,
  fetch,
  headers: defined,
  url
}: Pick<AddressToReach, "headers" | "url"> & { readonly bearer: Bearer; readonly fetch: Fetch }) {
  const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
  const send = (address: string | URL, init: RequestInit | undefined, { value }: BearerToken) => {
    const headers = new Headers(init?.headers)
    headers.set("authorization", `Bearer ${Redacted.value(value)}`)
    return fetch(address, { ...init, headers })
  }
  const sent = (...request: Parameters<typeof send>) =>
    Effect.tryPromise({ try: () => send(...request), catch: (error) => new SendFailure(error) }).pipe(
      Effect.flatMap((response) => {
        if (response.status < 300 || response.status > 399) return Effect.succeed(response)
        const why = `The server redirects (HTTP ${response.status}), and a token is not sent on: name its present address`
        return Effect.andThen(drained(response), unmade(why))
      })
    )
  const answerTo = (address: string | URL, init: RequestInit | undefined) => {
    const answer = Effect.gen(function* () {
      const token = yield* bearer.token
      const first = yield* sent(address, init, token)
      if (first.status === 403) {
        const scopes = wantedScopesIn(first)
        if (scopes !== undefined) yield* bearer.wantScopes(scopes)
      }
      if (first.status !== 401) return first
      yield* drained(first)
      const next = yield* bearer.renewed(token)
      return yield* sent(address, init, next)
    })
    return run(answer).then((exit) => {
      if (Exit.isSuccess(exit)) return sayWhoMayMend(exit.value, defined, true)
      const fault = Option.getOrUndefined(Exit.findErrorOption(exit))
      // Nothing was sent, or all of it was refused.
      if (fault instanceof ExternalFault)
        return new Response(fault.message, { status: 401, headers: plainText })
      throw fault instanceof SendFailure ? fault.error : Cause.squash(exit.cause)
    })
  }
  const own = new URL(url).href
  const guarded: Fetch = (address, init) =>
    new URL(address).href === own
      ? answerTo(address, init)
      : Promise.reject(new Error(`A token of ${own} is sent nowhere else`))
  return guarded
})

/** What broke a request; the SDK reads it as it was raised. */
class SendFailure {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

const plainText = { "content-type": "text/plain" }

const drained = (response: Response) => Effect.promise(() => Promise.resolve(response.body?.cancel()))

/** When a stream that has ended is opened again: each time later, until something is heard. */
const makePauses = Effect.gen(function* () {
  const run = Effect.runForkWith(yield* Effect.context<never>())
  let times = 0
  return {
    heard: () => {
      times = 0
    },
    scheduler: (reconnect: () => void, wantedMs: number) => {
      const leastMs = externalLimits.reopenMinMs * 2 ** Math.min(times++, 20)
      const pauseMs = Math.min(externalLimits.reopenMaxMs, Math.max(leastMs, wantedMs))
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

// What is told where a server wants to know who is calling.
//
// Either somebody signs in, or a definition names the secret that its headers
// carry. The answer that such a server gives becomes the sentence that says which.

/** The scopes that a server names which refuses a token for having too few. */
const wantedScopesIn = (response: Response): string | undefined => {
  const { error, scope } = extractWWWAuthenticateParams(response)
  return error === "insufficient_scope" ? scope : undefined
}

/** The same answer; where credentials are wanted, its body says who may mend that. */
const sayWhoMayMend = (
  response: Response,
  sent: Readonly<Record<string, string>>,
  isSignedIn: boolean
): Response | Promise<Response> => {
  const { status } = response
  if (status !== 401 && status !== 403) return response
  const { errorDescription, resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
  const hasSent = Object.keys(sent).some((name) => /auth|key|token|cookie|secret/i.test(name))
  const isBearer = /^\s*bearer\b/i.test(response.headers.get("www-authenticate") ?? "")
  const isSignInWanted = status === 401 && !hasSent && !isSignedIn && isBearer
  /** It says where one signs in; a key that somebody else gives out is not what it wants. */
  const isOAuth = isSignInWanted && resourceMetadataUrl !== undefined
  const lacksScope = isSignedIn && status === 403 && scope !== undefined
  const wants = isSignedIn
    ? "does not take the token of the sign-in"
    : hasSent
      ? `does not take the credentials in the headers ${Object.keys(sent).join(", ")}`
      : isOAuth
        ? "wants to know who calls"
        : "wants credentials, and the definition's headers hold none"
  const words = [
    ...(isSignInWanted ? [`${signedOutText} first.`] : lacksScope ? [`${signedOutText} again.`] : []),
    `The server answered ${status}: it ${wants}.`,
    ...(errorDescription === undefined ? [] : [`It says: ${beginningOf(lineOf(errorDescription), 200)}.`]),
    ...(scope === undefined ? [] : [`It wants the scope ${beginningOf(lineOf(scope), 100)}.`]),
    ...(resourceMetadataUrl === undefined
      ? []
      : [`Who gives ${isOAuth ? "leave" : "them"} is told at ${resourceMetadataUrl.href.slice(0, 200)}.`]),
    ...(isSignedIn || isOAuth ? [] : [howToName])
  ]
  const headers = new Headers({ "content-type": "text/plain" })
  return Promise.resolve(response.body?.cancel()).then(
    () => new Response(words.join(" "), { status, headers })
  )
}

const howToName = `An admin names them in the definition, as {"Authorization": {"secret": "${secretPrefix}…", "prefix": "Bearer "}}; the operator sets that variable`
