/**
 * A real authorization server (`oidc-provider`) before a real MCP server, and a browser that follows its pages.
 */
import { appendFileSync } from "node:fs"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { createMcpHandler } from "@modelcontextprotocol/server"
import { Effect, type Scope } from "effect"
import OidcProvider from "oidc-provider"
import { makeStoryServer } from "./mcp-tools.ts"
import { type Diary, newDiary } from "./mcp-words.ts"
import type { Json, Story } from "./platform.ts"

/** What a story says of the authorization server, while it runs. */
export interface Habits {
  /** Who agrees at the authorization server. */
  account: string
  /** How long an access token lasts. */
  accessTokenSeconds: number
  /** What the person does who is asked. */
  agrees: boolean
  /** Holds the answers of the token endpoint back, after they are made. */
  hold: Promise<void> | undefined
  /** Answers in place of the token endpoint, once the promise is kept; undefined lets it answer itself. */
  instead: ((body: URLSearchParams) => Instead | Promise<Instead>) | undefined
}

type Instead = { readonly status: number; readonly body: object } | undefined

/** One request at the token endpoint, and what it was answered. */
export interface TokenRequest {
  readonly grant: string
  readonly body: URLSearchParams
  readonly authorization: string | undefined
  status: number | undefined
}

export interface AuthorizationServer {
  readonly issuer: string
  readonly habits: Habits
  readonly tokenRequests: ReadonlyArray<TokenRequest>
  readonly of: (grant: string) => ReadonlyArray<TokenRequest>
  readonly registered: () => number
  readonly provider: OidcProvider
  /** The tokens that a resource would take, by their account. */
  readonly accountOf: (token: string, resource: string) => Promise<string | undefined>
  /** Revokes all that was given so far. */
  readonly revokeAll: Effect.Effect<void>
}

const scopes = ["openid", "offline_access", "words:read"]

