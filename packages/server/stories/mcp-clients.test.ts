/**
 * Clients of others at the MCP door, end to end: the official SDK of the generation before, and the inspector.
 *
 * The official client of today is in mcp-door.test.ts, in both revisions.
 */
import { describe, expect, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { runInspector } from "../testing/mcp-programs.ts"
import { type Json, newProject, startServer } from "../testing/platform.ts"
import { asUser } from "../testing/token-words.ts"

/** A server with fixtures and a person of one of its projects. */
const newPerson = Effect.gen(function* () {
  const access = yield* freshDatabase
  const story = yield* newProject(yield* startServer(access, [], undefined, true), access)
  return yield* asUser(story, "editor", [story.projectId])
})

describe("S003-R08 The MCP door is used by", () => {
  it.live("the official client of the generation before", () =>
    Effect.gen(function* () {
      const person = yield* newPerson
      const open = (path: string) =>
        Effect.acquireRelease(
          Effect.promise(() => {
            const made = new Client({ name: "an-older-story", version: "1" })
            const transport = new StreamableHTTPClientTransport(new URL(path, person.url), {
              requestInit: { headers: { authorization: `Bearer ${person.token}` } }
            })
            return made.connect(transport as Parameters<Client["connect"]>[0]).then(() => made)
          }),
          (made) => Effect.promise(() => made.close())
        )
      for (const path of ["/mcp", `/api/projects/${person.projectId}/mcp`]) {
        const client = yield* open(path)
        expect(client.getServerVersion()).toMatchObject({ name: "tropism" })
        expect((yield* Effect.promise(() => client.listTools())).tools).toBeInstanceOf(Array)
      }
      const client = yield* open("/mcp-fixtures")
      const told = yield* Effect.promise(() => client.callTool({ name: "test_simple_text", arguments: {} }))
      expect(told.content).toEqual([{ type: "text", text: "This is a simple text response for testing." }])
    }).pipe(Effect.scoped)
  )

  it.live("the inspector's command line, with a token and not without", () =>
    Effect.gen(function* () {
      const person = yield* newPerson
      const ask = (path: string, token: string, ...args: ReadonlyArray<string>) =>
        runInspector(person.url + path, token, ...args)
      const answered = (said: string): Json => JSON.parse(said.slice(said.indexOf("{")))
      const listed = yield* ask("/mcp", person.token, "--method", "tools/list")
      expect(listed).toMatchObject({ code: 0 })
      expect(answered(listed.said).tools).toBeInstanceOf(Array)
      const args = ["--method", "tools/call", "--tool-name", "test_simple_text"]
      const called = yield* ask("/mcp-fixtures", person.token, ...args)
      expect(answered(called.said)).toMatchObject({
        content: [{ type: "text", text: "This is a simple text response for testing." }]
      })
      const refused = yield* ask("/mcp", "wrong", "--method", "tools/list")
      expect(refused.code).not.toBe(0)
    }).pipe(Effect.scoped)
  )
})
