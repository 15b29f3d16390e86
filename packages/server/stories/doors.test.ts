/**
 * Who is let in, what everybody may see, and what is answered where there is nothing.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, layer } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Answer, type Doors, type Json, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newConversation } from "../testing/conversation-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { feedOf } from "../testing/story-words.ts"

const nobody = "00000000-0000-7000-8000-000000000000"

const withoutToken = { authorization: "" }

/** Every operation of the served contract, with an address that is well formed. */
const operationsOf = Effect.fn("operationsOf")(function* (doors: Doors, projectId: string) {
  const document = (yield* doors.send("GET", "/openapi.json", undefined, withoutToken)).body
  return Object.entries<Record<string, Json>>(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => ({
      method: method.toUpperCase(),
      path: path
        .replace("{projectId}", projectId)
        .replace("{name}", "a-name")
        .replace(/\{\w+\}/g, nobody),
      contract: path
    }))
  )
})

const sessionOf = (answer: Answer): string => (answer.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? ""

/** A session of a browser that came in by a login link of its own server. */
const signedIn = Effect.gen(function* () {
  const access = yield* freshDatabase
  const doors = yield* startServer(access)
  const answer = yield* doors.send("GET", doors.loginLink.slice(doors.url.length), undefined, withoutToken)
  const made = yield* doors.send("POST", "/api/projects", { name: "A story" })
  const projectId: string = made.body.id
  return { doors, answer, cookie: sessionOf(answer), objects: `/api/projects/${projectId}/objects` }
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Without a token", () => {
    it.effect("everybody may ask how the server is and what it can do", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const look = (path: string) => doors.send("GET", path, undefined, withoutToken)
        expect((yield* look("/health")).body).toMatchObject({ status: "ok" })
        expect((yield* look("/ready")).body).toMatchObject({ status: "ok" })
        expect((yield* look("/openapi.json")).body.openapi).toMatch(/^3\.1\./)
        const docs = yield* look("/docs")
        expect([docs.status, docs.headers.get("content-type")]).toEqual([
          200,
          expect.stringMatching(/^text\/html/)
        ])
      })
    )

    it.effect("every operation of the contract but health and readiness answers 401, whatever is sent", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const operations = yield* operationsOf(story, story.projectId)
        const closed = operations.filter(({ contract }) => !["/health", "/ready"].includes(contract))
        expect(closed.length).toBeGreaterThan(30)
        for (const { method, path } of closed) {
          for (const authorization of [
            "",
            "Bearer wrong",
            `Basic ${btoa(`admin:${story.token}`)}`,
            story.token
          ]) {
            expectProblem(yield* story.send(method, path, undefined, { authorization }), 401)
          }
          // Nothing of what it sent is looked at either.
          if (method !== "GET")
            expectProblem(yield* story.send(method, `${path}?limit=x`, "{no JSON", withoutToken), 401)
        }
      })
    )

    it.effect("an address of the API that does not exist answers like one that does", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        for (const [method, path] of [
          ["GET", "/api"],
          ["GET", "/api/nothing"],
          ["GET", `/api/projects/${nobody}`],
          ["GET", "/api/projects/nonsense/objects"],
          ["POST", "/nothing"],
          ["DELETE", "/health"]
        ] as const)
          expectProblem(yield* doors.send(method, path, undefined, withoutToken), 401)
      })
    )

    it.effect("the console's files are for everybody, and a file that is missing is a problem document", () =>
      Effect.gen(function* () {
        const files = yield* FileSystem.FileSystem
        const outside = yield* files.makeTempDirectoryScoped()
        const folder = `${outside}/console`
        yield* files.makeDirectory(folder)
        yield* files.writeFileString(`${folder}/index.html`, "<!doctype html><title>Console</title>")
        yield* files.writeFileString(`${folder}/app.js`, "export {}")
        yield* files.writeFileString(`${outside}/secret`, "secret")
        const doors = yield* startServer(yield* freshDatabase, [], folder)
        const look = (path: string, accept = "*/*") =>
          doors.send("GET", path, undefined, { ...withoutToken, accept })
        expect((yield* look("/")).body).toContain("<title>Console")
        expect((yield* look("/app.js")).body).toBe("export {}")
        expect((yield* look("/runs/123", "text/html")).body).toContain("<title>Console")
        for (const missing of [
          "/missing.js",
          "/..%2fsecret",
          "/%2e%2e%2fsecret",
          "/%5c..%5csecret",
          "/a%00b",
          "/%E0%A4%A",
          `/${"x".repeat(3_000)}`
        ])
          expectProblem(yield* look(missing), 404)
        // The API is not the console's, whatever a browser accepts.
        expectProblem(yield* look("/api/nothing", "text/html"), 401)
        expectProblem(yield* doors.send("GET", "/api/nothing", undefined, { accept: "text/html" }), 404)
      }).pipe(Effect.provide(NodeServices.layer))
    )
  })

  describe("A login link", () => {
    it.effect("signs one browser in, once, with a cookie that no script and no other site can use", () =>
      Effect.gen(function* () {
        const { doors, answer, cookie } = yield* signedIn
        expect([answer.status, answer.headers.get("location")]).toEqual([303, "/"])
        const attributes = (answer.headers.get("set-cookie") ?? "")
          .split("; ")
          .map((each) => each.toLowerCase())
        expect(attributes).toEqual(expect.arrayContaining(["httponly", "samesite=strict", "path=/"]))
        expect(cookie).toMatch(/^tropism_session=.{32,}$/)

        const again = yield* doors.send(
          "GET",
          doors.loginLink.slice(doors.url.length),
          undefined,
          withoutToken
        )
        expectProblem(again, 401)
        expect(again.headers.get("set-cookie")).toBeNull()
        const me = yield* doors.send("GET", "/api/me", undefined, { ...withoutToken, cookie })
        expect(me.body).toEqual({ userId: "admin", role: "admin", projectIds: null })
        for (const wrong of ["tropism_session=wrong", `${cookie}x`, "tropism_session="]) {
          expectProblem(
            yield* doors.send("GET", "/api/me", undefined, { ...withoutToken, cookie: wrong }),
            401
          )
        }
      })
    )

    it.effect("lets in one of ten browsers that use it at the same moment", () =>
      Effect.gen(function* () {
        const doors = yield* startServer(yield* freshDatabase)
        const answers = yield* Effect.forEach(
          Array.from({ length: 10 }),
          () => doors.send("GET", doors.loginLink.slice(doors.url.length), undefined, withoutToken),
          { concurrency: 10 }
        )
        expect(answers.map((answer) => answer.status).toSorted()).toEqual([303, ...Array(9).fill(401)])
      })
    )

    it.effect("with no code, or a wrong one, is refused", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        for (const query of ["", "?code=", "?code=wrong", `?code=${doors.token}`])
          expectProblem(yield* doors.send("GET", `/login${query}`, undefined, withoutToken), 401)
      })
    )
  })

  describe("A browser with a cookie", () => {
    it.effect("may change things from the server's own pages, and from no other site", () =>
      Effect.gen(function* () {
        const { doors, cookie, objects } = yield* signedIn
        const from = (origin: string | undefined, method = "POST", path = objects) =>
          doors.send(method, path, method === "GET" ? undefined : { type: "Thing" }, {
            ...withoutToken,
            cookie,
            ...(origin === undefined ? {} : { origin })
          })
        expect((yield* from(doors.url)).status).toBe(201)
        expect((yield* from(undefined)).status).toBe(201)
        const port = new URL(doors.url).port
        for (const foreign of [
          "https://evil.example",
          `http://127.0.0.1.evil.example:${port}`,
          `http://127.0.0.1:${Number(port) + 1}`,
          "null",
          "nonsense"
        ])
          expectProblem(yield* from(foreign), 401)
        expect((yield* from("https://evil.example", "GET")).body.items).toHaveLength(2)
        // A bearer token is sent by nobody unasked: where it comes from does not matter.
        const program = yield* doors.send(
          "POST",
          objects,
          { type: "Thing" },
          { origin: "https://evil.example" }
        )
        expect(program.status).toBe(201)
      })
    )

    it.effect("may also be signed in by a token, and be signed out", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        const answer = yield* doors.send("POST", "/login")
        expect(answer.status).toBe(204)
        expect(answer.headers.get("set-cookie")?.toLowerCase()).toMatch(/httponly.*samesite=strict/)
        const me = yield* doors.send("GET", "/api/me", undefined, {
          ...withoutToken,
          cookie: sessionOf(answer)
        })
        expect(me.body.userId).toBe("admin")
        for (const authorization of ["", "Bearer wrong", "Bearer", doors.token]) {
          const refused = yield* doors.send("POST", "/login", undefined, { authorization })
          expectProblem(refused, 401)
          expect(refused.headers.get("set-cookie")).toBeNull()
        }
        const out = yield* doors.send("POST", "/logout", undefined, {
          ...withoutToken,
          cookie: sessionOf(answer)
        })
        expect(out.headers.get("set-cookie")?.toLowerCase()).toMatch(/^tropism_session=;.*max-age=0/)
      })
    )
  })

  describe("Where there is nothing", () => {
    it.effect("a missing thing, another project's thing and an ill-formed id give the same 404", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const object = yield* other.post("/objects", { type: "Thing" })
        const target = yield* other.post("/objects", { type: "Thing" })
        const relationship = yield* other.post("/relationships", {
          type: "NEAR",
          fromId: object.id,
          toId: target.id
        })
        const agent = yield* other.post("/agents", {
          name: "foreigner",
          prompt: "x",
          triggerType: "manual",
          model: { provider: "scripted", name: "s", script: { rules: [{ say: "x" }] } }
        })
        const run = yield* other.post(`/agents/${agent.id}/trigger`)
        yield* other.post("/contexts", { name: "theirs", agentId: agent.id })
        const theirEvent = (yield* feedOf(other, 1))[0]
        const theirImport = "00000000-0000-7000-8000-000000000001"
        yield* other.send(
          "POST",
          `/api/projects/${other.projectId}/import?format=jsonl&id=${theirImport}`,
          new TextEncoder().encode('{"kind":"object","type":"Thing","properties":{}}\n'),
          { "content-type": "application/octet-stream" }
        )
        expect((yield* other.get(`/imports/${theirImport}`)).id).toBe(theirImport)
        const foreign = new Map<string, string>([
          ["objects", object.id],
          ["relationships", relationship.id],
          ["agents", agent.id],
          ["runs", run.id],
          ["chains", run.id],
          ["events", theirEvent.id],
          ["contexts", "theirs"],
          ["conversations", (yield* newConversation(other, agent, "Theirs")).id],
          ["imports", theirImport],
          ["attachments", "0".repeat(64)],
          ["mcp-servers", nobody],
          ["tasks", nobody]
        ])
        // A webhook's own door answers 401 for all of it: webhooks.test.ts.
        const operations = (yield* operationsOf(story, story.projectId)).filter(({ contract }) =>
          /^\/api\/projects.*\/\{(?!projectId)\w+\}/.test(contract)
        )
        expect(operations.length).toBeGreaterThan(20)
        for (const { method, path, contract } of operations) {
          const kind = contract.split("/")[4] ?? ""
          const query = contract.endsWith("/explain") ? `?eventId=${nobody}` : ""
          const body = bodies.get(`${method} ${contract.split("/").slice(4).join("/")}`)
          const lookAt = (id: string) =>
            story.send(
              method,
              path.replace(/(?:a-name|00000000-0000-7000-8000-000000000000)/, id) + query,
              body
            )
          const missingId = missing.get(kind) ?? nobody
          const absent = yield* lookAt(missingId)
          expectProblem(absent, 404)
          const theirId = foreign.get(kind) ?? "?"
          const theirs = yield* lookAt(theirId)
          const told = (answer: Answer, id: string) => JSON.stringify(answer.body).replaceAll(id, "…")
          expect([method, contract, told(theirs, theirId)]).toEqual([
            method,
            contract,
            told(absent, missingId)
          ])
          for (const illFormed of ["7", "%00", "A%2FB:1", "x".repeat(3_000)])
            expectProblem(yield* lookAt(illFormed), 404)
        }
        expect((yield* other.get(`/objects/${object.id}`)).version).toBe(1)
        expect((yield* other.get(`/runs/${run.id}`)).status).toBe("completed")
      })
    )

    it.effect("a project that does not exist and an address that does not: the same form", () =>
      Effect.gen(function* () {
        const { doors } = yield* SharedServer
        for (const [method, path] of [
          ["GET", `/api/projects/${nobody}`],
          ["GET", `/api/projects/${nobody}/objects`],
          ["POST", `/api/projects/${nobody}/objects`],
          ["GET", "/api/projects/nonsense/objects"],
          ["GET", "/api/nothing"],
          ["GET", "/nothing"],
          ["GET", "/api/projects/%E0%A4%A/objects"],
          ["PUT", "/api/projects"],
          ["OPTIONS", "/nothing"],
          ["POST", "/docs"]
        ] as const) {
          const body = method === "POST" && path.endsWith("/objects") ? { type: "Thing" } : undefined
          expectProblem(yield* doors.send(method, path, body), 404)
        }
      })
    )
  })
})

