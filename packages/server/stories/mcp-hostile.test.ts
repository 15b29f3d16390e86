/**
 * Requests at the MCP door that no client in its right mind sends: none is a fault of the server's, and none tells of its insides.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { opening, sendMessage } from "../testing/mcp-clients.ts"
import { addressOf, modernHeaders, modernMessage } from "../testing/mcp-extension-words.ts"
import { rawAnswer } from "../testing/raw-request.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const listing = { jsonrpc: "2.0", id: 2, method: "tools/list", params: {} }
const modern = (message: object) => ({ ...modernMessage("tools/list", {}), ...message })

/** What each of the shapes below is answered with: the status, and the code of the error; null is a result, undefined no word. */
const answers: Readonly<Record<string, readonly [number, (number | null)?]>> = {
  "null id": [400, -32_600],
  "null id, modern": [400, -32_600],
  "object id": [400, -32_600],
  "object id, modern": [400, -32_600],
  "fraction id": [400, -32_600],
  "long id": [200, null],
  "big id": [400, -32_600],
  "big id, modern": [400, -32_600],
  batch: [200, null],
  "giant batch": [400, -32_600],
  "giant batch, modern": [400, -32_600],
  "empty batch": [400, -32_600],
  "batch of nothing": [400, -32_600],
  "unknown method": [200, -32_601],
  "unknown notification": [202],
  "no method": [400, -32_600],
  "method of another type": [400, -32_600],
  "another version": [400, -32_600],
  "params as text": [400, -32_600],
  "params as list": [400, -32_600],
  "response to nothing": [202],
  "error to nothing": [202],
  "cancel of nothing": [202],
  "second initialize": [200, null],
  "session of another": [404, -32_001],
  "session twice": [404, -32_001],
  "long session": [404, -32_001],
  "odd revision": [400, -32_000],
  "listen in a session": [200, -32_601],
  "listen for nothing": [200, -32_602],
  "listen for numbers": [200, -32_602],
  "our inner name": [404, -32_601],
  "our inner name under another header": [400, -32_020],
  "listen without its header": [400, -32_020],
  "our inner name in a session": [200, -32_601],
  "subscribe without an address": [200, -32_602],
  "subscribe, modern": [404, -32_601],
  "read of nothing": [200, -32_602],
  "method says another": [400, -32_020],
  "accepts nothing": [406, -32_000],
  compressed: [400, -32_700],
  form: [415, -32_000],
  text: [415, -32_000],
  "many types": [415, -32_000]
}

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Hostile requests at the MCP door", () => {
    it.effect("messages of every wrong shape are refused by what is wrong with them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const begun = yield* sendMessage(story, addressOf(story), opening)
        const session = { "mcp-session-id": begun.headers.get("mcp-session-id") ?? "" }
        const ofModern = modernHeaders(story, "tools/list", {})
        const big = "9".repeat(400)
        const shapes: ReadonlyArray<readonly [string, unknown, Record<string, string | undefined>]> = [
          ["null id", { ...listing, id: null }, session],
          ["null id, modern", modern({ id: null }), ofModern],
          ["object id", { ...listing, id: {} }, session],
          ["object id, modern", modern({ id: {} }), ofModern],
          ["fraction id", { ...listing, id: 1.5 }, session],
          ["long id", { ...listing, id: "x".repeat(100_000) }, session],
          ["big id", `{"jsonrpc":"2.0","id":${big},"method":"tools/list"}`, session],
          ["big id, modern", JSON.stringify(modern({})).replace('"id":1', `"id":${big}`), ofModern],
          ["batch", [listing, listing], session],
          ["giant batch", Array.from({ length: 5_000 }, (_, id) => ({ ...listing, id })), session],
          ["giant batch, modern", Array.from({ length: 1_000 }, (_, id) => modern({ id })), ofModern],
          ["empty batch", [], session],
          ["batch of nothing", [1, null, "x", {}], session],
          ["unknown method", { ...listing, method: "no/such" }, session],
          ["unknown notification", { jsonrpc: "2.0", method: "notifications/none" }, session],
          ["no method", { jsonrpc: "2.0", id: 3 }, session],
          ["method of another type", { ...listing, method: 7 }, session],
          ["another version", { ...listing, jsonrpc: "1.0" }, session],
          ["params as text", { ...listing, params: "all" }, session],
          ["params as list", { ...listing, params: [] }, session],
          ["response to nothing", { jsonrpc: "2.0", id: 99, result: {} }, session],
          ["error to nothing", { jsonrpc: "2.0", id: 99, error: { code: 1, message: "x" } }, session],
          [
            "cancel of nothing",
            { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: {} } },
            session
          ],
          ["second initialize", opening, session],
          ["session of another", listing, { "mcp-session-id": "0123456789abcdef.0123" }],
          [
            "session twice",
            listing,
            { "mcp-session-id": `${session["mcp-session-id"]}, ${session["mcp-session-id"]}` }
          ],
          ["long session", listing, { "mcp-session-id": "x".repeat(7_000) }],
          ["odd revision", listing, { ...session, "mcp-protocol-version": "1999-01-01" }],
          ["listen in a session", { ...listing, method: "subscriptions/listen" }, session],
          [
            "listen for nothing",
            modernMessage("subscriptions/listen", {}),
            modernHeaders(story, "subscriptions/listen", {})
          ],
          [
            "listen for numbers",
            modernMessage("subscriptions/listen", { notifications: { resourceSubscriptions: [1] } }),
            modernHeaders(story, "subscriptions/listen", {})
          ],
          [
            "our inner name",
            modernMessage("tropism/subscriptions/listen", { notifications: {} }),
            modernHeaders(story, "tropism/subscriptions/listen", {})
          ],
          [
            "our inner name under another header",
            modernMessage("subscriptions/listen", { notifications: {} }),
            modernHeaders(story, "tropism/subscriptions/listen", {})
          ],
          [
            "listen without its header",
            modernMessage("subscriptions/listen", { notifications: {} }),
            { ...ofModern, "mcp-method": undefined }
          ],
          ["our inner name in a session", { ...listing, method: "tropism/subscriptions/listen" }, session],
          ["subscribe without an address", { ...listing, method: "resources/subscribe" }, session],
          [
            "subscribe, modern",
            modernMessage("resources/subscribe", { uri: "tropism://inbox" }),
            modernHeaders(story, "resources/subscribe", {})
          ],
          [
            "read of nothing",
            { ...listing, method: "resources/read", params: { uri: "tropism://objects/%00" } },
            session
          ],
          [
            "method says another",
            modernMessage("tools/list", {}),
            { ...ofModern, "mcp-method": "tools/call" }
          ],
          ["accepts nothing", listing, { ...session, accept: "image/png" }],
          ["compressed", listing, { ...session, "content-encoding": "br" }],
          ["form", listing, { ...session, "content-type": "application/x-www-form-urlencoded" }],
          ["text", listing, { ...session, "content-type": "text/plain; application/json" }],
          ["many types", listing, { ...session, "content-type": "application/json, text/html" }]
        ]
        for (const [what, message, headers] of shapes) {
          const answer = yield* sendMessage(story, addressOf(story), message, headers)
          const told = answer.messages.length === 0 ? [] : [answer.messages[0].error?.code ?? null]
          expect([what, answer.status, ...told]).toEqual([what, ...(answers[what] ?? [])])
          expect([what, JSON.stringify(answer.messages)]).not.toEqual([
            what,
            expect.stringMatching(/node_modules|\.m?[jt]s\b|-32603/)
          ])
        }
      })
    )

    it.effect(
      "methods other than those of the protocol, and bodies of impossible lengths, are turned away",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const path = addressOf(story)
          for (const method of ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]) {
            const said = yield* rawAnswer(story, [
              `${method} ${path} HTTP/1.1`,
              "accept: text/event-stream",
              "connection: close"
            ])
            const expected = method === "OPTIONS" ? "204" : ["GET", "DELETE"].includes(method) ? "400" : "405"
            expect([method, said.slice(9, 12)]).toEqual([method, expected])
            expect([method, /^allow: GET, POST, DELETE\r$/im.test(said)]).toEqual([
              method,
              expected === "405"
            ])
          }
          for (const [what, lengths, body, status] of [
            ["two lengths", ["content-length: 2", "content-length: 3"], "{}", "400"],
            ["a length that is none", ["content-length: -1"], "{}", "400"],
            ["a length of 100 MB", ["content-length: 104857600"], "{".repeat(2_000_000), "413"]
          ] as const) {
            const said = yield* rawAnswer(
              story,
              [
                `POST ${path} HTTP/1.1`,
                "content-type: application/json",
                "accept: application/json, text/event-stream",
                "connection: close",
                ...lengths
              ],
              body
            )
            expect([what, said.slice(9, 12)]).toEqual([what, status])
          }
        })
    )
  })
})
