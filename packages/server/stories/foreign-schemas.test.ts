/**
 * Foreign tools whose schemas are such as no model provider takes, or as nobody can judge arguments by.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { newOddShop, oddServer, oddTool } from "../testing/mcp-odd-server.ts"
import { outcomesOf, runOf, shownTo } from "../testing/mcp-runs.ts"
import { addServer } from "../testing/mcp-words.ts"
import { ModelsOnTheWire } from "../testing/model-on-the-wire.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const lookUp = { tool: "shop__lookup", arguments: { word: "fig" } }

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A tool whose schema no provider takes as it is", () => {
    const branch = (kind: string, more: Record<string, unknown>) => ({
      type: "object",
      properties: { kind: { const: kind }, ...more },
      required: ["kind", ...Object.keys(more)]
    })
    const choice = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      oneOf: [
        branch("by-word", { word: { $ref: "#/$defs/word" } }),
        branch("by-id", { id: { type: "integer" } })
      ],
      $defs: { word: { type: "string", minLength: 2 } }
    }
    const tree = {
      type: "object",
      properties: { tree: { $ref: "#/$defs/node" } },
      $defs: {
        node: {
          type: "object",
          description: "A node.",
          properties: {
            name: { type: "string" },
            children: { type: "array", items: { $ref: "#/$defs/node" } }
          },
          required: ["name"]
        }
      }
    }

    /** A shop whose tool has a schema. */
    const shopWith = (inputSchema: Json) => newOddShop(() => undefined, { tools: [oddTool({ inputSchema })] })

    const shownIn = (story: Story) =>
      Effect.gen(function* () {
        const shown = yield* shownTo(story, yield* runOf(story, [], { name: "looker" }))
        return shown[0].inputSchema
      })

    it.effect("since it is a choice is shown with the fields of all branches, and judged by the choice", () =>
      Effect.gen(function* () {
        const { odd, server, story } = yield* shopWith(choice)
        expect(server.tools[0].inputSchema).toEqual(choice)
        expect(yield* shownIn(story)).toEqual({
          $schema: choice.$schema,
          type: "object",
          properties: {
            kind: { anyOf: [{ const: "by-word" }, { const: "by-id" }] },
            word: { type: "string", minLength: 2 },
            id: { type: "integer" }
          },
          required: ["kind"]
        })
        const calls = yield* outcomesOf(story, [
          { tool: "shop__lookup", arguments: { kind: "by-word" } },
          { tool: "shop__lookup", arguments: { kind: "by-word", word: "f" } },
          { tool: "shop__lookup", arguments: { kind: "by-id", id: 7 } }
        ])
        expect(calls).toMatchObject([
          { status: "failed", result: { reason: "invalid" } },
          { status: "failed", result: { reason: "invalid" } },
          { status: "completed" }
        ])
        expect(odd.of("tools/call").map(({ message }) => message.params.arguments)).toEqual([
          { kind: "by-id", id: 7 }
        ])
      })
    )

    it.effect("since it is recursive is shown one round of it, and judged by all of it", () =>
      Effect.gen(function* () {
        const { story } = yield* shopWith(tree)
        expect(yield* shownIn(story)).toEqual({
          type: "object",
          properties: {
            tree: {
              type: "object",
              description: "A node.",
              properties: {
                name: { type: "string" },
                children: { type: "array", items: { type: "object", description: "A node." } }
              },
              required: ["name"]
            }
          }
        })
        const deep = (name: unknown) => ({
          tree: { name: "a", children: [{ name: "b", children: [{ name }] }] }
        })
        expect(
          yield* outcomesOf(story, [
            { tool: "shop__lookup", arguments: deep(1) },
            { tool: "shop__lookup", arguments: deep("c") }
          ])
        ).toMatchObject([
          { status: "failed", result: { pointer: "/tree/children/0/children/0/name" } },
          { status: "completed" }
        ])
      })
    )

    it.effect("since an expression in it is none is judged by the rest", () =>
      Effect.gen(function* () {
        const { story } = yield* shopWith({
          type: "object",
          properties: { word: { type: "string", pattern: "^[\\w-.]+(" } }
        })
        expect(
          yield* outcomesOf(story, [lookUp, { tool: "shop__lookup", arguments: { word: 1 } }])
        ).toMatchObject([{ status: "completed" }, { status: "failed", result: { pointer: "/word" } }])
      })
    )

    for (const [why, tool, value] of [
      [
        "leads out of itself",
        { inputSchema: { type: "object", properties: { a: { $ref: "https://a.example/s" } } } },
        "https://a.example/s"
      ],
      [
        "leads nowhere",
        { inputSchema: { type: "object", properties: { a: { $ref: "#/$defs/no" } } } },
        "#/$defs/no"
      ],
      [
        "is in a dialect that nobody knows",
        { inputSchema: { type: "object", $schema: "http://a.example/mine" } },
        "http://a.example/mine"
      ],
      ["is of a tool that is a task of 2025-11-25", { execution: { taskSupport: "required" } }, ""]
    ] as const)
      it.effect(`since it ${why} is left out with that reason`, () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const odd = yield* oddServer(() => undefined, {
            tools: [oddTool(tool), oddTool({ name: "other" })]
          })
          const server = yield* addServer(story, { type: "http", url: odd.url })
          expect(server.tools.map(({ name }: Json) => name)).toEqual(["other"])
          expect(server.lastError).toMatch(/\blookup \(/)
          expect(server.lastError).toContain(value)
        })
      )
  })
})

layer(ModelsOnTheWire.layer, { excludeTestServices: true })((it) => {
  describe("A schema outside of the providers' rules", () => {
    it.effect("is offered within them, and the call has the tool's own keys", () =>
      Effect.gen(function* () {
        const { model, newStory } = yield* ModelsOnTheWire
        const story = yield* newStory
        const inputSchema = {
          type: "object",
          properties: {
            "filter[id]": { type: "array" },
            $top: { type: "integer", minimum: 0, exclusiveMinimum: true }
          },
          required: ["filter[id]"]
        }
        const odd = yield* oddServer(() => undefined, { tools: [oddTool({ inputSchema })] })
        yield* addServer(story, { type: "http", url: odd.url })
        const caller = yield* model([
          { calls: [{ tool: "shop__lookup", arguments: { filter_id: ["a"], top: 5 } }] },
          { say: "Found." }
        ])
        const agent = yield* story.post("/agents", {
          name: "caller",
          prompt: "Look it up.",
          triggerType: "manual",
          executionMode: "execute",
          tools: ["shop.*"],
          model: caller.config
        })
        const run = yield* story.post(`/agents/${agent.id}/trigger`)
        expect(run).toMatchObject({ status: "completed", summary: "Found." })
        expect(caller.requests[0].tools[0].function.parameters).toEqual({
          type: "object",
          properties: {
            filter_id: { type: "array", items: {} },
            top: { type: "integer", exclusiveMinimum: 0 }
          },
          required: ["filter_id"]
        })
        expect(odd.of("tools/call").map(({ message }) => message.params.arguments)).toEqual([
          { "filter[id]": ["a"], $top: 5 }
        ])
      })
    )
  })
})
