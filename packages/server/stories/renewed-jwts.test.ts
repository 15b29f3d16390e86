/**
 * A JWT that was renewed is of the same person: the same request is known by it, and no more is allowed.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { jwtOf, newKey, type ProviderKey, startProvider, storyOf, trusting } from "../testing/jwt-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Answer, type Doors, newProject, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { patientDatabase } from "../testing/shared-server.ts"

/** A server that trusts a provider, with a project; another of the same database has lost the key for secrets. */
class Trusting extends Context.Service<
  Trusting,
  {
    readonly access: PostgresAccess
    readonly key: ProviderKey
    readonly here: Doors
    readonly keyless: Doors
    readonly story: Story
  }
>()("@tropism/server/stories/Trusting") {
  static readonly layer = Layer.effect(
    Trusting,
    Effect.gen(function* () {
      const access = { ...(yield* patientDatabase), embedded: false }
      const key = yield* newKey("first")
      const { url } = yield* startProvider(key)
      const env = { TROPISM_JWT_JWKS_URL: url, TROPISM_RATE_LIMIT: "10" }
      const here = yield* trusting(access, env)
      const keyless = yield* trusting(access, env, Buffer.alloc(32, 2).toString("base64"))
      return { access, key, here, keyless, story: yield* newProject(here, access) }
    })
  )
}

/** A member, as each JWT of hers comes: a new one whenever she is asked for. */
const renewing = Effect.fnUntraced(function* (sub: string) {
  const { access, here, key, story } = yield* Trusting
  yield* story.post("/members", { userId: sub, role: "editor" })
  let issued = 0
  return (doors: Doors = here) =>
    Effect.map(jwtOf(key, sub, { jti: String(issued++) }), (jwt) =>
      storyOf(doors, access, story.projectId, jwt)
    )
})

const isRepeat = ({ headers }: Answer): boolean => headers.get("idempotency-replayed") === "true"

const sendUnder = (key: string, path: string, body: unknown) => (story: Story) =>
  story.send("POST", `/api/projects/${story.projectId}${path}`, body, { "idempotency-key": key })

layer(Trusting.layer)((it) => {
  describe("A JWT that is renewed between a request and its repeat", () => {
    it.effect("has the same answer and no second effect; another person's has neither", () =>
      Effect.gen(function* () {
        const [hers, his] = [yield* renewing("ada@example.com"), yield* renewing("bert@example.com")]
        const send = sendUnder("k", "/objects", { type: "Once", properties: { a: 1 } })
        const first = yield* send(yield* hers())
        const repeat = yield* send(yield* hers())
        expect([repeat.status, repeat.body, isRepeat(repeat)]).toEqual([201, first.body, true])
        const other = yield* send(yield* his())
        expect([other.status, isRepeat(other)]).toEqual([201, false])
        expect((yield* (yield* hers()).get("/objects?type=Once")).items).toHaveLength(2)
        const refused = yield* sendUnder("k", "/objects", { type: "Other", properties: {} })(yield* hers())
        expectProblem(refused, 422, "idempotency-key")
      })
    )

    it.effect("is told a secret again, which nobody finds in the database", () =>
      Effect.gen(function* () {
        const { access } = yield* Trusting
        const hers = yield* renewing("cleo@example.com")
        const send = sendUnder("t", "/tokens", { name: "mine", userId: "cleo@example.com" })
        const { token } = (yield* send(yield* hers())).body
        expect(token).toMatch(/^tropism_/)
        const repeat = yield* send(yield* hers())
        expect([repeat.body.token, isRepeat(repeat)]).toEqual([token, true])
        const kept = yield* ask(
          access,
          "select outcome::text from kb.idempotency_keys where user_id = 'cleo@example.com'"
        )
        expect(kept).toHaveLength(1)
        expect(kept[0]?.[0]).toMatch(/^"v1\./)
        expect(JSON.stringify(kept)).not.toContain(token)
      })
    )

    it.effect(
      "where the key for secrets was lost meanwhile, is told that it was done, and nothing is done",
      () =>
        Effect.gen(function* () {
          const { keyless } = yield* Trusting
          const hers = yield* renewing("dora@example.com")
          const send = sendUnder("k", "/objects", { type: "Lost", properties: {} })
          expect((yield* send(yield* hers())).status).toBe(201)
          const refused = yield* send(yield* hers(keyless))
          expectProblem(refused, 409)
          expect(refused.body.reason).toBe("keyUnreadable")
          expect((yield* (yield* hers()).get("/objects?type=Lost")).items).toHaveLength(1)
        })
    )

    it.effect("brings no second allowance; another person has one", () =>
      Effect.gen(function* () {
        const [hers, his] = [yield* renewing("eve@example.com"), yield* renewing("fred@example.com")]
        const me = (story: Story) => Effect.map(story.send("GET", "/api/me"), ({ status }) => status)
        const times = (story: Story, count: number) => Effect.forEach(Array(count).fill(story), me)
        const first = yield* hers()
        expect(yield* times(first, 21)).toEqual([...Array(20).fill(200), 429])
        // It is not known whose it is before it was verified once: that is counted by the address, and then by her.
        expect(yield* times(yield* hers(), 3)).toEqual([200, 429, 429])
        expect(yield* times(yield* his(), 3)).toEqual([200, 200, 200])
      })
    )
  })
})
