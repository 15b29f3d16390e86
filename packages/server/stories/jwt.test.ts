/**
 * JWTs of an identity provider let people in: who they are is the provider's to say, what they may do their membership's.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { UnsecuredJWT } from "jose"
import { streamLimits, tokenLimits } from "../src/http/limits.ts"
import {
  audience,
  initialize,
  issuer,
  jwtOf,
  newKey,
  type Provider,
  type ProviderKey,
  shown,
  startProvider,
  storyOf,
  trusting
} from "../testing/jwt-words.ts"
import { newConversation, talk, talker } from "../testing/conversation-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Doors, eventually, newProject, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { rawSubscriber } from "../testing/raw-subscriber.ts"
import { patientDatabase } from "../testing/shared-server.ts"
import { endedRuns, make } from "../testing/story-words.ts"

interface World {
  readonly doors: Doors
  readonly story: Story
  readonly provider: Provider
  readonly key: ProviderKey
}

/** A server that trusts a provider, with a project. */
class Trusting extends Context.Service<Trusting, World>()("@tropism/server/stories/Trusting") {
  static readonly layer = Layer.effect(
    Trusting,
    Effect.gen(function* () {
      const access = yield* patientDatabase
      const key = yield* newKey("first")
      const provider = yield* startProvider(key)
      const doors = yield* trusting(access, {
        TROPISM_JWT_JWKS_URL: provider.url,
        TROPISM_JWT_ADMIN_CLAIM: "roles=tropism-admin"
      })
      return { doors, provider, key, story: yield* newProject(doors, access) }
    })
  )
}

const as = ({ doors, key, story }: World, sub: string, claims: Record<string, unknown> = {}) =>
  Effect.map(jwtOf(key, sub, claims), (jwt) => storyOf(doors, story.access, story.projectId, jwt))

const inSeconds = (seconds: number) => Math.floor(Date.now() / 1_000) + seconds

