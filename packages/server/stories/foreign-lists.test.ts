/**
 * Lists of tools that are not as the protocol wants them: what of them can be offered is offered, the rest is named.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answering, newOddShop, type OddAnswer, oddTool } from "../testing/mcp-odd-server.ts"
import { outcomesOf } from "../testing/mcp-runs.ts"
import { addServer } from "../testing/mcp-words.ts"
import type { Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

const namesOf = ({ tools }: Json): ReadonlyArray<string> => tools.map((tool: Json) => tool.name)

/** Answers to `tools/list` by its cursor. */
const listing =
  (page: (cursor: unknown) => Json): OddAnswer =>
  ({ message }) => {
    if (message?.method !== "tools/list") return undefined
    const { error, ...result } = page(message.params?.cursor)
    return error === undefined
      ? answering(message, result)
      : Response.json({ jsonrpc: "2.0", id: message.id, error })
  }

const named = (...names: ReadonlyArray<string>) => names.map((name) => oddTool({ name }))

const broken = { error: { code: -32603, message: "The second shelf fell down" } }

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A list with one tool that is not as the protocol wants it", () => {
    it.effect.each([
      ["of a text", { type: "string" }],
      ["of an array", { type: "array", items: {} }],
      ["without a type", { properties: { a: {} } }],
      ["that is null", null],
      ["that is a text", "object"],
      ["with fields that are none", { type: "object", properties: "a" }]
    ] as const)("has every tool, for an outputSchema %s is passed over", ([, outputSchema]) =>
      Effect.gen(function* () {
        const tools = [oddTool(), oddTool({ name: "odd", outputSchema }), oddTool({ name: "last" })]
        const { server, story } = yield* newOddShop(() => undefined, { tools })
        expect(server).toMatchObject({ lastError: null })
        expect(namesOf(server)).toEqual(["lookup", "odd", "last"])
        expect(
          yield* outcomesOf(story, [lookUp, { tool: "shop__odd", arguments: { word: "fig" } }])
        ).toMatchObject([{ status: "completed" }, { status: "completed" }])
      })
    )

    it.effect.each([
      ["an inputSchema of a text", { inputSchema: { type: "string" } }],
      ["an inputSchema whose fields are none", { inputSchema: { type: "object", properties: "a" } }],
      ["an inputSchema that requires no names", { inputSchema: { type: "object", required: "a" } }],
      ["no inputSchema", { inputSchema: null }],
      ["a description that is no text", { description: 7 }],
      ["annotations that are none", { annotations: "a" }]
    ] as const)("leaves that tool out alone and names it: %s", ([, more]) =>
      Effect.gen(function* () {
        const tools = [oddTool(), oddTool({ name: "odd", ...more }), oddTool({ name: "last" })]
        const { server } = yield* newOddShop(() => undefined, { tools })
        expect(namesOf(server)).toEqual(["lookup", "last"])
        expect(server.lastError).toMatch(/^Left out, .*\bodd \(/)
      })
    )

    it.effect("works for Health, which names the tools that were left out and why", () =>
      Effect.gen(function* () {
        const words = "word ".repeat(60)
        const bad = Array.from({ length: 40 }, (_, index) =>
          oddTool({ name: `odd${index}`, inputSchema: { type: "object", $ref: `#/${words}` } })
        )
        const { server, story } = yield* newOddShop(() => undefined, { tools: [oddTool(), ...bad] })
        expect(namesOf(server)).toEqual(["lookup"])
        expect(server.lastError.length).toBeLessThanOrEqual(600)
        expect(server.lastError).toMatch(
          /^Left out, .*\bodd0 \(its inputSchema refers to .* word…, .*\), odd1 .*\), and \d+ more$/
        )
        expect(yield* story.get("/health")).toMatchObject({
          state: "warn",
          nextStep: {
            check: "MCP server",
            detail: expect.stringMatching(/\bshop works\b/),
            said: server.lastError,
            subject: { type: "mcpServer", id: server.id, name: "shop" }
          }
        })
      })
    )

    it.effect.each([false, true])("takes null for what is absent (2026-07-28: %s)", (isNew) =>
      Effect.gen(function* () {
        const tools = [
          oddTool({ title: null, description: null, icons: null, outputSchema: null, _meta: null }),
          oddTool({ name: "hints", annotations: { title: null, readOnlyHint: true }, execution: null }),
          oddTool({ name: "plain", annotations: null }),
          oddTool({ name: "bare", inputSchema: { type: "object", properties: null, required: null } }),
          oddTool({ name: "old", inputSchema: { type: "object", properties: {}, required: true } })
        ]
        const { server, story } = yield* newOddShop(
          listing(() => ({
            ...(isNew ? { resultType: "complete" } : {}),
            tools,
            _meta: null,
            ttlMs: null,
            cacheScope: null,
            nextCursor: null
          })),
          { isNew }
        )
        expect(server.lastError).toBe(null)
        expect(server.tools).toMatchObject([
          { name: "lookup", description: null },
          { name: "hints", isReadOnly: true },
          { name: "plain", isReadOnly: false },
          { name: "bare" },
          { name: "old" }
        ])
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
      })
    )
  })

  describe("A program", () => {
    it.effect("may list with null for what is absent, and go on at a number", () =>
      Effect.gen(function* () {
        const answers = {
          initialize: {
            protocolVersion: "2025-11-25",
            capabilities: { tools: {} },
            serverInfo: { name: "odd", version: "1" }
          },
          first: { tools: named("first"), _meta: null, nextCursor: 2 },
          second: { tools: [oddTool({ name: "second", description: 'Says "_meta":null, ö.' })], _meta: null }
        }
        const code = `
          const answers = ${JSON.stringify(answers)}
          require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
            const { id, method, params } = JSON.parse(line)
            if (id === undefined) return
            const result = method === "tools/list" ? (params?.cursor === 2 ? answers.second : answers.first) : answers[method]
            const error = { code: -32601, message: "Method not found" }
            console.log(JSON.stringify({ jsonrpc: "2.0", id, ...(result ? { result } : { error }) }))
          })`
        const story = yield* newStoryHere
        const transport = { type: "stdio", command: process.execPath, args: ["-e", code] }
        const server = yield* addServer(story, transport)
        expect([namesOf(server), server.lastError]).toEqual([["first", "second"], null])
        expect(server.tools[1].description).toBe('Says "_meta":null, ö.')
      })
    )
  })

  describe("A list of many pages", () => {
    it.effect.each([
      [25, 10],
      [500, 1]
    ] as const)("is read to its end: %s of %s tools", ([pages, each]) =>
      Effect.gen(function* () {
        const { server } = yield* newOddShop(
          listing((cursor = "0") => {
            const page = Number(cursor)
            const tools = Array.from({ length: each }, (_, at) => oddTool({ name: `tool-${page}-${at}` }))
            return { tools, ...(page + 1 < pages ? { nextCursor: String(page + 1) } : {}) }
          })
        )
        expect(server.lastError).toBe(null)
        expect(new Set(namesOf(server)).size).toBe(pages * each)
      })
    )

    it.effect("keeps what came before a page that is refused, and says that it is not whole and why", () =>
      Effect.gen(function* () {
        let isBroken = true
        const { server, story } = yield* newOddShop(
          listing((cursor) => {
            if (cursor === undefined) return { tools: named("lookup", "first"), nextCursor: "2" }
            return isBroken ? broken : { tools: named("second") }
          })
        )
        expect(namesOf(server)).toEqual(["lookup", "first"])
        expect(server.lastError).toMatch(/not whole.*page 2.*The second shelf fell down/)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        expect((yield* story.get(`/mcp-servers/${server.id}`)).lastError).toBe(server.lastError)

        isBroken = false
        const whole = yield* story.post(`/mcp-servers/${server.id}/refresh`)
        expect([namesOf(whole), whole.lastError]).toEqual([["lookup", "first", "second"], null])

        isBroken = true
        const again = yield* story.post(`/mcp-servers/${server.id}/refresh`)
        expect(namesOf(again)).toEqual(["lookup", "first", "second"])
        expect(again.lastError).toContain("The second shelf fell down")
        expect(
          yield* outcomesOf(story, [{ tool: "shop__second", arguments: { word: "fig" } }], { name: "other" })
        ).toMatchObject([
          {
            status: "failed",
            result: { reason: "unavailable", error: expect.stringContaining("The second shelf fell down") }
          }
        ])
      })
    )

    it.effect.each([
      ["a number", 2],
      ["zero", 0],
      ["empty text", ""]
    ] as const)("goes on at a cursor that is %s, as the server gave it", ([, cursor]) =>
      Effect.gen(function* () {
        const { odd, server } = yield* newOddShop(
          listing((asked) =>
            asked === undefined
              ? { tools: named("first"), nextCursor: cursor }
              : { tools: named(asked === cursor ? "second" : "wrong") }
          )
        )
        expect([namesOf(server), server.lastError]).toEqual([["first", "second"], null])
        expect(odd.of("tools/list").map(({ message }) => message.params?.cursor)).toEqual([undefined, cursor])
      })
    )

    it.effect.each([
      ["gives the same page", { tools: named("first"), nextCursor: "" }],
      ["gives the same page and leads on", { tools: named("first"), nextCursor: "2" }],
      ["refuses it", broken]
    ] as const)("ends at a cursor of empty text where the server %s", ([, page]) =>
      Effect.gen(function* () {
        const { odd, server } = yield* newOddShop(
          listing((asked) => (asked === undefined ? { tools: named("first"), nextCursor: "" } : page))
        )
        expect([namesOf(server), server.lastError]).toEqual([["first"], null])
        expect(odd.of("tools/list")).toHaveLength(2)
      })
    )

    it.effect("says so where a cursor is nothing that can be sent back", () =>
      Effect.gen(function* () {
        const { server } = yield* newOddShop(
          listing(() => ({ tools: named("first"), nextCursor: { page: 2 } }))
        )
        expect(namesOf(server)).toEqual(["first"])
        expect(server.lastError).toMatch(/not whole/)
      })
    )
  })
})
