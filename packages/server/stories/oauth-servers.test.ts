/**
 * Foreign servers that want OAuth: signed in to by a link, called with tokens that are renewed, signed out with a reason.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import { outcomesOf, runOf } from "../testing/mcp-runs.ts"
import { guardedServer, linkTo, newBrowser, newGuardedShop, signIn } from "../testing/oauth-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

/** Lets the access token of every sign-in of a project be over. */
const endAccess = (story: Parameters<typeof linkTo>[0]) =>
  ask(
    story.access,
    `update kb.mcp_grants set expires_at = now() - interval '1 second' where project_id = '${story.projectId}'`
  )

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A server that wants OAuth", () => {
    it.effect("is added, signed in to by the link, and called by a run", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { guarded, identity, server } = yield* newGuardedShop(story, { isSignedIn: false })
        expect(server).toMatchObject({
          tools: [],
          lastError: expect.stringMatching(/^Signed out: sign in first/),
          signIn: { per: "server", status: "signedOut", signedInBy: null }
        })
        const page = yield* signIn(story, server)
        expect(page).toMatchObject({ status: 200, text: expect.stringContaining("Signed in to shop") })
        const signed = yield* story.get(`/mcp-servers/${server.id}`)
        expect(signed.signIn).toMatchObject({
          per: "server",
          status: "signedIn",
          issuer: identity.issuer,
          scopes: expect.stringContaining("words:read"),
          signedInBy: "admin",
          signedInAt: expect.any(String),
          expiresAt: expect.any(String)
        })
        expect(signed.lastError).toBe(null)
        expect(signed.tools.length).toBeGreaterThan(3)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        expect(guarded.callers()).toEqual(["ada@idp"])
      })
    )

    it.effect("is asked for with PKCE, for its own resource, by a client that was registered once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { guarded, identity, server } = yield* newGuardedShop(story)
        const link = new URL(yield* linkTo(story, server))
        expect(Object.fromEntries(link.searchParams)).toMatchObject({
          response_type: "code",
          code_challenge_method: "S256",
          resource: guarded.url,
          redirect_uri: `${story.url}/oauth/callback`,
          scope: expect.stringContaining("words:read")
        })
        expect(identity.registered()).toBe(1)
        const [exchange] = identity.of("authorization_code")
        expect(exchange?.body.get("resource")).toBe(guarded.url)
        expect(exchange?.body.get("code_verifier")?.length).toBeGreaterThan(42)
      })
    )

    it.effect("is signed in to without a word in its definition, where its challenge says how", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { server } = yield* newGuardedShop(story, {
          definition: { authorization: null },
          isSignedIn: false
        })
        expect(server).toMatchObject({
          lastError: expect.stringMatching(/^Signed out: sign in first.*401/),
          signIn: { status: "signedOut" }
        })
        yield* signIn(story, server)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
      })
    )

    it.effect("is signed in to as a client that its authorization server knows", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { identity } = yield* newGuardedShop(story, {
          registration: false,
          clients: [
            {
              client_id: "tropism-known",
              token_endpoint_auth_method: "none",
              grant_types: ["authorization_code", "refresh_token"],
              redirect_uris: [`${story.url}/oauth/callback`]
            }
          ],
          definition: { authorization: { type: "oauth", clientId: "tropism-known", scopes: ["words:read"] } }
        })
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        expect(identity.of("authorization_code")[0]?.body.get("client_id")).toBe("tropism-known")
      })
    )

    it.effect(
      "gets a token that was renewed when the one before is over, and the new refresh token next time",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { guarded, identity } = yield* newGuardedShop(story)
          yield* outcomesOf(story, [lookUp])
          yield* endAccess(story)
          expect(yield* outcomesOf(story, [lookUp], { name: "second" })).toMatchObject([
            { status: "completed" }
          ])
          yield* endAccess(story)
          expect(yield* outcomesOf(story, [lookUp], { name: "third" })).toMatchObject([
            { status: "completed" }
          ])
          const renewals = identity.of("refresh_token")
          expect(renewals.map(({ status }) => status)).toEqual([200, 200])
          expect(new Set(renewals.map(({ body }) => body.get("refresh_token"))).size).toBe(2)
          expect(renewals[0]?.body.get("resource")).toBe(guarded.url)
          const tokens = guarded.heard
            .filter(({ method }) => method === "tools/call")
            .map(({ token }) => token)
          expect(new Set(tokens).size).toBe(3)
        })
    )

    it.effect("that refuses a token before its time gets a renewed one, and the call is made once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const refused = new Set<string>()
        const { guarded } = yield* newGuardedShop(story, {
          before: (request, body) => {
            const token = request.headers.get("authorization") ?? ""
            if (body?.method === "tools/call" && refused.size === 0) refused.add(token)
            return refused.has(token) ? new Response("Stale", { status: 401 }) : undefined
          }
        })
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        expect(yield* guarded.diary.called).toHaveLength(1)
      })
    )

    it.effect(
      "whose refresh token was revoked is signed out, says so to the run, and is signed in to again",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { guarded, identity, server } = yield* newGuardedShop(story)
          yield* identity.revokeAll
          yield* endAccess(story)
          const run = yield* runOf(story, [lookUp])
          expect(run.status).toBe("completed")
          expect(yield* callsOf(story, run)).toMatchObject([
            {
              status: "failed",
              result: {
                reason: "signedOut",
                error: expect.stringMatching(
                  /^The MCP server shop is signed out: sign in again\. .*invalid_grant/
                )
              }
            }
          ])
          expect(yield* story.get(`/mcp-servers/${server.id}`)).toMatchObject({
            lastError: expect.stringMatching(/^Signed out: sign in again/),
            signIn: { status: "signedOut", detail: expect.stringContaining("invalid_grant"), expiresAt: null }
          })
          expect(guarded.callers()).toEqual([])
          yield* signIn(story, server)
          const again = yield* story.get(`/mcp-servers/${server.id}`)
          expect(again).toMatchObject({ lastError: null, signIn: { status: "signedIn", detail: null } })
          expect(yield* outcomesOf(story, [lookUp], { name: "again" })).toMatchObject([
            { status: "completed" }
          ])
        })
    )

    it.effect(
      "whose authorization server is away keeps its sign-in, and the call says why it was not made",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { identity, server } = yield* newGuardedShop(story)
          identity.habits.instead = () => ({ status: 503, body: { error: "temporarily_unavailable" } })
          yield* endAccess(story)
          expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
            {
              status: "failed",
              result: { reason: "unavailable", error: expect.stringContaining("did not renew") }
            }
          ])
          expect((yield* story.get(`/mcp-servers/${server.id}`)).signIn.status).toBe("signedIn")
          identity.habits.instead = undefined
          expect(yield* outcomesOf(story, [lookUp], { name: "again" })).toMatchObject([
            { status: "completed" }
          ])
        })
    )

    it.effect("is signed out of: its token is revoked, and no call has one any more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { guarded, identity, server } = yield* newGuardedShop(story)
        yield* outcomesOf(story, [lookUp])
        const [{ token = "" } = {}] = guarded.heard.filter(({ method }) => method === "tools/call")
        expect((yield* story.delete(`/mcp-servers/${server.id}/sign-in`)).status).toBe(204)
        expect((yield* story.get(`/mcp-servers/${server.id}`)).signIn.status).toBe("signedOut")
        expect(yield* Effect.promise(() => identity.accountOf(token, guarded.url))).toBe(undefined)
        expect(yield* outcomesOf(story, [lookUp], { name: "after" })).toMatchObject([
          { status: "failed", result: { reason: "signedOut" } }
        ])
        expect(guarded.callers()).toHaveLength(1)
      })
    )

    it.effect("keeps its tokens sealed: neither the API nor a row has one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { guarded, identity, server } = yield* newGuardedShop(story)
        const run = yield* runOf(story, [lookUp])
        const secrets = [
          ...guarded.heard.flatMap(({ token }) => token ?? []),
          ...identity.tokenRequests.flatMap(({ body }) =>
            [...body.values()].filter((text) => text.length > 40)
          )
        ]
        expect(secrets.length).toBeGreaterThan(1)
        const texts = JSON.stringify([
          yield* story.get(`/mcp-servers/${server.id}`),
          yield* story.get(`/runs/${run.id}/events?limit=200`),
          yield* ask(story.access, "select * from kb.mcp_grants"),
          yield* ask(story.access, "select * from kb.mcp_clients"),
          yield* ask(story.access, "select * from kb.mcp_sign_ins")
        ])
        for (const secret of secrets.filter((text) => !text.startsWith("http")))
          expect(texts).not.toContain(secret)
      })
    )

    it.effect("that wants a wider token says so, and the next sign-in asks for it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { server } = yield* newGuardedShop(story, {
          before: (_, body) =>
            body?.method === "tools/call"
              ? new Response("No", {
                  status: 403,
                  headers: { "www-authenticate": 'Bearer error="insufficient_scope", scope="words:write"' }
                })
              : undefined
        })
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
          { status: "failed", result: { reason: "signedOut", error: expect.stringContaining("words:write") } }
        ])
        const link = new URL(yield* linkTo(story, server))
        expect(link.searchParams.get("scope")?.split(" ")).toEqual(
          expect.arrayContaining(["words:read", "words:write"])
        )
      })
    )

    it.effect(
      "whose authorization server reads a client's document is given its address, which says the same",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const odd: { issuer: string } = { issuer: "" }
          const fake = yield* Effect.acquireRelease(
            Effect.sync(() =>
              Bun.serve({
                port: 0,
                hostname: "127.0.0.1",
                fetch: () =>
                  Response.json({
                    issuer: odd.issuer,
                    authorization_endpoint: `${odd.issuer}/auth`,
                    token_endpoint: `${odd.issuer}/token`,
                    response_types_supported: ["code"],
                    code_challenge_methods_supported: ["S256"],
                    client_id_metadata_document_supported: true
                  })
              })
            ),
            (running) => Effect.promise(() => running.stop(true))
          )
          odd.issuer = `http://127.0.0.1:${fake.port}`
          const guarded = yield* guardedServer({
            issuer: odd.issuer,
            accountOf: () => Promise.resolve(undefined)
          })
          const server = yield* story.post("/mcp-servers", {
            name: "shop",
            transport: { type: "http", url: guarded.url }
          })
          const byHttps = { "x-forwarded-proto": "https" }
          const link = yield* story.send(
            "POST",
            `/api/projects/${story.projectId}/mcp-servers/${server.id}/sign-in`,
            {},
            byHttps
          )
          const own = story.url.replace("http:", "https:")
          const { searchParams } = new URL(link.body.url)
          expect(searchParams.get("client_id")).toBe(`${own}/oauth/client.json`)
          const document = yield* story.send("GET", "/oauth/client.json", undefined, {
            ...byHttps,
            authorization: ""
          })
          expect(document.body).toMatchObject({
            client_id: searchParams.get("client_id"),
            redirect_uris: [searchParams.get("redirect_uri")],
            token_endpoint_auth_method: "none"
          })
        })
    )
  })

  describe("A token", () => {
    it.effect("goes to no other address: another one in the definition is signed in to anew", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { identity, server } = yield* newGuardedShop(story)
        const other = yield* guardedServer(identity)
        const changed = yield* story.patch(`/mcp-servers/${server.id}`, {
          transport: { type: "http", url: other.url }
        })
        expect(changed.signIn.status).toBe("signedOut")
        yield* outcomesOf(story, [lookUp])
        expect(other.heard.filter(({ token }) => token !== undefined)).toEqual([])
      })
    )

    it.effect("is not sent on where the server redirects", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const state = { to: "" }
        const { guarded, identity } = yield* newGuardedShop(story, {
          before: (_, body) =>
            body?.method === "tools/call"
              ? new Response(null, { status: 307, headers: { location: state.to } })
              : undefined
        })
        const other = yield* guardedServer(identity)
        for (const [index, to] of [other.url, `${guarded.url}/elsewhere`].entries()) {
          state.to = to
          const [call] = yield* outcomesOf(story, [lookUp], { name: `caller-${index}` })
          expect(call).toMatchObject({
            status: "failed",
            result: { error: expect.stringContaining("redirects") }
          })
        }
        expect(other.heard).toEqual([])
        expect(guarded.heard.every(({ path }) => path === "/mcp")).toBe(true)
      })
    )
  })

  describe("A state", () => {
    it.effect("is used once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { server } = yield* newGuardedShop(story, { isSignedIn: false })
        const browser = newBrowser()
        const page = yield* browser.open(yield* linkTo(story, server))
        expect((yield* browser.press(page)).status).toBe(200)
        const again = yield* browser.press(page)
        expect(again).toMatchObject({ status: 400, text: expect.stringContaining("used already") })
      })
    )
  })
})