layer(Trusting.layer)((it) => {
  describe("Requirement: a JWT says who somebody is", () => {
    it.effect("whoever is nobody's member sees no project, and is told how to be let in", () =>
      Effect.gen(function* () {
        const world = yield* Trusting
        const hers = yield* as(world, "auth0|nobody", { role: "admin", roles: ["admin"], projects: ["*"] })
        const me = yield* hers.send("GET", "/api/me")
        expect(me.body).toMatchObject({ userId: "auth0|nobody", projectIds: [], roles: {} })
        expect(me.body.advice).toContain("auth0|nobody")
        expect((yield* hers.send("GET", "/api/projects")).body.items).toEqual([])
        const refused = yield* hers.ask("GET", "/objects")
        expectProblem(refused, 404)
        expect(refused.body.detail).toBe(me.body.advice)
        expectProblem(yield* hers.send("POST", "/api/projects", { name: "Mine" }), 403)
        expectProblem(yield* hers.send("GET", "/api/tokens"), 403)
        expectProblem(yield* hers.send("GET", "/metrics"), 403)
      })
    )

    it.effect("a member has the role that the membership says, at once and at every door", () =>
      Effect.gen(function* () {
        const world = yield* Trusting
        const { story } = world
        const hers = yield* as(world, "ada@example.com")
        yield* story.post("/members", { userId: "ada@example.com", role: "editor" })
        expect((yield* hers.send("GET", "/api/me")).body).toEqual({
          userId: "ada@example.com",
          role: "admin",
          projectIds: [story.projectId],
          roles: { [story.projectId]: "editor" }
        })
        const object = yield* make(hers, "Person", { name: "Ada" })
        expect(object).toMatchObject({ actorType: "user", actorId: "ada@example.com" })
        expectProblem(yield* hers.ask("PATCH", "/settings", {}), 403)

        const mcp = yield* initialize(hers, "/mcp")
        expect([mcp.status, JSON.stringify(mcp.body)]).toEqual([200, expect.stringContaining("tropism")])
        const models = yield* hers.send("GET", `/api/projects/${story.projectId}/v1/models`)
        expect([models.status, models.body.object]).toEqual([200, "list"])
        const stream = yield* rawSubscriber(hers, `/api/projects/${story.projectId}/events`)
        yield* eventually(Effect.sync(stream.bytes), (bytes) => bytes > 0)

        yield* story.patch("/members/ada%40example.com", { role: "viewer" })
        expectProblem(yield* hers.ask("POST", "/objects", { type: "Person" }), 403)
        yield* story.delete("/members/ada%40example.com")
        expectProblem(yield* hers.ask("GET", "/objects"), 404)
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        yield* stream.closed
      })
    )

    it.effect("a viewer reads nobody's words, however the address is written", () =>
      Effect.gen(function* () {
        const world = yield* Trusting
        const { story } = world
        for (const [userId, role] of [
          ["ed", "editor"],
          ["vera", "viewer"]
        ])
          yield* story.post("/members", { userId, role })
        const [ed, vera] = [yield* as(world, "ed"), yield* as(world, "vera")]
        const agent = yield* talker(story, [{ say: "You said: {{ message }}" }], { tools: [] })
        yield* talk(ed, yield* newConversation(story, agent, "Secrets", "ed"), "My secret is 42")
        const [run] = yield* endedRuns(story, agent, 1)
        const { projectId } = story
        const encoded = `%${projectId.charCodeAt(0).toString(16)}${projectId.slice(1)}`
        for (const root of [
          `/api/projects/${projectId}`,
          `/api/projects/${encoded}`,
          `/%61pi/projects/${projectId}`
        ]) {
          const seen = yield* vera.send("GET", `${root}/runs/${run.id}`)
          expect(seen).toMatchObject({ status: 200, body: { owner: "ed", summary: null } })
        }
      })
    )

    it.effect("the claim that the operator names, and no other, makes an admin of the server", () =>
      Effect.gen(function* () {
        const world = yield* Trusting
        for (const claims of [
          {},
          { roles: "tropism-admins" },
          { role: "tropism-admin" },
          { roles: { "tropism-admin": true } }
        ]) {
          const his = yield* as(world, "bert", claims)
          expectProblem(yield* his.send("GET", "/api/tokens"), 403)
        }
        for (const roles of ["tropism-admin", ["x", "tropism-admin"]]) {
          const his = yield* as(world, "bert", { roles })
          expect((yield* his.send("GET", "/api/me")).body).toMatchObject({ userId: "bert", projectIds: null })
          expect((yield* his.send("GET", "/api/tokens")).status).toBe(200)
        }
      })
    )

    it.effect("MCP clients learn who gives JWTs from the metadata of the door (RFC 9728)", () =>
      Effect.gen(function* () {
        const { doors, story } = yield* Trusting
        const path = `/api/projects/${story.projectId}/mcp`
        const refused = yield* initialize(shown(doors, "nothing"), path)
        const [, where = ""] =
          /resource_metadata="([^"]+)"/.exec(refused.headers.get("www-authenticate") ?? "") ?? []
        const metadata = yield* doors.send("GET", new URL(where).pathname, undefined, { authorization: "" })
        expect([refused.status, metadata.body]).toMatchObject([
          401,
          { resource: `${doors.url}${path}`, authorization_servers: [issuer] }
        ])
      })
    )
  })

  describe("Requirement: a JWT that is not good lets nobody in", () => {
    it.effect("what is signed wrongly, meant for others, over, or of nobody is answered with 401", () =>
      Effect.gen(function* () {
        const world = yield* Trusting
        const { doors, key, story } = world
        yield* story.post("/members", { userId: "eve", role: "admin" })
        const other = yield* newKey("first")
        const text = new TextEncoder().encode(JSON.stringify(key.told))
        const good = yield* jwtOf(key, "eve")
        const [head, , signature] = good.split(".")
        const body = Buffer.from(
          JSON.stringify({ iss: issuer, aud: audience, sub: "eve", exp: inSeconds(60) })
        )
        const refused: Record<string, string> = {
          "another's key under our key's id": yield* jwtOf(other, "eve"),
          "no key's id that we know": yield* jwtOf({ ...other, kid: "unknown" }, "eve"),
          "the public key taken for a secret": yield* jwtOf(
            { kid: "first", alg: "HS256", secret: text },
            "eve"
          ),
          "no signature": new UnsecuredJWT({})
            .setIssuer(issuer)
            .setAudience(audience)
            .setSubject("eve")
            .setExpirationTime("1h")
            .encode(),
          "a changed body": `${head}.${body.toString("base64url")}.${signature}`,
          "no signature but the rest": `${head}.${body.toString("base64url")}.`,
          "another issuer": yield* jwtOf(key, "eve", { iss: "https://evil.example" }),
          "no issuer": yield* jwtOf(key, "eve", { iss: undefined }),
          "for somebody else": yield* jwtOf(key, "eve", { aud: "billing" }),
          "for nobody": yield* jwtOf(key, "eve", { aud: undefined }),
          over: yield* jwtOf(key, "eve", { exp: inSeconds(-60) }),
          "without an end": yield* jwtOf(key, "eve", { exp: undefined }),
          "with an end that is no number": yield* jwtOf(key, "eve", { exp: "never" }),
          "not yet good": yield* jwtOf(key, "eve", { nbf: inSeconds(600) }),
          "of nobody": yield* jwtOf(key, undefined),
          "of a blank name": yield* jwtOf(key, " "),
          "of the server's admin": yield* jwtOf(key, "admin", { roles: "tropism-admin" }),
          "of a name too long": yield* jwtOf(key, "e".repeat(201), { roles: "tropism-admin" }),
          "of no text": yield* jwtOf(key, "eve", { sub: 7 }),
          "of a name that NUL ends": yield* jwtOf(key, "eve\u0000"),
          huge: yield* jwtOf(key, "eve", { more: "x".repeat(tokenLimits.jwtMaxBytes) }),
          "no JSON": "eyJ.eyJ.eyJ"
        }
        for (const [what, jwt] of Object.entries(refused)) {
          const hers = storyOf(doors, story.access, story.projectId, jwt)
          expect([what, (yield* hers.send("GET", "/api/me")).status]).toEqual([what, 401])
          expect([what, (yield* hers.send("POST", "/login")).status]).toEqual([what, 401])
          expect([what, (yield* initialize(hers, "/mcp")).status]).toEqual([what, 401])
          expect([what, (yield* hers.ask("GET", "/v1/models")).status]).toEqual([what, 401])
        }
        expect((yield* shown(doors, good).send("GET", "/api/me")).status).toBe(200)
        // The provider's clock may be a little ahead.
        const early = yield* jwtOf(key, "eve", { nbf: inSeconds(tokenLimits.jwtSkewSeconds - 15) })
        expect((yield* shown(doors, early).send("GET", "/api/me")).status).toBe(200)
        const [row] = yield* ask(
          story.access,
          "select count(*)::int from kb.api_tokens where user_id = 'eve'"
        )
        expect(row).toEqual([2])
      })
    )

    it.effect("what was opened with it ends when it does", () =>
      Effect.gen(function* () {
        const world = yield* Trusting
        const { doors, key, story } = world
        yield* story.post("/members", { userId: "cleo", role: "viewer" })
        const exp = inSeconds(3_600)
        const jwt = yield* jwtOf(key, "cleo", { exp })
        const hers = storyOf(doors, story.access, story.projectId, jwt)
        const stream = yield* rawSubscriber(hers, `/api/projects/${story.projectId}/events`)
        yield* eventually(Effect.sync(stream.bytes), (bytes) => bytes > 0)
        const answer = yield* hers.send("POST", "/login")
        const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1)
        const browse = () => doors.send("GET", "/api/me", undefined, { authorization: "", cookie })
        expect((yield* browse()).body).toMatchObject({
          userId: "cleo",
          roles: { [story.projectId]: "viewer" }
        })
        const ends = yield* ask(
          story.access,
          "select distinct extract(epoch from expires_at)::int from kb.api_tokens where user_id = 'cleo'"
        )
        expect(ends).toEqual([[exp]])
        // Its end, which its row says, is brought forward.
        yield* ask(
          story.access,
          "update kb.api_tokens set expires_at = now() where user_id = 'cleo' and not is_session"
        )
        expectProblem(yield* hers.send("GET", "/api/me"), 401)
        expectProblem(yield* browse(), 401)
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        yield* stream.closed
      })
    )
  })

  describe("Requirement: the provider's keys are kept, and asked for anew no more often than is needed", () => {
    it.effect("strangers cannot make the server ask; a new key is known, an old one goes", () =>
      Effect.gen(function* () {
        const { doors, key, provider } = yield* Trusting
        const good = yield* jwtOf(key, "dora")
        const come = (jwt: string) =>
          Effect.map(shown(doors, jwt).send("GET", "/api/me"), ({ status }) => status)
        expect(yield* come(good)).toBe(200)
        yield* TestClock.adjust(tokenLimits.jwksPauseMs)
        const before = provider.asked()
        const strangers = yield* Effect.forEach([1, 2, 3, 4, 5, 6], (each) => newKey(`stranger-${each}`))
        const jwts = yield* Effect.forEach(strangers, (stranger) => jwtOf(stranger, "dora"))
        expect(yield* Effect.forEach(jwts, come, { concurrency: 6 })).toEqual(Array(6).fill(401))
        expect(provider.asked()).toBe(before + 1)

        // The provider takes another key; who shows it is let in as soon as it may be asked for.
        const next = yield* newKey("next", "EdDSA")
        provider.tell([next])
        const newer = yield* jwtOf(next, "dora")
        expect(yield* come(newer)).toBe(401)
        yield* TestClock.adjust(tokenLimits.jwksPauseMs)
        expect([yield* come(newer), yield* come(good)]).toEqual([200, 401])
        expect(provider.asked()).toBe(before + 2)

        // It is away, or tells nonsense: what is known goes on, however old it is.
        const answers = [
          (response: { destroy: () => void }) => void response.destroy(),
          (response: { writeHead: (status: number) => { end: (text: string) => void } }) =>
            response.writeHead(500).end("no"),
          (response: { end: (text: string) => void }) => response.end("<html>"),
          (response: { end: (text: string) => void }) => response.end('{"keys": 7}'),
          (response: { end: (text: string) => void }) =>
            response.end(JSON.stringify({ keys: [], more: "x".repeat(tokenLimits.jwksMaxBytes) }))
        ]
        for (const answer of answers) {
          provider.tell(answer)
          const asked = provider.asked()
          yield* TestClock.adjust(tokenLimits.jwksMaxAgeMs)
          expect(yield* come(newer)).toBe(200)
          yield* eventually(Effect.sync(provider.asked), (count) => count > asked)
          expect(yield* come(newer)).toBe(200)
        }
        // Back again, it is believed again.
        provider.tell([key, next])
        yield* TestClock.adjust(tokenLimits.jwksPauseMs)
        expect(yield* eventually(come(good), (status) => status === 200)).toBe(200)
      })
    )
  })
})
