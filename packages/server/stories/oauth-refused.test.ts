/**
 * What a sign-in to a foreign server is refused for: by role, by state, by issuer, by resource, by address.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { outcomesOf } from "../testing/mcp-runs.ts"
import {
  authorizationServer,
  guardedServer,
  linkTo,
  newBrowser,
  newGuardedShop,
  signIn
} from "../testing/oauth-words.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

const addressOf = (server: Json) => `/mcp-servers/${server.id}/sign-in`

/** A member with a token, and what lets a browser in as them. */
const newMember = Effect.fnUntraced(function* (story: Story, userId: string, role: string) {
  yield* story.post("/members", { userId, role })
  const { token } = yield* story.post("/tokens", { name: userId, userId, role })
  const { url } = yield* story.post(`/members/${userId}/login-link`)
  const answer = yield* story.send("GET", url.slice(story.url.length), undefined, { authorization: "" })
  const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1)
  return { token: String(token), cookie }
})

/** Asks for a link, which a story expects to be refused. */
const refusal = (story: Story, server: Json) =>
  Effect.map(story.ask("POST", addressOf(server), {}), ({ body, status }) => ({
    status,
    detail: body.detail
  }))

const stateOf = (story: Story, server: Json) =>
  Effect.map(story.get(`/mcp-servers/${server.id}`), ({ signIn }) => signIn.status)

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A sign-in for every run", () => {
    it.effect("is for admins: nobody else gets a link, or signs out", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { server } = yield* newGuardedShop(story)
        const { token } = yield* newMember(story, "eve", "editor")
        for (const method of ["POST", "DELETE"]) {
          const path = `/api/projects/${story.projectId}${addressOf(server)}`
          const answer = yield* story.send(method, path, method === "POST" ? {} : undefined, {
            authorization: `Bearer ${token}`
          })
          expect(answer.status).toBe(403)
        }
        expect(yield* stateOf(story, server)).toBe("signedIn")
      })
    )

    it.effect("is refused for a program, and for a definition that holds what is wrong beside it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const authorization = { type: "oauth" }
        const url = "https://shop.example/mcp"
        const header = { Authorization: { secret: "TROPISM_SECRET_SHOP" } }
        const wrong = [
          [{ transport: { type: "stdio", command: "/nowhere" }, authorization }, "/authorization"],
          [{ transport: { type: "http", url, headers: header }, authorization }, "/transport/headers"],
          [{ transport: { type: "http", url: "http://shop.example/mcp" }, authorization }, "/transport/url"],
          [
            {
              transport: { type: "http", url },
              authorization: { ...authorization, clientSecret: { secret: "TROPISM_SECRET_SHOP" } }
            },
            "/authorization/clientSecret"
          ]
        ] as const
        for (const [definition, pointer] of wrong) {
          const answer = yield* story.ask("POST", "/mcp-servers", { name: "shop", ...definition })
          expect([answer.status, answer.body.errors?.[0]?.pointer ?? answer.body.pointer]).toEqual([
            422,
            pointer
          ])
        }
        const program = yield* story.post("/mcp-servers", {
          name: "program",
          transport: { type: "stdio", command: "/nowhere" },
          enabled: false
        })
        expect(yield* refusal(story, program)).toMatchObject({ status: 409 })
      })
    )
  })

  describe("A state", () => {
    it.effect("that nobody made, that was replaced by a newer link, and that is too old lets nobody in", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { server } = yield* newGuardedShop(story, { isSignedIn: false })
        const browser = newBrowser()
        const made = yield* browser.open(
          `${story.url}/oauth/callback?state=${story.projectId}.made-up&code=some-code`
        )
        expect(made.status).toBe(400)
        const replaced = yield* browser.open(yield* linkTo(story, server))
        const old = yield* browser.open(yield* linkTo(story, server))
        expect((yield* browser.press(replaced)).status).toBe(400)
        yield* ask(
          story.access,
          `update kb.mcp_sign_ins set expires_at = now() - interval '1 second' where project_id = '${story.projectId}'`
        )
        expect((yield* browser.press(old)).status).toBe(400)
        expect(yield* stateOf(story, server)).toBe("signedOut")
      })
    )

    it.effect("of one person is refused in the browser of another, and is of no more use then", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { identity, server } = yield* newGuardedShop(story, { isSignedIn: false })
        const { cookie } = yield* newMember(story, "eve", "admin")
        const eve = newBrowser({ [story.url]: cookie })
        const page = yield* eve.open(yield* linkTo(story, server))
        expect(page).toMatchObject({ status: 400, text: expect.stringContaining("eve") })
        expect(identity.tokenRequests).toEqual([])
        expect((yield* newBrowser().press(page)).status).toBe(400)
        expect(yield* stateOf(story, server)).toBe("signedOut")
      })
    )

    it.effect("is of no use once the token that asked has ended, where its person is no member", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { identity, server } = yield* newGuardedShop(story, { isSignedIn: false })
        const { body: operator } = yield* story.send("POST", "/api/tokens", {
          name: "operator",
          userId: "olga",
          role: "admin"
        })
        const linkOfOlga = Effect.map(
          story.send(
            "POST",
            `/api/projects/${story.projectId}${addressOf(server)}`,
            {},
            { authorization: `Bearer ${operator.token}` }
          ),
          ({ body }) => String(body.url)
        )
        const browser = newBrowser()
        expect((yield* browser.press(yield* browser.open(yield* linkOfOlga))).status).toBe(200)
        expect(yield* stateOf(story, server)).toBe("signedIn")
        yield* story.delete(addressOf(server))
        const requests = identity.tokenRequests.length
        const asked = yield* browser.open(yield* linkOfOlga)
        expect((yield* story.send("DELETE", `/api/tokens/${operator.id}`)).status).toBe(204)
        expect(yield* browser.press(asked)).toMatchObject({
          status: 400,
          text: expect.stringContaining("olga")
        })
        expect(identity.tokenRequests).toHaveLength(requests)
        expect(yield* stateOf(story, server)).toBe("signedOut")
      })
    )

    it.effect("is of no use to who is no admin any more, nor where members sign in by then", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { identity, server } = yield* newGuardedShop(story, { isSignedIn: false })
        const { token } = yield* newMember(story, "ann", "admin")
        yield* newMember(story, "bea", "admin")
        const linkOfAnn = Effect.map(
          story.send(
            "POST",
            `/api/projects/${story.projectId}${addressOf(server)}`,
            {},
            {
              authorization: `Bearer ${token}`
            }
          ),
          ({ body }) => String(body.url)
        )
        const browser = newBrowser()
        const asked = yield* browser.open(yield* linkOfAnn)
        yield* story.patch("/members/ann", { role: "editor" })
        expect(yield* browser.press(asked)).toMatchObject({
          status: 400,
          text: expect.stringContaining("ann")
        })
        yield* story.patch("/members/ann", { role: "admin" })
        const again = yield* browser.open(yield* linkOfAnn)
        yield* story.patch(`/mcp-servers/${server.id}`, { authorization: { type: "oauth", per: "member" } })
        expect((yield* browser.press(again)).status).toBe(400)
        expect(identity.tokenRequests).toEqual([])
        yield* story.patch(`/mcp-servers/${server.id}`, { authorization: null })
        expect((yield* browser.press(yield* browser.open(yield* linkOfAnn))).status).toBe(200)
        expect(yield* stateOf(story, server)).toBe("signedIn")
      })
    )

    it.effect(
      "comes back to the browser of whoever asked without a question, and to no page of another site",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { server } = yield* newGuardedShop(story, { isSignedIn: false })
          const { cookie, token } = yield* newMember(story, "ann", "admin")
          const link = yield* story.send(
            "POST",
            `/api/projects/${story.projectId}${addressOf(server)}`,
            {},
            { authorization: `Bearer ${token}` }
          )
          const stranger = newBrowser()
          const asked = yield* stranger.open(link.body.url)
          const forged = yield* story.send("POST", asked.url.slice(story.url.length), undefined, {
            authorization: "",
            origin: "https://elsewhere.example"
          })
          expect(forged.status).toBe(403)
          const again = yield* story.send(
            "POST",
            `/api/projects/${story.projectId}${addressOf(server)}`,
            {},
            { authorization: `Bearer ${token}` }
          )
          const page = yield* newBrowser({ [story.url]: cookie }).open(again.body.url)
          expect(page).toMatchObject({ status: 200, text: expect.stringContaining("Signed in to shop") })
          expect((yield* story.get(`/mcp-servers/${server.id}`)).signIn).toMatchObject({ signedInBy: "ann" })
        })
    )

    it.effect("of a person who said no at the authorization server signs nobody in", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { identity, server } = yield* newGuardedShop(story, { isSignedIn: false })
        identity.habits.agrees = false
        expect(yield* newBrowser().open(yield* linkTo(story, server))).toMatchObject({
          status: 400,
          text: expect.stringContaining("access_denied")
        })
        expect(yield* stateOf(story, server)).toBe("signedOut")
      })
    )

    it.effect(
      "that comes back from another issuer than the one that was asked is refused, and its words are not shown",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { identity, server } = yield* newGuardedShop(story, { isSignedIn: false })
          const link = new URL(yield* linkTo(story, server))
          const state = link.searchParams.get("state")
          const forged = `${story.url}/oauth/callback?state=${state}&iss=https%3A%2F%2Fevil.example&error=Pay-at-evil.example`
          const page = yield* newBrowser().open(forged)
          expect(page.status).toBe(400)
          expect(page.text).not.toContain("evil.example")
          expect(identity.tokenRequests).toEqual([])
        })
    )
  })

  describe("An authorization server", () => {
    it.effect("that a server names for another resource than itself is not asked", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { server } = yield* newGuardedShop(story, {
          isSignedIn: false,
          metadata: { resource: "https://bank.example/mcp" }
        })
        expect(yield* refusal(story, server)).toEqual({
          status: 409,
          detail: expect.stringContaining("https://bank.example/mcp")
        })
      })
    )

    it.effect("that says it is another, or that offers no PKCE, is not used", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const odd: { metadata: Json } = { metadata: {} }
        const listener = yield* Effect.acquireRelease(
          Effect.sync(() =>
            Bun.serve({
              port: 0,
              hostname: "127.0.0.1",
              fetch: () => Response.json(odd.metadata)
            })
          ),
          (running) => Effect.promise(() => running.stop(true))
        )
        const issuer = `http://127.0.0.1:${listener.port}`
        const guarded = yield* guardedServer({ issuer, accountOf: () => Promise.resolve(undefined) })
        const server = yield* story.post("/mcp-servers", {
          name: "shop",
          transport: { type: "http", url: guarded.url }
        })
        const whole = {
          issuer,
          authorization_endpoint: `${issuer}/auth`,
          token_endpoint: `${issuer}/token`,
          registration_endpoint: `${issuer}/register`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"]
        }
        for (const [change, told] of [
          [{ issuer: "https://other.example" }, "https://other.example"],
          [{ code_challenge_methods_supported: ["plain"] }, "PKCE"],
          [{ code_challenge_methods_supported: undefined }, "PKCE"],
          [{ token_endpoint: "http://tokens.example/token" }, "not reached over https"],
          [{ registration_endpoint: undefined }, "clientId"]
        ] as const) {
          odd.metadata = { ...whole, ...change }
          expect(yield* refusal(story, server)).toEqual({
            status: 409,
            detail: expect.stringContaining(told)
          })
        }
        odd.metadata = { padding: "x".repeat(300_000) }
        expect(yield* refusal(story, server)).toEqual({
          status: 409,
          detail: expect.stringContaining("longer than 262144 bytes")
        })
      })
    )

    it.effect("whose token is for another resource lets nobody in", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const identity = yield* authorizationServer()
        // A server that takes tokens of its own alone, as the specification demands.
        const guarded = yield* guardedServer({
          issuer: identity.issuer,
          accountOf: (token) => identity.accountOf(token, "https://elsewhere.example/mcp")
        })
        const server = yield* story.post("/mcp-servers", {
          name: "shop",
          transport: { type: "http", url: guarded.url },
          authorization: { type: "oauth" },
          allowedTools: ["*"]
        })
        yield* signIn(story, server)
        expect((yield* story.get(`/mcp-servers/${server.id}`)).lastError).toMatch(/token of the sign-in/)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "refused" }])
      })
    )
  })
})
