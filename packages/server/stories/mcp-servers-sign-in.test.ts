/**
 * What is said where a server wants OAuth and something is missing: who can mend it, before anybody has agreed to anything.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newOddShop } from "../testing/mcp-odd-server.ts"
import { newGuardedShop } from "../testing/oauth-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A server that wants OAuth", () => {
    it.effect("advises to sign in, and no header with a secret", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { server } = yield* newGuardedShop(story, {
          definition: { authorization: null },
          isSignedIn: false
        })
        expect(server.lastError).toMatch(/^Signed out: sign in first.*401/)
        expect(server.lastError).not.toMatch(/Authorization|TROPISM_SECRET|header/)
      })
    )

    it.effect("that does not say where one signs in is told with both ways", () =>
      Effect.gen(function* () {
        const refusal = () => new Response("no", { status: 401, headers: { "www-authenticate": "Bearer" } })
        const { server } = yield* newOddShop(refusal)
        expect(server.lastError).toMatch(/^Signed out: sign in first.*TROPISM_SECRET_/)
      })
    )

    it.effect("has no link while the secret of its client is not set, and says which variable", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { identity, server } = yield* newGuardedShop(story, {
          registration: false,
          definition: {
            authorization: {
              type: "oauth",
              clientId: "tropism-known",
              clientSecret: { secret: "TROPISM_SECRET_NOWHERE" }
            }
          },
          isSignedIn: false
        })
        const refused = yield* story.ask("POST", `/mcp-servers/${server.id}/sign-in`)
        expect([refused.status, refused.body]).toMatchObject([
          409,
          { reason: "state", detail: expect.stringContaining("TROPISM_SECRET_NOWHERE") }
        ])
        expect(identity.tokenRequests).toEqual([])
        expect(
          yield* ask(story.access, `select 1 from kb.mcp_sign_ins where project_id = '${story.projectId}'`)
        ).toEqual([])
      })
    )
  })
})
