/**
 * Tokens of foreign servers are sealed for their row, and under the key that the servers of the database have.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Scope } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { outcomesOf } from "../testing/mcp-runs.ts"
import { newGuardedShop, signIn } from "../testing/oauth-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { newProject, startServer, storyIn } from "../testing/platform.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }
const keyOf = (letter: string): string => Buffer.alloc(32, letter).toString("base64")

describe("Tokens of a sign-in", () => {
  it.live("are sealed anew when the key is replaced, and open under the new one alone", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const outer = yield* Effect.scope
      const withKeys = <A, E, R>(
        keys: string,
        tell: (doors: Parameters<typeof newProject>[0]) => Effect.Effect<A, E, R>
      ) => Effect.scoped(Effect.flatMap(startServer(access, [], undefined, undefined, keys), tell))
      const keysOf = Effect.map(ask(access, "select sealed from kb.mcp_grants"), (rows) =>
        rows.map(([sealed]) => String(sealed).split(".")[1])
      )
      const made = yield* withKeys(keyOf("1"), (doors) =>
        Effect.gen(function* () {
          const story = yield* newProject(doors, access)
          return {
            projectId: story.projectId,
            ...(yield* Effect.provideService(newGuardedShop(story), Scope.Scope, outer))
          }
        })
      )
      const first = yield* keysOf
      yield* withKeys(`${keyOf("2")},${keyOf("1")}`, () => Effect.void)
      expect(yield* keysOf).not.toEqual(first)
      yield* withKeys(keyOf("2"), (doors) =>
        Effect.gen(function* () {
          const story = storyIn(doors, access, made.projectId)
          expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        })
      )
    }).pipe(Effect.scoped)
  )

  it.live(
    "that were copied to another row open there for nobody: it is signed out, and is signed in to again",
    () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const story = yield* newProject(yield* startServer(access), access)
        const { guarded, server } = yield* newGuardedShop(story)
        const other = yield* newGuardedShop(story, { definition: { name: "other" } })
        yield* ask(
          access,
          "update kb.mcp_grants set sealed = (select sealed from kb.mcp_grants where server_id = $1) where server_id = $2",
          [other.server.id, server.id]
        )
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
          {
            status: "failed",
            result: { reason: "signedOut", error: expect.stringContaining("TROPISM_ENCRYPTION_KEY") }
          }
        ])
        expect(guarded.callers()).toEqual([])
        yield* signIn(story, server)
        expect(yield* outcomesOf(story, [lookUp], { name: "again" })).toMatchObject([{ status: "completed" }])
      }).pipe(Effect.scoped)
  )
})
