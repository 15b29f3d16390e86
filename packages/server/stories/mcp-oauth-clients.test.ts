/**
 * The official MCP client signs in at an authorization server that the operator trusts, and works at the MCP door as that person.
 */
import { describe, expect, it } from "@effect/vitest"
import {
  Client,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError
} from "@modelcontextprotocol/client"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { trusting } from "../testing/jwt-words.ts"
import { authorizationServer, newBrowser } from "../testing/oauth-words.ts"
import { newProject } from "../testing/platform.ts"
import { feedOf } from "../testing/story-words.ts"

/** What the client keeps of a person's sign-in. */
const newKeeper = (redirectUrl: string) => {
  let information: OAuthClientInformationMixed | undefined
  let kept: OAuthTokens | undefined
  let verifier = ""
  let discovered: OAuthDiscoveryState | undefined
  const links: Array<string> = []
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: "a story",
      scope: "openid words:read",
      redirect_uris: [redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      application_type: "native"
    },
    clientInformation: () => information,
    saveClientInformation: (saved) => void (information = saved),
    tokens: () => kept,
    saveTokens: (saved) => void (kept = saved),
    redirectToAuthorization: (url) => void links.push(url.href),
    saveCodeVerifier: (saved) => void (verifier = saved),
    codeVerifier: () => verifier,
    saveDiscoveryState: (saved) => void (discovered = saved),
    discoveryState: () => discovered
  }
  return { provider, links, tokens: () => kept }
}

describe("S003-R08 The MCP door, for a client that signs in by OAuth", () => {
  it.live("leads the official client to the authorization server, and knows the person after that", () =>
    Effect.gen(function* () {
      const identity = yield* authorizationServer({ jwtAudience: "tropism" })
      const access = yield* freshDatabase
      const doors = yield* trusting(access, {
        TROPISM_JWT_ISSUER: identity.issuer,
        TROPISM_JWT_JWKS_URL: `${identity.issuer}/jwks`
      })
      const story = yield* newProject(doors, access)
      const address = new URL(`/api/projects/${story.projectId}/mcp`, story.url)
      const { links, provider, tokens } = newKeeper(`${story.url}/signed-in`)
      const transport = () => new StreamableHTTPClientTransport(address, { authProvider: provider })
      const open = (at: StreamableHTTPClientTransport) =>
        Effect.tryPromise({
          try: () => {
            const client = new Client({ name: "a-story", version: "1" })
            return client.connect(at).then(() => client)
          },
          catch: (error) => error
        })

      const first = transport()
      expect(yield* Effect.flip(open(first))).toBeInstanceOf(UnauthorizedError)
      expect(links).toHaveLength(1)
      expect(new URL(links[0] ?? "").searchParams.get("resource")).toBe(address.href)
      const page = yield* newBrowser().open(links[0] ?? "")
      yield* Effect.promise(() => first.finishAuth(new URL(page.url).searchParams))
      expect(tokens()?.access_token).toEqual(expect.any(String))

      // Whoever is nobody's member gets in nowhere; a member works under their own name.
      expect(yield* Effect.exit(open(transport()))).toMatchObject({ _tag: "Failure" })
      yield* story.ask("POST", "/members", { userId: "ada@idp", role: "editor" })
      const client = yield* Effect.acquireRelease(open(transport()), (one) =>
        Effect.promise(() => one.close())
      )
      const { tools } = yield* Effect.promise(() => client.listTools())
      expect(tools.map(({ name }) => name)).toContain("create_object")
      yield* Effect.promise(() =>
        client.callTool({
          name: "create_object",
          arguments: { type: "Person", properties: { name: "Ada" }, reasoning: "She signed in" }
        })
      )
      expect(yield* feedOf(story, 1)).toMatchObject([{ actorType: "user", actorId: "ada@idp" }])
    }).pipe(Effect.scoped)
  )
})