/** Starts an authorization server, until the scope ends. */
export const authorizationServer = (
  more: {
    readonly clients?: ReadonlyArray<Json>
    readonly registration?: boolean
    /** Access tokens are JWTs for this audience, whatever the resource. */
    readonly jwtAudience?: string
  } = {}
): Effect.Effect<AuthorizationServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const habits: Habits = {
      account: "ada@idp",
      accessTokenSeconds: 3_600,
      agrees: true,
      hold: undefined,
      instead: undefined
    }
    const listening = yield* Effect.acquireRelease(
      Effect.promise(
        () =>
          new Promise<ReturnType<typeof createServer>>((resolve) => {
            const server = createServer()
            server.listen(0, "127.0.0.1", () => resolve(server))
          })
      ),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    )
    const issuer = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`
    const provider = providerAt(issuer, habits, more)
    const tokenRequests: Array<TokenRequest> = []
    const grants = new Set<string>()
    let registered = 0
    provider.on("registration_create.success", () => (registered += 1))
    provider.on("grant.success", (context) => grants.add((context as Json).oidc.entities.Grant.jti))
    const inner = provider.callback()
    listening.on("request", (request: IncomingMessage, response: ServerResponse) => {
      const path = request.url ?? "/"
      if (path.startsWith("/interaction/")) void interact(provider, habits, request, response)
      else if (path === "/token") void atToken({ habits, inner, request, response, tokenRequests })
      else void inner(request, response)
    })
    return {
      issuer,
      habits,
      tokenRequests,
      provider,
      of: (grant) => tokenRequests.filter((one) => one.grant === grant),
      registered: () => registered,
      accountOf: (token, resource) =>
        provider.AccessToken.find(token).then((found) =>
          found !== undefined && !found.isExpired && [found.aud].flat().includes(resource)
            ? found.accountId
            : undefined
        ),
      revokeAll: Effect.promise(() =>
        Promise.all(
          [...grants].map((id) =>
            provider.RefreshToken.revokeByGrantId(id)
              .then(() => provider.Grant.find(id))
              .then((grant) => grant?.destroy())
          )
        ).then(() => undefined)
      )
    }
  })

const providerAt = (
  issuer: string,
  habits: Habits,
  { clients = [], jwtAudience, registration = true }: NonNullable<Parameters<typeof authorizationServer>[0]>
) =>
  new OidcProvider(issuer, {
    clients,
    scopes,
    clientDefaults: { application_type: "native" },
    cookies: { keys: ["a-story"] },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
    ttl: { AccessToken: () => habits.accessTokenSeconds },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: registration },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, resource: string) => ({
          scope: "words:read",
          audience: jwtAudience ?? resource,
          accessTokenFormat: jwtAudience === undefined ? "opaque" : "jwt",
          accessTokenTTL: habits.accessTokenSeconds
        })
      }
    }
  })

/** A person who signs in and agrees at once, or does not. */
const interact = (
  provider: OidcProvider,
  habits: Habits,
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> =>
  provider.interactionDetails(request, response).then(({ params, prompt, session }) => {
    if (!habits.agrees)
      return provider.interactionFinished(request, response, {
        error: "access_denied",
        error_description: "The person said no"
      })
    if (prompt.name === "login")
      return provider.interactionFinished(request, response, { login: { accountId: habits.account } })
    const grant = new provider.Grant({
      accountId: session?.accountId ?? habits.account,
      clientId: params["client_id"] ?? ""
    })
    grant.addOIDCScope("openid offline_access words:read")
    grant.addResourceScope(params["resource"] ?? "", "words:read")
    return grant
      .save()
      .then((grantId) =>
        provider.interactionFinished(
          request,
          response,
          { consent: { grantId } },
          { mergeWithLastSubmission: true }
        )
      )
  })

/** The token endpoint, which a story may hold back, or answer itself. */
const atToken = ({
  habits,
  inner,
  request,
  response,
  tokenRequests
}: {
  readonly habits: Habits
  readonly inner: ReturnType<OidcProvider["callback"]>
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly tokenRequests: Array<TokenRequest>
}): Promise<void> => {
  const chunks: Array<Buffer> = []
  return new Promise<void>((resolve) => {
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => resolve())
  }).then(() => {
    const body = new URLSearchParams(Buffer.concat(chunks).toString())
    const one: TokenRequest = {
      grant: body.get("grant_type") ?? "",
      body,
      authorization: request.headers.authorization,
      status: undefined
    }
    tokenRequests.push(one)
    return Promise.resolve(habits.instead?.(body)).then((instead) => {
      if (instead === undefined) return answeredBy(inner, habits, request, response, one)
      one.status = instead.status
      response.writeHead(instead.status, { "content-type": "application/json" })
      response.end(JSON.stringify(instead.body))
      return undefined
    })
  })
}

/** The provider's own answer, held back where the story says so. */
const answeredBy = (
  inner: ReturnType<OidcProvider["callback"]>,
  habits: Habits,
  request: IncomingMessage,
  response: ServerResponse,
  one: TokenRequest
): Promise<void> => {
  // The provider takes a body that is parsed already.
  Object.assign(request, { body: Object.fromEntries(one.body) })
  const end = response.end.bind(response)
  const held = (...args: Parameters<typeof end>) => {
    one.status = response.statusCode
    void (habits.hold ?? Promise.resolve()).then(() => end(...args))
    return response
  }
  Object.assign(response, { end: held })
  return inner(request, response)
}

/** One request that the guarded server has got. */
export interface GuardedRequest {
  readonly path: string
  readonly method: string | undefined
  readonly token: string | undefined
  /** Whose token it was; undefined where it was none that counts. */
  readonly account: string | undefined
}

export interface GuardedServer {
  readonly url: string
  readonly diary: Diary
  readonly heard: ReadonlyArray<GuardedRequest>
  /** The accounts under which a tool was called. */
  readonly callers: () => ReadonlyArray<string | undefined>
}

/** What a story makes of a request before the server looks at it. */
export type Doorkeeper = (request: Request, body: Json) => Response | undefined

/** An MCP server that wants a token of an authorization server, until the scope ends. */
export const guardedServer = (
  identity: Pick<AuthorizationServer, "issuer" | "accountOf">,
  {
    before,
    metadata = {}
  }: { readonly before?: Doorkeeper; readonly metadata?: Record<string, unknown> } = {}
): Effect.Effect<GuardedServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const diary = yield* newDiary
    const heard: Array<GuardedRequest> = []
    const handler = createMcpHandler(
      () =>
        makeStoryServer({
          note: (line) => appendFileSync(diary.calls, `${JSON.stringify(line)}\n`),
          overlay: diary.overlay,
          gate: diary.gate,
          secret: "nothing"
        }),
      {}
    )
    const answer = (request: Request): Promise<Response> | Response => {
      const { origin, pathname } = new URL(request.url)
      const resource = `${origin}/mcp`
      if (pathname === "/.well-known/oauth-protected-resource/mcp")
        return Response.json({
          resource,
          authorization_servers: [identity.issuer],
          scopes_supported: ["words:read"],
          ...metadata
        })
      if (pathname !== "/mcp") return new Response("Nothing here", { status: 404 })
      const token = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1]
      const known = token === undefined ? Promise.resolve(undefined) : identity.accountOf(token, resource)
      return Promise.all([known, request.clone().text()]).then(([account, text]) => {
        const body = text === "" ? null : JSON.parse(text)
        heard.push({ path: pathname, method: body?.method, token, account })
        const early = before?.(request, body)
        if (early !== undefined) return early
        if (account === undefined)
          return new Response("Who are you?", {
            status: 401,
            headers: {
              "www-authenticate": `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp", scope="words:read"`
            }
          })
        return handler.fetch(request)
      })
    }
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: answer })),
      (running) => Effect.promise(() => running.stop(true))
    )
    return {
      url: `http://127.0.0.1:${server.port}/mcp`,
      diary,
      heard,
      callers: () => heard.filter(({ method }) => method === "tools/call").map(({ account }) => account)
    }
  })

