/**
 * Foreign servers over Streamable HTTP that refuse: for want of credentials, of a handshake, of a list, or of an end to it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import {
  answering,
  newOddShop,
  type OddAnswer,
  oddServer,
  oddTool,
  sessions
} from "../testing/mcp-odd-server.ts"
import { newCaller, outcomesOf } from "../testing/mcp-runs.ts"
import { addServer } from "../testing/mcp-words.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }
const secret = "s3cret-and-long-enough"

const theirs = ConfigProvider.layer(
  ConfigProvider.fromEnv({ env: { PATH: process.env["PATH"] ?? "", TROPISM_SECRET_SHOP: secret } })
)

const refusingToList = ({ id }: Json) =>
  Response.json({ jsonrpc: "2.0", id, error: { code: -32_603, message: "The shelf is being tidied" } })

layer(Layer.provide(SharedServer.own, theirs), { excludeTestServices: true })((it) => {
  describe("A server that wants credentials", () => {
    const challenge =
      'Bearer error="insufficient_scope", scope="words:read", error_description="Tell us who you are", resource_metadata="https://shop.example/.well-known/oauth-protected-resource"'
    const refusal = (status: number) =>
      new Response("no", { status, headers: { "www-authenticate": challenge } })

    for (const status of [401, 403])
      it.effect(`and says so with ${status} when it is added is kept with what mends that`, () =>
        Effect.gen(function* () {
          const { odd, server } = yield* newOddShop(() => refusal(status))
          expect(server.tools).toEqual([])
          for (const part of [
            String(status),
            "Tell us who you are",
            "words:read",
            "https://shop.example/.well-known/oauth-protected-resource",
            status === 401 ? "sign in first" : "TROPISM_SECRET_"
          ])
            expect(server.lastError).toContain(part)
          // The address in the challenge is told and not asked.
          expect(new Set(odd.heard.map(({ method }) => method))).toEqual(new Set(["POST"]))
        })
      )

    it.effect(
      "and no longer takes those that it took says so in the record and where the server is told of",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const state = { isOver: false }
          const odd = yield* oddServer(({ headers }) =>
            state.isOver || headers.get("authorization") !== `Bearer ${secret}` ? refusal(401) : undefined
          )
          const headers = { Authorization: { secret: "TROPISM_SECRET_SHOP", prefix: "Bearer " } }
          const server = yield* addServer(story, { type: "http", url: odd.url, headers })
          expect(server.lastError).toBe(null)
          state.isOver = true
          const [call] = yield* outcomesOf(story, [lookUp])
          expect(call).toMatchObject({
            status: "failed",
            result: {
              reason: "unavailable",
              error: expect.stringMatching(/\bAuthorization\b/)
            }
          })
          const told = yield* story.get(`/mcp-servers/${server.id}`)
          expect(told.lastError).toMatch(/\bAuthorization\b/)
          expect(JSON.stringify([call, told])).not.toContain(secret)
          expect(told.tools).toEqual(server.tools)
          state.isOver = false
          const agent = yield* newCaller(story, [lookUp], { name: "patient" })
          const again = Effect.flatMap(story.post(`/agents/${agent.id}/trigger`), (run) =>
            callsOf(story, run)
          )
          yield* eventually(again, ([made]) => made.status === "completed")
          expect((yield* story.get(`/mcp-servers/${server.id}`)).lastError).toBe(null)
        })
    )
  })

  describe("A server of which an older one would break", () => {
    it.effect("at a question before the handshake is greeted without it", () =>
      Effect.gen(function* () {
        const { server, story } = yield* newOddShop(({ message }) =>
          message?.method === "server/discover" ? new Response("Uninitialized", { status: 500 }) : undefined
        )
        expect(server.lastError).toBe(null)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
      })
    )
  })

  describe("A list", () => {
    const paged =
      (next: (cursor: string | undefined) => string | null | undefined): OddAnswer =>
      ({ message }) => {
        if (message?.method !== "tools/list") return undefined
        const cursor: string | undefined = message.params?.cursor
        const nextCursor = next(cursor)
        return answering(message, {
          tools: [oddTool({ name: `tool-${cursor ?? "0"}` })],
          ...(nextCursor === undefined ? {} : { nextCursor })
        })
      }

    it.effect("is read page by page", () =>
      Effect.gen(function* () {
        const { server } = yield* newOddShop(
          paged((cursor = "0") => (cursor === "3" ? undefined : `${Number(cursor) + 1}`))
        )
        expect(server.tools.map((tool: Json) => tool.name)).toEqual(["tool-0", "tool-1", "tool-2", "tool-3"])
      })
    )

    it.effect.each([
      ["null", () => null],
      ["empty text", () => ""],
      ["the same for ever", () => "1"],
      ["one that goes round", (cursor = "0") => String((Number(cursor) + 1) % 3)]
    ] as const)("ends at a cursor that is %s, and has each tool once", ([, next]) =>
      Effect.gen(function* () {
        const { server } = yield* newOddShop(paged(next))
        const names = server.tools.map((tool: Json) => tool.name)
        expect(names).toContain("tool-0")
        expect(new Set(names).size).toBe(names.length)
        expect(server.lastError).toBe(null)
      })
    )

    it.effect(
      "that is refused in the words of the protocol costs no connection, and is asked for again",
      () =>
        Effect.gen(function* () {
          const { decide, state } = sessions()
          let isRefusing = false
          const { odd, server, story } = yield* newOddShop((heard) =>
            isRefusing && heard.message?.method === "tools/list"
              ? refusingToList(heard.message)
              : decide(heard)
          )
          const told = Effect.map(story.get(`/mcp-servers/${server.id}`), ({ lastError }) => lastError)
          const began = state.sessions
          isRefusing = true
          for (const name of ["one", "two"])
            expect(yield* outcomesOf(story, [lookUp], { name })).toMatchObject([
              {
                status: "failed",
                result: {
                  reason: "unavailable",
                  error: expect.stringContaining("The shelf is being tidied")
                }
              }
            ])
          expect(yield* told).toContain("The shelf is being tidied")
          isRefusing = false
          expect(yield* outcomesOf(story, [lookUp], { name: "three" })).toMatchObject([
            { status: "completed" }
          ])
          expect(yield* told).toBe(null)
          expect(state.sessions).toBe(began)
          expect(odd.of("tools/call")).toHaveLength(1)
        })
    )

    it.effect("that the server has taken back is no more gone by, also where the new one is refused", () =>
      Effect.gen(function* () {
        const { decide } = sessions()
        let isRefusing = false
        let tell: ((text: string) => void) | undefined
        const { odd, story } = yield* newOddShop((heard) => {
          if (heard.method === "GET")
            return new Response(
              new ReadableStream<Uint8Array>({
                start: (stream) => void (tell = (text) => stream.enqueue(new TextEncoder().encode(text)))
              }),
              { headers: { "content-type": "text/event-stream" } }
            )
          return isRefusing && heard.message?.method === "tools/list"
            ? refusingToList(heard.message)
            : decide(heard)
        })
        const agent = yield* newCaller(story, [lookUp])
        const call = Effect.flatMap(story.post(`/agents/${agent.id}/trigger`), (run) => callsOf(story, run))
        expect(yield* call).toMatchObject([{ status: "completed" }])
        isRefusing = true
        yield* eventually(
          Effect.sync(() => tell !== undefined),
          (isListening) => isListening
        )
        tell?.(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n\n`)
        yield* eventually(call, ([made]) => made.status === "failed")
        const calls = odd.of("tools/call").length
        expect(yield* call).toMatchObject([{ status: "failed" }])
        expect(odd.of("tools/call")).toHaveLength(calls)
      })
    )

    it.effect("that goes on without end is read as far as it may go, and says so", () =>
      Effect.gen(function* () {
        const { odd, server } = yield* newOddShop(paged((cursor = "0") => `${Number(cursor) + 1}`))
        expect(server.tools).toHaveLength(500)
        expect(server.lastError).toMatch(/not whole/)
        expect(odd.of("tools/list")).toHaveLength(501)
      })
    )
  })
})
