/**
 * Transport to a server over Streamable HTTP.
 *
 * The SDK's transport waits for an answer after its stream has ended, keeps reading abandoned streams, and reopens a
 * stream as fast as it closes. Here a stream that ends early becomes an error answer, an abandoned request is
 * disconnected, and streams reopen with backoff.
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
  /** Whether the address may lead to this machine or its network. */
  readonly isLocalAllowed: boolean
  /** The tokens of the sign-in. */
  readonly bearer: Bearer | undefined
}

/** Connects to a server; the end of the scope ends its session, if any. */
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
 * Sends requests with a sign-in's token, to the server's address only.
 *
 * **Details** A refused token is renewed once. When that fails, the answer reports it in the form of the server's refusal. A
 * redirect is not followed, because the token is not for its target.
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

/** The cause of a failed request; the SDK receives it as it was raised. */
class SendFailure {
  readonly error: unknown
  constructor(error: unknown) {
    this.error = error
  }
}

const plainText = { "content-type": "text/plain" }

const drained = (response: Response) => Effect.promise(() => Promise.resolve(response.body?.cancel()))

/** The backoff for reopening a stream; reset when a message arrives. */
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

/** Tracks the requests without an answer, and disconnects abandoned ones. */
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
  // The SDK calls an existing listener before its own, with the same message.
  Object.assign(transport, { send: sendWatched, onmessage })
}

// Explains an authorization challenge of a server.
//
// Either a person signs in, or a definition names the secret for its headers. The server's answer is replaced by a message that
// names which.

/** Returns the scopes named by a server that refuses a token for having too few. */
const wantedScopesIn = (response: Response): string | undefined => {
  const { error, scope } = extractWWWAuthenticateParams(response)
  return error === "insufficient_scope" ? scope : undefined
}

/** The same answer; for a challenge, its body names who can fix it. */
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
  /** The server names a sign-in, so a key from elsewhere is not what it wants. */
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
