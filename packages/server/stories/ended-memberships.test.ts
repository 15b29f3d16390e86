/**
 * Requirement: what has ended lets nobody in, also by the ways that were open beside it, or were made in that moment.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { ask, holding } from "../testing/owner-rows.ts"
import type { Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const objectsOf = (story: Story) => `/api/projects/${story.projectId}/objects`

const withToken = (token: string) => ({ authorization: `Bearer ${token}` })

/** The cookie that an answer sets. */
const cookieOf = (headers: Headers): string => (headers.get("set-cookie") ?? "").split(";", 1)[0] ?? ""

/** Somebody who is a member of these projects. */
const joining = (userId: string, ...projects: ReadonlyArray<Story>) =>
  Effect.forEach(projects, (project) => project.post("/members", { userId, role: "admin" }), {
    discard: true
  })

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("What was opened with a token", () => {
    it.effect("reaches a project for as long as the token does", () =>
      Effect.gen(function* () {
        const [story, other] = [yield* newStoryHere, yield* newStoryHere]
        yield* joining("bob", story, other)
        const token = yield* story.post("/tokens", {
          name: "both",
          userId: "bob",
          projectIds: [other.projectId]
        })
        const { headers } = yield* story.send("POST", "/login", undefined, withToken(token.token))
        const browse = (project: Story) =>
          story.send("GET", objectsOf(project), undefined, { authorization: "", cookie: cookieOf(headers) })
        expect((yield* browse(story)).status).toBe(200)
        yield* story.delete(`/tokens/${token.id}`)
        expectProblem(yield* browse(story), 404)
        expect((yield* browse(other)).status).toBe(200)
      })
    )
  })

  describe("Whoever was put out", () => {
    it.effect("has no token that was made in that moment", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* joining("bob", story)
        const holder = yield* holding(
          story.access,
          `delete from kb.members where project_id = '${story.projectId}' and user_id = 'bob'`
        )
        // Bob is judged a member, and his row is waited for.
        const making = yield* Effect.forkChild(story.ask("POST", "/tokens", { name: "late", userId: "bob" }))
        yield* whenWaiting(story.access, 1)
        yield* holder.query("commit")
        const refused = yield* Fiber.join(making)
        expectProblem(refused, 422)
        expect(refused.body.detail).toContain("bob")
        expect((yield* story.get("/tokens")).items).toEqual([])
      })
    )

    it.effect("is not let in by a link from before, also as somebody who has come back", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* joining("ada", story)
        yield* joining("bob", story)
        const [first, second] = [
          yield* story.post("/members/bob/login-link"),
          yield* story.post("/members/bob/login-link")
        ]
        const opening = (link: { readonly url: string }) =>
          Effect.promise(() => fetch(link.url, { redirect: "manual" }))
        yield* ask(story.access, "delete from kb.members where project_id = $1 and user_id = 'bob'", [
          story.projectId
        ])
        expect((yield* opening(first)).status).toBe(401)
        yield* joining("bob", story)
        yield* story.delete("/members/bob")
        yield* joining("bob", story)
        expect((yield* opening(second)).status).toBe(401)
        expect((yield* opening(yield* story.post("/members/bob/login-link"))).status).toBe(303)
      })
    )
  })

  describe("A token that only reads", () => {
    it.effect("ends itself, and neither its member nor what may do more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* joining("bob", story)
        yield* joining("ada", story)
        const [weak, strong, own] = [
          yield* story.post("/tokens", { name: "weak", userId: "bob", role: "viewer" }),
          yield* story.post("/tokens", { name: "strong", userId: "bob", role: "admin" }),
          yield* story.post("/tokens", { name: "own", userId: "bob", role: "viewer" })
        ]
        const remove = (path: string, { token }: { readonly token: string }) =>
          story.send("DELETE", `/api/projects/${story.projectId}${path}`, undefined, withToken(token))
        expectProblem(yield* remove(`/tokens/${strong.id}`, weak), 403)
        expectProblem(yield* remove("/members/bob", weak), 403)
        expect((yield* remove(`/tokens/${own.id}`, weak)).status).toBe(204)
        expect((yield* remove(`/tokens/${weak.id}`, weak)).status).toBe(204)
        expect((yield* remove("/members/bob", strong)).status).toBe(204)
      })
    )
  })

  describe("A place in a list that somebody made up", () => {
    it.effect("is no fault of the server", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/objects", { type: "Note", properties: { text: "licence" } })
        yield* story.post("/objects", { type: "Note", properties: { text: "licence too" } })
        const page = yield* story.get("/objects?query=licence&limit=1")
        const mark = String(page.nextCursor).split("~").at(-1)
        const id = "00000000-0000-7000-8000-000000000000"
        for (const rank of ["1e-99", "1e-46", "9.999999999999e-99", "0"])
          expect(
            (yield* story.ask("GET", `/objects?query=licence&cursor=${rank}~${id}~${mark}`)).status
          ).toBe(200)
        const next = yield* story.get(`/objects?query=licence&limit=1&cursor=${page.nextCursor}`)
        expect(next.items).toHaveLength(1)
        expect(next.items[0].id).not.toBe(page.items[0].id)
      })
    )
  })
})
