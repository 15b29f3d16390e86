/**
 * A project whose members have an admin keeps one, whoever asks and however many ask at once; and its name is an admin's to change.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { expectProblem, problemOf } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("The last admin of a project", () => {
    it.effect("keeps the role and the membership until somebody else is an admin, and is told so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const hers = yield* asUser(story, "admin", [story.projectId], "ada")
        yield* story.post("/members", { userId: "bert", role: "editor" })
        for (const asks of [hers, story])
          for (const refusal of [
            asks.ask("DELETE", "/members/ada"),
            asks.ask("PATCH", "/members/ada", { role: "viewer" })
          ])
            expect(yield* problemOf(refusal, 409)).toMatchObject({
              reason: "lastAdmin",
              detail: expect.stringMatching(/\bada\b/)
            })
        expect(yield* hers.get("/members/ada")).toMatchObject({ role: "admin" })
        // Others come and go as before, and she may be made what she is.
        expect((yield* hers.delete("/members/bert")).status).toBe(204)
        yield* hers.patch("/members/ada", { role: "admin" })
        yield* hers.post("/members", { userId: "cleo", role: "admin" })
        expect((yield* hers.delete("/members/ada")).status).toBe(204)
      })
    )

    it.effect("is one of two who put each other out at the same time", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const round of [1, 2, 3, 4]) {
          for (const userId of ["ada", "cleo"]) {
            const answer = yield* story.ask("POST", "/members", { userId, role: "admin" })
            expect([201, 409]).toContain(answer.status)
          }
          const answers = yield* Effect.all(
            [story.delete("/members/ada"), story.ask("PATCH", "/members/cleo", { role: "viewer" })],
            { concurrency: "unbounded" }
          )
          expect({ round, refused: answers.filter(({ status }) => status === 409).length }).toEqual({
            round,
            refused: 1
          })
          yield* story.ask("PATCH", "/members/cleo", { role: "admin" })
        }
      })
    )
  })

  describe("The name of a project", () => {
    it.effect("is changed by an admin and told everywhere; a bad one is refused with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const path = `/api/projects/${story.projectId}`
        const renamed = yield* story.send("PATCH", path, { name: "The garden" })
        expect(renamed).toMatchObject({ status: 200, body: { id: story.projectId, name: "The garden" } })
        expect((yield* story.send("GET", path)).body.name).toBe("The garden")
        const { items } = (yield* story.send("GET", "/api/projects?limit=200")).body
        expect(items).toContainEqual(renamed.body)
        for (const name of ["", "  ", "a\u0000b", "x".repeat(201)])
          expectProblem(yield* story.send("PATCH", path, { name }), 422, "/name")
        const reviewer = yield* asUser(story, "reviewer", [story.projectId])
        expectProblem(yield* reviewer.send("PATCH", path, { name: "Mine" }), 403)
        const stranger = yield* newStoryHere
        const theirs = yield* asUser(stranger, "admin", [stranger.projectId], "eve")
        expectProblem(yield* theirs.send("PATCH", path, { name: "Mine" }), 404)
        expect((yield* story.send("GET", path)).body.name).toBe("The garden")
      })
    )
  })
})
