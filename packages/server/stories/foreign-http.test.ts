/**
 * Foreign servers over Streamable HTTP that forget sessions, end streams and never end answers.
 */
import { gzipSync } from "node:zlib"
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { beginRun, outcomesOf } from "../testing/mcp-runs.ts"
import {
  answering,
  atCall,
  endless,
  never,
  newOddShop,
  oddServer,
  sessions,
  said,
  streaming
} from "../testing/mcp-odd-server.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { asTimePasses, SharedServer } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A session", () => {
    it.effect("that the server has forgotten is begun anew, and the call is made once", () =>
      Effect.gen(function* () {
        const { decide, state } = sessions()
        const { odd, story } = yield* newOddShop(decide)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        state.known.clear()
        const [call] = yield* outcomesOf(story, [lookUp], { name: "later" })
        expect(call).toMatchObject({ status: "completed", result: "fig is a word." })
        expect(state.sessions).toBe(2)
        // The second was refused for the session's sake, and made in the next.
        expect(odd.of("tools/call").map(({ headers }) => headers.get("mcp-session-id"))).toEqual([
          "session-1",
          "session-1",
          "session-2"
        ])
      })
    )

    it.effect("that is forgotten each time is tried twice, and then told of", () =>
      Effect.gen(function* () {
        const { odd, story } = yield* newOddShop(
          atCall(() => new Response("No such session", { status: 404 }))
        )
        const [call] = yield* outcomesOf(story, [lookUp])
        expect(call).toMatchObject({
          status: "failed",
          result: { reason: "unavailable", error: expect.stringContaining("404") }
        })
        expect(odd.of("tools/call")).toHaveLength(2)
      })
    )

    it.effect("is ended when its connection is closed", () =>
      Effect.gen(function* () {
        const { decide, state } = sessions()
        const { odd, server, story } = yield* newOddShop(decide)
        expect(state.known).toEqual(new Set(["session-1"]))
        // Whoever looks again lets the old connection go.
        yield* story.post(`/mcp-servers/${server.id}/refresh`)
        yield* eventually(
          Effect.sync(() => odd.of("DELETE")),
          (ends) => ends.length === 1
        )
        expect(state.known).toEqual(new Set(["session-2"]))
      })
    )
  })

  describe("A stream of events", () => {
    const event = (message: Json, id?: string) =>
      `${id === undefined ? "" : `id: ${id}\n`}data: ${JSON.stringify(message)}\n\n`

    for (const isNew of [false, true])
      it.effect(`carries an answer${isNew ? " of 2026-07-28" : ""} behind what else is told`, () =>
        Effect.gen(function* () {
          const { story } = yield* newOddShop(
            atCall((message) =>
              streaming(
                ": a comment\n\n",
                event({
                  jsonrpc: "2.0",
                  method: "notifications/progress",
                  params: { progressToken: 1, progress: 1 }
                }),
                event({ jsonrpc: "2.0", id: message.id, result: said("fig is a word.") })
              )
            ),
            { isNew }
          )
          expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
            { status: "completed", result: "fig is a word." }
          ])
        })
      )

    for (const isNew of [false, true])
      it.effect(
        `${isNew ? "of 2026-07-28 " : ""}that ends without its answer leaves the outcome unknown at once`,
        () =>
          Effect.gen(function* () {
            const { odd, story } = yield* newOddShop(
              atCall(() => streaming(": nothing more\n\n")),
              { isNew },
              { callTimeoutMs: 600_000 }
            )
            expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
              { status: "unknown", result: { error: expect.any(String) } }
            ])
            expect(odd.of("tools/call")).toHaveLength(1)
          })
      )

    it.effect("that breaks off is taken up behind its last event, and the call is made once", () =>
      Effect.gen(function* () {
        let asked: Json
        const { odd, story } = yield* newOddShop(({ message, method, headers }) => {
          if (message?.method === "tools/call") {
            asked = message
            return streaming("id: 7\nretry: 1\ndata:\n\n")
          }
          if (method !== "GET" || headers.get("last-event-id") !== "7") return undefined
          return streaming(event({ jsonrpc: "2.0", id: asked.id, result: said("late, and there") }))
        })
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
          { status: "completed", result: "late, and there" }
        ])
        expect(odd.of("tools/call")).toHaveLength(1)
      })
    )

    it.effect("that is longer than any message may be is not read to its end", () =>
      Effect.gen(function* () {
        const { story } = yield* newOddShop(atCall(() => streaming(`data: ${"x".repeat(5_000_000)}`)))
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "unknown" }])
      })
    )

    it.effect("that the server opens for its own news is read no further either", () =>
      Effect.gen(function* () {
        let sent = 0
        const chunk = new TextEncoder().encode("x".repeat(100_000))
        const flood = () =>
          new Response(
            new ReadableStream({
              pull: (controller) => {
                sent += chunk.byteLength
                controller.enqueue(chunk)
              }
            }),
            { headers: { "content-type": "text/event-stream" } }
          )
        const { odd, story } = yield* newOddShop(({ method }) => (method === "GET" ? flood() : undefined))
        yield* eventually(
          Effect.sync(() => odd.of("GET")),
          (all) => all[0]?.isGone() === true
        )
        expect(sent).toBeGreaterThan(4_000_000)
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
      })
    )
  })

  describe("An answer", () => {
    it.effect("that is packed though nobody asked for that is not unpacked", () =>
      Effect.gen(function* () {
        const bomb = gzipSync(Buffer.alloc(50_000_000, " "))
        const { odd, story } = yield* newOddShop(
          atCall(
            () =>
              new Response(bomb, {
                headers: { "content-type": "application/json", "content-encoding": "gzip" }
              })
          )
        )
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "unknown" }])
        expect(odd.of("tools/call")[0]?.headers.get("accept-encoding")).toBe("identity")
      })
    )

    it.effect("of another content type is told of as such", () =>
      Effect.gen(function* () {
        const page = () => new Response("<h1>Sign in</h1>", { headers: { "content-type": "text/html" } })
        const { story } = yield* newOddShop(atCall(page))
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
          { status: "unknown", result: { error: expect.stringContaining("text/html") } }
        ])
      })
    )

    it.effect("that sends the request to another origin is not followed there", () =>
      Effect.gen(function* () {
        const elsewhere = yield* oddServer(() => undefined)
        const { story } = yield* newOddShop(
          atCall(() => new Response(null, { status: 307, headers: { location: elsewhere.url } }))
        )
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([
          { status: "failed", result: { reason: "unavailable" } }
        ])
        expect(elsewhere.heard).toEqual([])
      })
    )
  })
})

