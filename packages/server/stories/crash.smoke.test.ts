/**
 * A server is killed around a person's call: the change and its record are both there, or neither is.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
import { sendMessage } from "../testing/mcp-clients.ts"
import { type Json, newProject, storyIn } from "../testing/platform.ts"

const creating = (key: string) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: {
    name: "create_object",
    arguments: { type: "Note", key, properties: {} },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "a-story", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {}
    }
  }
})

describe("A server that dies around a person's call", () => {
  it.live("S003-R47 before the commit nothing is there, behind it both the change and its record", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const first = yield* startMortal(access)
        const made = yield* newProject(first, access)
        const path = `/api/projects/${made.projectId}/mcp`
        const headers = {
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": "tools/call",
          "mcp-name": "create_object"
        }
        yield* first.dieAt("tool.beforeCommit", 1)
        yield* Effect.forkChild(Effect.exit(sendMessage(first, path, creating("lost"), headers)))
        yield* first.died

        const second = yield* startMortal(access)
        yield* second.dieAt("tool.afterCommit", 1)
        yield* Effect.forkChild(Effect.exit(sendMessage(second, path, creating("kept"), headers)))
        yield* second.died

        const story = storyIn(yield* startMortal(access), access, made.projectId)
        const { items: objects } = yield* story.get("/objects")
        expect(objects.map(({ key }: Json) => key)).toEqual(["kept"])
        const { items: calls } = yield* story.get("/tool-calls")
        expect(calls.map(({ arguments: args, status }: Json) => [args.key, status])).toEqual([
          ["kept", "completed"]
        ])
      })
    )
  )
})
