/**
 * OAuth 2.1 requests to the authorization server of a foreign MCP server.
 *
 * The SDK implements the protocol. Here its requests follow the egress rules, have time and size limits, and the checks
 * that the specification leaves to the client are made. No database access; no secret follows a redirect.
 */
import {
  type AuthorizationServerMetadata,
  checkResourceAllowed,
  computeScopeUnion,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  type FetchLike,
  InsecureTokenEndpointError,
  IssuerMismatchError,
  OAuthError,
  type OAuthProtectedResourceMetadata,
  type OAuthTokens,
  refreshAuthorization,
  registerClient,
  RegistrationRejectedError,
  resourceUrlFromServerUrl,
  startAuthorization,
  validateAuthorizationResponseIssuer
} from "@modelcontextprotocol/client"
import type { McpTransport, OAuthAuthorization } from "@tropism/domain/mcp-server"
import { isSecureAddress } from "@tropism/domain/mcp-server-faults"
import { Effect, Schema } from "effect"
import { OutsideNetwork } from "../../agents/outside-network.ts"
import { lineOf, mayEndHere } from "./faults.ts"
import { judgedFetch } from "./fetch.ts"
import { externalLimits } from "./limits.ts"
import { revealSecrets } from "./secrets.ts"

/**
 * A request to the authorization server failed.
 *
 * **Details** `isFinal`: it refused the credential for good.
 */
export class SignInFault extends Schema.TaggedError<SignInFault>()("SignInFault", {
  detail: Schema.String,
  isFinal: Schema.Boolean,
  /** The error code of the authorization server, such as `invalid_grant`. */
  code: Schema.optionalKey(Schema.String)
}) {}

/** The stored metadata of an authorization server: enough to request tokens. */
export const AuthorizationServer = Schema.Struct({
  issuer: Schema.String,
  authorization_endpoint: Schema.String,
  token_endpoint: Schema.String,
  registration_endpoint: Schema.optionalKey(Schema.String),
  revocation_endpoint: Schema.optionalKey(Schema.String),
  response_types_supported: Schema.mutable(Schema.Array(Schema.String)),
  scopes_supported: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
  code_challenge_methods_supported: Schema.mutable(Schema.Array(Schema.String)),
  token_endpoint_auth_methods_supported: Schema.optionalKey(Schema.mutable(Schema.Array(Schema.String))),
  authorization_response_iss_parameter_supported: Schema.optionalKey(Schema.Boolean),
  client_id_metadata_document_supported: Schema.optionalKey(Schema.Boolean)
})
export type AuthorizationServer = typeof AuthorizationServer.Type

/** This program's client registration at an authorization server. */
export const OAuthClient = Schema.Struct({
  client_id: Schema.String,
  client_secret: Schema.optionalKey(Schema.String),
  client_secret_expires_at: Schema.optionalKey(Schema.Number),
  token_endpoint_auth_method: Schema.optionalKey(Schema.String)
})
export type OAuthClient = typeof OAuthClient.Type

/** The authorization server of an MCP server, and the resource to request tokens for. */
export interface Discovered {
  readonly server: AuthorizationServer
  readonly resource: string
  readonly scope: string | undefined
}

type HttpTransport = Extract<McpTransport, { readonly type: "http" }>

const fault = (detail: string, isFinal = false, code?: string): SignInFault =>
  new SignInFault({ detail: lineOf(detail), isFinal, ...(code === undefined ? {} : { code }) })

/** The SDK's `fetch` with limits; POST bodies hold secrets and follow no redirect. */
const fetchFor = Effect.fnUntraced(function* (transport: HttpTransport) {
  const network = yield* OutsideNetwork
  const isLocalAllowed = yield* mayEndHere(transport)
  const fetch = judgedFetch(isLocalAllowed ? { ...network, mayReach: () => true } : network, {
    redirects: 0,
    maxBytes: externalLimits.oauthMaxBytes
  })
  return (signal: AbortSignal): FetchLike =>
    (address, init = {}) => {
      const { body, method = "GET" } = init
      if (!isSecureAddress(String(address)))
        return Promise.reject(new Error(`${new URL(address).origin} is not reached over https`))
      const sent = body instanceof URLSearchParams ? { body: body.toString() } : {}
      return fetch(address, { ...init, ...sent, signal }).then((response) => {
        if (method !== "POST" || response.status < 300 || response.status > 399) return response
        return Promise.reject(new Error(`It redirects (HTTP ${response.status}), which is not followed`))
      })
    }
})