/** Bodies that fit the contract, so that the address is what is wrong. */
/** Names of what is nowhere, where a name is no UUID. */
const missing = new Map([
  ["contexts", "nobody"],
  ["attachments", "1".repeat(64)]
])

const bodies = new Map<string, Json>([
  ["PATCH objects/{objectId}", { properties: {} }],
  ["PATCH relationships/{relationshipId}", { properties: {} }],
  ["PATCH agents/{agentId}", {}],
  ["POST agents/{agentId}/trigger", {}],
  ["POST agents/{agentId}/backtests", { days: 1 }],
  ["POST agents/{agentId}/batch-trigger", { objectIds: [nobody] }],
  ["POST agents/{agentId}/dead-letters/redrive", {}],
  ["POST agents/{agentId}/batch-trigger", { objectIds: ["00000000-0000-7000-8000-000000000000"] }],
  ["POST agents/{agentId}/promotions/{promotionId}/reverse", {}],
  ["POST agents/{agentId}/undo", { version: 1 }],
  ["POST agents/{agentId}/webhooks", {}],
  ["POST agents/{agentId}/webhooks/{webhookId}/rotate", {}],
  ["PATCH conversations/{conversationId}", { title: "Another" }],
  ["POST contexts/{name}/fork", { name: "another" }],
  [
    "POST contexts/{name}/comparisons",
    {
      content: "Which?",
      variants: [
        { label: "a", content: "A?" },
        { label: "b", content: "B?" }
      ]
    }
  ],
  ["PATCH tasks/{taskId}", { title: "Another" }],
  ["PATCH mcp-servers/{mcpServerId}", {}],
  ["POST mcp-servers/{mcpServerId}/refresh", {}],
  ["POST runs/{runId}/answer", { answer: "Yes" }],
  ["POST runs/{runId}/resume", {}],
  ["POST contexts/{name}/events", { type: "UserMessageEvent", content: "Hello" }],
  ["POST tasks/{taskId}/approve", {}],
  ["POST tasks/{taskId}/reject", {}]
])