/** Where a browser has come to. */
export interface Page {
  readonly url: string
  readonly status: number
  readonly text: string
}

/** A browser with cookies of its own. */
export const newBrowser = (cookies: Record<string, string> = {}) => {
  const jar = new Map<string, Map<string, string>>()
  for (const [origin, cookie] of Object.entries(cookies)) {
    const at = cookie.indexOf("=")
    jar.set(origin, new Map([[cookie.slice(0, at), cookie.slice(at + 1)]]))
  }
  const send = (address: string, method: string): Promise<Response> => {
    const { origin } = new URL(address)
    const kept = jar.get(origin) ?? new Map<string, string>()
    jar.set(origin, kept)
    return fetch(address, {
      method,
      redirect: "manual",
      headers: {
        accept: "text/html",
        cookie: [...kept].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(method === "POST" ? { origin, "content-length": "0" } : {})
      }
    }).then((response) => {
      for (const line of response.headers.getSetCookie()) {
        const [pair = ""] = line.split(";", 1)
        kept.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1))
      }
      return response
    })
  }
  const follow = (address: string, method = "GET", hops = 20): Promise<Page> =>
    send(address, method).then((response) => {
      const location = response.headers.get("location")
      if (location !== null && response.status >= 300 && response.status < 400 && hops > 0)
        return follow(new URL(location, address).href, "GET", hops - 1)
      return response.text().then((text) => ({ url: address, status: response.status, text }))
    })
  return {
    /** Follows a link, through every redirect. */
    open: (address: string) => Effect.promise(() => follow(address)),
    /** Presses the button of the page that asks. */
    press: (page: Page) => Effect.promise(() => follow(page.url, "POST"))
  }
}

/** Asks for the link. */
export const linkTo = (story: Story, server: Json): Effect.Effect<string> =>
  Effect.map(story.post(`/mcp-servers/${server.id}/sign-in`), ({ url }) => url)

/** Signs in to a server as a person does: by the link, and by the button of the page that asks. */
export const signIn = (story: Story, server: Json): Effect.Effect<Page> =>
  Effect.gen(function* () {
    const browser = newBrowser()
    const page = yield* browser.open(yield* linkTo(story, server))
    return yield* browser.press(page)
  })

/** A project with a server that wants OAuth, signed in to unless something else is said. */
export const newGuardedShop = Effect.fnUntraced(function* (
  story: Story,
  {
    definition = {},
    isSignedIn = true,
    ...more
  }: {
    readonly definition?: Record<string, unknown>
    readonly isSignedIn?: boolean
  } & Parameters<typeof authorizationServer>[0] &
    Parameters<typeof guardedServer>[1] = {}
) {
  const identity = yield* authorizationServer(more)
  const guarded = yield* guardedServer(identity, more)
  const server = yield* story.post("/mcp-servers", {
    name: "shop",
    transport: { type: "http", url: guarded.url },
    authorization: { type: "oauth" },
    allowedTools: ["*"],
    ...definition
  })
  if (isSignedIn) yield* signIn(story, server)
  return { identity, guarded, server }
})