layer(SharedServer.layer)((it) => {
  describe("An answer", () => {
    for (const [what, answer] of [
      ["that never begins", never],
      ["that never ends", () => endless("application/json", '{"jsonrpc":')],
      ["whose stream never ends", () => endless("text/event-stream", ": wait\n\n")]
    ] as const)
      for (const isNew of [false, true])
        it.effect(
          `${what}${isNew ? ", in 2026-07-28," : ""} is given up in time, and its connection is hung up`,
          () =>
            Effect.gen(function* () {
              const { odd, story } = yield* newOddShop(atCall(answer), { isNew }, { callTimeoutMs: 300 })
              const run = yield* beginRun(story, [lookUp])
              yield* eventually(
                Effect.sync(() => odd.of("tools/call")),
                ({ length }) => length === 1
              )
              // No time has passed so far, however long it took to ask.
              yield* asTimePasses(100, story.get(`/runs/${run.id}`), (now) => now.completedAt !== null)
              expect(yield* callsOf(story, run)).toMatchObject([
                { status: "unknown", result: { error: expect.stringMatching(/\b300\b/) } }
              ])
              yield* eventually(
                Effect.sync(() => odd.of("tools/call")[0]?.isGone()),
                (isGone) => isGone === true
              )
              // A server of 2025-11-25 is told besides; for one of 2026-07-28 to be hung up on is to be told.
              yield* eventually(
                Effect.sync(() => odd.of("notifications/cancelled")),
                (told) => told.length === (isNew ? 0 : 1)
              )
            })
        )
  })

  describe("A stream that the server closes as soon as it is opened", () => {
    it.effect("is opened again with pauses, however little the server asks for", () =>
      Effect.gen(function* () {
        const { odd, story } = yield* newOddShop(({ method }) =>
          method === "GET" ? streaming("retry: 0\n\n") : undefined
        )
        yield* eventually(
          Effect.sync(() => odd.of("GET")),
          (all) => all.length === 1
        )
        expect(yield* outcomesOf(story, [lookUp])).toMatchObject([{ status: "completed" }])
        expect(odd.of("GET")).toHaveLength(1)
        yield* asTimePasses(
          100,
          Effect.sync(() => odd.of("GET")),
          (all) => all.length > 1
        )
      })
    )
  })

  describe("A run that is cancelled", () => {
    it.effect("has its call called off, and a late answer is nobody's", () =>
      Effect.gen(function* () {
        let late: ((response: Response) => void) | undefined
        let asked: Json
        const { odd, story } = yield* newOddShop(
          atCall((message) => {
            if (late !== undefined) return answering(message, said("the next"))
            asked = message
            return new Promise((resolve) => {
              late = resolve
            })
          }),
          {},
          { callTimeoutMs: 60_000 }
        )
        const run = yield* beginRun(story, [lookUp])
        yield* eventually(
          Effect.sync(() => odd.of("tools/call")),
          (calls) => calls.length === 1
        )
        yield* story.post(`/runs/${run.id}/cancel`)
        const told = yield* eventually(
          Effect.sync(() => odd.of("notifications/cancelled")),
          (all) => all.length === 1
        )
        expect(told[0]?.message.params.requestId).toBe(asked.id)
        late?.(answering(asked, said("too late")))
        expect(yield* callsOf(story, run)).toMatchObject([
          { status: "unknown", result: { reason: "unknownOutcome" } }
        ])
        expect(yield* outcomesOf(story, [lookUp], { name: "next" })).toMatchObject([{ result: "the next" }])
      })
    )
  })
})