/** Runs one exchange with the authorization server, within its timeout. */
const asking = Effect.fnUntraced(function* <A>(
  transport: HttpTransport,
  what: string,
  question: (fetch: FetchLike) => Promise<A>
): Effect.fn.Return<A, SignInFault> {
  const fetch = yield* fetchFor(transport)
  return yield* Effect.tryPromise({
    try: (signal) => question(fetch(signal)),
    catch: (error) => toFault(what, error)
  }).pipe(
    Effect.timeoutOrElse({
      duration: externalLimits.oauthTimeoutMs,
      orElse: () =>
        Effect.fail(fault(`${what}: no answer within ${externalLimits.oauthTimeoutMs} milliseconds`))
    })
  )
})

/** Error codes with which a token request is refused for good. */
const finalCodes: ReadonlySet<string> = new Set([
  "invalid_grant",
  "invalid_client",
  "unauthorized_client",
  "invalid_scope",
  "invalid_target",
  "unsupported_grant_type",
  "access_denied"
])

const toFault = (what: string, error: unknown): SignInFault => {
  if (error instanceof OAuthError)
    return fault(`${what}: ${error.code}, ${error.message}`, finalCodes.has(error.code), error.code)
  if (error instanceof RegistrationRejectedError)
    return fault(`${what}: it answered ${error.status}, ${error.body}`)
  if (error instanceof IssuerMismatchError)
    return fault(`${what}: it says of itself that it is ${error.received ?? "nobody"}, not ${error.expected}`)
  if (error instanceof InsecureTokenEndpointError)
    return fault(`${what}: its token endpoint is not reached over https`)
  return fault(`${what}: ${error instanceof Error ? error.message : String(error)}`)
}

/** Returns a server's answer to a request without a token. */
export const readChallenge = Effect.fnUntraced(function* (transport: HttpTransport) {
  const { values } = yield* Effect.mapError(revealSecrets(transport.headers), ({ message }) => fault(message))
  const response = yield* asking(transport, "The server could not be asked who signs in to it", (fetch) =>
    fetch(transport.url, {
      method: "POST",
      headers: {
        ...values,
        "content-type": "application/json",
        accept: "application/json, text/event-stream"
      },
      // A ping has no effect, even when the server requires no token.
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })
    }).then((response) => Promise.resolve(response.body?.cancel()).then(() => response))
  )
  return extractWWWAuthenticateParams(response)
})

/** Discovers the authorization server (RFC 9728, RFC 8414, OpenID Connect Discovery) and the scopes to request. */
export const discover = Effect.fn("OAuth.discover")(function* (
  transport: HttpTransport,
  authorization: OAuthAuthorization,
  wantedScopes: string | undefined
): Effect.fn.Return<Discovered, SignInFault> {
  const { resourceMetadataUrl, scope } = yield* readChallenge(transport)
  const reading = asking(transport, "The server's resource metadata could not be read", (fetch) =>
    discoverOAuthProtectedResourceMetadata(
      transport.url,
      resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl },
      fetch
    )
  )
  // Older servers have no metadata and are their own authorization server.
  const metadata: OAuthProtectedResourceMetadata | undefined = yield* resourceMetadataUrl === undefined
    ? Effect.orElseSucceed(reading, () => undefined)
    : reading
  const own = resourceUrlFromServerUrl(transport.url)
  if (
    metadata !== undefined &&
    !checkResourceAllowed({ requestedResource: own, configuredResource: metadata.resource })
  )
    return yield* fault(`The server's metadata is of another resource, ${metadata.resource}`)
  const address = metadata?.authorization_servers?.[0] ?? new URL("/", own).href
  const found = yield* asking(transport, `The authorization server ${address} could not be used`, (fetch) =>
    discoverAuthorizationServerMetadata(address, { fetchFn: fetch })
  )
  if (found === undefined)
    return yield* fault(
      `Nothing at ${address} says how tokens are had there: no authorization server metadata`
    )
  return {
    server: yield* checkedServer(address, found),
    resource: metadata?.resource ?? own.href,
    scope: scopeOf({ authorization, challenged: scope, found, metadata, wantedScopes })
  }
})

