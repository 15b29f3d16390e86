/**
 * An MCP client goes away in the middle of a call: what it asked for is done and recorded, once.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Context, Deferred, Effect, Layer } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { beginCall } from "../testing/dropped-call.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { interposedServer } from "../testing/interposed.ts"
import { opening, type Revision, revisions, sendMessage } from "../testing/mcp-clients.ts"
import { addressOf, modernHeaders, modernMessage } from "../testing/mcp-extension-words.ts"
import { eventually, type Json, newProject, type Story } from "../testing/platform.ts"

class Interposed extends Context.Service<
  Interposed,
  { readonly server: Effect.Success<ReturnType<typeof interposedServer>>; readonly access: PostgresAccess }
>()("@tropism/server/stories/dropped/Interposed") {
  static readonly layer = Layer.effect(
    Interposed,
    Effect.gen(function* () {
      const access = yield* freshDatabase
      return { server: yield* interposedServer(access), access }
    })
  )
}

const params = { name: "create_object", arguments: { type: "Note", properties: { text: "Once" } } }

/** The message of a call, and the headers that go with it. */
const callOf = Effect.fnUntraced(function* (story: Story, revision: Revision) {
  if (revision === "2026-07-28")
    return {
      message: modernMessage("tools/call", params, {}),
      headers: modernHeaders(story, "tools/call", params)
    }
  const begun = yield* sendMessage(story, addressOf(story), opening)
  return {
    message: { jsonrpc: "2.0", id: 2, method: "tools/call", params },
    headers: {
      "mcp-session-id": begun.headers.get("mcp-session-id") ?? "",
      "mcp-protocol-version": revision
    }
  }
})

const recorded = (story: Story) =>
  Effect.map(story.get("/tool-calls"), ({ items }) => items.map(({ status, tool }: Json) => [tool, status]))

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  for (const revision of revisions)
    describe(`A client of ${revision} that goes away in the middle of a call`, () => {
      it.effect(
        "S003-R47 has had it done and recorded once; the same message again is a call of its own",
        () =>
          Effect.gen(function* () {
            const { access, server } = yield* Interposed
            const story = yield* newProject(server.doors, access)
            const { headers, message } = yield* callOf(story, revision)
            const [reached, goOn] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
            yield* server.interpose(
              "tool.beforeCommit",
              Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(goOn))
            )
            const call = yield* beginCall(story, addressOf(story), message, headers)
            yield* Deferred.await(reached)
            yield* call.drop
            expect(yield* recorded(story)).toEqual([])
            yield* Deferred.succeed(goOn, undefined)
            yield* eventually(recorded(story), ({ length }) => length > 0)
            expect(yield* recorded(story)).toEqual([["create_object", "completed"]])
            expect((yield* story.get("/objects")).items).toMatchObject([
              { type: "Note", properties: { text: "Once" }, version: 1 }
            ])
            const again = yield* sendMessage(story, addressOf(story), message, headers)
            expect(again.messages.at(-1)).toMatchObject({
              result: { structuredContent: { status: "applied" } }
            })
            expect(yield* recorded(story)).toEqual([
              ["create_object", "completed"],
              ["create_object", "completed"]
            ])
            expect((yield* story.get("/objects")).items).toHaveLength(2)
          })
      )
    })
})