const secret = "s3cret-and-long-enough-for-a-client"

const withSecret = ConfigProvider.layer(
  ConfigProvider.fromEnv({ env: { PATH: process.env["PATH"] ?? "", TROPISM_SECRET_CRM: secret } })
)

layer(Layer.provide(SharedServer.own, withSecret), { excludeTestServices: true })((it) => {
  describe("A client with a secret", () => {
    it.effect(
      "shows it at the exchange and at each renewal, and its definition names the variable alone",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { identity, server } = yield* newGuardedShop(story, {
            registration: false,
            clients: [
              {
                client_id: "tropism-known",
                client_secret: secret,
                grant_types: ["authorization_code", "refresh_token"],
                redirect_uris: [`${story.url}/oauth/callback`]
              }
            ],
            definition: {
              authorization: {
                type: "oauth",
                clientId: "tropism-known",
                clientSecret: { secret: "TROPISM_SECRET_CRM" }
              }
            }
          })
          yield* endAccess(story)
          expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
          const shown = `Basic ${Buffer.from(`tropism-known:${secret}`).toString("base64")}`
          expect(identity.tokenRequests.map(({ authorization }) => authorization)).toEqual([shown, shown])
          expect(JSON.stringify(yield* story.get(`/mcp-servers/${server.id}`))).not.toContain(secret)
        })
    )
  })
})
