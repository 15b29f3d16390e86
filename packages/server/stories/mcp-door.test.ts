/**
 * The MCP door: who comes in, to which project, in which revision, and what everybody else is told.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { connect, opening, revisions, sendMessage } from "../testing/mcp-clients.ts"
import { eventually, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"
import { naming } from "../testing/naming.ts"

const listing = { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} }
const addressOf = ({ projectId }: { readonly projectId: string }) => `/api/projects/${projectId}/mcp`

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("S003-R08 The MCP door", () => {
    for (const revision of revisions)
      it.effect(`speaks ${revision} with the official client, at the project's address and at the root`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const person = yield* asUser(story, "editor", [story.projectId])
          for (const path of [addressOf(story), "/mcp"]) {
            const client = yield* connect(person, path, revision)
            expect(client.getNegotiatedProtocolVersion()).toBe(revision)
            expect(client.getServerVersion()).toMatchObject({ name: "tropism" })
            const { tools } = yield* Effect.promise(() => client.listTools())
            expect(Array.isArray(tools)).toBe(true)
            const repeats = /\{"type":"null"\},\{"type":"null"\}/
            expect(
              tools.filter((tool) => repeats.test(JSON.stringify(tool))).map(({ name }) => name)
            ).toEqual([])
            yield* Effect.promise(() => client.ping()).pipe(
              Effect.when(Effect.succeed(revision === "2025-11-25"))
            )
          }
        })
      )

    it.effect("is closed without a token, and says where to learn more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        for (const path of [addressOf(story), "/mcp"])
          for (const authorization of [undefined, "", "Bearer", "Bearer wrong", "Basic YTpi", story.token]) {
            const { headers, messages, status } = yield* sendMessage(story, path, opening, { authorization })
            expect([path, authorization, status]).toEqual([path, authorization, 401])
            expect(messages[0]).toMatchObject({ type: "/problems/unauthorized", status: 401 })
            const told = headers.get("www-authenticate") ?? ""
            expect(told).toContain("Bearer")
            const { groups } = /resource_metadata="(?<address>[^"]+)"/.exec(told) ?? {}
            const metadata = yield* Effect.promise(() =>
              fetch(groups?.["address"] ?? "").then((response) => response.json())
            )
            expect(metadata).toMatchObject({
              resource: `${story.url}${path}`,
              bearer_methods_supported: ["header"]
            })
          }
      })
    )

    it.effect("is opened by no cookie", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { status } = yield* sendMessage(story, addressOf(story), opening, {
          authorization: undefined,
          cookie: `tropism_session=${story.token}`
        })
        expect(status).toBe(401)
      })
    )

    it.effect("tells a foreign project from none to nobody", () =>
      Effect.gen(function* () {
        const mine = yield* newStoryHere
        const foreign = yield* newStoryHere
        const person = yield* asUser(mine, "admin", [mine.projectId])
        const told = yield* Effect.forEach([foreign.projectId, crypto.randomUUID(), "no-id"], (projectId) =>
          sendMessage(person, addressOf({ projectId }), opening)
        )
        expect(told.map(({ status }) => status)).toEqual([404, 404, 404])
        expect(new Set(told.map(({ messages }) => JSON.stringify(messages))).size).toBe(1)
        const nobody = yield* sendMessage(foreign, addressOf({ projectId: crypto.randomUUID() }), opening)
        expect(nobody.messages).toEqual(told[0]?.messages)
      })
    )

    it.effect("is called by our own name and from pages that we know", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ask = (headers: Record<string, string>) =>
          Effect.map(sendMessage(story, addressOf(story), opening, headers), ({ status }) => status)
        const stranger = yield* story.send("POST", addressOf(story), opening, {
          origin: "https://evil.example"
        })
        expectProblem(stranger, 403)
        expect(stranger.body.type).toBe("/problems/origin-not-allowed")
        expect(stranger.body.detail).toContain("https://evil.example")
        expect(yield* ask({ origin: "https://evil.example" })).toBe(403)
        expect(yield* ask({ origin: "null" })).toBe(403)
        expect(yield* ask({ host: "evil.example" })).toBe(403)
        expect(yield* ask({ host: `localhost:${new URL(story.url).port}` })).toBe(200)
        expect(yield* ask({ origin: "http://localhost:6274" })).toBe(200)
        const preflight = yield* Effect.promise(() =>
          fetch(story.url + addressOf(story), {
            method: "OPTIONS",
            headers: {
              origin: "http://localhost:6274",
              "access-control-request-method": "POST",
              "access-control-request-headers": "authorization, mcp-session-id"
            }
          })
        )
        expect(preflight.status).toBe(204)
        expect(preflight.headers.get("access-control-allow-origin")).toBe("http://localhost:6274")
        expect(preflight.headers.get("access-control-allow-headers")).toContain("authorization")
      })
    )
  })

  describe("A message that is none", () => {
    it.effect("is told so in JSON-RPC, with the place of what cannot be kept", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ask = (message: unknown, headers: Record<string, string> = {}) =>
          sendMessage(story, addressOf(story), message, headers)
        const faults = [
          ["{", 400, -32_700],
          ["", 400, -32_700],
          ["3", 400, undefined],
          ['{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"name":"\\u0000"}}', 400, -32_600],
          ['{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"__proto__":{}}}', 400, -32_600],
          ['{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"initialize"}', 400, -32_600],
          [`{"deep":${"[".repeat(2_000)}${"]".repeat(2_000)}}`, 400, -32_600],
          [listing, 400, -32_000]
        ] as const
        for (const [message, status, code] of faults) {
          const answer = yield* ask(message)
          expect([message, answer.status]).toEqual([message, status])
          expect(answer.messages[0]).toMatchObject({ jsonrpc: "2.0", id: null, error: {} })
          if (code !== undefined) expect([message, answer.messages[0].error.code]).toEqual([message, code])
        }
        const [told] = (yield* ask('{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"\\u0000"}}'))
          .messages
        expect(told.error.data.errors).toMatchObject([{ pointer: "/params/name" }])
        expect((yield* ask(opening, { "content-type": "text/plain" })).status).toBe(415)
        expect((yield* ask(opening, { "content-encoding": "gzip" })).status).toBe(400)
        expect((yield* ask(JSON.stringify({ ...opening, long: "x".repeat(1_048_577) }))).status).toBe(413)
      })
    )

    it.effect("whose parameters do not fit gets no stack and no inner word", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const envelope = {
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientCapabilities": {},
          "io.modelcontextprotocol/clientInfo": { name: "a-story", version: "1" }
        }
        const ask = (method: string, params: Record<string, unknown>, name?: string) =>
          sendMessage(
            story,
            addressOf(story),
            { jsonrpc: "2.0", id: 7, method, params: { ...params, _meta: envelope } },
            {
              "mcp-protocol-version": "2026-07-28",
              "mcp-method": method,
              ...(name === undefined ? {} : { "mcp-name": name })
            }
          )
        const unknown = yield* ask("tools/call", { name: "no_such_tool", arguments: {} }, "no_such_tool")
        expect(unknown.messages).toMatchObject([
          { id: 7, error: { code: -32_602, message: naming("no_such_tool") } }
        ])
        const unfit = yield* ask("tools/call", { name: "x", arguments: "all of it" }, "x")
        expect(unfit.messages).toMatchObject([{ id: 7, error: { code: -32_602 } }])
        expect(JSON.stringify(unfit.messages)).not.toMatch(/\.ts|\.mjs|node_modules| at /)
        const nothing = yield* ask("no/such", {})
        expect([nothing.status, nothing.messages[0].error.code]).toEqual([404, -32_601])
      })
    )
  })

  describe("A session", () => {
    it.effect("belongs to its token and its address, and ends when its client says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const person = yield* asUser(story, "editor")
        const begun = yield* sendMessage(person, addressOf(story), opening)
        const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" }
        const ask = (who: typeof person, path: string) =>
          Effect.map(sendMessage(who, path, listing, session), ({ status }) => status)
        expect(yield* ask(person, addressOf(story))).toBe(200)
        expect(yield* ask(person, addressOf(other))).toBe(404)
        expect(yield* ask(story, addressOf(story))).toBe(404)
        expect(
          (yield* sendMessage(person, addressOf(story), listing, { "mcp-session-id": "made-up.id" })).status
        ).toBe(404)
        const end = yield* person.send("DELETE", addressOf(story), undefined, session)
        expect(end.status).toBe(200)
        expect(yield* ask(person, addressOf(story))).toBe(404)
      })
    )

    it.effect("goes on where another server program began it", () =>
      Effect.gen(function* () {
        const { access } = yield* SharedServer
        const story = yield* newStoryHere
        const begun = yield* sendMessage(story, addressOf(story), opening)
        const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" }
        const second = yield* startServer(access)
        const answers = yield* Effect.forEach(
          [second, story, second],
          (doors) => sendMessage(doors, addressOf(story), listing, session),
          { concurrency: 3 }
        )
        for (const { messages, status } of answers) {
          expect(status).toBe(200)
          expect(messages).toMatchObject([{ id: 2, result: { tools: expect.any(Array) } }])
        }
      })
    )

    it.effect("has one stream that tells it of its server, and beats while there is nothing to tell", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const begun = yield* sendMessage(story, addressOf(story), opening)
        const headers = {
          authorization: `Bearer ${story.token}`,
          accept: "text/event-stream",
          "mcp-session-id": begun.headers.get("mcp-session-id") ?? ""
        }
        const open = () => fetch(story.url + addressOf(story), { headers })
        const stream = yield* Effect.promise(open)
        expect(stream.headers.get("content-type")).toBe("text/event-stream")
        expect((yield* Effect.promise(open)).status).toBe(409)
        const reader = stream.body?.getReader()
        const read = Effect.promise(() => reader?.read() ?? Promise.reject(new Error("no body")))
        for (const words of [/^: open/, /^: keepalive/])
          expect(new TextDecoder().decode((yield* read).value)).toMatch(words)
        yield* Effect.promise(() => reader?.cancel() ?? Promise.resolve())
        yield* eventually(
          Effect.promise(() => open().then((again) => again.body?.cancel().then(() => again.status))),
          (status) => status === 200
        )
      })
    )
  })

  describe("A token that spans projects", () => {
    for (const revision of revisions)
      it.effect(`may connect and look at the root, and is told where to call (${revision})`, () =>
        Effect.gen(function* () {
          const one = yield* newStoryHere
          const two = yield* newStoryHere
          const person = yield* asUser(one, "admin", [one.projectId, two.projectId])
          const client = yield* connect(person, "/mcp", revision)
          const { tools } = yield* Effect.promise(() => client.listTools())
          for (const { name } of tools) {
            const told = yield* Effect.promise(() => client.callTool({ name, arguments: {} }))
            expect(told.isError).toBe(true)
            expect(JSON.stringify(told.content)).toContain(`${one.url}${addressOf(one)}`)
            expect(JSON.stringify(told.content)).toContain(`${one.url}${addressOf(two)}`)
          }
        })
      )
  })
})
