/**
 * What holds at every door of the server, whatever stands behind it.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Redacted } from "effect"
import { CrashPoint } from "../src/crash-point.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Answer, type Doors, eventually, type Json, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const corsOf = ({ headers }: Answer) =>
  ["access-control-allow-origin", "access-control-allow-credentials"].map((name) => headers.get(name))

layer(SharedServer.own, { excludeTestServices: true })((it) => {
  describe("Every problem has a page at the address that is its type", () => {
    it.effect("for browsers and for programs, without a token, with all its members and reasons", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const look = (path: string, accept: string) =>
          doors.send("GET", path, undefined, { authorization: "", accept })
        const { schemas } = (yield* look("/openapi.json", "*/*")).body.components
        const problems = Object.values<Json>(schemas).filter(({ properties }) =>
          String(properties?.type?.enum?.[0] ?? "").startsWith("/problems/")
        )
        expect(problems.length).toBeGreaterThan(9)
        const index = yield* look("/problems", "text/html")
        for (const { properties } of problems) {
          const [type] = properties.type.enum
          const page = yield* look(type, "*/*")
          expect([page.status, page.headers.get("content-type")]).toEqual([
            200,
            "text/markdown; charset=utf-8"
          ])
          expect(page.body).toContain(`# ${properties.status.enum[0]} ${properties.title.enum[0]}\n`)
          const html = yield* look(type, "text/html,*/*")
          expect([html.status, html.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"])
          const ordinary = new Set(["type", "title", "status", "detail", "instance"])
          const words = Object.keys(properties).filter((name) => !ordinary.has(name))
          for (const word of [...words, ...(properties.reason?.enum ?? [])]) {
            expect(page.body).toContain(`- \`${word}\`: `)
            expect(html.body).toContain(`<dt>${word}</dt>`)
          }
          expect(index.body).toContain(`href="${type}"`)
        }
        expectProblem(yield* look("/problems/nothing", "text/html"), 404)
      })
    )
  })

  describe("The server is ready", () => {
    it.effect("only while its database can be written, and says why it is not", () =>
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const doors = yield* startServer(access)
        const look = doors.send("GET", "/ready", undefined, { authorization: "" })
        const [[name] = []] = yield* ask(access, "select current_database()", [])
        const other = new URL(Redacted.value(access.ownerUrl))
        other.pathname = "/postgres"
        const elsewhere = { ...access, ownerUrl: Redacted.make(other.toString()) }
        // As when what was the primary is a replica now: connections end, and new ones find it so.
        const becomes = (setting: string) =>
          ask(elsewhere, `alter database "${String(name)}" ${setting}`, []).pipe(
            Effect.andThen(
              ask(
                { ...access, ownerUrl: access.serverUrl },
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and usename = current_user and pid <> pg_backend_pid()",
                []
              )
            )
          )
        expect((yield* look).status).toBe(200)
        yield* becomes("set default_transaction_read_only = on")
        const closed = yield* eventually(look, ({ body }) => body.reason === "databaseReadOnly")
        expectProblem(closed, 503)
        expect((yield* doors.send("GET", "/health")).status).toBe(200)
        yield* becomes("reset default_transaction_read_only")
        yield* eventually(look, ({ status }) => status === 200)
      })
    )

    it.effect("while all of its parts work, and names the one that has ended", () =>
      Effect.gen(function* () {
        const doors = yield* Effect.provideService(startServer(yield* freshDatabase), CrashPoint, {
          hit: (name) => (name === "dispatch.beforeCommit" ? Effect.interrupt : Effect.void)
        })
        const look = doors.send("GET", "/ready", undefined, { authorization: "" })
        expect((yield* look).status).toBe(200)
        const { body } = yield* doors.send("POST", "/api/projects", { name: "A story" })
        yield* doors.send("POST", `/api/projects/${body.id}/objects`, { type: "A" })
        const refusal = yield* eventually(look, ({ status }) => status === 503)
        expectProblem(refusal, 503)
        expect(refusal.body.reason).toBe("partEnded")
        expect(refusal.body.detail).toContain("dispatcher")
      })
    )
  })

  describe("An address", () => {
    it.effect("is one however it is written, and tells what may be asked of it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const root = `/api/projects/${story.projectId}`
        const object = yield* story.post("/objects", { type: "A" })
        for (const path of [`${root}/objects/`, `/api//projects/${story.projectId}///objects`]) {
          const listed = yield* story.send("GET", `${path}?type=A`)
          expect([listed.status, listed.body.items?.length]).toEqual([200, 1])
          // The same address is the same under a key.
          const made = yield* story.send("POST", path, { type: "B" }, { "idempotency-key": "k" })
          expect(made.status).toBe(201)
        }
        expect((yield* story.get("/objects?type=B")).items).toHaveLength(1)
        // Small letters are not large ones: what is judged by its address is not gone around by them.
        expect((yield* story.send("GET", "/API/me")).status).toBe(404)
        // Another project's door is not taken for the one at the root.
        const elsewhere = `/api/projects/${crypto.randomUUID()}/mcp/`
        expect((yield* story.send("POST", elsewhere, { jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(
          404
        )

        const head = yield* story.send("HEAD", `${root}/objects/${object.id}`)
        expect([head.status, head.body, head.headers.get("etag")]).toEqual([200, null, '"1"'])
        const streamed = yield* story.send("HEAD", `${root}/events`, undefined, {
          accept: "text/event-stream"
        })
        expect([streamed.status, streamed.body]).toEqual([200, null])
        for (const [method, path, allow] of [
          ["PUT", `${root}/objects`, "GET, HEAD, OPTIONS, POST"],
          ["POST", `${root}/objects/${object.id}`, "DELETE, GET, HEAD, OPTIONS, PATCH"],
          ["GET", `${root}/chat`, "OPTIONS, POST"],
          ["POST", "/docs", "GET, HEAD, OPTIONS"],
          ["PUT", "/api/projects", "GET, HEAD, OPTIONS, POST"],
          ["DELETE", "/health", "GET, HEAD, OPTIONS"],
          ["DELETE", "/openapi.json", "GET, HEAD, OPTIONS"],
          ["POST", "/problems", "GET, HEAD, OPTIONS"],
          ["POST", "/problems/not-found", "GET, HEAD, OPTIONS"]
        ] as const) {
          const refusal = yield* story.send(method, path)
          expectProblem(refusal, 405)
          expect([path, refusal.headers.get("allow")]).toEqual([path, allow])
          const options = yield* story.send("OPTIONS", path)
          expect([options.status, options.headers.get("allow")]).toEqual([204, allow])
          expectProblem(yield* story.send(method, path, undefined, { authorization: "Bearer no" }), 401)
        }
        expectProblem(yield* story.send("PUT", `${root}/nothing`), 404)
      })
    )

    it.effect("is not gone around by letters that are encoded, by its host or by what follows a path", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const root = `/projects/${story.projectId}`
        const first = story.projectId.charCodeAt(0).toString(16)
        const encoded = `/projects/%${first}${story.projectId.slice(1)}`
        for (const path of [`/api${root}/objects`, `/%61pi${root}/objects`, `/api${encoded}/%6fbjects`]) {
          const made = yield* story.send("POST", path, { type: "C" }, { "idempotency-key": "one" })
          expect([path, made.status]).toEqual([path, 201])
        }
        expect((yield* story.get("/objects?type=C")).items).toHaveLength(1)
        expectProblem(
          yield* story.send("POST", `/api${root}/objects;v=1`, { type: "C" }, { "idempotency-key": "one" }),
          404
        )
        const me = yield* story.send("GET", "/%61pi/me")
        expect([me.status, me.headers.get("cache-control")]).toEqual([200, "no-store"])
        // Another project's door is not taken for the one at the root.
        for (const path of ["/%61pi/projects", "/api/%70rojects"]) {
          const ping = { jsonrpc: "2.0", id: 1, method: "ping" }
          const elsewhere = yield* story.send("POST", `${path}/${crypto.randomUUID()}/mcp`, ping)
          expect([path, elsewhere.status]).toEqual([path, 404])
        }
      })
    )
  })

  describe("Every answer", () => {
    it.effect("tells a browser what not to do with it, and what the API says is kept nowhere", () =>
      Effect.gen(function* () {
        const folder = yield* Effect.acquireRelease(
          Effect.sync(() => mkdtempSync(join(tmpdir(), "tropism-edge-"))),
          (made) => Effect.sync(() => rmSync(made, { recursive: true }))
        )
        writeFileSync(join(folder, "index.html"), "<!doctype html><title>Console</title>")
        const doors = yield* startServer(yield* freshDatabase, [], folder)
        const told = (path: string, headers: Record<string, string> = {}) =>
          Effect.map(doors.send("GET", path, undefined, headers), (answer) => ({
            policy: answer.headers.get("content-security-policy") ?? "",
            kept: answer.headers.get("cache-control"),
            others: ["x-content-type-options", "referrer-policy", "x-frame-options"].map((name) =>
              answer.headers.get(name)
            )
          }))
        const html = { accept: "text/html" }
        for (const [path, script, kept, headers = {}] of [
          ["/", "default-src 'self'; style-src", "no-cache", html],
          ["/runs/any", "default-src 'self'; style-src", "no-cache", html],
          ["/docs", "script-src 'unsafe-inline'", null],
          ["/problems", "default-src 'none'; style-src", null, html],
          ["/openapi.json", "default-src 'none'; style-src", null],
          ["/api/me", "default-src 'none'; sandbox", "no-store"],
          ["/api/nothing", "default-src 'none'; sandbox", "no-store"],
          ["/metrics", "default-src 'none'; sandbox", "no-store"],
          ["/v1/models", "default-src 'none'; sandbox", "no-store"],
          ["/ready", "default-src 'none'; sandbox", "no-store"]
        ] as const) {
          const { kept: isKept, others, policy } = yield* told(path, headers)
          expect([path, isKept, others]).toEqual([path, kept, ["nosniff", "same-origin", "DENY"]])
          expect(policy).toContain(script)
          expect(policy).toContain("frame-ancestors 'none'")
        }
        // A page that the browser has kept keeps its policy: what says that it is still right brings no other.
        const first = yield* doors.send("GET", "/", undefined, html)
        const etag = first.headers.get("etag") ?? ""
        const again = yield* doors.send("GET", "/", undefined, { ...html, "if-none-match": etag })
        expect([etag === "", again.status, again.headers.get("content-security-policy")]).toEqual([
          false,
          304,
          null
        ])
        // What says so by itself is left as it is.
        const link = yield* doors.send("GET", "/login?code=none", undefined, { authorization: "" })
        expect(link.headers.get("content-security-policy")).not.toContain("default-src 'self'")
      })
    )
  })

  describe("Pages elsewhere", () => {
    const page = "https://pages.example"
    const ask = (doors: Doors, method: string, headers: Record<string, string>) =>
      doors.send(method, "/api/me", undefined, headers)

    it.effect("cannot read what they ask for, nor call the server by a name that is not its own", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        expect((yield* ask(doors, "GET", { origin: doors.url })).status).toBe(200)
        const foreign = yield* ask(doors, "GET", { origin: page })
        expect([foreign.status, ...corsOf(foreign)]).toEqual([200, null, null])
        const asked = { authorization: "", origin: page, "access-control-request-method": "GET" }
        const refused = yield* ask(doors, "OPTIONS", asked)
        expect([refused.status, ...corsOf(refused)]).toEqual([401, null, null])
        for (const host of ["rebound.example", "127.0.0.1.example"]) {
          const refusal = yield* ask(doors, "GET", { host, origin: `http://${host}` })
          expectProblem(refusal, 403)
          expect(refusal.body.detail).toContain("TROPISM_ALLOWED_ORIGINS")
        }
        // Whoever watches over it calls it by any name.
        const watched = yield* doors.send("GET", "/ready", undefined, { host: "10.0.0.7.internal" })
        expect(watched.status).toBe(200)
      })
    )

    it.effect("read what they ask for where the operator names them, and never with a session", () =>
      Effect.gen(function* () {
        const environment = ConfigProvider.layer(
          ConfigProvider.fromEnv({ env: { TROPISM_ALLOWED_ORIGINS: page } })
        )
        const doors = yield* Effect.provide(startServer(yield* freshDatabase), environment)
        const asked = yield* ask(doors, "OPTIONS", {
          authorization: "",
          origin: page,
          "access-control-request-method": "GET",
          "access-control-request-headers": "authorization, if-match"
        })
        expect([asked.status, ...corsOf(asked)]).toEqual([204, page, null])
        expect(asked.headers.get("access-control-allow-headers")).toBe("authorization, if-match")
        expect(asked.headers.get("access-control-allow-methods")).toContain("PATCH")
        const read = yield* ask(doors, "GET", { origin: page })
        expect([read.status, ...corsOf(read)]).toEqual([200, page, null])
        expect(read.headers.get("access-control-expose-headers")).toContain("ratelimit")
        const refused = yield* ask(doors, "GET", { authorization: "", origin: page })
        expect([refused.status, ...corsOf(refused)]).toEqual([401, page, null])
        for (const origin of [
          "http://pages.example",
          "https://other.example",
          "null",
          "http://localhost:3000"
        ])
          expect([origin, ...corsOf(yield* ask(doors, "GET", { origin }))]).toEqual([origin, null, null])
        // The name under which browsers see it is its own.
        expect((yield* ask(doors, "GET", { host: "pages.example" })).status).toBe(200)
      })
    )
  })

  describe("Every request has an id", () => {
    it.effect("its client's own where that is fit, else a new one, told by every answer at every door", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const seen = new Set<string>()
        for (const [method, path] of [
          ["GET", "/api/me"],
          ["GET", "/health"],
          ["GET", "/nothing"],
          ["GET", "/openapi.json"],
          ["GET", "/api/projects/nonsense/objects"],
          ["POST", "/mcp"],
          ["GET", "/v1/models"],
          ["GET", "/v1/nothing"]
        ] as const) {
          const idOf = (given: string) =>
            Effect.map(
              doors.send(method, path, undefined, { "x-request-id": given }),
              ({ body, headers }) => {
                const id = headers.get("x-request-id") ?? ""
                if (headers.get("content-type")?.startsWith("application/problem+json") === true)
                  expect(body.instance).toBe(`/requests/${encodeURIComponent(id)}`)
                return id
              }
            )
          expect(yield* idOf("client/1?a=%")).toBe("client/1?a=%")
          expect(yield* idOf("x".repeat(128))).toBe("x".repeat(128))
          for (const unfit of ["", "x".repeat(129), "two words", "tab\there"]) {
            const made = yield* idOf(unfit)
            expect(made).toMatch(uuidv7)
            seen.add(made)
          }
        }
        expect(seen.size).toBe(32)
      })
    )

    it.effect("a fault of the server is told with the id under which the log has its cause", () =>
      Effect.gen(function* () {
        const { log } = yield* SharedServer
        const story = yield* newStoryHere
        yield* ask(story.access, "alter table kb.tasks rename to broken_tasks", [])
        const answer = yield* Effect.ensuring(
          story.send("GET", `/api/projects/${story.projectId}/tasks`, undefined, {
            "x-request-id": "a-broken-one"
          }),
          ask(story.access, "alter table kb.broken_tasks rename to tasks", [])
        )
        expectProblem(answer, 500)
        expect(answer.body.instance).toBe("/requests/a-broken-one")
        yield* eventually(
          Effect.sync(() => log.filter(({ requestId }) => requestId === "a-broken-one")),
          (lines) => lines.length === 1 && lines[0]?.level === "Error"
        )
      })
    )
  })
})