const decodeServer = Schema.decodeUnknownEffect(AuthorizationServer)

const checkedServer = Effect.fnUntraced(function* (address: string, found: AuthorizationServerMetadata) {
  const methods = found.code_challenge_methods_supported ?? []
  if (!methods.includes("S256"))
    return yield* fault(
      `The authorization server ${address} does not offer PKCE with S256, which is required`
    )
  const server = yield* Effect.mapError(decodeServer(found), ({ message }) =>
    fault(`The metadata of ${address} cannot be used: ${message}`)
  )
  const insecure = [
    server.authorization_endpoint,
    server.token_endpoint,
    server.registration_endpoint,
    server.revocation_endpoint
  ].find((endpoint) => endpoint !== undefined && !isSecureAddress(endpoint))
  return insecure === undefined
    ? server
    : yield* fault(`The endpoint ${insecure} of ${address} is not reached over https`)
})

/** The scopes of the definition, else of the challenge or the metadata; adds offline access when that is a scope. */
const scopeOf = (from: {
  readonly authorization: OAuthAuthorization
  readonly challenged: string | undefined
  readonly found: AuthorizationServerMetadata
  readonly metadata: OAuthProtectedResourceMetadata | undefined
  readonly wantedScopes: string | undefined
}): string | undefined => {
  const defined = from.authorization.scopes?.join(" ")
  if (defined !== undefined && defined !== "") return computeScopeUnion(defined, from.wantedScopes)
  const asked = from.challenged ?? from.metadata?.scopes_supported?.join(" ")
  const offline =
    from.found.scopes_supported?.includes("offline_access") === true ? "offline_access" : undefined
  return computeScopeUnion(asked, from.wantedScopes, offline)
}

/** This program's client metadata for an authorization server. */
export const clientMetadata = (origin: string, redirectUri: string, authMethod = "none") => ({
  client_name: "Tropism",
  client_uri: origin,
  redirect_uris: [redirectUri],
  grant_types: ["authorization_code", "refresh_token"],
  response_types: ["code"],
  token_endpoint_auth_method: authMethod,
  application_type: redirectUri.startsWith("https:") ? "web" : "native"
})

/** Registers this program with an authorization server (RFC 7591). */
export const register = Effect.fn("OAuth.register")(function* (
  transport: HttpTransport,
  { scope, server }: Discovered,
  origin: string,
  redirectUri: string
): Effect.fn.Return<OAuthClient, SignInFault> {
  if (server.registration_endpoint === undefined)
    return yield* fault(
      `The authorization server ${server.issuer} registers no clients: register Tropism there with the redirect address ${redirectUri}, and name its clientId in the definition's authorization`
    )
  // PKCE protects a client without a secret too; some servers register no such client.
  const methods = server.token_endpoint_auth_methods_supported ?? ["none"]
  const authMethod =
    ["none", "client_secret_basic"].find((each) => methods.includes(each)) ?? "client_secret_post"
  const made = yield* asking(
    transport,
    `The authorization server ${server.issuer} did not register Tropism`,
    (fetch) =>
      registerClient(server.issuer, {
        metadata: server,
        clientMetadata: clientMetadata(origin, redirectUri, authMethod),
        ...(scope === undefined ? {} : { scope }),
        fetchFn: fetch
      })
  )
  return yield* Effect.mapError(Schema.decodeUnknownEffect(OAuthClient)(made), ({ message }) =>
    fault(message)
  )
})

/** Returns the address for the person's consent, and the PKCE verifier. */
export const authorizationUrl = (
  { resource, scope, server }: Discovered,
  client: OAuthClient,
  state: string,
  redirectUri: string
) =>
  Effect.tryPromise({
    try: () =>
      startAuthorization(server.issuer, {
        metadata: server,
        clientInformation: client,
        redirectUrl: redirectUri,
        state,
        resource,
        ...(scope === undefined ? {} : { scope })
      }),
    catch: (error) => toFault(`The authorization server ${server.issuer} cannot be used`, error)
  })

