/**
 * Who belongs to a project, what their tokens may do there, and when that ends.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { streamLimits } from "../src/http/limits.ts"
import { openStream } from "../testing/event-stream.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story, storyIn } from "../testing/platform.ts"
import { expectProblem, problemOf } from "../testing/problem-words.ts"
import { rawSubscriber } from "../testing/raw-subscriber.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

type Role = "viewer" | "editor" | "reviewer" | "admin"

const roles: ReadonlyArray<Role> = ["viewer", "editor", "reviewer", "admin"]

/** The same project through a token. */
const through = (story: Story, token: string): Story => {
  const send: Story["send"] = (method, path, body, headers = {}) =>
    story.send(method, path, body, { authorization: `Bearer ${token}`, ...headers })
  return storyIn({ ...story, token, send }, story.access, story.projectId)
}

const tokenOf = (story: Story, userId: string, more: Record<string, unknown> = {}) =>
  story.post("/tokens", { name: `${userId}'s`, userId, ...more })

/** A member and the project as they see it. */
const join = Effect.fnUntraced(function* (
  story: Story,
  userId: string,
  role: Role,
  more: Record<string, unknown> = {}
) {
  const member = yield* story.post("/members", { userId, role })
  const token = yield* tokenOf(story, userId, { role, ...more })
  return { member, token, story: through(story, token.token) }
})

const make = (story: Story) => story.ask("POST", "/objects", { type: "Thing", properties: {} })

