/**
 * Who is let in, what everybody may see, and what is answered where there is nothing.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, layer } from "@effect/vitest"
import { Effect, FileSystem } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { type Doors, type Json, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

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
        .replace(/\{(?:name|userId)\}/, "a-name")
        .replace(/\{\w+\}/g, nobody),
      contract: path
    }))
  )
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
        // What is read there is the whole contract, with its words.
        const { paths } = (yield* look("/openapi.json")).body
        const { description } = paths["/api/projects/{projectId}/objects/{objectId}/restore"].post
        expect(docs.body).toContain(description)
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
            const refusal = yield* story.send(method, path, undefined, { authorization })
            expectProblem(refusal, 401)
            expect(refusal.headers.get("www-authenticate")).toBe('Bearer realm="tropism"')
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
        // Who opens such an address in a browser is told by the console, which leads on.
        for (const odd of ["/runs/a%2Fb%00", "/%E0%A4%A", "/..%2fsecret", `/${"x".repeat(3_000)}`]) {
          const { status, body } = yield* look(odd, "text/html,*/*;q=0.8")
          expect([odd, status, body]).toEqual([odd, 200, expect.stringContaining("<title>Console")])
        }
        // The API is not the console's, whatever a browser accepts.
        expectProblem(yield* look("/api/nothing", "text/html"), 401)
        expectProblem(yield* doors.send("GET", "/api/nothing", undefined, { accept: "text/html" }), 404)
      }).pipe(Effect.provide(NodeServices.layer))
    )
  })

  describe("Where there is nothing", () => {
    it.effect("an ill-formed id is a missing thing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        // A webhook's own door answers 401 for all of it: webhooks.test.ts.
        const operations = (yield* operationsOf(story, story.projectId)).filter(({ contract }) =>
          /^\/api\/projects.*\/\{(?!projectId)\w+\}/.test(contract)
        )
        expect(operations.length).toBeGreaterThan(20)
        for (const { method, path, contract } of operations) {
          const query = contract.endsWith("/explain") ? `?eventId=${nobody}` : ""
          const body = bodies.get(`${method} ${contract.split("/").slice(4).join("/")}`)
          for (const illFormed of ["7", "%00", "A%2FB:1", "x".repeat(3_000)]) {
            const address = path.replace(/(?:a-name|00000000-0000-7000-8000-000000000000)/, illFormed)
            expectProblem(yield* story.send(method, address + query, body), 404)
          }
        }
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
          ["PUT", "/api/nothing"],
          ["OPTIONS", "/nothing"],
          ["POST", "/nothing"]
        ] as const) {
          const body = method === "POST" && path.endsWith("/objects") ? { type: "Thing" } : undefined
          expectProblem(yield* doors.send(method, path, body), 404)
        }
      })
    )
  })
})

/** Bodies that fit the contract, so that the address is what is wrong. */
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
  ["PATCH members/{userId}", { role: "viewer" }],
  ["PATCH mcp-servers/{mcpServerId}", {}],
  ["POST mcp-servers/{mcpServerId}/refresh", {}],
  ["POST runs/{runId}/answer", { answer: "Yes" }],
  ["POST runs/{runId}/resume", {}],
  ["POST contexts/{name}/events", { type: "UserMessageEvent", content: "Hello" }],
  ["POST tasks/{taskId}/approve", {}],
  ["POST tasks/{taskId}/reject", {}]
])