/** Refuses an answer from another authorization server (RFC 9207). */
export const checkIssuer = (server: AuthorizationServer, iss: string | undefined) =>
  Effect.try({
    try: () =>
      validateAuthorizationResponseIssuer({
        iss,
        expectedIssuer: server.issuer,
        issParameterSupported: server.authorization_response_iss_parameter_supported === true
      }),
    // The text of such an answer is not shown.
    catch: () => fault("The answer is not of the authorization server that was asked", true)
  })

/** Tokens as they were issued. */
export interface Given {
  readonly accessToken: string
  readonly refreshToken?: string
  readonly scopes: string | null
  readonly expiresInSeconds: number | null
}

const givenOf = Effect.fnUntraced(function* (
  { access_token, expires_in, refresh_token, scope, token_type }: OAuthTokens,
  asked: string | undefined
): Effect.fn.Return<Given, SignInFault> {
  if (token_type.toLowerCase() !== "bearer")
    return yield* fault(
      `The authorization server gave a token of the type ${token_type}, and only bearer tokens can be used`
    )
  // Only these characters are valid in a header and in a token.
  if (![access_token, refresh_token ?? "-"].every((token) => tokenPattern.test(token)))
    return yield* fault("The authorization server gave a token that no header can hold")
  return {
    accessToken: access_token,
    ...(refresh_token === undefined ? {} : { refreshToken: refresh_token }),
    scopes: scope ?? asked ?? null,
    expiresInSeconds: expires_in === undefined ? null : Math.max(0, Math.min(expires_in, 31_536_000))
  }
})

const tokenPattern = new RegExp(`^[\\x21-\\x7e]{1,${externalLimits.oauthTokenMaxChars}}$`)

/** Exchanges a code for tokens. */
export const exchange = Effect.fn("OAuth.exchange")(function* (
  transport: HttpTransport,
  { resource, scope, server }: Discovered,
  client: OAuthClient,
  shown: {
    readonly code: string
    readonly iss: string | undefined
    readonly verifier: string
    readonly redirectUri: string
  }
) {
  const tokens = yield* asking(
    transport,
    `The authorization server ${server.issuer} gave no token`,
    (fetch) =>
      exchangeAuthorization(server.issuer, {
        metadata: server,
        clientInformation: client,
        authorizationCode: shown.code,
        codeVerifier: shown.verifier,
        redirectUri: shown.redirectUri,
        resource,
        fetchFn: fetch,
        ...(shown.iss === undefined ? {} : { iss: shown.iss })
      })
  )
  return yield* givenOf(tokens, scope)
})

/** Exchanges a refresh token for new tokens; keeps the refresh token when none is issued. */
export const renew = Effect.fn("OAuth.renew")(function* (
  transport: HttpTransport,
  { resource, server }: Pick<Discovered, "resource" | "server">,
  client: OAuthClient,
  refreshToken: string
) {
  const tokens = yield* asking(
    transport,
    `The authorization server ${server.issuer} did not renew the token`,
    (fetch) =>
      refreshAuthorization(server.issuer, {
        metadata: server,
        clientInformation: client,
        refreshToken,
        resource,
        fetchFn: fetch
      })
  )
  return yield* givenOf(tokens, undefined)
})

/** Revokes a token at its authorization server (RFC 7009); ignores the answer. */
export const revoke = Effect.fn("OAuth.revoke")(function* (
  transport: HttpTransport,
  server: AuthorizationServer,
  client: OAuthClient,
  token: string
) {
  const endpoint = server.revocation_endpoint
  if (endpoint === undefined) return
  const body = new URLSearchParams({ token, client_id: client.client_id })
  const isBasic =
    client.client_secret !== undefined && client.token_endpoint_auth_method !== "client_secret_post"
  if (client.client_secret !== undefined && !isBasic) body.set("client_secret", client.client_secret)
  const basic = Buffer.from(`${client.client_id}:${client.client_secret ?? ""}`).toString("base64")
  yield* asking(transport, "The token could not be revoked", (fetch) =>
    fetch(endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(isBasic ? { authorization: `Basic ${basic}` } : {})
      },
      body
    }).then((response) => response.body?.cancel())
  )
})
