/**
 * Clients of others at the MCP door, end to end: the official SDK of the generation before, and the inspector.
 *
 * The official client of today is in mcp-door.test.ts, in both revisions; here it is driven through the events
 * extension, of which it has no methods of its own: its requests and notifications of any name carry it.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { asking, connect, followEvents, revisions } from "../testing/mcp-clients.ts"
import { addressOf } from "../testing/mcp-extension-words.ts"
import { mcpFixtures } from "../testing/mcp-fixtures.ts"
import { runInspector } from "../testing/mcp-programs.ts"
import { receiver, secretOf } from "../testing/mcp-receiver.ts"
import { type Json, newProject, startServer } from "../testing/platform.ts"
import { feedOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

/** A server with fixtures and a person of one of its projects. */
const newPerson = Effect.gen(function* () {
  const access = yield* freshDatabase
  const story = yield* newProject(yield* startServer(access, [], undefined, mcpFixtures), access)
  return yield* asUser(story, "admin", [story.projectId])
})

/** The places in tools' schemas of which the inspector says that some clients cannot take them. */
const unportableIn = (remarks: string): ReadonlyArray<string> =>
  [...remarks.matchAll(/^(?:Warning|Error): tool "(?<tool>[^"]+)"\n {2}Path: (?<path>.+)$/gm)]
    .map(({ groups }) => `${groups?.["tool"]} ${groups?.["path"]}`)
    .toSorted()

/** Those that the page gives a reason for. */
const excused = [
  ...readFileSync(join(import.meta.dirname, "../../../docs/mcp.md"), "utf8").matchAll(
    /^\| `(?<tool>\w+)` \| `(?<path>[^`]+)` \| .+ \|$/gm
  )
]
  .map(({ groups }) => `${groups?.["tool"]} ${groups?.["path"]}`)
  .toSorted()

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
      expect(told.content).toEqual([{ type: "text", text: expect.stringMatching(/\S/) }])
    }).pipe(Effect.scoped)
  )

  it.live("the inspector's command line, with a token and not without", () =>
    Effect.gen(function* () {
      const person = yield* newPerson
      const ask = (path: string, token: string, ...args: ReadonlyArray<string>) =>
        runInspector(person.url + path, token, ...args)
      const answered = (said: string): Json => JSON.parse(said.slice(said.indexOf("{")))
      const listed = yield* ask("/mcp", person.token, "--method", "tools/list", "--strict")
      expect(listed).toMatchObject({ code: 0 })
      expect(unportableIn(listed.remarks)).toEqual(excused)
      expect(excused).not.toEqual([])
      expect(answered(listed.said).tools).toBeInstanceOf(Array)
      const args = ["--method", "tools/call", "--tool-name", "test_simple_text"]
      const called = yield* ask("/mcp-fixtures", person.token, ...args)
      expect(answered(called.said)).toMatchObject({
        content: [{ type: "text", text: expect.stringMatching(/\S/) }]
      })
      const refused = yield* ask("/mcp", "wrong", "--method", "tools/list")
      expect(refused.code).not.toBe(0)
    }).pipe(Effect.scoped)
  )
})

describe("The official client in the events extension", () => {
  it.live("finds the catalog, polls, streams over a broken connection, and subscribes an address", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const thing = (key: string) => story.post("/objects", { type: "Thing", key })
      for (const revision of revisions) {
        const at = `${revision}:`
        const client = yield* connect(story, addressOf(story), revision)
        const listening = { name: "object.created", arguments: { type: "Thing" } }
        expect(client.getServerCapabilities()?.extensions).toMatchObject({
          "io.modelcontextprotocol/events": {}
        })
        const { events } = yield* asking(client, "events/list", {})
        expect(events.map(({ name }: Json) => name)).toContain("object.created")
        const begin = yield* asking(client, "events/poll", listening)
        expect(begin.events).toEqual([])
        const before = (yield* feedOf(story, 0)).length
        for (const key of [`${at}1`, `${at}2`]) yield* thing(key)
        yield* feedOf(story, before + 2)
        const page = yield* asking(client, "events/poll", {
          ...listening,
          cursor: begin.cursor,
          maxEvents: 1
        })
        expect(page).toMatchObject({ events: [{ data: { key: `${at}1` } }], hasMore: true })
        // The rest comes live; the connection is cut and the client goes on from the last cursor it was told.
        const first = yield* followEvents(client, { ...listening, cursor: page.cursor })
        const [second] = yield* first.until(1)
        expect(second).toMatchObject({ name: "object.created", data: { key: `${at}2` } })
        yield* first.cut
        yield* thing(`${at}3`)
        const again = yield* followEvents(client, { ...listening, cursor: second.cursor })
        yield* again.until(1)
        yield* thing(`${at}4`)
        expect((yield* again.until(2)).map(({ data }) => data.key)).toEqual([`${at}3`, `${at}4`])
        yield* again.cut
        const hook = yield* receiver()
        const target = { mode: "webhook", url: hook.url }
        const subscribed = yield* asking(client, "events/subscribe", {
          ...listening,
          delivery: { ...target, secret: secretOf("a") }
        })
        expect(subscribed).toMatchObject({ id: expect.any(String), truncated: false })
        yield* thing(`${at}5`)
        expect((yield* hook.until(1)).map(({ body }) => body.data.key)).toEqual([`${at}5`])
        expect(
          yield* asking(client, "events/unsubscribe", { ...listening, delivery: target })
        ).not.toHaveProperty("error")
        const refused = yield* asking(client, "events/poll", { name: "object.moved" })
        expect(refused.error).toMatchObject({
          code: -32_011,
          message: expect.stringContaining("object.created")
        })
      }
    }).pipe(Effect.scoped)
  )
})
