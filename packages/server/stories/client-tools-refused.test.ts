/**
 * Definitions of client tools that are refused when they are sent, with the place.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { pickColour } from "../testing/client-tool-words.ts"
import { newContext } from "../testing/context-words.ts"
import { defineTool } from "../testing/define-words.ts"
import { countRows, expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"

const schemaOf = (properties: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  inputSchema: { type: "object", properties, ...more }
})

/** Nested so deep that no JSON may be. */
const deep = (levels: number): Record<string, unknown> =>
  levels === 0 ? { type: "string" } : { type: "object", properties: { a: deep(levels - 1) } }

/** A definition that is refused: what is wrong with it, where, and a text that the refusal names. */
const wrong: ReadonlyArray<readonly [string, Record<string, unknown>, string, string?]> = [
  ["neither a tool nor a schema", { inputSchema: undefined }, "/tool", "inputSchema"],
  ["both a tool and a schema", { tool: "create_object" }, "/inputSchema", "create_object"],
  ["arguments beside a schema", { arguments: { prompt: "?" } }, "/arguments"],
  ["a schema that is no object", { inputSchema: "object" }, "/inputSchema"],
  ["a schema of a list", { inputSchema: { type: "array" } }, "/inputSchema/type", "object"],
  ["a schema without a type", { inputSchema: { properties: {} } }, "/inputSchema/type", "object"],
  ["a schema that cannot be used", schemaOf({}, { allOf: [{ $ref: "#" }] }), "/inputSchema"],
  ["a reference that leads nowhere", schemaOf({ a: { $ref: "#/$defs/lost" } }), "/inputSchema", "lost"],
  [
    "a schema that is too long",
    schemaOf({ a: { description: "d".repeat(50_001) } }),
    "/inputSchema",
    "50000"
  ],
  ["a schema that is too deep", { inputSchema: deep(40) }, "/inputSchema"],
  ["the name of an existing tool", { name: "get_object" }, "/name", "get_object"],
  ["the name by which a person is asked", { name: "ask_user" }, "/name", "ask_user"],
  ["a name as foreign servers have them", { name: "shop__pick" }, "/name"],
  ["a name that is too long", { name: "n".repeat(65) }, "/name", "64"],
  ["a time that is too short", { timeoutMs: 999 }, "/timeoutMs", "1000"],
  ["a time that is too long", { timeoutMs: 86_400_001 }, "/timeoutMs", "86400000"],
  [
    "a time for a tool that the server runs",
    { inputSchema: undefined, tool: "get_object", timeoutMs: 5_000 },
    "/timeoutMs"
  ],
  ["a description that is too long", { description: "d".repeat(4_001) }, "/description", "4000"]
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A client tool that cannot be defined is refused when it is sent, and nothing is kept", () => {
    it.effect.each(wrong)("S004-F02 %s", ([, overrides, pointer, value = ""]) =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const before = yield* countRows(story)
        const answer = yield* defineTool(story, "talk", { ...pickColour, ...overrides })
        expect(answer.status).toBe(422)
        expect(JSON.stringify(answer.body)).toContain(value)
        const [fault] = answer.body.errors
        expect(fault.pointer.startsWith(pointer)).toBe(true)
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("S004-F02 a name that is not defined cannot be taken back: it is 404 and names it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        const before = yield* countRows(story)
        const answer = yield* defineTool(story, "talk", { name: "pick_color", tool: null })
        expectProblem(answer, 404)
        expect(answer.body.detail).toContain("pick_color")
        expect(yield* countRows(story)).toEqual(before)
      })
    )

    it.effect("S004-F02 a context defines at most fifty tools, of both kinds together", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        for (let index = 0; index < 25; index++) {
          yield* defineTool(story, "talk", { ...pickColour, name: `pick_${index}` })
          yield* defineTool(story, "talk", { name: `get_${index}x`, tool: "get_object" })
        }
        const full = yield* defineTool(story, "talk", { ...pickColour, name: "one_more" })
        expectProblem(full, 422, "/name")
        expect(full.body.detail).toContain("50")
        expect((yield* defineTool(story, "talk", { ...pickColour, name: "pick_0" })).status).toBe(204)
        yield* defineTool(story, "talk", { name: "get_0x", tool: null })
        expect((yield* defineTool(story, "talk", { ...pickColour, name: "one_more" })).status).toBe(204)
      })
    )

    it.effect("S004-F02 another name for a client tool is refused: it has no arguments to give", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        yield* defineTool(story, "talk", pickColour)
        expectProblem(yield* defineTool(story, "talk", { name: "pick", tool: "pick_colour" }), 422, "/tool")
      })
    )
  })
})
