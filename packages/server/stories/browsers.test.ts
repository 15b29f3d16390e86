/**
 * A browser that is signed in: how it comes in, from where it may change things, and how that ends.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Answer, type Doors, startServer, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const withoutToken = { authorization: "" }

/** The cookie that an answer sets, as the browser sends it. */
const cookieOf = (answer: Answer): string => (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? ""

const attributesOf = (answer: Answer): ReadonlyArray<string> =>
  (answer.headers.get("set-cookie") ?? "").toLowerCase().split("; ")

/** Follows an address of the server as a browser does that has no token. */
const follow = (doors: Doors, address: string, headers: Record<string, string> = {}, method = "GET") =>
  doors.send(method, address.slice(doors.url.length), undefined, { ...withoutToken, ...headers })

/** A browser that somebody signed in with a link of theirs. */
const browserOf = Effect.fnUntraced(function* (
  story: Story,
  userId: string,
  headers: Record<string, string> = {}
) {
  yield* story.ask("POST", "/members", { userId, role: "editor" })
  const { url } = yield* story.post(`/members/${userId}/login-link`)
  const answer = yield* follow(story, url, headers)
  expect(answer.status).toBe(303)
  const cookie = cookieOf(answer)
  const browse = (method: string, path: string, body?: unknown, more: Record<string, string> = {}) =>
    story.send(method, path, body, { ...withoutToken, cookie, origin: story.url, ...more })
  return { answer, browse, cookie, secret: cookie.split("=")[1] ?? "" }
})

const objectsOf = (story: Story) => `/api/projects/${story.projectId}/objects`

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A login link", () => {
    it.effect("signs one browser in, once, with a cookie that no script and no other site can use", () =>
      Effect.gen(function* () {
        const doors = yield* startServer(yield* freshDatabase)
        const answer = yield* follow(doors, doors.loginLink)
        expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"])
        // What has the code in its address is kept nowhere and told to no page.
        expect([answer.headers.get("cache-control"), answer.headers.get("referrer-policy")]).toEqual([
          "no-store",
          "no-referrer"
        ])
        const cookie = cookieOf(answer)
        expect(attributesOf(answer)).toEqual(
          expect.arrayContaining(["httponly", "samesite=strict", "path=/"])
        )
        expect(attributesOf(answer)).not.toContain("secure")
        expect(cookie).toMatch(/^tropism_session=.{32,}$/)

        const again = yield* follow(doors, doors.loginLink)
        expectProblem(again, 401)
        expect(again.headers.get("set-cookie")).toBeNull()
        const page = yield* follow(doors, doors.loginLink, { accept: "text/html" })
        expect([page.status, page.headers.get("content-type")]).toEqual([
          401,
          expect.stringMatching(/^text\/html/)
        ])
        const me = yield* doors.send("GET", "/api/me", undefined, { ...withoutToken, cookie })
        expect(me.body).toEqual({ userId: "admin", role: "admin", projectIds: null, roles: null })
        for (const wrong of ["tropism_session=wrong", `${cookie}x`, "tropism_session=", `__Host-${cookie}`])
          expectProblem(
            yield* doors.send("GET", "/api/me", undefined, { ...withoutToken, cookie: wrong }),
            401
          )
      })
    )

    it.effect("lets in one of ten browsers that use it at the same moment", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/members", { userId: "ada", role: "viewer" })
        const { url } = yield* story.post("/members/ada/login-link")
        const answers = yield* Effect.forEach(Array.from({ length: 10 }), () => follow(story, url), {
          concurrency: 10
        })
        expect(answers.map((answer) => answer.status).toSorted()).toEqual([303, ...Array(9).fill(401)])
      })
    )

    it.effect("with no code, or a wrong one, is refused", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        for (const query of ["", "?code=", "?code=wrong", `?code=${doors.token}`]) {
          expectProblem(yield* follow(doors, `${doors.url}/login${query}`), 401)
          expectProblem(
            yield* follow(doors, `${doors.url}/login${query}`, { origin: doors.url }, "POST"),
            401
          )
        }
      })
    )

    it.effect("to which another site leads asks first, and only the page that asks can answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const userId = `<b>"ada"&</b>`
        yield* story.post("/members", { userId, role: "viewer" })
        const { url } = yield* story.post(`/members/${encodeURIComponent(userId)}/login-link`)
        for (const site of ["cross-site", "same-site"]) {
          const asked = yield* follow(story, url, { "sec-fetch-site": site })
          expect([asked.status, asked.headers.get("set-cookie")]).toEqual([200, null])
          expect(asked.body).toContain(`&#60;b&#62;&#34;ada&#34;&#38;&#60;/b&#62;</button>`)
          expect(asked.body).not.toContain('<b>"ada')
          expect(asked.headers.get("content-security-policy")).toMatch(
            /default-src 'none'.*frame-ancestors 'none'/
          )
          expect(asked.headers.get("referrer-policy")).toBe("same-origin")
        }
        // Whoever only looks at the link has not followed it.
        expect((yield* follow(story, url, {}, "HEAD")).headers.get("set-cookie")).toBeNull()
        for (const foreign of [{}, { origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }]) {
          const refused = yield* follow(story, url, foreign, "POST")
          expectProblem(refused, 403)
          expect(refused.headers.get("set-cookie")).toBeNull()
        }
        const answer = yield* follow(story, url, { "sec-fetch-site": "same-origin" }, "POST")
        expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"])
        const me = yield* story.send("GET", "/api/me", undefined, {
          ...withoutToken,
          cookie: cookieOf(answer)
        })
        expect(me.body.userId).toBe(userId)
        expectProblem(yield* follow(story, url, { origin: story.url }, "POST"), 401)
      })
    )

    it.effect("does not take the place of somebody else's session without being asked", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { cookie } = yield* browserOf(story, "bert")
        yield* story.post("/members", { userId: "ada", role: "viewer" })
        const { url } = yield* story.post("/members/ada/login-link")
        const asked = yield* follow(story, url, { cookie })
        expect([asked.status, asked.headers.get("set-cookie")]).toEqual([200, null])
        expect(asked.body).toMatch(/<b>bert<\/b>[\s\S]*\bada\b/)
        // Their own takes its place at once.
        const own = yield* story.post("/members/bert/login-link")
        expect((yield* follow(story, own.url, { cookie })).status).toBe(303)
        expect((yield* follow(story, url, { cookie: "tropism_session=over" })).status).toBe(303)
      })
    )
  })

  describe("A browser with a cookie", () => {
    it.effect("may change things from the server's own pages, and from nowhere else", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { cookie } = yield* browserOf(story, "ada")
        const from = (headers: Record<string, string>, method = "POST") =>
          story.send(method, objectsOf(story), method === "GET" ? undefined : { type: "Thing" }, {
            ...withoutToken,
            cookie,
            ...headers
          })
        expect((yield* from({ origin: story.url })).status).toBe(201)
        expect((yield* from({ "sec-fetch-site": "same-origin" })).status).toBe(201)
        // A proxy that calls us by another name; the browser knows better.
        const proxied = { origin: "https://tropism.example", "sec-fetch-site": "same-origin" }
        expect((yield* from(proxied)).status).toBe(201)
        const port = new URL(story.url).port
        const foreign = [
          {},
          { referer: `${story.url}/` },
          ...["cross-site", "same-site", "none", "nonsense", ""].map((site) => ({ "sec-fetch-site": site })),
          { origin: story.url, "sec-fetch-site": "cross-site" },
          ...[
            "https://evil.example",
            `http://127.0.0.1.evil.example:${port}`,
            `http://127.0.0.1:${Number(port) + 1}`,
            "null",
            "nonsense"
          ].map((origin) => ({ origin }))
        ]
        for (const headers of foreign) {
          const refused = yield* from(headers)
          expectProblem(refused, 403)
          expect([headers, refused.body.type]).toEqual([headers, "/problems/foreign-page"])
        }
        expect((yield* from({ origin: "https://evil.example" }, "GET")).body.items).toHaveLength(3)
        // A bearer token is sent by nobody unasked: where it comes from does not matter.
        const program = yield* story.send(
          "POST",
          objectsOf(story),
          { type: "Thing" },
          { origin: "https://evil.example", "sec-fetch-site": "cross-site" }
        )
        expect(program.status).toBe(201)
        // Who sends a token asks as whoever it belongs to, or as nobody.
        expectProblem(yield* from({ origin: story.url, authorization: "Bearer wrong" }), 401)
        // Who has no session is not told more than that.
        expectProblem(yield* from({ cookie: "tropism_session=wrong" }), 401)
      })
    )

    it.effect("by https has one that no other host, path or connection can set", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const https = { "x-forwarded-proto": "https" }
        const own = story.url.replace("http:", "https:")
        const { answer, browse, cookie, secret } = yield* browserOf(story, "ada", https)
        expect(cookie).toMatch(/^__Host-tropism_session=/)
        expect(attributesOf(answer)).toEqual(
          expect.arrayContaining(["secure", "httponly", "samesite=strict", "path=/"])
        )
        expect(attributesOf(answer).some((each) => each.startsWith("domain"))).toBe(false)
        expect((yield* browse("GET", "/api/me", undefined, https)).body.userId).toBe("ada")
        const thing = { type: "Thing" }
        expect((yield* browse("POST", objectsOf(story), thing, { ...https, origin: own })).status).toBe(201)
        // The same name by http is another origin there.
        expectProblem(yield* browse("POST", objectsOf(story), thing, https), 403)
        const plain = { cookie: `tropism_session=${secret}` }
        expectProblem(yield* browse("GET", "/api/me", undefined, { ...https, ...plain }), 401)
        const out = yield* browse("POST", "/logout", undefined, { ...https, origin: own })
        expect(attributesOf(out)).toEqual(
          expect.arrayContaining(["__host-tropism_session=", "max-age=0", "secure", "path=/"])
        )
        expectProblem(yield* browse("GET", "/api/me", undefined, https), 401)
      })
    )

    it.effect("may also be signed in by a token, and be signed out by its own pages", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const answer = yield* doors.send("POST", "/login")
        expect(answer.status).toBe(204)
        expect(attributesOf(answer)).toEqual(expect.arrayContaining(["httponly", "samesite=strict"]))
        const cookie = cookieOf(answer)
        const me = doors.send("GET", "/api/me", undefined, { ...withoutToken, cookie })
        expect((yield* me).body.userId).toBe("admin")
        for (const authorization of ["", "Bearer wrong", "Bearer", doors.token]) {
          const refused = yield* doors.send("POST", "/login", undefined, { authorization })
          expectProblem(refused, 401)
          expect(refused.headers.get("set-cookie")).toBeNull()
        }
        const leave = (headers: Record<string, string>) =>
          doors.send("POST", "/logout", undefined, { ...withoutToken, cookie, ...headers })
        for (const foreign of [{}, { origin: "https://evil.example" }]) {
          const refused = yield* leave(foreign)
          expectProblem(refused, 403)
          expect(refused.headers.get("set-cookie")).toBeNull()
        }
        expect((yield* me).status).toBe(200)
        const out = yield* leave({ origin: doors.url })
        expect(attributesOf(out)).toEqual(expect.arrayContaining(["tropism_session=", "max-age=0"]))
        expectProblem(yield* me, 401)
      })
    )
  })

  describe("Where a person is signed in", () => {
    it.effect("is listed for them, newest first, and one or all others are ended", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const old = yield* browserOf(story, "cleo", { "user-agent": `Old\u00ffBrowser/1 ${"x".repeat(300)}` })
        const lost = yield* browserOf(story, "cleo", { "user-agent": "Lost/2" })
        const here = yield* browserOf(story, "cleo", { "user-agent": "Here/3" })
        const other = yield* browserOf(story, "dora")
        const listed = (yield* here.browse("GET", "/api/me/sessions")).body.items
        expect(listed).toMatchObject([
          { browser: "Here/3", isCurrent: true },
          { browser: "Lost/2", isCurrent: false },
          { isCurrent: false }
        ])
        expect(listed[2].browser).toHaveLength(200)
        expect(Date.parse(listed[0].expiresAt)).toBeGreaterThan(Date.parse(listed[0].createdAt))
        expect(JSON.stringify(listed)).not.toContain(here.secret)
        const first = (yield* here.browse("GET", "/api/me/sessions?limit=2")).body
        const rest = (yield* here.browse("GET", `/api/me/sessions?cursor=${first.nextCursor}`)).body
        expect([first.items.length, rest.items.map(({ id }: { id: string }) => id), rest.nextCursor]).toEqual(
          [2, [listed[2].id], null]
        )
        expectProblem(yield* here.browse("GET", "/api/me/sessions?cursor=x"), 422)

        const end = (browser: typeof here, id: string) => browser.browse("DELETE", `/api/me/sessions/${id}`)
        for (const id of [listed[1].id, "00000000-0000-7000-8000-000000000000", "x"])
          expectProblem(yield* end(other, id), 404)
        expect((yield* lost.browse("GET", "/api/me")).status).toBe(200)
        expect((yield* end(here, listed[1].id)).status).toBe(204)
        expectProblem(yield* lost.browse("GET", "/api/me"), 401)
        expectProblem(yield* end(here, listed[1].id), 404)

        expect((yield* here.browse("DELETE", "/api/me/sessions")).body).toEqual({ ended: 1 })
        expectProblem(yield* old.browse("GET", "/api/me"), 401)
        const left = (yield* here.browse("GET", "/api/me/sessions")).body.items
        expect(left).toMatchObject([{ isCurrent: true }])
        expect((yield* end(here, left[0].id)).status).toBe(204)
        expectProblem(yield* here.browse("GET", "/api/me"), 401)
        expect((yield* other.browse("GET", "/api/me")).status).toBe(200)
      })
    )

    it.effect("is told to no credential of theirs that reaches less", () =>
      Effect.gen(function* () {
        const [one, two] = [yield* newStoryHere, yield* newStoryHere]
        const inOne = yield* browserOf(one, "emma")
        const inTwo = yield* browserOf(two, "emma")
        const idsOf = (answer: Answer): ReadonlyArray<string> =>
          answer.body.items.map(({ id }: { id: string }) => id)
        const [ofOne, ofTwo] = [
          idsOf(yield* inOne.browse("GET", "/api/me/sessions")),
          idsOf(yield* inTwo.browse("GET", "/api/me/sessions"))
        ]
        expect([ofOne.length, ofTwo.length]).toEqual([1, 1])
        expectProblem(yield* inOne.browse("DELETE", `/api/me/sessions/${ofTwo[0]}`), 404)
        expect((yield* inOne.browse("DELETE", "/api/me/sessions")).body).toEqual({ ended: 0 })
        // One of the server, under the same name, reaches both; no cookie of theirs reaches the admin's.
        const made = yield* one.send("POST", "/api/tokens", { name: "hers", userId: "emma", role: "viewer" })
        const authorization = `Bearer ${made.body.token}`
        const all = yield* one.send("GET", "/api/me/sessions", undefined, { authorization })
        expect(idsOf(all)).toEqual([...ofTwo, ...ofOne])
        expect((yield* one.send("DELETE", "/api/me/sessions", undefined, { authorization })).body).toEqual({
          ended: 2
        })
        expectProblem(yield* inOne.browse("GET", "/api/me"), 401)
        expectProblem(yield* inTwo.browse("GET", "/api/me"), 401)
      })
    )
  })
})