layer(SharedServer.layer)((it) => {
  describe("Requirement: a project has members, each with one role", () => {
    it.effect("an admin lets somebody in, gives them another role and puts them out again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { member, story: hers, token } = yield* join(story, "ada@example.com", "editor")
        expect(member).toEqual({
          userId: "ada@example.com",
          role: "editor",
          addedBy: "admin",
          changedBy: "admin",
          createdAt: expect.stringMatching(/Z$/),
          updatedAt: member.createdAt
        })
        expect(token).toMatchObject({
          token: expect.stringMatching(/^tropism_[0-9a-f]{64}$/),
          userId: "ada@example.com",
          role: "editor",
          projectIds: [story.projectId],
          createdBy: "admin",
          expiresAt: null,
          lastUsedAt: null
        })
        const object = (yield* make(hers)).body
        expect(object.actorId).toBe("ada@example.com")

        const path = "/members/ada%40example.com"
        expect(yield* story.patch(path, { role: "viewer" })).toMatchObject({
          role: "viewer",
          changedBy: "admin"
        })
        expectProblem(yield* make(hers), 403)
        yield* hers.get(`/objects/${object.id}`)
        yield* story.patch(path, { role: "reviewer" })
        // The role of the token is a bound, too.
        expectProblem(yield* hers.ask("PATCH", "/settings", {}), 403)
        expect((yield* make(hers)).status).toBe(201)

        expect((yield* story.delete(path)).status).toBe(204)
        expectProblem(yield* make(hers), 401)
        expectProblem(yield* hers.ask("GET", `/objects/${object.id}`), 401)
        expectProblem(yield* story.ask("DELETE", path), 404)
        // Whoever comes back begins without the old tokens.
        yield* story.post("/members", { userId: "ada@example.com", role: "editor" })
        expectProblem(yield* make(hers), 401)
      })
    )

    it.effect("every member sees them in order, a page at a time; only admins change them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const userId of ["cleo", "bert", "dora"])
          yield* story.post("/members", { userId, role: "viewer" })
        const { story: hers } = yield* join(story, "ada", "reviewer")
        const first = yield* hers.get("/members?limit=3")
        expect(first.items.map((one: Json) => one.userId)).toEqual(["ada", "bert", "cleo"])
        const rest = yield* hers.get(`/members?limit=3&cursor=${first.nextCursor}`)
        expect([rest.items.map((one: Json) => one.userId), rest.nextCursor]).toEqual([["dora"], null])
        expectProblem(yield* hers.ask("POST", "/members", { userId: "eve", role: "viewer" }), 403)
        expectProblem(yield* hers.ask("PATCH", "/members/bert", { role: "admin" }), 403)
        expectProblem(yield* hers.ask("PATCH", "/members/ada", { role: "admin" }), 403)
        expectProblem(yield* hers.ask("DELETE", "/members/bert"), 403)
        expectProblem(yield* hers.ask("POST", "/members/bert/login-link"), 403)
        // The longest name has an address, too.
        const longest = "é".repeat(200)
        yield* story.post("/members", { userId: longest, role: "viewer" })
        expect((yield* story.get(`/members/${encodeURIComponent(longest)}`)).userId).toBe(longest)
        // Anybody may leave.
        expect((yield* hers.delete("/members/ada")).status).toBe(204)
        expectProblem(yield* hers.ask("GET", "/members"), 401)
      })
    )

    it.effect("what is wrong with a member is said, and nobody is let in", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/members", { userId: "ada", role: "viewer" })
        const again = yield* problemOf(story.ask("POST", "/members", { userId: "ada", role: "admin" }), 409)
        expect(again.reason).toBe("idTaken")
        yield* problemOf(story.ask("POST", "/members", { userId: "", role: "viewer" }), 422, "/userId")
        // No address leads to one.
        yield* problemOf(story.ask("POST", "/members", { userId: "..", role: "viewer" }), 422, "/userId")
        yield* problemOf(story.ask("POST", "/members", { userId: " a", role: "viewer" }), 422, "/userId")
        yield* problemOf(story.ask("POST", "/members", { userId: "a\nb", role: "viewer" }), 422, "/userId")
        yield* problemOf(story.ask("POST", "/members", { userId: "bo", role: "owner" }), 422, "/role")
        yield* problemOf(story.ask("PATCH", "/members/bo", { role: "viewer" }), 404)
        yield* problemOf(story.ask("POST", "/members/bo/login-link"), 404)
        // The name of the server's admin is not a project's to give.
        const { story: boss } = yield* join(story, "boss", "admin")
        yield* problemOf(boss.ask("POST", "/members", { userId: "admin", role: "viewer" }), 422, "/userId")
        const { items } = yield* story.get("/members")
        expect(items.map((one: Json) => [one.userId, one.role])).toEqual([
          ["ada", "viewer"],
          ["boss", "admin"]
        ])
      })
    )
  })

  describe("Requirement: a token may do at most what its maker and its member may", () => {
    it.effect("each role of a token under each role of its member is the lesser of the two", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/members", { userId: "boss", role: "admin" })
        const { story: hers } = yield* join(story, "ada", "admin")
        for (const role of roles) {
          const token = yield* hers.post("/tokens", { name: role, role })
          const me = through(story, token.token)
          for (const [rank, membership] of roles.entries()) {
            yield* story.patch("/members/ada", { role: membership })
            const lesser = roles[Math.min(rank, roles.indexOf(role))]
            const { body } = yield* me.send("GET", "/api/me")
            expect(body).toEqual({
              userId: "ada",
              role,
              projectIds: [story.projectId],
              roles: { [story.projectId]: lesser }
            })
            const changed = yield* me.ask("PATCH", "/settings", {})
            expect([role, membership, changed.status]).toEqual([
              role,
              membership,
              lesser === "admin" ? 200 : 403
            ])
          }
        }
      })
    )

    it.effect("nobody gives away more than they have", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/members", { userId: "bert", role: "viewer" })
        const { story: hers } = yield* join(story, "ada", "editor")
        expect(yield* hers.post("/tokens", { name: "mine" })).toMatchObject({ userId: "ada", role: "editor" })
        yield* problemOf(hers.ask("POST", "/tokens", { name: "more", role: "reviewer" }), 403)
        yield* problemOf(hers.ask("POST", "/tokens", { name: "his", userId: "bert", role: "viewer" }), 403)
        yield* problemOf(story.ask("POST", "/tokens", { name: "x", userId: "cleo" }), 422, "/userId")
        yield* problemOf(story.ask("POST", "/tokens", { name: " ", userId: "ada" }), 422, "/name")
        yield* problemOf(
          story.ask("POST", "/tokens", { name: "x", userId: "ada", expiresAt: "2020-01-01T00:00:00Z" }),
          422,
          "/expiresAt"
        )
        yield* problemOf(hers.send("POST", "/api/projects", { name: "another" }), 403)
        const { story: boss } = yield* join(story, "boss", "admin")
        yield* problemOf(boss.send("POST", "/api/projects", { name: "another" }), 403)
        yield* problemOf(boss.send("GET", "/api/tokens"), 403)
      })
    )

    it.effect("a token of several projects reaches those that both see, and ends in each by itself", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const third = yield* newStoryHere
        yield* other.post("/members", { userId: "ada", role: "viewer" })
        const { story: hers } = yield* join(story, "ada", "admin")
        // Her token names one project; the other is none that it sees.
        const unseen = { name: "both", projectIds: [other.projectId] }
        yield* problemOf(hers.ask("POST", "/tokens", unseen), 422, "/projectIds/0")
        const reach = { projectIds: [story.projectId, other.projectId, third.projectId] }
        yield* problemOf(
          story.ask("POST", "/tokens", { name: "all", userId: "ada", ...reach }),
          422,
          "/projectIds/2"
        )
        const both = yield* tokenOf(story, "ada", { role: "admin", projectIds: [other.projectId] })
        const there = through(other, both.token)
        expect((yield* there.ask("GET", "/settings")).status).toBe(200)
        expectProblem(yield* make(there), 403)
        expect((yield* make(through(story, both.token))).status).toBe(201)
        // What another project is called is nobody's here.
        const [shown] = (yield* hers.get("/tokens")).items.filter((one: Json) => one.id === both.id)
        expect(shown.projectIds).toEqual([story.projectId])
        expect((yield* hers.delete(`/tokens/${both.id}`)).status).toBe(204)
        expectProblem(yield* make(through(story, both.token)), 404)
        expect((yield* there.ask("GET", "/settings")).status).toBe(200)
        expect((yield* other.delete(`/tokens/${both.id}`)).status).toBe(204)
        expectProblem(yield* there.ask("GET", "/settings"), 401)
      })
    )

    it.effect("admins see the tokens of all, others their own; nobody sees a secret again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* join(story, "ada", "editor")
        const bert = yield* join(story, "bert", "viewer")
        yield* ada.story.get("/objects")
        const all = yield* story.get("/tokens")
        expect(all.items.map((one: Json) => [one.userId, one.lastUsedAt === null])).toEqual([
          ["bert", true],
          ["ada", false]
        ])
        expect(JSON.stringify(all)).not.toContain(ada.token.token)
        const own = yield* bert.story.get("/tokens")
        expect(own.items.map((one: Json) => one.id)).toEqual([bert.token.id])
        expectProblem(yield* bert.story.ask("DELETE", `/tokens/${ada.token.id}`), 404)
        yield* ada.story.get("/objects")
        expect((yield* bert.story.delete(`/tokens/${bert.token.id}`)).status).toBe(204)
        expectProblem(yield* bert.story.ask("GET", "/tokens"), 401)
        const [row] = yield* ask(
          story.access,
          "select count(*)::int as n from kb.api_tokens where hash = $1",
          [ada.token.token]
        )
        expect(row?.[0]).toBe(0)
      })
    )
  })

  describe("Requirement: what has ended lets nobody in", () => {
    it.effect("a token that has expired, and a stream of it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { story: hers } = yield* join(story, "ada", "viewer")
        const path = `/api/projects/${story.projectId}/events`
        expect(streamLimits.permitIntervalMs).toBeLessThan(60_000)
        const ended = yield* rawSubscriber(hers, path)
        yield* eventually(Effect.sync(ended.bytes), (bytes) => bytes > 0)
        yield* ask(
          story.access,
          "update kb.api_tokens set expires_at = now() where hash = encode(sha256($1::bytea), 'hex')",
          [hers.token]
        )
        expectProblem(yield* hers.ask("GET", "/objects"), 401)
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        yield* ended.closed
      })
    )

    it.effect("a stream of somebody who is put out is closed within a minute, the others' goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ada = yield* join(story, "ada", "viewer")
        const bert = yield* join(story, "bert", "viewer")
        const path = `/api/projects/${story.projectId}/events`
        const hers = yield* rawSubscriber(ada.story, path)
        yield* eventually(Effect.sync(hers.bytes), (bytes) => bytes > 0)
        const his = yield* openStream(bert.story, path)
        yield* story.delete("/members/ada")
        yield* TestClock.adjust(streamLimits.permitIntervalMs)
        yield* hers.closed
        yield* make(story)
        yield* his.until((heard) => heard.length >= 1)
      })
    )
  })

  describe("Requirement: a link signs one browser in, once, to one project", () => {
    it.effect("the session is the member's here and nobody's elsewhere; signing out ends it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        for (const project of [story, other])
          yield* project.post("/members", { userId: "ada", role: "editor" })
        const link = yield* story.post("/members/ada/login-link")
        const { pathname, search, origin } = new URL(link.url)
        expect([origin, pathname]).toEqual([story.url, "/login"])
        const answer = yield* Effect.promise(() => fetch(link.url, { redirect: "manual" }))
        const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1)
        expect(answer.headers.get("set-cookie")).toMatch(/HttpOnly.*SameSite=Strict/i)
        const browse = (method: string, path: string, body?: unknown) =>
          story.send(method, path, body, { authorization: "", cookie, origin: story.url })
        expect((yield* browse("GET", "/api/me")).body).toMatchObject({
          userId: "ada",
          projectIds: [story.projectId],
          roles: { [story.projectId]: "editor" }
        })
        const objects = (projectId: string) => `/api/projects/${projectId}/objects`
        expect((yield* browse("POST", objects(story.projectId), { type: "Thing" })).status).toBe(201)
        expectProblem(yield* browse("GET", objects(other.projectId)), 404)
        // The link was used.
        expectProblem(yield* story.send("GET", `/login${search}`), 401)
        expect((yield* browse("POST", "/logout")).status).toBe(204)
        expectProblem(yield* browse("GET", "/api/me"), 401)
      })
    )

    it.effect("a session that was opened with a token ends with it, and cannot open another", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { story: hers, token } = yield* join(story, "ada", "viewer")
        const answer = yield* hers.send("POST", "/login")
        const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";", 1)
        expect([answer.status, cookie.includes(token.token)]).toEqual([204, false])
        const browse = (path: string) => story.send("GET", path, undefined, { authorization: "", cookie })
        expect((yield* browse("/api/me")).status).toBe(200)
        const secret = cookie.split("=")[1]
        expectProblem(
          yield* story.send("POST", "/login", undefined, { authorization: `Bearer ${secret}` }),
          401
        )
        yield* story.delete(`/tokens/${token.id}`)
        expectProblem(yield* browse("/api/me"), 401)
      })
    )
  })

  describe("Requirement: the server's admin makes tokens that reach every project", () => {
    it.effect("they see each project with their role, are listed, and end", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const made = (yield* story.send("POST", "/api/tokens", {
          name: "metrics",
          userId: "prometheus",
          role: "viewer"
        })).body
        expect(made).toMatchObject({ projectIds: [], role: "viewer", userId: "prometheus" })
        const watcher = through(story, made.token)
        expect((yield* watcher.send("GET", "/metrics")).status).toBe(200)
        expect((yield* watcher.ask("GET", "/objects")).status).toBe(200)
        expectProblem(yield* make(watcher), 403)
        expectProblem(yield* watcher.send("GET", "/api/tokens"), 403)
        const listed = (yield* story.send("GET", "/api/tokens")).body.items
        expect(listed.map((one: Json) => one.id)).toContain(made.id)
        // It is none of the project's.
        expect((yield* story.get("/tokens")).items).toEqual([])
        expectProblem(yield* story.ask("DELETE", `/tokens/${made.id}`), 404)
        expect((yield* story.send("DELETE", `/api/tokens/${made.id}`)).status).toBe(204)
        expectProblem(yield* watcher.send("GET", "/metrics"), 401)
      })
    )
  })
})
